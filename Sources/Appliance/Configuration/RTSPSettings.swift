import Glibc
import Host
import Platform
import SRTP
package import Serving

/// The settings of the RTSP server.
package struct RTSPSettings: Hashable, Sendable {
  /// The suite that SRTP is offered with; nil if SRTP is not offered.
  package struct OfferedSuite: Hashable, Sendable {
    var suite: SRTPSuite?
  }

  /// The address to serve `rtsp` at; nil for no server.
  package var rtsp: ListenAddress?
  /// The address to serve `rtsps` at; nil for no server.
  package var rtsps: ListenAddress?
  /// The users file; nil for the default one, if it exists.
  package var users: String?
  /// The certificate file and the file of its private key; nil for a certificate of the host's own.
  package var certificate: String?
  package var key: String?
  /// `true` if pictures leave encrypted only.
  package var requiresEncryption = false
  /// The suite of SRTP; nil for the default.
  package var suite: OfferedSuite?
  /// The limit of sessions; nil for as many as the memory and the descriptors of this process suffice for.
  package var sessions: Int?

  /// The default ports. RFC 2326 assigns 554 and RFC 7826 322, which only root may open.
  package static let (port, encryptedPort) = (8554, 8322)

  /// The names of the rtsp and rtsps sockets in socket units.
  package static let socketNames: Set = ["rtsp", "rtsps"]

  /// `true` if the options request a server.
  package var isServed: Bool { rtsp != nil || rtsps != nil }

  /// The addresses to serve at, and the default port of each.
  var listening: [(ApplianceSetting, ListenAddress, port: Int)] {
    [(ApplianceSetting.rtsp, rtsp, Self.port), (.rtsps, rtsps, Self.encryptedPort)].compactMap { name, given, port in
      given.map { (name, $0, port) }
    }
  }

  /// Reports settings that contradict each other.
  func check(_ faults: inout SettingFaults) {
    if (certificate == nil) != (key == nil) {
      faults.add("\(.certificate) and \(.key): give both, or neither: nightjar then makes a certificate")
    }
    if let rtsp, let rtsps, rtsp.overlaps(rtsps, ports: Self.port, Self.encryptedPort) {
      faults.add("\(.rtsp) and \(.rtsps) have the same port: change one of them, as in \(.rtsps) :8322")
    }
    if rtsps == nil, suite != nil { faults.add("\(.suite) is for \(.rtsps) only") }
    if !isServed {
      if requiresEncryption { faults.add("\(.requireEncryption) is for \(.rtsps) only") }
      if sessions != nil { faults.add("\(.sessions) is for \(.rtsp) and \(.rtsps) only") }
    } else if requiresEncryption, rtsps == nil {
      faults.add(.requireEncryption, "add \(.rtsps), which is encrypted")
    }
  }

  /// Returns the server's configuration, from the options and the files on disk; `nil` if nothing is served.
  ///
  /// - Parameters:
  ///   - sockets: the sockets that systemd has opened; they replace the default addresses.
  ///   - former: the present configuration. Once its last user is removed, the server keeps its addresses, for this
  ///     host alone: a removed user must lose access, which a refused configuration would preserve.
  ///   - notes: the notes that receive warnings, which are no reason to stop.
  /// - Throws: ``ApplianceFailure`` for an address that is open to other hosts while there are no users, and for one
  ///   beside a socket of the same kind, `UsersFileError`, `TLSIdentityError`.
  func configuration(
    sockets: [ActivationSocket], after former: RTSPServerConfiguration? = nil, _ notes: Notes
  ) throws -> RTSPServerConfiguration? {
    guard isServed || !sockets.isEmpty else { return nil }
    let users = try usersFile(mayBeEmpty: former != nil)
    let isOpen = users != nil || former?.listeners.contains { !$0.isLoopback } == true
    var listeners = try listeners(rtsp, named: "rtsp", of: sockets, port: Self.port, isOpenToOthers: isOpen)
    listeners += try self.listeners(
      rtsps, named: "rtsps", of: sockets, port: Self.encryptedPort, isOpenToOthers: isOpen)
    var configuration = RTSPServerConfiguration(listeners: listeners)
    configuration.users = users
    configuration.limit(sessions: sessions ?? Self.usualSessions)
    configuration.requiresEncryption = requiresEncryption
    if let suite { configuration.suite = suite.suite }
    configuration.servesThisMachineAlone = users == nil
    // A socket unit may open other addresses, but must not decide who may watch.
    if users == nil, listeners.contains(where: { !$0.isLoopback }) {
      notes.warn(
        "without users only this host may watch: connections from others are closed; add one with: "
          + ServiceAccount.addingUser)
    }
    if listeners.contains(where: \.isEncrypted) { configuration.identity = try identity(notes) }
    return configuration
  }

  /// Returns the users file; `nil` if there are no users.
  ///
  /// - Throws: `UsersFileError`, ``ApplianceFailure`` for a named file without users, unless `mayBeEmpty`.
  package func usersFile(mayBeEmpty: Bool = false) throws -> UsersFile? {
    let path = users ?? StandardPaths.usersFile
    if users == nil, access(path, F_OK) != 0, errno == ENOENT || errno == ENOTDIR { return nil }
    let file = try UsersFile(contentsOf: path)
    guard !file.users.isEmpty else {
      guard users != nil, !mayBeEmpty else { return nil }
      throw ApplianceFailure(
        kind: .noInput, description: "\(path) has no users; add one with: nightjar user add NAME --users \(path)")
    }
    return file
  }

  private func listeners(
    _ given: ListenAddress?, named name: String, of sockets: [ActivationSocket], port: Int, isOpenToOthers: Bool
  ) throws -> [RTSPServerConfiguration.Listener] {
    let isEncrypted = name == "rtsps"
    let sockets = sockets.filter { $0.name == name }
    guard sockets.isEmpty else {
      if let given, given.address != nil || given.port != nil {
        throw ApplianceFailure(
          kind: .usage,
          description: "--\(name) \(given): systemd has opened the socket already, at \(sockets[0].address) port "
            + "\(sockets[0].port); leave the address out, or the socket unit")
      }
      return sockets.map {
        RTSPServerConfiguration.Listener(
          address: $0.address, port: $0.port, isEncrypted: isEncrypted, descriptor: $0.descriptor)
      }
    }
    guard let given else { return [] }
    guard let listeners = given.listeners(port: port, isEncrypted: isEncrypted, isOpenToOthers: isOpenToOthers) else {
      throw ApplianceFailure(
        kind: .usage,
        description: "without users only this host may watch, and \(given.address ?? "") is open to others: "
          + "add one with: \(ServiceAccount.addingUser)")
    }
    return listeners
  }

  /// Returns the TLS identity for clients: the given certificate, or one of the host's own.
  ///
  /// - Throws: `TLSIdentityError`.
  func identity(_ notes: Notes) throws -> TLSIdentity {
    let now = Int64(time(nil))
    if let certificate, let key {
      let identity = try TLSIdentity(certificateFile: certificate, keyFile: key)
      switch identity.validity(at: now) {
      case .valid: break
      case .expired: notes.warn("\(certificate) has expired: players may refuse it; renew it")
      case .notYet: notes.warn("\(certificate) is not valid yet: check this host's clock")
      }
      return identity
    }
    let own = try SelfSignedIdentity(at: now)
    notes.add("certificate \(own.path), SHA-256 \(own.identity.fingerprint)")
    notes.add(
      own.identity.authority == nil
        ? "  accept it in a player that shows the same SHA-256"
        : "  signed by this host's authority: devices that trust it do not warn (nightjar certificate)")
    return own.identity
  }

  /// The number of sessions that this host and this process have resources for.
  private static var usualSessions: Int {
    var limit = rlimit()
    let (pages, size) = (sysconf(CInt(_SC_PHYS_PAGES)), sysconf(CInt(_SC_PAGESIZE)))
    guard pages > 0, size > 0, getrlimit(__rlimit_resource_t(RLIMIT_NOFILE.rawValue), &limit) == 0 else {
      return RTSPServerConfiguration.usualSessions(memory: 0, ownMemory: nil, descriptors: 0)
    }
    return RTSPServerConfiguration.usualSessions(
      memory: UInt64(pages) * UInt64(size), ownMemory: MemoryLimit.ofThisProcess, descriptors: UInt64(limit.rlim_cur))
  }
}

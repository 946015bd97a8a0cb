import ArgumentParser
import Credentials
import Glibc
import Listening
import Media
import RTSPServer
import SRTP
import Streaming
import SystemService

/// The RTSP server.
struct RTSPOptions: ParsableArguments {
  @Option(
    defaultAsFlag: ListenAddress(),
    help: ArgumentHelp(
      "Serve rtsp://HOST:8554/NAME, where NAME is --name's; viewers come and go.",
      discussion: """
        Without users (nightjar user add NAME) it listens on this machine only; with users on every address. \
        ADDRESS:PORT, :PORT or ADDRESS chooses others. Sockets that systemd has opened, of the name rtsp or rtsps, are \
        taken instead; without users they too serve this machine only.
        """, valueName: "address:port"))
  var rtsp: ListenAddress?

  @Option(
    defaultAsFlag: ListenAddress(),
    help: ArgumentHelp(
      "Serve rtsps://HOST:8322/NAME: as --rtsp, encrypted.",
      discussion: "Without --tls-cert a certificate is made at the first start and kept.", valueName: "address:port"))
  var rtsps: ListenAddress?

  @Option(
    help: ArgumentHelp(
      "Who may watch by RTSP and --http, and use --https: the file that nightjar user writes.",
      discussion: "Without it the usual one, if there is one.", valueName: "file"))
  var users: String?

  @Option(
    name: .customLong("tls-cert"),
    help: ArgumentHelp(
      "The certificate for --rtsps and --https and those that vouch for it, in PEM.", valueName: "file"))
  var certificate: String?

  @Option(
    name: .customLong("tls-key"),
    help: ArgumentHelp("Its private key, in PEM, which nobody else may read.", valueName: "file"))
  var key: String?

  @Option(
    name: .customLong("rtsp-multicast"),
    help: ArgumentHelp(
      "The group that viewers share who ask for multicast; without it they are refused.",
      discussion: """
        Everybody on the network can watch it, users or not, unless --require-encryption encrypts it. The TTL is 1.
        """, valueName: "group:port"),
    transform: Self.group)
  var group: ServerConfiguration.Group?

  @Flag(
    name: .customLong("require-encryption"),
    help: ArgumentHelp(
      "Send the picture to viewers of rtsps alone, within their encrypted connection or by SRTP.",
      discussion: """
        Viewers of --rtsp are refused, and so is UDP without SRTP. The group of --rtsp-multicast is encrypted.
        """))
  var requiresEncryption = false

  @Option(
    name: .customLong("rtsps-suite"),
    help: ArgumentHelp(
      "What --rtsps offers SRTP by: AES_CM_128_HMAC_SHA1_80, AEAD_AES_128_GCM, AEAD_AES_256_GCM or none.",
      discussion: """
        The first, unless told otherwise. Each viewer gets a key of its own; players that do not know SRTP get the \
        picture within the connection. none is for players that refuse a description with it.
        """, valueName: "suite"),
    transform: Self.suite)
  var suite: OfferedSuite?

  @Option(
    name: .customLong("rtsp-sessions"),
    help: ArgumentHelp(
      "How many may watch by --rtsp and --rtsps at once, all cameras together; one address an eighth of them.",
      discussion: "Without it as many as memory and descriptors allow, 1024 at most: 512 with 2 GB.", valueName: "n"))
  var sessions: Int?

  @Flag(name: .customLong("always-encode"), help: "Keep the encoder at work while nobody watches.")
  var alwaysEncodes = false

  /// The ports unless told; RFC 2326 gives 554 and RFC 7826 322, which only root may open.
  static let (port, encryptedPort) = (8554, 8322)

  /// What socket units call the sockets of rtsp and rtsps.
  static let socketNames: Set = ["rtsp", "rtsps"]

  /// Whether the options ask for a server.
  var isServed: Bool { rtsp != nil || rtsps != nil }

  mutating func validate() throws {
    guard (certificate == nil) == (key == nil) else {
      throw ValidationError("--tls-cert and --tls-key: give both, or neither for a certificate of our own")
    }
    for (option, given) in [("--rtsp", rtsp), ("--rtsps", rtsps)] {
      if let text = given?.unreadable { throw ValidationError("\(option) \(text): \(ListenAddress.rule)") }
    }
    if let rtsp, let rtsps, rtsp.overlaps(rtsps, ports: Self.port, Self.encryptedPort) {
      throw ValidationError("--rtsp and --rtsps want the same port: give one of them another, as in --rtsps :8322")
    }
    if let sessions, !ServerConfiguration.sessionLimits.contains(sessions) {
      throw ValidationError(
        "--rtsp-sessions \(sessions): choose \(ServerConfiguration.sessionLimits.lowerBound) to "
          + "\(ServerConfiguration.sessionLimits.upperBound)")
    }
    guard isServed else {
      if group != nil { throw ValidationError("--rtsp-multicast is for --rtsp and --rtsps only") }
      if requiresEncryption { throw ValidationError("--require-encryption is for --rtsps only") }
      if suite != nil { throw ValidationError("--rtsps-suite is for --rtsps only") }
      if sessions != nil { throw ValidationError("--rtsp-sessions is for --rtsp and --rtsps only") }
      if alwaysEncodes { throw ValidationError("--always-encode is for --rtsp and --rtsps only") }
      return
    }
    if rtsps == nil, suite != nil { throw ValidationError("--rtsps-suite is for --rtsps only") }
    if requiresEncryption {
      guard rtsps != nil else { throw ValidationError("--require-encryption: add --rtsps, the way that is encrypted") }
      guard group == nil || suite == nil || suite?.suite != nil else {
        throw ValidationError("--require-encryption and --rtsp-multicast: a group is encrypted by a --rtsps-suite")
      }
    }
  }

  /// What is to be served, by what was given and what is on the disk; nil where nothing is.
  ///
  /// - Parameters:
  ///   - sockets: what systemd has opened; they take the place of the usual addresses.
  ///   - former: what is served until now. Where its last user is gone it listens where it did, for this machine alone: who
  ///     is no user any more is to be thrown out, not kept by a refusal.
  ///   - notes: for what is no reason to stop.
  /// - Throws: ``CommandFailure`` for an address that is open to others while there are no users, and for one beside a
  ///   socket of the same kind, `UsersFileError`, `TLSIdentityError`.
  func configuration(
    sockets: [ActivationSocket], after former: ServerConfiguration? = nil, _ notes: Notes
  ) throws -> ServerConfiguration? {
    guard isServed || !sockets.isEmpty else { return nil }
    let users = try usersFile(mayBeEmpty: former != nil)
    let isOpen = users != nil || former?.listeners.contains { !$0.isLoopback } == true
    var listeners = try listeners(rtsp, named: "rtsp", of: sockets, port: Self.port, isOpenToOthers: isOpen)
    listeners += try self.listeners(
      rtsps, named: "rtsps", of: sockets, port: Self.encryptedPort, isOpenToOthers: isOpen)
    var configuration = ServerConfiguration(listeners: listeners)
    configuration.users = users
    configuration.limit(sessions: sessions ?? Self.usualSessions)
    configuration.requiresEncryption = requiresEncryption
    if let suite { configuration.suite = suite.suite }
    configuration.servesThisMachineAlone = users == nil
    // A socket unit may say otherwise; who may watch is not for it to decide.
    if users == nil, listeners.contains(where: { !$0.isLoopback }) {
      notes.warn(
        "without users only this machine may watch: connections from others are closed; add one with: "
          + ServiceAccount.addingUser)
    }
    if listeners.contains(where: \.isEncrypted) { configuration.identity = try identity(notes) }
    return configuration
  }

  /// Who may log in; nil where there is nobody.
  ///
  /// - Throws: `UsersFileError`, ``CommandFailure`` for a file that was named, has no users, and may not be so.
  func usersFile(mayBeEmpty: Bool = false) throws -> UsersFile? {
    let path = users ?? StandardPaths.usersFile
    if users == nil, access(path, F_OK) != 0, errno == ENOENT || errno == ENOTDIR { return nil }
    let file = try UsersFile(contentsOf: path)
    guard !file.users.isEmpty else {
      guard users != nil, !mayBeEmpty else { return nil }
      throw CommandFailure(
        kind: .noInput, description: "\(path) has no users; add one with: nightjar user add NAME --users \(path)")
    }
    return file
  }

  private func listeners(
    _ given: ListenAddress?, named name: String, of sockets: [ActivationSocket], port: Int, isOpenToOthers: Bool
  ) throws -> [ServerConfiguration.Listener] {
    let isEncrypted = name == "rtsps"
    let sockets = sockets.filter { $0.name == name }
    guard sockets.isEmpty else {
      if let given, given.address != nil || given.port != nil {
        throw CommandFailure(
          kind: .usage,
          description: "--\(name) \(given): systemd has opened the socket already, at \(sockets[0].address) port "
            + "\(sockets[0].port); leave the address out, or the socket unit")
      }
      return sockets.map {
        ServerConfiguration.Listener(
          address: $0.address, port: $0.port, isEncrypted: isEncrypted, descriptor: $0.descriptor)
      }
    }
    guard let given else { return [] }
    guard let listeners = given.listeners(port: port, isEncrypted: isEncrypted, isOpenToOthers: isOpenToOthers) else {
      throw CommandFailure(
        kind: .usage,
        description: "without users only this machine may watch, not whoever reaches \(given.address ?? ""): "
          + "add one with: \(ServiceAccount.addingUser)")
    }
    return listeners
  }

  /// What TLS shows to clients: the certificate given, or one of the machine's own.
  ///
  /// - Throws: `TLSIdentityError`.
  func identity(_ notes: Notes) throws -> TLSIdentity {
    let now = Int64(time(nil))
    if let certificate, let key {
      let identity = try TLSIdentity(certificateFile: certificate, keyFile: key)
      switch identity.validity(at: now) {
      case .valid: break
      case .expired: notes.warn("\(certificate) has expired: players may refuse it; have it renewed")
      case .notYet: notes.warn("\(certificate) is not valid yet: is this machine's clock right?")
      }
      return identity
    }
    let own = try SelfSignedIdentity(at: now)
    notes.add("certificate \(own.path), SHA-256 \(own.identity.fingerprint)")
    notes.add("  a player that asks whether to trust it shows this SHA-256: accept it if they are the same")
    return own.identity
  }

  /// As many sessions as this machine and this process have room for.
  private static var usualSessions: Int {
    var limit = rlimit()
    let (pages, size) = (sysconf(CInt(_SC_PHYS_PAGES)), sysconf(CInt(_SC_PAGESIZE)))
    guard pages > 0, size > 0, getrlimit(__rlimit_resource_t(RLIMIT_NOFILE.rawValue), &limit) == 0 else {
      return ServerConfiguration.usualSessions(memory: 0, descriptors: 0)
    }
    return ServerConfiguration.usualSessions(
      memory: UInt64(pages) * UInt64(size), descriptors: UInt64(limit.rlim_cur))
  }

  private static func suite(_ text: String) throws -> OfferedSuite {
    if text == "none" { return OfferedSuite(suite: nil) }
    guard let suite = SRTPSuite(rawValue: text) else {
      throw ValidationError("choose " + SRTPSuite.allCases.map(\.rawValue).joined(separator: ", ") + " or none")
    }
    return OfferedSuite(suite: suite)
  }

  private static func group(_ text: String) throws -> ServerConfiguration.Group {
    let given = ListenAddress(argument: text)
    guard given.unreadable == nil, let address = given.address, let port = given.port, port < 65_535,
      port.isMultiple(of: 2), let resolved = try? SocketAddress(host: address, port: 1), resolved.isMulticast
    else { throw ValidationError("write a multicast group and an even port, as in 239.1.2.3:5004 or [ff15::7]:5004") }
    return ServerConfiguration.Group(address: address, port: UInt16(port), timeToLive: 1)
  }
}

/// What SRTP is offered by; nil is not at all.
struct OfferedSuite {
  var suite: SRTPSuite?
}

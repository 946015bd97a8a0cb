import Glibc
import Platform
package import Serving

/// The settings of the control API over the network.
package struct APISettings: Hashable, Sendable {
  /// The address to serve at; nil for no server.
  package var https: ListenAddress?
  /// The tokens file; nil for the default one, if it exists.
  package var tokens: String?

  /// The default port.
  package static let port = 8443

  /// Reports settings that contradict each other, or those of the RTSP server.
  func check(beside rtsp: RTSPSettings, _ faults: inout SettingFaults) {
    if https == nil, tokens != nil { faults.add("\(.tokens) is for \(.https) only") }
    if https == nil, rtsp.rtsps == nil, rtsp.certificate != nil {
      faults.add("\(.certificate) is for \(.rtsps) and \(.https) only")
    }
    guard let https else { return }
    for (setting, other, port) in rtsp.listening where other.overlaps(https, ports: port, Self.port) {
      faults.add("\(setting) and \(.https) have the same port: change one of them, as in \(.https) :8444")
    }
  }

  /// Returns the tokens file; `nil` if there is no file and none was named.
  ///
  /// - Throws: `TokensFileError`.
  package func tokensFile() throws -> TokensFile? {
    let path = tokens ?? StandardPaths.tokensFile
    if tokens == nil, access(path, F_OK) != 0, errno == ENOENT || errno == ENOTDIR { return nil }
    return try TokensFile(contentsOf: path)
  }

  /// The path of the phones' file.
  package static var phonesPath: String { "\(StandardPaths.stateDirectory)/\(Phones.fileName)" }

  /// Returns the server's configuration, from the options and the files on disk; `nil` if nothing is served.
  ///
  /// - Parameters:
  ///   - serving: the options that name users and certificate.
  ///   - rtsp: the RTSP server's configuration, with the files that are loaded already.
  ///   - former: the present configuration; see ``RTSPSettings/configuration(sockets:after:_:)``.
  /// - Throws: ``ApplianceFailure`` for an address that is open to other hosts while nobody can log in, `UsersFileError`,
  ///   `TokensFileError` (also for the phones' file), `TLSIdentityError`.
  func configuration(
    _ serving: RTSPSettings, rtsp: RTSPServerConfiguration?, after former: HTTPServer.Configuration? = nil,
    _ notes: Notes
  ) throws -> HTTPServer.Configuration? {
    guard let https else { return nil }
    let users = try rtsp?.users ?? serving.usersFile(mayBeEmpty: former != nil)
    let tokens = try tokensFile()
    warnOfMissingRoles(tokens, notes)
    // One object as long as the program runs: it writes the file.
    let phones = try former?.phones ?? Phones(path: Self.phonesPath)
    let hasAnybody = users != nil || tokens?.names.isEmpty == false || !phones.list.isEmpty
    let isOpen = hasAnybody || former?.listeners.contains { !$0.isLoopback } == true
    guard let listeners = https.listeners(port: Self.port, isEncrypted: true, isOpenToOthers: isOpen) else {
      throw ApplianceFailure(
        kind: .usage,
        description: "--https \(https): without users and tokens only this host may ask: add one with nightjar user "
          + "add NAME, or nightjar token add NAME")
    }
    return HTTPServer.Configuration(
      listeners: listeners, identity: try rtsp?.identity ?? serving.identity(notes), users: users, tokens: tokens,
      phones: phones)
  }
}

extension APISettings {
  /// Warns of tokens that were made before tokens had roles, and tells the command that gives them one.
  private func warnOfMissingRoles(_ file: TokensFile?, _ notes: Notes) {
    guard let names = file?.namesWithoutRole, let first = names.first else { return }
    let option = tokens.map { " --tokens \(ShellWord.quoted($0))" } ?? ""
    notes.warn(
      "tokens without a role read and watch, but change nothing: \(names.map(\.description).joined(separator: ", ")); "
        + "give each one: \(ServiceAccount.command("token role \(first) \(Role.control.rawValue)\(option)"))")
  }
}

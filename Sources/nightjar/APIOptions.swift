import ArgumentParser
import Control
import Credentials
import Glibc
import Listening
import Media
import RTSPServer

/// The control API over the network.
struct APIOptions: ParsableArguments {
  @Option(
    defaultAsFlag: ListenAddress(),
    help: ArgumentHelp(
      "Serve the control API at https://HOST:8443/v1/status, encrypted.",
      discussion: """
        It is for the users of nightjar user and for programs with a token of nightjar token, each of whom has a role: read \
        for figures, view for pictures too, control for all that nightjar ctl does. Without either it listens on this \
        machine only, and answers questions only. ADDRESS:PORT, :PORT or ADDRESS chooses others. The certificate is that of \
        --rtsps.
        """, valueName: "address:port"))
  var https: ListenAddress?

  @Option(
    help: ArgumentHelp(
      "Programs that may use --https: the file that nightjar token writes.",
      discussion: "Without it the usual one, if there is one.", valueName: "file"))
  var tokens: String?

  /// The port unless told.
  static let port = 8443

  mutating func validate() throws {
    if let text = https?.unreadable { throw ValidationError("--https \(text): \(ListenAddress.rule)") }
    if https == nil, tokens != nil { throw ValidationError("--tokens is for --https only") }
  }

  /// Checks what these options have in common with those of the RTSP server.
  ///
  /// - Throws: `ValidationError`.
  func validate(with serving: RTSPOptions) throws {
    if https == nil, serving.rtsps == nil, serving.certificate != nil {
      throw ValidationError("--tls-cert is for --rtsps and --https only")
    }
    guard let https else { return }
    for (option, other, port) in [
      ("--rtsp", serving.rtsp, RTSPOptions.port), ("--rtsps", serving.rtsps, RTSPOptions.encryptedPort),
    ] {
      if let other, other.overlaps(https, ports: port, Self.port) {
        throw ValidationError("\(option) and --https want the same port: give one of them another, as in --https :8444")
      }
    }
  }

  /// Who may log in by a token; nil where there is no file and none was named.
  ///
  /// - Throws: `TokensFileError`.
  func tokensFile() throws -> TokensFile? {
    let path = tokens ?? StandardPaths.tokensFile
    if tokens == nil, access(path, F_OK) != 0, errno == ENOENT || errno == ENOTDIR { return nil }
    return try TokensFile(contentsOf: path)
  }

  /// What is to be served, by what was given and what is on the disk; nil where nothing is.
  ///
  /// - Parameters:
  ///   - serving: where users and certificate are named.
  ///   - rtsp: what the RTSP server has loaded of them already.
  ///   - former: what is served until now; see ``RTSPOptions/configuration(sockets:after:_:)``.
  /// - Throws: ``CommandFailure`` for an address that is open to others while nobody could log in, `UsersFileError`,
  ///   `TokensFileError`, `TLSIdentityError`.
  func configuration(
    _ serving: RTSPOptions, rtsp: ServerConfiguration?, after former: NetworkControlServer.Configuration? = nil,
    _ notes: Notes
  ) throws -> NetworkControlServer.Configuration? {
    guard let https else { return nil }
    let users = try rtsp?.users ?? serving.usersFile(mayBeEmpty: former != nil)
    let tokens = try tokensFile()
    warnOfMissingRoles(tokens, notes)
    let hasAnybody = users != nil || tokens?.names.isEmpty == false
    let isOpen = hasAnybody || former?.listeners.contains { !$0.isLoopback } == true
    guard let listeners = https.listeners(port: Self.port, isEncrypted: true, isOpenToOthers: isOpen) else {
      throw CommandFailure(
        kind: .usage,
        description: "--https \(https): without users and tokens only this machine may ask: add one with nightjar user "
          + "add NAME, or nightjar token add NAME")
    }
    return NetworkControlServer.Configuration(
      listeners: listeners, identity: try rtsp?.identity ?? serving.identity(notes), users: users, tokens: tokens)
  }
}

extension APIOptions {
  /// Tells which tokens were made before tokens had roles, and what gives them one.
  private func warnOfMissingRoles(_ file: TokensFile?, _ notes: Notes) {
    guard let names = file?.namesWithoutRole, let first = names.first else { return }
    let option = tokens.map { " --tokens \(ShellWord.quoted($0))" } ?? ""
    notes.warn(
      "tokens without a role read and watch, but change nothing: \(names.map(\.description).joined(separator: ", ")); "
        + "give each one: \(ServiceAccount.command("token role \(first) \(Role.control.rawValue)\(option)"))")
  }
}

extension ListenAddress {
  /// Where to listen: at what was given, else at all addresses, or at this machine's own where it is not to be open to
  /// others. Nil where an address was given that others could reach, and may not.
  func listeners(port: Int, isEncrypted: Bool, isOpenToOthers: Bool) -> [TCPListener]? {
    let port = self.port ?? port
    guard let address else {
      return (isOpenToOthers ? ["0.0.0.0", "::"] : ["127.0.0.1", "::1"]).map {
        TCPListener(address: $0, port: port, isEncrypted: isEncrypted, isOptional: $0.contains(":"))
      }
    }
    guard isOpenToOthers || PeerAddress(address)?.isLoopback == true else { return nil }
    return [TCPListener(address: address, port: port, isEncrypted: isEncrypted)]
  }
}

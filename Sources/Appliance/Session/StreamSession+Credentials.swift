import Glibc
import Host
import Platform
import Serving

/// The users, tokens and certificates, which change while the program runs.
extension StreamSession {
  /// The interval at which the certificate that the host's authority has signed is compared with the host's addresses.
  private static let certificateInterval = Duration(seconds: 3600)

  /// Applies the files of users, tokens and certificates if they have changed, as by `nightjar user add`; called once a
  /// second.
  func followCredentials() {
    // A reload reads the files itself.
    guard table.reload == nil, !servers.isExchanging else { return }
    guard serving != nil || servingAPI != nil || servingHTTP != nil else { return }
    let hasChanged = credentialFiles.haveChanged()
    let isDue = Instant.now() >= nextCertificateCheck && servingAPI?.identity?.authority != nil
    guard hasChanged || isDue else { return }
    nextCertificateCheck = .now() + Self.certificateInterval
    do {
      let old = servingAPI?.identity?.certificate
      follow(try servers(of: configuration, Notes()))
      handleServers(.answered(within: .zero))
      publish()
      credentialFiles.noteOwn()
      if servingAPI?.identity?.certificate != old {
        terminal.line("HTTPS has another certificate now", event: "credentials")
      } else if hasChanged {
        terminal.line("users, passwords or tokens have changed: they apply now", event: "credentials")
      }
    } catch {
      terminal.line(
        "the changed users, tokens or certificates do not apply: \(error); those before still do", .error,
        event: "credentials")
    }
  }
}

/// The files of users, tokens and certificates, as they were at the last look. Looking allocates nothing.
struct CredentialFiles {
  /// The state of a file: another one after each change of content, owner or mode. All zero without a file.
  private struct State: Equatable {
    var device: UInt = 0
    var inode: UInt = 0
    var size = 0
    var content = 0
    var contentPart = 0
    var status = 0
    var statusPart = 0

    init(_ path: [CChar]) {
      var file = stat()
      guard stat(path, &file) == 0 else { return }
      (device, inode, size) = (UInt(file.st_dev), UInt(file.st_ino), Int(file.st_size))
      (content, contentPart) = (file.st_mtim.tv_sec, file.st_mtim.tv_nsec)
      (status, statusPart) = (file.st_ctim.tv_sec, file.st_ctim.tv_nsec)
    }
  }

  private var paths: [[CChar]]
  private var states: [State]
  /// The number of files at the beginning that others write: those behind them are the host's own certificate and its
  /// authority.
  private let othersCount: Int

  init(_ configuration: ApplianceConfiguration) {
    let rtsp = configuration.rtsp
    let others = [
      rtsp.users ?? StandardPaths.usersFile, configuration.api.tokens ?? StandardPaths.tokensFile, rtsp.certificate,
      rtsp.key,
    ].compactMap { $0 }
    let own = [SelfSignedIdentity.fileName, LocalAuthority.fileName].map { "\(StandardPaths.stateDirectory)/\($0)" }
    paths = (others + own).map { Array($0.utf8CString) }
    states = paths.map { State($0) }
    othersCount = others.count
  }

  /// Looks at the files. Returns `true` if one has changed since the last look.
  mutating func haveChanged() -> Bool { look(from: 0) }

  /// Notes the changes that nightjar itself has made.
  mutating func noteOwn() { _ = look(from: othersCount) }

  private mutating func look(from first: Int) -> Bool {
    var hasChanged = false
    for index in first..<paths.count {
      let state = State(paths[index])
      guard state != states[index] else { continue }
      states[index] = state
      hasChanged = true
    }
    return hasChanged
  }
}

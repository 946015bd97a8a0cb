import Glibc
import Host
import Platform
import Serving

/// The users and tokens, which change while the program runs.
extension StreamSession {
  /// Applies the files of users and tokens if they have changed, as by `nightjar user add`; called once a second.
  func followCredentials() {
    // A reload reads the files itself.
    guard table.reload == nil, exchangeOfAPI == nil else { return }
    let found = CredentialFiles(configuration)
    guard found != credentialFiles else { return }
    credentialFiles = found
    do {
      follow(try servers(of: configuration, Notes()))
      if isAPIStale { exchangeOfAPI = .now() }
      publish()
      terminal.line("users, passwords or tokens have changed: they apply now", event: "credentials")
    } catch {
      terminal.line(
        "the changed users or tokens do not apply: \(error); those before still do", .error, event: "credentials")
    }
  }
}

/// The state of the files of users and tokens: another one after each change.
struct CredentialFiles: Equatable {
  private struct File: Equatable {
    let device: UInt
    let inode: UInt
    let size: Int
    let changed: [Int]

    /// The file behind a path; nil if there is none.
    init?(_ path: String) {
      var status = stat()
      guard stat(path, &status) == 0 else { return nil }
      (device, inode, size) = (UInt(status.st_dev), UInt(status.st_ino), Int(status.st_size))
      // A change of owner or mode is one, too.
      changed = [status.st_mtim.tv_sec, status.st_mtim.tv_nsec, status.st_ctim.tv_sec, status.st_ctim.tv_nsec]
    }
  }

  private let users: File?
  private let tokens: File?

  init(_ configuration: ApplianceConfiguration) {
    users = File(configuration.rtsp.users ?? StandardPaths.usersFile)
    tokens = File(configuration.api.tokens ?? StandardPaths.tokensFile)
  }
}

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
    guard table.reload == nil, exchangeOfAPI == nil else { return }
    let found = CredentialFiles(configuration)
    let hasChanged = found != credentialFiles
    let isDue = Instant.now() >= nextCertificateCheck && servingAPI?.identity.authority != nil
    guard hasChanged || isDue else { return }
    nextCertificateCheck = .now() + Self.certificateInterval
    credentialFiles = found
    do {
      let old = servingAPI?.identity.certificate
      follow(try servers(of: configuration, Notes()))
      if isAPIStale { exchangeOfAPI = .now() }
      publish()
      // What this has just written is no change.
      credentialFiles.own = CredentialFiles(configuration).own
      if servingAPI?.identity.certificate != old {
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

/// The state of the files of users, tokens and certificates: another one after each change.
struct CredentialFiles: Equatable {
  struct File: Equatable {
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
  private let certificates: [File?]
  /// The host's own certificate and its authority.
  var own: [File?]

  init(_ configuration: ApplianceConfiguration) {
    users = File(configuration.rtsp.users ?? StandardPaths.usersFile)
    tokens = File(configuration.api.tokens ?? StandardPaths.tokensFile)
    certificates = [configuration.rtsp.certificate, configuration.rtsp.key].map { $0.flatMap { File($0) } }
    own = [SelfSignedIdentity.fileName, LocalAuthority.fileName].map { File("\(StandardPaths.stateDirectory)/\($0)") }
  }
}

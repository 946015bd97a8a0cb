public import Media

/// Why a server does not listen.
public enum ListenError: Failure, Hashable {
  /// It cannot listen.
  case listen(service: String, String, port: Int, reason: String)
  /// The system keeps the port for programs with more rights.
  case noPermission(service: String, String, port: Int)
  /// Another program listens there.
  case inUse(service: String, String, port: Int)
  /// The certificate and its key are not accepted.
  case identity(String)

  /// One line for the person at the terminal.
  public var description: String {
    switch self {
    case .listen(let service, let address, let port, let reason):
      "cannot listen for \(service) at \(address) port \(port): \(reason)"
    case .noPermission(let service, let address, let port):
      "cannot listen for \(service) at \(address) port \(port): no permission; choose a port from 1024 on, such as 8554"
    case .inUse(let service, let address, let port):
      "cannot listen for \(service) at \(address) port \(port): another program does; choose another port, or end it"
    case .identity(let reason): "cannot use the certificate for TLS: \(reason)"
    }
  }

  /// What kind of failure it is.
  public var kind: FailureKind {
    switch self {
    case .listen: .system
    case .noPermission: .noPermission
    case .inUse: .temporary
    case .identity: .data
    }
  }
}

package import Platform

/// The reason why a server does not listen.
package enum ListenError: Failure, Hashable {
  /// The server cannot listen, for this reason.
  case listen(service: String, String, port: Int, reason: String)
  /// The system reserves the port for programs with more rights.
  case noPermission(service: String, String, port: Int)
  /// Another program listens there.
  case inUse(service: String, String, port: Int)
  /// The certificate and its key are not accepted.
  case identity(String)

  /// One line for the user at the terminal.
  package var description: String {
    switch self {
    case .listen(let service, let address, let port, let reason):
      "cannot listen for \(service) at \(address) port \(port): \(reason)"
    case .noPermission(let service, let address, let port):
      "cannot listen for \(service) at \(address) port \(port): no permission; choose a port from 1024 on, such as \(port + 8000)"
    case .inUse(let service, let address, let port):
      "cannot listen for \(service) at \(address) port \(port): another program listens there; choose another port, or end that program (sudo ss -ltnp sport = :\(port) shows it)"
    case .identity(let reason): "cannot use the certificate for TLS: \(reason)"
    }
  }

  /// The failure's kind.
  package var kind: FailureKind {
    switch self {
    case .listen: .system
    case .noPermission: .noPermission
    case .inUse: .temporary
    case .identity: .data
    }
  }
}

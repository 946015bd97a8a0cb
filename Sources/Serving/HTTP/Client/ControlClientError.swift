import Glibc
import NIOCore
package import Platform

/// The reason why there is no answer.
package enum ControlClientError: Failure, Hashable {
  /// There is no socket at the path.
  case noSocket(path: String)
  /// There is a socket, and no process listens.
  case deaf(path: String)
  /// The system does not let this process use it.
  case noPermission(path: String)
  /// The connection failed for another reason.
  case connecting(path: String, errorNumber: CInt)
  /// The server does not answer in time.
  case silent(path: String, seconds: Double)
  /// The server closed the connection before its answer was complete.
  case closed(path: String)
  /// The other end answers, but not as nightjar does.
  case foreign(path: String)

  init(connecting error: any Error, path: String) {
    switch (error as? IOError)?.errnoCode {
    case ENOENT, ENOTDIR: self = .noSocket(path: path)
    case ECONNREFUSED: self = .deaf(path: path)
    case EACCES, EPERM: self = .noPermission(path: path)
    case let number: self = .connecting(path: path, errorNumber: number ?? EIO)
    }
  }

  /// One line for the user at the terminal.
  package var description: String {
    switch self {
    case .noSocket(let path):
      "there is no control socket \(path): is nightjar stream running? (if with --control PATH: --socket PATH)"
    case .deaf(let path):
      "no program listens at the control socket \(path): is nightjar stream running?"
    case .noPermission(let path):
      "no permission to use the control socket \(path): only its owner and its group may; for the service write sudo "
        + "before it"
    case .connecting(let path, let errorNumber): "control socket \(path): \(SystemFailure.text(errorNumber))"
    case .silent(let path, let seconds): "no answer from the control socket \(path) within \(seconds) s"
    case .closed(let path): "the control socket \(path) closed before the end of its answer: try again"
    case .foreign(let path): "the program at \(path) is not nightjar: choose another socket with --socket"
    }
  }

  /// The failure's kind.
  package var kind: FailureKind {
    switch self {
    case .noSocket, .deaf: .unavailable
    case .noPermission: .noPermission
    case .connecting, .closed, .foreign: .inputOutput
    case .silent: .temporary
    }
  }
}

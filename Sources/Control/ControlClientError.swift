import Glibc
public import Media
import NIOCore

/// Why there is no answer.
public enum ControlClientError: Failure, Hashable {
  /// There is no socket at the path.
  case noSocket(path: String)
  /// There is one, and nobody listens.
  case deaf(path: String)
  /// The system does not let us use it.
  case noPermission(path: String)
  /// Connecting failed otherwise.
  case connecting(path: String, errorNumber: CInt)
  /// It does not answer in time.
  case silent(path: String, seconds: Double)
  /// It closed the connection before its answer was whole.
  case closed(path: String)
  /// It answers, but not as nightjar does.
  case foreign(path: String)

  init(connecting error: any Error, path: String) {
    switch (error as? IOError)?.errnoCode {
    case ENOENT, ENOTDIR: self = .noSocket(path: path)
    case ECONNREFUSED: self = .deaf(path: path)
    case EACCES, EPERM: self = .noPermission(path: path)
    case let number: self = .connecting(path: path, errorNumber: number ?? EIO)
    }
  }

  /// One line for the person at the terminal.
  public var description: String {
    switch self {
    case .noSocket(let path):
      "there is no control socket \(path): is nightjar stream running? (if with --control PATH: --socket PATH)"
    case .deaf(let path):
      "nobody listens at the control socket \(path): is nightjar stream running?"
    case .noPermission(let path):
      "no permission to use the control socket \(path): only its owner and its group may; for the service write sudo "
        + "before it"
    case .connecting(let path, let errorNumber): "control socket \(path): \(SystemFailure.text(errorNumber))"
    case .silent(let path, let seconds): "no answer from the control socket \(path) within \(seconds) s"
    case .closed(let path): "the control socket \(path) was closed before its answer was whole: try again"
    case .foreign(let path): "what answers at \(path) is no nightjar: choose another socket with --socket"
    }
  }

  /// What kind of failure it is.
  public var kind: FailureKind {
    switch self {
    case .noSocket, .deaf: .unavailable
    case .noPermission: .noPermission
    case .connecting, .closed, .foreign: .inputOutput
    case .silent: .temporary
    }
  }
}

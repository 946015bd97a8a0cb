import Glibc
public import Media

/// Why there can be no control socket here.
public enum ControlSocketError: Failure, Hashable {
  /// The path does not fit a socket's address (`sun_path`, unix(7)), in bytes.
  case tooLong(path: String, bytes: Int)
  /// The path names no file.
  case noFile(path: String)
  /// Another program answers at it.
  case inUse(path: String)
  /// There is something that is no socket.
  case notASocket(path: String)
  /// The lock beside it is not ours to take.
  case foreignLock(path: String)
  /// The system does not let it be made, at this step.
  case system(step: String, path: String, errorNumber: CInt)

  /// One line for the person at the terminal.
  public var description: String {
    switch self {
    case .tooLong(let path, let bytes):
      "control socket \(path): the path has \(bytes) bytes, at most \(ControlSocket.pathLimit) are possible: "
        + "choose a shorter one"
    case .noFile(let path):
      "control socket '\(path)' is no path of a file: choose one such as /run/nightjar/control.sock"
    case .inUse(let path):
      "another nightjar streams here already, and is controlled at \(path): end it, or give this one a socket of its own with "
        + "--control, and another place to stream to with --to"
    case .notASocket(let path): "\(path) exists and is no socket: remove it, or choose another path with --control"
    case .foreignLock(let path):
      "\(path) belongs to somebody else or is no plain file: remove it, or choose another path with --control"
    case .system(let step, let path, let errorNumber):
      "control socket, \(step) \(path): \(SystemFailure.text(errorNumber)): choose another path with --control"
    }
  }

  /// What kind of failure it is.
  public var kind: FailureKind {
    switch self {
    case .tooLong, .noFile: .usage
    case .inUse: .temporary
    case .notASocket: .cannotCreate
    case .foreignLock: .noPermission
    case .system(_, _, let errorNumber):
      errorNumber == EACCES || errorNumber == EPERM || errorNumber == EROFS ? .noPermission : .cannotCreate
    }
  }
}

import Glibc
package import Platform

/// The reason why there is no control socket.
package enum ControlSocketError: Failure, Hashable {
  /// The path does not fit a socket's address (`sun_path`, unix(7)), in bytes.
  case tooLong(path: String, bytes: Int)
  /// The path names no file.
  case noFile(path: String)
  /// Another program answers at it.
  case inUse(path: String)
  /// The path holds something that is no socket.
  case notASocket(path: String)
  /// The lock beside it belongs to another user, or is no lock file.
  case foreignLock(path: String)
  /// The system refuses to create it, at this step.
  case system(step: String, path: String, errorNumber: CInt)

  /// One line for the user at the terminal.
  package var description: String {
    switch self {
    case .tooLong(let path, let bytes):
      "control socket \(path): the path has \(bytes) bytes, at most \(ControlSocket.pathLimit) are possible: "
        + "choose a shorter one"
    case .noFile(let path):
      "control socket '\(path)' is not a file's path: choose one such as /run/nightjar/control.sock"
    case .inUse(let path):
      "another nightjar streams here already, with the control socket \(path): end it, or give this one its own socket "
        + "(--control) and its own destination (--to)"
    case .notASocket(let path): "\(path) exists and is not a socket: remove it, or choose another path with --control"
    case .foreignLock(let path):
      "\(path) belongs to another user or is not a plain file: remove it, or choose another path with --control"
    case .system(let step, let path, let errorNumber):
      "control socket, \(step) \(path): \(SystemFailure.text(errorNumber)): choose another path with --control"
    }
  }

  /// The failure's kind.
  package var kind: FailureKind {
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

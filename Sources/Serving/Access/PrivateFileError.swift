import Glibc
package import Platform

/// The reason why a file that holds secrets cannot be read or written.
package enum PrivateFileError: Failure, Hashable {
  /// There is no file.
  case missing(path: String)
  /// The path is a directory, a device or a pipe, or a link without a target.
  case notAFile(path: String)
  /// Users other than owner and group may read or write the file: these permission bits.
  case exposed(path: String, mode: UInt32)
  /// The file belongs to this user, which is neither the program's nor root.
  case foreign(path: String, owner: UInt32)
  /// The file has too many bytes.
  case tooLarge(path: String, limit: Int)
  /// Another program holds the file's lock.
  case locked(path: String)
  /// The system refused this step.
  case system(step: String, path: String, errorNumber: CInt)

  /// Creates the error for the file at `path`, which was not read.
  init(_ error: PlainFileError, path: String, limit: Int) {
    self =
      switch error {
      case .missing: .missing(path: path)
      case .notAFile: .notAFile(path: path)
      case .exposed(let mode): .exposed(path: path, mode: mode)
      case .foreign(let owner): .foreign(path: path, owner: owner)
      case .tooLarge: .tooLarge(path: path, limit: limit)
      case .system(let isOpen, let errorNumber):
        .system(step: isOpen ? "reading" : "opening", path: path, errorNumber: errorNumber)
      }
  }

  /// One line for the user at the terminal.
  package var description: String {
    switch self {
    case .missing(let path): "\(path) does not exist"
    case .notAFile(let path): "\(path) is not a plain file: choose another path"
    case .exposed(let path, let mode):
      "\(path) has mode \(String(mode, radix: 8)), so every user of this host can reach its secrets: "
        + "run chmod o= \(ShellWord.quoted(path))"
    case .foreign(let path, let owner) where ServiceAccount.isService(owner):
      "\(path) belongs to the service (sudo systemctl status nightjar); for your own stream, name another directory, as in "
        + "STATE_DIRECTORY=/root/nightjar"
    case .foreign(let path, let owner):
      "\(path) belongs to user ID \(owner), who could change it: run chown \(geteuid()) \(ShellWord.quoted(path))"
    case .tooLarge(let path, let limit): "\(path) has more than the \(limit) bytes that are read: is it the right file?"
    case .locked(let path): "\(path) is being written by another program: try again when it is done"
    case .system(let step, let path, let errorNumber): "\(step) \(path): \(SystemFailure.text(errorNumber))"
    }
  }

  /// The failure's kind.
  package var kind: FailureKind {
    switch self {
    case .missing: .noInput
    case .notAFile, .tooLarge: .data
    case .exposed, .foreign: .noPermission
    case .locked: .temporary
    case .system(_, _, let errorNumber):
      errorNumber == EACCES || errorNumber == EPERM || errorNumber == EROFS ? .noPermission : .inputOutput
    }
  }
}

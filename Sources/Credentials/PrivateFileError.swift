import Glibc
public import Media

/// Why a file that holds secrets cannot be read or written.
public enum PrivateFileError: Failure, Hashable {
  /// There is none.
  case missing(path: String)
  /// It is a directory, a device or a pipe, or a link that leads nowhere.
  case notAFile(path: String)
  /// Others than owner and group may read or write it: these permission bits.
  case exposed(path: String, mode: UInt32)
  /// It belongs to this user, who is neither the one that runs the program nor root.
  case foreign(path: String, owner: UInt32)
  /// It has more bytes than are read.
  case tooLarge(path: String, limit: Int)
  /// Another program holds its lock.
  case locked(path: String)
  /// The system refused this step.
  case system(step: String, path: String, errorNumber: CInt)

  /// One line for the person at the terminal.
  public var description: String {
    switch self {
    case .missing(let path): "\(path) does not exist"
    case .notAFile(let path): "\(path) is no plain file: choose another path"
    case .exposed(let path, let mode):
      "\(path) has mode \(String(mode, radix: 8)), so that every user of this machine can get at its secrets: "
        + "run chmod o= \(ShellWord.quoted(path))"
    case .foreign(let path, let owner) where ServiceAccount.isService(owner):
      "\(path) is the service's, and stays so: see sudo systemctl status nightjar; for a stream of your own beside it name "
        + "another place, as in STATE_DIRECTORY=/root/nightjar"
    case .foreign(let path, let owner):
      "\(path) belongs to user ID \(owner), who could change it: run chown \(geteuid()) \(ShellWord.quoted(path))"
    case .tooLarge(let path, let limit): "\(path) has more than the \(limit) bytes that are read: is it the right file?"
    case .locked(let path): "\(path) is being written by another program: try again when it is done"
    case .system(let step, let path, let errorNumber): "\(step) \(path): \(SystemFailure.text(errorNumber))"
    }
  }

  /// What kind of failure it is.
  public var kind: FailureKind {
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

/// A word as a shell takes it.
public enum ShellWord {
  /// `text` so that a shell reads it as one word, whatever is in it.
  public static func quoted(_ text: String) -> String {
    let isPlain = !text.isEmpty && text.utf8.allSatisfy(isPlain)
    if isPlain { return text }
    return "'" + text.split(separator: "'", omittingEmptySubsequences: false).joined(separator: #"'\''"#) + "'"
  }

  private static func isPlain(_ byte: UInt8) -> Bool {
    switch byte {
    case UInt8(ascii: "0")...UInt8(ascii: "9"), UInt8(ascii: "a")...UInt8(ascii: "z"),
      UInt8(ascii: "A")...UInt8(ascii: "Z"):
      true
    default: "/._-+=@%".utf8.contains(byte)
    }
  }
}

public import Media

/// What a users file has that it may not have, and in which line.
public struct UsersFileSyntaxError: Failure, Hashable {
  /// What it is.
  public enum Reason: Error, Hashable, Sendable {
    /// So many bytes.
    case size(Int)
    /// A line of so many bytes.
    case line(Int)
    /// More users than are possible.
    case users
    /// What stands before the first colon is no name.
    case name(UserNameError)
    /// The user was there before, in that line.
    case repeated(UserName, line: Int)
    /// A field that does not begin with `SHA-256=` or `MD5=`.
    case algorithm(UserName)
    /// A hash that is repeated, too short or long, or not hexadecimal.
    case hash(UserName, DigestAlgorithm)
    /// A user without any hash.
    case noHash(UserName)
    /// A role that there is not, or a second one.
    case role(UserName)
  }

  /// The line, from 1; 0 where it is the whole file.
  public let line: Int
  /// What is wrong there.
  public let reason: Reason

  /// An error in `line`.
  public init(line: Int, reason: Reason) {
    self.line = line
    self.reason = reason
  }

  /// One line for the person at the terminal, without the file's name.
  public var description: String {
    let text =
      switch reason {
      case .size(let bytes): "\(bytes) bytes, at most \(UsersFile.sizeLimit) are read: remove users or comments"
      case .line(let bytes): "\(bytes) bytes in a line, at most \(UsersFile.lineLimit) are read: break the comment"
      case .users: "more than \(UsersFile.userLimit) users: remove some"
      case .name(let error): error.description
      case .repeated(let name, let earlier): "\(name) stands in line \(earlier) already: remove one of the two"
      case .algorithm(let name):
        "\(name) has a field that is neither SHA-256=… nor MD5=…: remove it, or run nightjar user add \(name)"
      case .hash(let name, let algorithm):
        "\(algorithm.rawValue) of \(name) is not once \(algorithm.hexLength) hexadecimal digits: "
          + "run nightjar user add \(name)"
      case .role(let name): "the role of \(name) is not once one of \(Role.choices): write role=view"
      case .noHash(let name): "\(name) has no hash: run nightjar user add \(name) after removing the line"
      }
    return line > 0 ? "line \(line): \(text)" : text
  }

  /// What kind of failure it is.
  public var kind: FailureKind { .data }
}

package import Platform

/// A syntax error in a users file, with its line.
package struct UsersFileSyntaxError: Failure, Hashable {
  /// The kind of the error.
  package enum Reason: Error, Hashable, Sendable {
    /// A file with too many bytes, by their number.
    case size(Int)
    /// A line with too many bytes, by their number.
    case line(Int)
    /// Too many users.
    case users
    /// The text before the first colon is no name.
    case name(UserNameError)
    /// A repeated user, with the line of the first one.
    case repeated(UserName, line: Int)
    /// A field that does not begin with `SHA-256=` or `MD5=`.
    case algorithm(UserName)
    /// A hash that is repeated, too short or long, or not hexadecimal.
    case hash(UserName, DigestAlgorithm)
    /// A user without any hash.
    case noHash(UserName)
    /// An unknown role, or a second one.
    case role(UserName)
  }

  /// The line, from 1; 0 for the whole file.
  package let line: Int
  /// The kind of the error.
  package let reason: Reason

  /// Creates an error in `line`.
  package init(line: Int, reason: Reason) {
    self.line = line
    self.reason = reason
  }

  /// One line for the user at the terminal, without the file's name.
  package var description: String {
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
        "\(algorithm.rawValue) of \(name) must stand there once, with \(algorithm.hexLength) hexadecimal digits: "
          + "run nightjar user add \(name)"
      case .role(let name): "the role of \(name) must stand there once, as \(Role.choices): write role=view"
      case .noHash(let name): "\(name) has no hash: run nightjar user add \(name) after removing the line"
      }
    return line > 0 ? "line \(line): \(text)" : text
  }

  /// The failure's kind.
  package var kind: FailureKind { .data }
}

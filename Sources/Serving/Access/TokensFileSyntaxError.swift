package import Platform

/// A syntax error in a tokens file.
package struct TokensFileSyntaxError: Failure, Hashable {
  /// The kind of the error.
  package enum Reason: Error, Hashable, Sendable {
    /// The file is too large.
    case size
    /// There are too many tokens.
    case count
    /// The line is no text.
    case text
    /// The name is not valid.
    case name(UserNameError)
    /// The name has no hash, or an impossible one.
    case hash(UserName)
    /// The text after the hash is no role.
    case role(UserName)
    /// The name is repeated.
    case repeated(UserName)
  }

  /// The line, counted from 1; 0 for the whole file.
  package let line: Int
  /// The kind of the error.
  package let reason: Reason

  /// One line for the user at the terminal.
  package var description: String {
    let text =
      switch reason {
      case .size: "more than \(TokensFile.sizeLimit) bytes: is it the right file?"
      case .count: "more than \(TokensFile.tokenLimit) tokens: remove some with nightjar token remove NAME"
      case .text: "the file is not UTF-8: is it the right file?"
      case .name(let error): error.description
      case .hash(let name):
        "\(name) is not followed by :token-sha256= and 64 hexadecimal digits: run nightjar token add \(name)"
      case .role(let name): "the hash of \(name) is followed by no role of \(Role.choices): write role=view"
      case .repeated(let name): "\(name) is there twice: remove one of the lines"
      }
    return line > 0 ? "line \(line): \(text)" : text
  }

  /// The failure's kind.
  package var kind: FailureKind { .data }
}

import CLinux
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

/// The reason why the tokens cannot be read or written.
package enum TokensFileError: Failure, Hashable {
  /// The file itself, not its content.
  case file(PrivateFileError)
  /// The content of the file.
  case syntax(path: String, TokensFileSyntaxError)

  /// One line for the user at the terminal.
  package var description: String {
    switch self {
    case .file(.missing(let path)):
      "there is no tokens file \(path): make one with nightjar token add NAME --tokens \(ShellWord.quoted(path))"
    case .file(let error): "tokens file: \(error)"
    case .syntax(let path, let error): "tokens file \(path): \(error)"
    }
  }

  /// The failure's kind.
  package var kind: FailureKind {
    switch self {
    case .file(let error): error.kind
    case .syntax(_, let error): error.kind
    }
  }
}

extension TokensFile {
  /// Reads a file that no other user can have read or written.
  ///
  /// - Throws: ``TokensFileError``.
  package init(contentsOf path: String) throws {
    do {
      self = try Self.read(try PrivateFile(path)).tokens
    } catch let error as PrivateFileError {
      throw TokensFileError.file(error)
    }
  }

  /// Changes a file under a lock, so that two changes at once lose nothing. If the file is missing and `mayCreate` is
  /// `true`, it is created with mode 0640, in a directory of mode 0750. Owner and group of an existing file stay.
  ///
  /// - Throws: ``TokensFileError``, or the error of `change`; then the file is unchanged.
  package static func edit<Result>(
    _ path: String, mayCreate: Bool, _ change: (inout TokensFile) throws -> Result
  ) throws -> Result {
    do {
      let file = try PrivateFile(path)
      if mayCreate {
        try file.makeDirectory(mode: 0o750)
      } else {
        // Before the lock is taken, for which there may be no directory.
        _ = try read(file)
      }
      let lock = try FileLock(beside: file)
      defer { withExtendedLifetime(lock) {} }
      var tokens = TokensFile()
      var former: nightjar_file?
      do {
        let found = try read(file)
        (tokens, former) = (found.tokens, found.status)
      } catch PrivateFileError.missing where mayCreate {
        // The first token creates it.
      }
      let result = try change(&tokens)
      try file.replace(with: tokens.bytes, mode: 0o640, former: former)
      return result
    } catch let error as PrivateFileError {
      throw TokensFileError.file(error)
    }
  }

  /// Reads the tokens and the file's status.
  ///
  /// - Throws: ``PrivateFileError``, or ``TokensFileError/syntax(path:_:)``.
  private static func read(_ file: PrivateFile) throws -> (tokens: TokensFile, status: nightjar_file) {
    let (bytes, status) = try file.read(limit: sizeLimit)
    do throws(TokensFileSyntaxError) {
      return (try TokensFile(parsing: bytes), status)
    } catch {
      throw TokensFileError.syntax(path: file.path, error)
    }
  }
}

import CLinux
public import Media

/// What is wrong in a tokens file.
public struct TokensFileSyntaxError: Failure, Hashable {
  /// What it is.
  public enum Reason: Error, Hashable, Sendable {
    /// The file is too large.
    case size
    /// There are too many.
    case count
    /// The line is no text.
    case text
    /// The name is none.
    case name(UserNameError)
    /// The name has no hash, or none that could be.
    case hash(UserName)
    /// What follows the hash is no role.
    case role(UserName)
    /// The name was there before.
    case repeated(UserName)
  }

  /// Counted from 1; 0 for the whole file.
  public let line: Int
  /// What it is.
  public let reason: Reason

  /// One line for the person at the terminal.
  public var description: String {
    let text =
      switch reason {
      case .size: "more than \(TokensFile.sizeLimit) bytes: is it the right file?"
      case .count: "more than \(TokensFile.tokenLimit) tokens: remove some with nightjar token remove NAME"
      case .text: "this is no UTF-8: is it the right file?"
      case .name(let error): error.description
      case .hash(let name):
        "\(name) is not followed by :token-sha256= and 64 hexadecimal digits: run nightjar token add \(name)"
      case .role(let name): "the hash of \(name) is followed by no role of \(Role.choices): write role=view"
      case .repeated(let name): "\(name) is there twice: remove one of the lines"
      }
    return line > 0 ? "line \(line): \(text)" : text
  }

  /// What kind of failure it is.
  public var kind: FailureKind { .data }
}

/// Why the tokens cannot be read or written.
public enum TokensFileError: Failure, Hashable {
  /// The file, not what is in it.
  case file(PrivateFileError)
  /// What is in it.
  case syntax(path: String, TokensFileSyntaxError)

  /// One line for the person at the terminal.
  public var description: String {
    switch self {
    case .file(.missing(let path)):
      "there is no tokens file \(path): make one with nightjar token add NAME --tokens \(ShellWord.quoted(path))"
    case .file(let error): "tokens file: \(error)"
    case .syntax(let path, let error): "tokens file \(path): \(error)"
    }
  }

  /// What kind of failure it is.
  public var kind: FailureKind {
    switch self {
    case .file(let error): error.kind
    case .syntax(_, let error): error.kind
    }
  }
}

extension TokensFile {
  /// Reads a file that nobody else can have read or written.
  ///
  /// - Throws: ``TokensFileError``.
  public init(contentsOf path: String) throws {
    do {
      self = try Self.read(try PrivateFile(path)).tokens
    } catch let error as PrivateFileError {
      throw TokensFileError.file(error)
    }
  }

  /// Changes a file under a lock, so that two who do it at once lose nothing. Where it is missing and `mayCreate` says so
  /// it is made, of mode 0640, in a directory of mode 0750. Owner and group of one that is there stay.
  ///
  /// - Throws: ``TokensFileError``, or what `change` throws; then the file is as it was.
  public static func edit<Result>(
    _ path: String, mayCreate: Bool, _ change: (inout TokensFile) throws -> Result
  ) throws -> Result {
    do {
      let file = try PrivateFile(path)
      if mayCreate {
        try file.makeDirectory(mode: 0o750)
      } else {
        // Before there is a lock, for which there may be no directory.
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
        // The first token makes it.
      }
      let result = try change(&tokens)
      try file.replace(with: tokens.bytes, mode: 0o640, former: former)
      return result
    } catch let error as PrivateFileError {
      throw TokensFileError.file(error)
    }
  }

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

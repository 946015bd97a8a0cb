import CLinux
package import Platform

/// A file of users or of tokens, which holds secrets.
package protocol CredentialFile: Sendable {
  associatedtype SyntaxError: Failure, Hashable
  /// The content in messages: `users` or `tokens`.
  static var content: String { get }
  /// The limit of its size in bytes.
  static var sizeLimit: Int { get }
  /// Returns the command that makes a file with a first entry.
  static func creation(of path: String) -> String
  /// The file's content.
  var bytes: [UInt8] { get }

  /// Creates an empty file.
  init()
  /// Reads a file's content.
  ///
  /// - Throws: the error of its syntax, with the line.
  init(parsing bytes: [UInt8]) throws(SyntaxError)
}

/// The reason why a file of users or tokens cannot be read or written.
package enum CredentialFileError<File: CredentialFile>: Failure, Hashable {
  /// The file itself, not its content.
  case file(PrivateFileError)
  /// The content of the file.
  case syntax(path: String, File.SyntaxError)

  /// One line for the user at the terminal.
  package var description: String {
    switch self {
    case .file(.missing(let path)): "there is no \(File.content) file \(path): make one with \(File.creation(of: path))"
    case .file(let error): "\(File.content) file: \(error)"
    case .syntax(let path, let error): "\(File.content) file \(path): \(error)"
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

extension CredentialFile {
  /// Reads a file that no other user can have read or written.
  ///
  /// - Throws: ``CredentialFileError``.
  package init(contentsOf path: String) throws {
    self = try Self.reporting { try Self.read(try PrivateFile(path)).content }
  }

  /// Changes a file under a lock, so that two changes at once lose nothing. If the file is missing and `mayCreate` is
  /// `true`, it is created with mode 0640, in a directory of mode 0750. Owner and group of an existing file stay.
  ///
  /// - Throws: ``CredentialFileError``, or the error of `change`; then the file is unchanged.
  package static func edit<Result>(
    _ path: String, mayCreate: Bool, _ change: (inout Self) throws -> Result
  ) throws -> Result {
    try reporting {
      let file = try PrivateFile(path)
      if mayCreate {
        try file.makeDirectory(mode: 0o750)
      } else {
        // Before the lock is taken, for which there may be no directory.
        _ = try read(file)
      }
      let lock = try FileLock(beside: file)
      defer { withExtendedLifetime(lock) {} }
      var (content, former): (Self, nightjar_file?) = (Self(), nil)
      do {
        let found = try read(file)
        (content, former) = (found.content, found.status)
      } catch PrivateFileError.missing where mayCreate {
        // The first entry creates it.
      }
      let result = try change(&content)
      try file.replace(with: content.bytes, mode: 0o640, former: former)
      return result
    }
  }

  private static func read(_ file: PrivateFile) throws -> (content: Self, status: nightjar_file) {
    let (bytes, status) = try file.read(limit: sizeLimit)
    do throws(SyntaxError) {
      return (try Self(parsing: bytes), status)
    } catch {
      throw CredentialFileError<Self>.syntax(path: file.path, error)
    }
  }

  private static func reporting<Result>(_ body: () throws -> Result) throws -> Result {
    do {
      return try body()
    } catch let error as PrivateFileError {
      throw CredentialFileError<Self>.file(error)
    }
  }
}

import CLinux
package import Platform

/// The reason why the users cannot be read or written.
package enum UsersFileError: Failure, Hashable {
  /// The file itself, not its content.
  case file(PrivateFileError)
  /// The content of the file.
  case syntax(path: String, UsersFileSyntaxError)

  /// One line for the user at the terminal.
  package var description: String {
    switch self {
    case .file(.missing(let path)):
      "there is no users file \(path): make one with nightjar user add NAME --users \(ShellWord.quoted(path))"
    case .file(let error): "users file: \(error)"
    case .syntax(let path, let error): "users file \(path): \(error)"
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

extension UsersFile {
  /// Reads a file that no other user can have read or written.
  ///
  /// - Throws: ``UsersFileError``.
  package init(contentsOf path: String) throws(UsersFileError) {
    self = try Self.read(Self.file(path)).users
  }

  /// Changes a file under a lock, so that two changes at once lose nothing. If the file is missing and `mayCreate` is
  /// `true`, it is created with mode 0640, in a directory of mode 0750. Owner and group of an existing file stay.
  ///
  /// - Throws: ``UsersFileError``, or the error of `change`; then the file is unchanged.
  package static func edit<Result>(
    _ path: String, mayCreate: Bool, _ change: (inout UsersFile) throws -> Result
  ) throws -> Result {
    let file = try file(path)
    if mayCreate {
      try makeDirectory(of: file)
    } else {
      // Before the lock is taken, for which there may be no directory.
      _ = try read(file)
    }
    let lock = try lock(file)
    return try edit(file, under: lock, mayCreate: mayCreate, change)
  }

  private static func edit<Result>(
    _ file: PrivateFile, under lock: borrowing FileLock, mayCreate: Bool,
    _ change: (inout UsersFile) throws -> Result
  ) throws -> Result {
    let found = try readOrNone(file, mayCreate: mayCreate)
    var users = found.users
    let result = try change(&users)
    try replace(file, with: users, former: found.status)
    return result
  }

  private static func readOrNone(
    _ file: PrivateFile, mayCreate: Bool
  ) throws(UsersFileError) -> (users: UsersFile, status: nightjar_file?) {
    do throws(UsersFileError) {
      let (users, status) = try read(file)
      return (users, status)
    } catch {
      // The first user creates it.
      if mayCreate, case .file(.missing) = error { return (UsersFile(), nil) }
      throw error
    }
  }

  private static func file(_ path: String) throws(UsersFileError) -> PrivateFile {
    do throws(PrivateFileError) {
      return try PrivateFile(path)
    } catch {
      throw .file(error)
    }
  }

  private static func makeDirectory(of file: PrivateFile) throws(UsersFileError) {
    do throws(PrivateFileError) {
      try file.makeDirectory(mode: 0o750)
    } catch {
      throw .file(error)
    }
  }

  private static func lock(_ file: PrivateFile) throws(UsersFileError) -> FileLock {
    do throws(PrivateFileError) {
      return try FileLock(beside: file)
    } catch {
      throw .file(error)
    }
  }

  private static func replace(
    _ file: PrivateFile, with users: UsersFile, former: nightjar_file?
  ) throws(UsersFileError) {
    do throws(PrivateFileError) {
      try file.replace(with: users.bytes, mode: 0o640, former: former)
    } catch {
      throw .file(error)
    }
  }

  private static func read(_ file: PrivateFile) throws(UsersFileError) -> (users: UsersFile, status: nightjar_file) {
    let bytes: [UInt8]
    let status: nightjar_file
    do throws(PrivateFileError) {
      (bytes, status) = try file.read(limit: sizeLimit)
    } catch {
      throw .file(error)
    }
    do throws(UsersFileSyntaxError) {
      return (try UsersFile(parsing: bytes), status)
    } catch {
      throw .syntax(path: file.path, error)
    }
  }
}

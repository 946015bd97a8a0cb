import CLinux
import Glibc
import Platform

extension ConfigurationFile {
  /// Reads a plain file.
  ///
  /// - Throws: ``ConfigurationError``: of kind `noInput` where the file does not exist, `noPermission` where it may not
  ///   be read, `data` where it is no configuration.
  package init(contentsOf path: String, options: OptionTable) throws(ConfigurationError) {
    try self.init(parsing: Self.bytes(of: path), path: path, options: options)
  }

  /// Reads as much of a plain file as can be understood, and collects its mistakes.
  ///
  /// - Throws: ``ConfigurationError`` where the file cannot be read at all.
  package init(contentsOf path: String, options: OptionTable, faults: inout ConfigurationFaults)
    throws(ConfigurationError)
  {
    self.init(parsing: try Self.bytes(of: path), path: path, options: options, faults: &faults)
  }

  /// Returns `true` if a file exists at `path`, or may exist: where its directory is not accessible, reading shows it.
  package static func mayExist(_ path: String) -> Bool {
    access(path, F_OK) == 0 || (errno != ENOENT && errno != ENOTDIR)
  }

  private static func bytes(of path: String) throws(ConfigurationError) -> [UInt8] {
    guard !path.isEmpty, !path.utf8.contains(0) else {
      throw ConfigurationError(.usage, at: "--config", "name a file, or none")
    }
    do throws(PlainFileError) {
      return try PlainFile.contents(of: path, limit: ConfigurationLimits.fileSize, others: .reading).bytes
    } catch {
      switch error {
      case .missing: throw failure(ENOENT, path)
      case .notAFile(let isDirectory):
        throw ConfigurationError(at: path, "this is \(isDirectory ? "a directory" : "not a plain file"); name a file")
      case .exposed, .foreign:
        throw ConfigurationError(
          .noPermission, at: path, "every user of this host could change it; run chmod o-w on it")
      case .tooLarge: throw ConfigurationError(at: path, ConfigurationLimits.fileIsTooLarge)
      case .system(_, let errorNumber): throw failure(errorNumber, path)
      }
    }
  }

  /// Returns the command that creates the file, and its directory where that is missing too.
  private static func beginning(_ path: String) -> String {
    let directory = path.lastIndex(of: "/").map { path[..<$0] } ?? "."
    let isThere = directory.isEmpty || access(String(directory), F_OK) == 0
    return (isThere ? "" : "mkdir -p \(ShellWord.quoted(String(directory))) && ")
      + "nightjar config example > \(ShellWord.quoted(path))"
  }

  private static func failure(_ errorNumber: CInt, _ path: String) -> ConfigurationError {
    switch errorNumber {
    case ENOENT, ENOTDIR:
      ConfigurationError(.noInput, at: path, "there is no such file; begin with: \(beginning(path))")
    case EACCES, EPERM:
      ConfigurationError(.noPermission, at: path, "user ID \(geteuid()) may not read it; see ls -l, and chmod")
    default: ConfigurationError(.inputOutput, at: path, SystemFailure.text(errorNumber))
    }
  }
}

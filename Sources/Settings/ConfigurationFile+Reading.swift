import CLinux
import Glibc
import Media

extension ConfigurationFile {
  /// Reads a plain file.
  ///
  /// - Throws: ``ConfigurationError``: of kind `noInput` where there is none, `noPermission` where it may not be read,
  ///   `data` where it is no configuration.
  public init(contentsOf path: String, options: OptionTable) throws(ConfigurationError) {
    try self.init(parsing: Self.bytes(of: path), path: path, options: options)
  }

  /// Reads a plain file as far as it can be understood, and notes its mistakes.
  ///
  /// - Throws: ``ConfigurationError`` where it cannot be read at all.
  public init(contentsOf path: String, options: OptionTable, faults: inout ConfigurationFaults)
    throws(ConfigurationError)
  {
    self.init(parsing: try Self.bytes(of: path), path: path, options: options, faults: &faults)
  }

  /// Whether there is anything at `path`, or may be: where nobody is let in to look, reading tells.
  public static func mayExist(_ path: String) -> Bool {
    access(path, F_OK) == 0 || (errno != ENOENT && errno != ENOTDIR)
  }

  private static func bytes(of path: String) throws(ConfigurationError) -> [UInt8] {
    guard !path.isEmpty, !path.utf8.contains(0) else {
      throw ConfigurationError(.usage, at: "--config", "name a file, or none")
    }
    // Without waiting for the other end of a pipe.
    let descriptor = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY)
    guard descriptor >= 0 else { throw failure(errno, path) }
    defer { close(descriptor) }
    var status = nightjar_file()
    guard nightjar_descriptor_status(descriptor, &status) == 0 else { throw failure(errno, path) }
    guard status.mode & S_IFMT == S_IFREG else {
      let isDirectory = status.mode & S_IFMT == S_IFDIR
      throw ConfigurationError(at: path, "this is \(isDirectory ? "a directory" : "no plain file"); name a file")
    }
    guard status.mode & S_IWOTH == 0 else {
      throw ConfigurationError(
        .noPermission, at: path, "every user of this machine could change it; run chmod o-w on it")
    }
    var bytes: [UInt8] = []
    var block = [UInt8](repeating: 0, count: 65_536)
    // One byte more than may be is enough to know.
    while bytes.count <= ConfigurationLimits.fileSize {
      let count = read(descriptor, &block, block.count)
      if count < 0, errno == EINTR { continue }
      guard count >= 0 else { throw failure(errno, path) }
      if count == 0 { break }
      bytes += block[..<count]
    }
    return bytes
  }

  /// What makes the file, and its directory where that is missing too.
  private static func beginning(_ path: String) -> String {
    func quoted(_ text: Substring) -> String {
      "'" + text.split(separator: "'", omittingEmptySubsequences: false).joined(separator: #"'\''"#) + "'"
    }
    let directory = path.lastIndex(of: "/").map { path[..<$0] } ?? "."
    let isThere = directory.isEmpty || access(String(directory), F_OK) == 0
    return (isThere ? "" : "mkdir -p \(quoted(directory)) && ") + "nightjar config example > \(quoted(path[...]))"
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

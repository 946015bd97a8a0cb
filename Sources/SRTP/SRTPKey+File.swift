import CLinux
import Glibc
import Media

extension SRTPKey {
  /// The longest key file that is read, in bytes.
  public static let fileLimit = 1024

  /// The key in a file: one line `SUITE inline:BASE64`, or a whole `a=crypto:TAG SUITE inline:BASE64` as an SDP has it;
  /// empty lines and those that begin with `#` are for people.
  ///
  /// What is looked at is what was opened.
  ///
  /// - Throws: ``SRTPKeyError``, also for a file that everybody may read or write, or that belongs to another user.
  public init(contentsOf path: String) throws(SRTPKeyError) {
    let text = String(decoding: try Self.read(path), as: UTF8.self)
    let lines = text.split(whereSeparator: \.isNewline).map { $0.drop { $0 == " " || $0 == "\t" } }
      .filter { !$0.isEmpty && !$0.hasPrefix("#") }
    guard lines.count == 1, let line = lines.first else {
      throw .content(path: path, reason: "\(lines.count) lines, where one with a key is wanted")
    }
    do throws(SRTPKeyError) {
      let prefix = "a=crypto:"
      if line.hasPrefix(prefix) {
        self = try CryptoAttribute(parsing: String(line.dropFirst(prefix.count))).key
      } else {
        self = try CryptoAttribute.key(line.split(separator: " ")[...])
      }
    } catch {
      throw .content(path: path, reason: error.description)
    }
  }

  private static func read(_ path: String) throws(SRTPKeyError) -> [UInt8] {
    // Without waiting for the other end of a pipe.
    let descriptor = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY)
    guard descriptor >= 0 else { throw failure(path, errno) }
    defer { close(descriptor) }
    var status = nightjar_file()
    guard nightjar_descriptor_status(descriptor, &status) == 0 else { throw failure(path, errno) }
    guard status.mode & S_IFMT == S_IFREG else { throw .notAFile(path: path) }
    guard status.mode & 0o007 == 0 else { throw .exposed(path: path, mode: status.mode & 0o7777) }
    guard status.user == geteuid() || status.user == 0 else { throw .foreign(path: path, owner: status.user) }
    var bytes = [UInt8](repeating: 0, count: fileLimit + 1)
    var count = 0
    while count < bytes.count {
      let taken = bytes.withUnsafeMutableBytes { memory in
        Glibc.read(descriptor, memory.baseAddress?.advanced(by: count), memory.count - count)
      }
      if taken < 0, errno == EINTR { continue }
      guard taken >= 0 else { throw failure(path, errno) }
      if taken == 0 { break }
      count += taken
    }
    guard count <= fileLimit else { throw .tooLarge(path: path, limit: fileLimit) }
    return Array(bytes[..<count])
  }

  private static func failure(_ path: String, _ errorNumber: CInt) -> SRTPKeyError {
    if errorNumber == ENOENT || errorNumber == ENOTDIR { return .missing(path: path) }
    return .system(
      path: path, reason: SystemFailure.text(errorNumber), isForbidden: errorNumber == EACCES || errorNumber == EPERM)
  }
}

import Glibc

/// A file that holds one short value, as sysfs has them: read anew each time, never more than so many bytes of it.
public enum AttributeFile {
  /// The longest value that is read, in bytes.
  public static let limit = 256

  /// The first line of the file at `path`, without its end; nil where there is no such file, or its device is gone.
  ///
  /// - Throws: ``SystemFailure`` where the system does not let it be read.
  public static func text(_ path: String) throws(SystemFailure) -> String? {
    let descriptor = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY)
    guard descriptor >= 0 else { return try absence(path, errno) }
    defer { close(descriptor) }
    var bytes = [UInt8](repeating: 0, count: limit)
    var count = 0
    repeat { count = read(descriptor, &bytes, bytes.count) } while count < 0 && errno == EINTR
    guard count >= 0 else { return try absence(path, errno) }
    let text = String(decoding: bytes[..<count], as: UTF8.self)
    return String(text.prefix { !$0.isNewline })
  }

  /// What somebody else's file says, fit for a terminal.
  public static func printable(_ text: String) -> String {
    String(text.unicodeScalars.prefix(80).map { (" "..."~").contains(Character($0)) ? Character($0) : "?" })
  }

  private static func absence(_ path: String, _ errorNumber: CInt) throws(SystemFailure) -> String? {
    guard [ENOENT, ENODEV, ENXIO, ENOTDIR].contains(errorNumber) else {
      throw SystemFailure(path, errorNumber: errorNumber)
    }
    return nil
  }
}

import Glibc

/// A file that holds one short value, as sysfs has them: read anew each time, never more than so many bytes of it.
public enum AttributeFile {
  /// The longest value that is read, in bytes.
  public static let limit = 256

  /// The first line of the file at `path`, without its end; nil where there is no such file, or its device is gone.
  ///
  /// - Throws: ``SystemFailure`` where the system does not let it be read.
  public static func text(_ path: String) throws(SystemFailure) -> String? {
    var bytes = [UInt8](repeating: 0, count: limit)
    let count = read(path, &bytes, bytes.count)
    guard count >= 0 else { return try absence(path, errno) }
    let text = String(decoding: bytes[..<count], as: UTF8.self)
    return String(text.prefix { !$0.isNewline })
  }

  /// The decimal number that the file at `path` begins with; nil where it has none, or cannot be read. Allocates nothing: for
  /// what is read again and again.
  public static func integer(_ path: String) -> Int? {
    var bytes = InlineArray<24, UInt8>(repeating: 0)
    let count = read(path, &bytes, bytes.count)
    guard count > 0 else { return nil }
    let isNegative = bytes[0] == UInt8(ascii: "-")
    var value: Int?
    for index in (isNegative ? 1 : 0)..<count {
      guard case let digit = Int(bytes[index]) - 0x30, (0...9).contains(digit) else {
        return bytes[index] == UInt8(ascii: "\n") ? value : nil
      }
      let (tens, isTooLarge) = (value ?? 0).multipliedReportingOverflow(by: 10)
      let (sum, isTooFar) = isNegative ? tens.subtractingReportingOverflow(digit) : tens.addingReportingOverflow(digit)
      guard !isTooLarge, !isTooFar else { return nil }
      value = sum
    }
    return value
  }

  /// The first bytes of the file, at most `size`, into `memory`: how many; below 0 where `errno` says why not.
  private static func read(_ path: String, _ memory: UnsafeMutableRawPointer, _ size: Int) -> Int {
    // Passed as it is, a string is copied into an array first.
    let descriptor = path.withCString { open($0, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY) }
    guard descriptor >= 0 else { return -1 }
    var count = 0
    repeat { count = Glibc.read(descriptor, memory, size) } while count < 0 && errno == EINTR
    let errorNumber = errno
    close(descriptor)
    errno = errorNumber
    return count
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

import Glibc

/// A file with one short value, as in sysfs: read again each time, up to a limit of bytes.
package enum AttributeFile {
  /// The size limit of a value, in bytes.
  package static let limit = 256

  /// Returns the first line of the file at `path`, without its end; nil where the file does not exist or its device is
  /// gone.
  ///
  /// - Throws: ``SystemFailure`` where the system refuses to read it.
  package static func text(_ path: String) throws(SystemFailure) -> String? {
    var bytes = [UInt8](repeating: 0, count: limit)
    let count = read(path, &bytes, bytes.count)
    guard count >= 0 else { return try absence(path, errno) }
    let text = String(decoding: bytes[..<count], as: UTF8.self)
    return String(text.prefix { !$0.isNewline })
  }

  /// Returns the decimal number at the start of the file at `path`; nil where it has none or cannot be read. Allocates
  /// nothing, because some values are read again and again.
  package static func integer(_ path: String) -> Int? {
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

  /// Reads at most `size` bytes of the file into `memory`. Returns their number, or a negative number with the reason
  /// in `errno`.
  private static func read(_ path: String, _ memory: UnsafeMutableRawPointer, _ size: Int) -> Int {
    // A string that is passed directly is copied into an array first.
    let descriptor = path.withCString { open($0, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY) }
    guard descriptor >= 0 else { return -1 }
    var count = 0
    repeat { count = Glibc.read(descriptor, memory, size) } while count < 0 && errno == EINTR
    let errorNumber = errno
    close(descriptor)
    errno = errorNumber
    return count
  }

  /// Returns the text of a foreign file, made safe for a terminal.
  package static func printable(_ text: String) -> String {
    String(text.unicodeScalars.prefix(80).map { (" "..."~").contains(Character($0)) ? Character($0) : "?" })
  }

  private static func absence(_ path: String, _ errorNumber: CInt) throws(SystemFailure) -> String? {
    guard [ENOENT, ENODEV, ENXIO, ENOTDIR].contains(errorNumber) else {
      throw SystemFailure(path, errorNumber: errorNumber)
    }
    return nil
  }
}

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
    let count: Int
    do throws(SystemFailure) {
      count = try read(path, &bytes, bytes.count)
    } catch {
      guard [ENOENT, ENODEV, ENXIO, ENOTDIR].contains(error.errorNumber) else {
        throw SystemFailure(path, errorNumber: error.errorNumber)
      }
      return nil
    }
    let text = String(decoding: bytes[..<count], as: UTF8.self)
    return String(text.prefix { !$0.isNewline })
  }

  /// Returns the decimal number at the start of the file at `path`; nil where it has none or cannot be read. Allocates
  /// nothing, because some values are read again and again.
  package static func integer(_ path: String) -> Int? {
    var bytes = InlineArray<24, UInt8>(repeating: 0)
    guard let count = try? read(path, &bytes, bytes.count), count > 0 else { return nil }
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

  /// Reads at most `size` bytes of the file into `memory`, and returns their number.
  private static func read(
    _ path: String, _ memory: UnsafeMutableRawPointer, _ size: Int
  ) throws(SystemFailure) -> Int {
    let file = try FileDescriptor(path, O_RDONLY | O_NONBLOCK | O_NOCTTY)
    return try syscall("read") { Glibc.read(file.number, memory, size) }
  }

  /// Returns the text of a foreign file, made safe for a terminal.
  package static func printable(_ text: String) -> String {
    String(text.unicodeScalars.prefix(80).map { (" "..."~").contains(Character($0)) ? Character($0) : "?" })
  }
}

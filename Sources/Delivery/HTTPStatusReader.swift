import Glibc

/// A reader of the status code of an answer (RFC 9112 section 4), which passes over interim answers. It keeps one line.
package struct HTTPStatusReader {
  /// The code, once it has come.
  package private(set) var status: Int?
  /// The seconds to wait before the next request, as `Retry-After` says (RFC 9110 section 10.2.3), once it has come.
  package private(set) var retryAfter: Int?
  /// `true` once all that is wanted has come.
  package private(set) var isComplete = false
  private var line: [UInt8] = []
  /// `true` within the head of an interim answer.
  private var isInterim = false
  private var count = 0
  private let limit: Int
  private let readsHead: Bool

  /// Creates a reader that gives up if there is no status within `limit` bytes.
  ///
  /// - Parameter readsHead: `true` reads on to the end of the head, as far as it is within `limit` too.
  package init(limit: Int, readsHead: Bool = false) { (self.limit, self.readsHead) = (limit, readsHead) }

  /// Takes bytes of the answer. Those behind what is wanted are ignored.
  ///
  /// - Throws: ``ExchangeError``.
  package mutating func take(_ bytes: [UInt8]) throws(ExchangeError) {
    for byte in bytes where !isComplete {
      count += 1
      guard count <= limit else {
        guard status == nil else {
          isComplete = true
          return
        }
        throw .system("its answer does not begin within \(limit) bytes")
      }
      guard byte == 0x0A else {
        line.append(byte)
        continue
      }
      if line.last == 0x0D { line.removeLast() }
      try end()
      line.removeAll(keepingCapacity: true)
    }
  }

  /// Handles the end of a line.
  private mutating func end() throws(ExchangeError) {
    guard status == nil else {
      if line.isEmpty { isComplete = true } else { readField() }
      return
    }
    guard !isInterim else {
      isInterim = !line.isEmpty
      return
    }
    guard line.starts(with: Array("HTTP/1.".utf8)), line.count >= 12, line[8] == 0x20,
      line.count == 12 || line[12] == 0x20, let code = Self.number(line[9..<12]), code >= 100
    else { throw .system("its answer is not HTTP") }
    guard code >= 200 else {
      isInterim = true
      return
    }
    status = code
    isComplete = !readsHead
  }

  /// Reads a field of the head.
  private mutating func readField() {
    let name = Array("retry-after:".utf8)
    guard line.count > name.count, line.count <= 80,
      zip(line, name).allSatisfy({ (0x41...0x5A).contains($0) ? $0 | 0x20 == $1 : $0 == $1 })
    else { return }
    let value = line[name.count...].drop { $0 == 0x20 || $0 == 0x09 }
    let digits = value.prefix { (0x30...0x39).contains($0) }
    if !digits.isEmpty, digits.count <= 9 {
      retryAfter = Self.number(digits)
    } else {
      retryAfter = Self.seconds(of: String(decoding: value, as: UTF8.self)).map { max(0, $0 - time(nil)) }
    }
  }

  /// Returns the seconds since 1970 of a date as in `Wed, 21 Oct 2015 07:28:00 GMT` (RFC 9110 section 5.6.7).
  private static func seconds(of date: String) -> Int? {
    let words = date.split { " :".contains($0) }
    let months = ["Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"]
    guard words.count == 8, words[7] == "GMT", let month = months.firstIndex(of: String(words[2])) else { return nil }
    let numbers = [1, 3, 4, 5, 6].compactMap { Int32(words[$0]) }
    guard numbers.count == 5, zip(numbers, [31, 9999, 23, 59, 60]).allSatisfy({ (0...$1).contains($0) }) else {
      return nil
    }
    var parts = tm()
    (parts.tm_mday, parts.tm_mon, parts.tm_year) = (numbers[0], Int32(month), numbers[1] - 1900)
    (parts.tm_hour, parts.tm_min, parts.tm_sec) = (numbers[2], numbers[3], numbers[4])
    return timegm(&parts)
  }

  private static func number(_ digits: ArraySlice<UInt8>) -> Int? {
    digits.allSatisfy { (0x30...0x39).contains($0) } ? digits.reduce(0) { $0 * 10 + Int($1 & 15) } : nil
  }
}

/// A reader of the status code of an answer (RFC 9112 section 4), which passes over interim answers. It keeps one line.
package struct HTTPStatusReader {
  /// The code, once it has come.
  package private(set) var status: Int?
  private var line: [UInt8] = []
  /// `true` within the head of an interim answer.
  private var isInterim = false
  private var count = 0
  private let limit: Int

  /// Creates a reader that gives up if there is no status within `limit` bytes.
  package init(limit: Int) { self.limit = limit }

  /// Takes bytes of the answer. Those behind the status are ignored.
  ///
  /// - Throws: ``ExchangeError``.
  package mutating func take(_ bytes: [UInt8]) throws(ExchangeError) {
    for byte in bytes where status == nil {
      count += 1
      guard count <= limit else { throw .system("its answer does not begin within \(limit) bytes") }
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
    guard !isInterim else {
      isInterim = !line.isEmpty
      return
    }
    guard line.starts(with: Array("HTTP/1.".utf8)), line.count >= 12, line[8] == 0x20,
      line.count == 12 || line[12] == 0x20, let code = Self.number(line[9..<12]), code >= 100
    else { throw .system("its answer is not HTTP") }
    if code < 200 { isInterim = true } else { status = code }
  }

  private static func number(_ digits: ArraySlice<UInt8>) -> Int? {
    digits.allSatisfy { (0x30...0x39).contains($0) } ? digits.reduce(0) { $0 * 10 + Int($1 & 15) } : nil
  }
}

import Delivery
import TestSupport
import Testing

/// The first lines of answers, in any pieces.
@Suite struct HTTPStatusTests {
  private static func status(_ answer: [UInt8], pieces: Int, limit: Int = 16384) throws -> Int? {
    var reader = HTTPStatusReader(limit: limit)
    var rest = answer[...]
    while !rest.isEmpty {
      try reader.take(Array(rest.prefix(pieces)))
      rest = rest.dropFirst(pieces)
    }
    return reader.status
  }

  @Test(arguments: [
    ("HTTP/1.1 200 OK\r\n\r\n", 200), ("HTTP/1.0 404\r\n", 404), ("HTTP/1.1 503 \r\nX: y\r\n", 503),
    ("HTTP/1.1 204 No Content\n", 204), ("HTTP/1.1 999 x\r\n", 999),
    ("HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 201 Created\r\n\r\n", 201),
    ("HTTP/1.1 103 Early Hints\r\nLink: a\r\n\r\nHTTP/1.1 102 Processing\r\n\r\nHTTP/1.1 500 no\r\n", 500),
  ])
  func `a status is found in pieces of any size`(answer: String, status: Int) throws {
    for pieces in 1...answer.utf8.count { #expect(try Self.status(Array(answer.utf8), pieces: pieces) == status) }
  }

  @Test(arguments: [
    "\r\n", "HTTP/2 200\r\n", "HTTP/1.1 20 OK\r\n", "HTTP/1.1 2000\r\n", "HTTP/1.1 +20 OK\r\n", "HTTP/1.1 099 x\r\n",
    "HTTP/1.1200 OK 1234\r\n", "<html>\r\n", "HTTP/1.1 100 Continue\r\n\r\nnonsense\r\n",
  ])
  func `an answer that is none is refused`(answer: String) {
    #expect(throws: ExchangeError.self) { try Self.status(Array(answer.utf8), pieces: 5) }
  }

  @Test func `bytes without an end are bounded, and any bytes end in a status or an error`() throws {
    #expect(throws: ExchangeError.self) { try Self.status([UInt8](repeating: 0x48, count: 101), pieces: 7, limit: 100) }
    let interim = Array(String(repeating: "HTTP/1.1 100 Continue\r\n\r\n", count: 100).utf8)
    #expect(throws: ExchangeError.self) { try Self.status(interim, pieces: 64, limit: 1000) }
    var generator = SeededGenerator(seed: 7)
    let seed = Array("HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 200 OK\r\n\r\n".utf8)
    for _ in 0..<20_000 {
      var bytes = seed
      for _ in 0..<3 {
        bytes[Int.random(in: 0..<bytes.count, using: &generator)] = UInt8.random(in: 0...255, using: &generator)
      }
      let status = (try? Self.status(bytes, pieces: 9)) ?? nil
      #expect(status == nil || (200...999).contains(status ?? 0))
    }
  }
}

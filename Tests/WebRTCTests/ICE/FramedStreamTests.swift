import Testing
import WebRTC

/// Datagrams on a TCP connection (RFC 4571).
@Suite struct FramedStreamTests {
  private func take(_ bytes: [UInt8], piece: Int, upTo limit: Int = .max) throws -> [[UInt8]] {
    var stream = FramedStream()
    var datagrams: [[UInt8]] = []
    for start in stride(from: 0, to: bytes.count, by: piece) where datagrams.count < limit {
      try bytes[start..<min(start + piece, bytes.count)].withUnsafeBytes { part in
        try stream.take(part) {
          datagrams.append(Array($0))
          return datagrams.count < limit
        }
      }
    }
    return datagrams
  }

  @Test func `datagrams come out as they went in, in whatever pieces`() throws {
    let datagrams: [[UInt8]] = [
      [1, 2, 3], [], Array(repeating: 7, count: FramedStream.datagramLimit), [0], Array(0..<255),
    ]
    let bytes = datagrams.flatMap { [UInt8($0.count >> 8), UInt8($0.count & 255)] + $0 }
    for piece in [1, 2, 3, 5, 100, 2049, 2050, 4096] { #expect(try take(bytes, piece: piece) == datagrams) }
    #expect(try take(bytes, piece: 4096, upTo: 1) == [[1, 2, 3]])
  }

  @Test(arguments: [1, 2, 100]) func `a longer datagram ends the connection before a byte of it is kept`(piece: Int) {
    let count = FramedStream.datagramLimit + 1
    #expect(throws: FramedStream.LengthError(length: count)) {
      _ = try take([0, 1, 9, UInt8(count >> 8), UInt8(count & 255), 1, 2, 3], piece: piece)
    }
  }
}

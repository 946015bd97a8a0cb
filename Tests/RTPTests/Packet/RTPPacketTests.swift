import RTP
import TestSupport
import Testing

@Suite struct RTPPacketTests {
  static func parse<Value>(
    _ bytes: [UInt8], _ body: (RTPPacket) -> Value
  ) throws(RTPPacketError) -> Value {
    try bytes.withUnsafeBytes { buffer in
      Result { () throws(RTPPacketError) in body(try RTPPacket(parsing: buffer)) }
    }.get()
  }

  @Test func `a header is written as RFC 3550 draws it`() throws {
    let header = RTPHeader(
      marker: true, payloadType: .h264, sequenceNumber: 0x1234, timestamp: 0x89ab_cdef, ssrc: 0xdead_beef)
    var bytes = [UInt8](repeating: 0x55, count: 13)
    bytes.withUnsafeMutableBytes { buffer in
      guard let base = buffer.baseAddress else { return }
      header.write(to: base)
    }
    #expect(bytes == hex("80 e0 1234 89abcdef deadbeef 55"))
    #expect(try Self.parse(Array(bytes.prefix(12))) { $0.header } == header)
  }

  @Test func `contributing sources, extension and padding are set apart`() throws {
    let bytes = hex("b2 21 0001 00000002 00000003  11111111 22222222  bede 0001 aabbccdd  0102 000003")
    try Self.parse(bytes) { packet in
      #expect(Array(packet.contributingSources) == hex("11111111 22222222"))
      #expect(packet.headerExtension?.profile == 0xbede)
      #expect(packet.headerExtension.map { Array($0.bytes) } == hex("aabbccdd"))
      #expect(Array(packet.payload) == hex("0102"))
      #expect(packet.header.payloadType == .transportStream)
      #expect(!packet.header.marker)
    }
  }

  @Test(arguments: [
    ("", RTPPacketError.short(0)),
    ("80 60 0001 00000002 000000", .short(11)),
    ("40 60 0001 00000002 00000003", .version(1)),
    ("81 60 0001 00000002 00000003 000000", .contributingSources(1, packet: 15)),
    ("90 60 0001 00000002 00000003 bede00", .extension(length: 4, packet: 15)),
    ("90 60 0001 00000002 00000003 bede0002 00000000", .extension(length: 12, packet: 20)),
    ("90 60 0001 00000002 00000003 bedeffff 00000000", .extension(length: 262_144, packet: 20)),
    ("a0 60 0001 00000002 00000003", .padding(0, available: 0)),
    ("a0 60 0001 00000002 00000003 00", .padding(0, available: 1)),
    ("a0 60 0001 00000002 00000003 0003", .padding(3, available: 2)),
  ])
  func `a datagram that is no RTP packet is refused by name`(bytes: String, error: RTPPacketError) {
    #expect(throws: error) { try Self.parse(hex(bytes)) { _ in } }
  }

  @Test func `a payload may be empty or all padding`() throws {
    #expect(try Self.parse(hex("80 60 0001 00000002 00000003")) { $0.payload.count } == 0)
    #expect(try Self.parse(hex("a0 60 0001 00000002 00000003 000003")) { $0.payload.count } == 0)
  }

  @Test func `a stream starts at numbers that its generator chose`() {
    var (one, other) = (SeededGenerator(seed: 7), SeededGenerator(seed: 7))
    let stream = RTPStream(payloadType: .h264, using: &one)
    let again = RTPStream(payloadType: .h264, using: &other)
    #expect(stream.ssrc == again.ssrc)
    #expect(stream.nextSequenceNumber == again.nextSequenceNumber)
    #expect(stream.timestampOffset == again.timestampOffset)
    let next = RTPStream(payloadType: .h264, using: &one)
    #expect(next.ssrc != stream.ssrc)
    #expect(RTPStream(payloadType: .h264).ssrc != RTPStream(payloadType: .h264).ssrc)
  }

  @Test func `a payload type has seven bits`() {
    #expect(RTPPayloadType(rawValue: 127)?.rawValue == 127)
    #expect(RTPPayloadType(rawValue: 128) == nil)
  }
}

import Media
import Platform
import RTP
import TestSupport
import Testing

/// A written RTCP datagram.
func written(_ body: (inout RTCPWriter) throws -> Void) rethrows -> [UInt8] {
  let memory = UnsafeMutableRawBufferPointer.allocate(byteCount: 2048, alignment: 8)
  defer { memory.deallocate() }
  var writer = RTCPWriter(into: memory)
  try body(&writer)
  return Array(writer.bytes)
}

/// A received RTCP datagram in words, an error's description for a broken packet.
func read(_ bytes: [UInt8], allowReducedSize: Bool = true, limits: RTCPReader.Limits = .init()) throws -> [String] {
  try bytes.withUnsafeBytes { buffer in
    var reader = try RTCPReader(buffer, allowReducedSize: allowReducedSize, limits: limits)
    var lines: [String] = []
    while true {
      do throws(RTCPError) {
        guard let packet = try reader.next() else { return lines }
        lines.append(describe(packet))
      } catch {
        lines.append("\(error)")
      }
    }
  }
}

private func describe(_ packet: RTCPPacket) -> String {
  func text(_ bytes: UnsafeRawBufferPointer) -> String { String(decoding: bytes, as: UTF8.self) }
  func blocks(_ blocks: RTCPRecords<ReportBlock>) -> String {
    blocks.map {
      " [\($0.ssrc) lost \($0.fractionLost)/\($0.cumulativeLost) highest \($0.highestSequenceNumber)"
        + " jitter \($0.jitter) lsr \($0.lastSenderReport) dlsr \($0.delaySinceLastSenderReport)]"
    }.joined()
  }
  switch packet {
  case .senderReport(let report, let list):
    return "SR \(report.ssrc) ntp \(report.ntp.rawValue) rtp \(report.rtpTimestamp)"
      + " sent \(report.packetCount)/\(report.octetCount)" + blocks(list)
  case .receiverReport(let sender, let list): return "RR \(sender)" + blocks(list)
  case .sourceDescription(let items):
    return "SDES" + items.map { " \($0.ssrc) \($0.type)=\(text($0.text))" }.joined()
  case .goodbye(let sources, let reason): return "BYE \(sources.map(\.ssrc)) \(text(reason))"
  case .nack(let sender, let media, let entries): return "NACK \(sender) \(media) \(entries.flatMap { Array($0) })"
  case .pictureLoss(let sender, let media): return "PLI \(sender) \(media)"
  case .fullIntraRequest(let sender, let entries):
    return "FIR \(sender)" + entries.map { " \($0.ssrc)#\($0.sequenceNumber)" }.joined()
  case .extendedReport(let sender, let reference):
    return "XR \(sender)" + (reference.map { " reference \($0.rawValue)" } ?? "")
  case .receiverLimit(let sender, let bits, let sources): return "REMB \(sender) \(bits) \(sources.map(\.ssrc))"
  case .other(let type, let format): return "other \(type)/\(format)"
  }
}

@Suite struct RTCPPacketTests {
  static let block = ReportBlock(
    ssrc: 7, fractionLost: 0x40, cumulativeLost: -2, highestSequenceNumber: 0x0001_0002, jitter: 9,
    lastSenderReport: 0x1122_3344, delaySinceLastSenderReport: 0x0001_0000)
  static let blockBytes = "00000007 40fffffe 00010002 00000009 11223344 00010000"

  /// The packets of RFC 3550 sections 6.4 to 6.6, RFC 4585 section 6, RFC 5104 section 4.3.1, and RFC 3611
  /// sections 4.4 and 4.5 draw, bit by bit.
  static let cases: [(bytes: String, meaning: String)] = [
    (
      "81c8000c deadbeef 83aa7e80 80000000 0001e240 00000003 00000960" + blockBytes,
      "SR 3735928559 ntp 9487534655377768448 rtp 123456 sent 3/2400"
        + " [7 lost 64/-2 highest 65538 jitter 9 lsr 287454020 dlsr 65536]"
    ),
    ("81c90007 00000005" + blockBytes, "RR 5 [7 lost 64/-2 highest 65538 jitter 9 lsr 287454020 dlsr 65536]"),
    ("80c90001 00000005", "RR 5"),
    ("81ca0003 00000005 0103616263 000000", "SDES 5 1=abc"),
    ("81ca0004 00000005 01026162 06026364 00000000", "SDES 5 1=ab 5 6=cd"),
    ("81cb0001 00000005", "BYE [5] "),
    ("81cb0003 00000005 0462796521 000000", "BYE [5] bye!"),
    ("81cd0003 00000005 00000007 ffff8001", "NACK 5 7 [65535, 0, 15]"),
    ("81cd0004 00000005 00000007 000a0000 00640001", "NACK 5 7 [10, 100, 101]"),
    ("81ce0002 00000005 00000007", "PLI 5 7"),
    ("84ce0004 00000005 00000000 00000007 2a000000", "FIR 5 7#42"),
    ("80cf0004 00000005 04000002 83aa7e80 80000000", "XR 5 reference 9487534655377768448"),
    ("80cf0005 00000005 05000003 00000007 11223344 00010000", "XR 5"),
  ]

  @Test(arguments: cases) func `a packet is read as its RFC draws it`(bytes: String, meaning: String) throws {
    #expect(try read(hex(bytes)) == [meaning])
  }

  @Test(arguments: [
    // draft-alvestrand-rmcat-remb-03 section 2.2: a mantissa of 18 bits, 250 000, and the exponent 2.
    ("8fce0005 00000005 00000000 52454d42 010bd090 00000007", "REMB 5 1000000 [7]"),
    ("8fce0005 00000005 00000000 52454d42 01000000 00000007", "REMB 5 0 [7]"),
    ("8fce0005 00000005 00000000 52454d42 01ffffff 00000007", "REMB 5 \(UInt64.max) [7]"),
    ("8fce0006 00000005 00000000 52454d42 020bd090 00000007 00000008", "REMB 5 1000000 [7, 8]"),
    ("8fce0004 00000005 00000000 52454d42 000bd090", "REMB 5 1000000 []"),
    // Another application's feedback.
    ("8fce0005 00000005 00000000 52454d43 010bd090 00000007", "other 206/15"),
  ]) func `a browser's limit is read as its draft draws it`(bytes: String, meaning: String) throws {
    #expect(try read(hex(bytes)) == [meaning])
  }

  @Test func `packets are written as their RFCs draw them`() throws {
    let report = SenderReport(
      ssrc: 0xdead_beef, ntp: NTPTimestamp(unixSeconds: 0, nanoseconds: 500_000_000), rtpTimestamp: 123_456,
      packetCount: 3, octetCount: 2400)
    let all: [[UInt8]] = [
      try written { try $0.append(report, blocks: [Self.block]) },
      try written { try $0.appendReceiverReport(sender: 5, blocks: [Self.block]) },
      try written { try $0.appendReceiverReport(sender: 5) },
      try written { try $0.appendCanonicalName("abc", of: 5) },
      try written { try $0.appendSourceDescription(of: 5, [(type: 1, text: "ab"), (type: 6, text: "cd")]) },
      try written { try $0.appendGoodbye([SynchronizationSource(5)]) },
      try written { try $0.appendGoodbye([SynchronizationSource(5)], reason: "bye!") },
      try written {
        try $0.appendNACK(sender: 5, media: 7, entries: [NACKEntry(packetID: 0xffff, followers: 0x8001)])
      },
      try written {
        try $0.appendNACK(
          sender: 5, media: 7, entries: [NACKEntry(packetID: 10), NACKEntry(packetID: 100, followers: 1)])
      },
      try written { try $0.appendPictureLoss(sender: 5, media: 7) },
      try written {
        try $0.appendFullIntraRequest(sender: 5, entries: [FullIntraRequestEntry(ssrc: 7, sequenceNumber: 42)])
      },
      try written {
        try $0.appendReceiverReference(sender: 5, NTPTimestamp(unixSeconds: 0, nanoseconds: 500_000_000))
      },
      try written {
        try $0.appendReceiverDelays(
          sender: 5, [ReceiverDelay(ssrc: 7, lastReference: 0x1122_3344, delay: 0x0001_0000)])
      },
    ]
    #expect(all == Self.cases.map { hex($0.bytes) })
    // And all in one compound packet, which a reader takes apart again.
    #expect(try read(all.flatMap { $0 }, allowReducedSize: false) == Self.cases.map(\.meaning))
  }

  @Test func `of an extended report's blocks the reference time is found, and others are passed over`() throws {
    // Statistics (RFC 3611 section 4.6), the reference time, and a block of a type that nobody has defined.
    let statistics = "06e00009 00000007 00010002" + String(repeating: "00000000", count: 7)
    #expect(
      try read(hex("80cf0010 00000005" + statistics + "04000002 83aa7e80 80000000 fe000001 00000000"))
        == ["XR 5 reference 9487534655377768448"])
  }

  @Test func `feedback without a report is taken only where reduced size is`() throws {
    let pictureLoss = hex("81ce0002 00000005 00000007")
    #expect(try read(pictureLoss) == ["PLI 5 7"])
    #expect(throws: RTCPError.firstPacket(206)) { try read(pictureLoss, allowReducedSize: false) }
  }

  @Test func `padding is cut off, APP and unknown packets are passed over`() throws {
    let bytes = hex("80c90001 00000005  81cc0003 00000005 6e616d65 00000000  8fce0003 00000005 00000000 6e616d65")
    #expect(try read(bytes) == ["RR 5", "other 204/1", "other 206/15"])
    #expect(try read(hex("80c90001 00000005 a1ce0004 00000005 00000007 00000000 00000008")) == ["RR 5", "PLI 5 7"])
  }

  @Test(arguments: [
    ("", RTCPError.short(0, offset: 0)), ("80c900", .short(3, offset: 0)),
    ("80c90001 00000005 80c9", .short(2, offset: 8)), ("40c90001 00000005", .version(1, offset: 0)),
    ("80c90002 00000005", .length(12, available: 8)), ("80c9ffff 00000005", .length(262_144, available: 8)),
    ("a0c90001 00000004 81ce0002 00000005 00000007", .padding(4, available: 4)),
    ("a0c90001 00000008", .padding(8, available: 4)), ("a0c90001 00000003", .padding(3, available: 4)),
    ("a0c90001 00000000", .padding(0, available: 4)), ("a0c90000", .padding(0, available: 0)),
  ])
  func `a datagram with a wrong length is refused as a whole`(bytes: String, error: RTCPError) {
    #expect(throws: error) { try read(hex(bytes)) }
    #expect(!error.description.contains("\n") && error.kind == .data)
  }

  @Test(arguments: [
    ("82c90001 00000005", RTCPError.body(type: 201, needed: 52, available: 4)),
    ("80c80001 00000005", .body(type: 200, needed: 24, available: 4)),
    ("80c90000", .body(type: 201, needed: 4, available: 0)),
    ("81cd0001 00000005", .body(type: 205, needed: 8, available: 4)),
    ("81ce0001 00000005", .body(type: 206, needed: 8, available: 4)),
    ("84ce0001 00000005", .body(type: 206, needed: 8, available: 4)),
    ("82cb0001 00000005", .body(type: 203, needed: 8, available: 4)),
    ("80cf0002 00000005 04000002", .body(type: 207, needed: 16, available: 8)),
    ("80cf0000", .body(type: 207, needed: 4, available: 0)),
    ("81cb0002 00000005 04414141", .reason(4, available: 3)),
    ("81ca0000", .sourceDescription(offset: 0)), ("81ca0002 00000005 01036162", .sourceDescription(offset: 4)),
    ("81ca0002 00000005 01026162", .sourceDescription(offset: 8)),
    ("82ca0002 00000005 00000000", .sourceDescription(offset: 8)),
    ("81ca0002 00000005 01016101", .sourceDescription(offset: 7)),
  ])
  func `a broken packet is refused by name, and the next one read`(bytes: String, error: RTCPError) throws {
    #expect(try read(hex(bytes) + hex("81ce0002 00000005 00000007")) == ["\(error)", "PLI 5 7"])
    #expect(!error.description.contains("\n"))
  }

  @Test func `limits hold for a datagram's bytes and packets`() {
    let one = hex("80c90001 00000005")
    let many = Array(repeatElement(one, count: 65).joined())
    #expect(throws: RTCPError.packets(limit: 64)) { try read(many) }
    #expect(throws: RTCPError.size(520, limit: 519)) { try read(many, limits: .init(bytes: 519)) }
    #expect(throws: Never.self) { try read(Array(many.dropLast(8))) }
  }

  @Test func `random bytes do no harm, and many look like RTCP`() {
    var random = SeededGenerator(seed: 5)
    var taken = 0
    for _ in 0..<30_000 {
      var bytes = random.bytes(Int.random(in: 0...25, using: &random) * 4)
      if bytes.count >= 4 {
        bytes[0] = 0x80 | bytes[0] & 0x1f
        bytes[1] = .random(in: 199...207, using: &random)
        (bytes[2], bytes[3]) = (0, UInt8(bytes.count / 4 - 1))
      }
      if (try? read(bytes)) != nil { taken += 1 }
    }
    #expect(taken > 20_000)
  }

  @Test func `a packet that does not fit is not started`() throws {
    let memory = UnsafeMutableRawBufferPointer.allocate(byteCount: 20, alignment: 8)
    defer { memory.deallocate() }
    var writer = RTCPWriter(into: memory)
    try writer.appendReceiverReport(sender: 5)
    #expect(throws: RTCPWriterError.room(needed: 16, available: 12)) { try writer.appendCanonicalName("abc", of: 5) }
    try writer.appendPictureLoss(sender: 5, media: 7)
    #expect(writer.count == 20)
    #expect(throws: RTCPWriterError.entries(32, limit: 31)) {
      try writer.appendReceiverReport(sender: 5, blocks: repeatElement(Self.block, count: 32))
    }
    #expect(throws: RTCPWriterError.text(256, limit: 255)) {
      try writer.appendCanonicalName(String(repeating: "a", count: 256), of: 5)
    }
  }

  @Test func `texts of every length are ended and aligned`() throws {
    for length in 0...255 {
      let name = String(repeating: "x", count: length)
      #expect(try read(written { try $0.appendCanonicalName(name, of: 5) }) == ["SDES 5 1=\(name)"])
      let goodbye = try written { try $0.appendGoodbye([SynchronizationSource(5)], reason: name) }
      #expect(try read(goodbye) == ["BYE [5] \(name)"])
    }
  }

  @Test(arguments: [
    ("80c90001 00000005", RTPMultiplexing.rtcp), ("80600001 00000000 00000005", .rtp), ("80e00001", .rtp),
    ("81ce0002", .rtcp), ("80df0000", .rtcp), ("80bf0000", .rtp), ("80c00000", .rtcp), ("80210000", .rtp),
    ("00010000", .other), ("16feff00", .other), ("80c900", .other), ("", .other),
  ])
  func `RTP and RTCP on one port are told apart`(bytes: String, kind: RTPMultiplexing) {
    #expect(hex(bytes).withUnsafeBytes { RTPMultiplexing($0) } == kind)
  }

  @Test func `the round trip of RFC 3550 figure 2 is 6.125 s`() {
    var reception = ReportedReception()
    let block = ReportBlock(ssrc: 1, lastSenderReport: 0xb705_2000, delaySinceLastSenderReport: 0x0005_4000)
    reception.take(block, at: .zero, ntp: NTPTimestamp(rawValue: 0x0000_b710_8000_0000))
    #expect(reception.roundTrip?.seconds == 6.125)
    // A report from the future changes nothing.
    reception.take(block, at: .zero, ntp: NTPTimestamp(rawValue: 0x0000_b704_8000_0000))
    #expect(reception.roundTrip?.seconds == 6.125 && reception.reports == 2)
  }

  @Test func `wall-clock times are NTP's`() {
    let time = NTPTimestamp(unixSeconds: 1_700_000_000, nanoseconds: 250_000_000)
    // 1,700,000,000 + 2,208,988,800, and a quarter of 2^32.
    #expect(time.rawValue == 0xe8fe_6f80_4000_0000)
    #expect(time.compact == 0x6f80_4000)
    #expect((time + Duration(seconds: 1.5)).rawValue == 0xe8fe_6f81_c000_0000)
    #expect((time + Duration(seconds: -0.5)).rawValue == 0xe8fe_6f7f_c000_0000)
  }
}

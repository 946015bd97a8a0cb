import Media
import Platform
import RTP
import TestSupport
import Testing

/// A viewer of stream 7 and the packets that were sent to it.
final class Viewer {
  let feedback: ViewerFeedback
  var history: PacketHistory
  var sent: [[UInt8]] = []
  /// `true` while a packet that is sent again finds room.
  var hasRoom = true

  init(
    packets: Int = 64, bytes: Int = 64 << 10, retransmissions: RetransmissionStream? = nil,
    limits: RetransmissionLimiter.Limits = .init()
  ) {
    history = PacketHistory(packets: packets, bytes: bytes)
    feedback = ViewerFeedback(media: 7, retransmissions: retransmissions, limits: limits)
  }

  func append(_ packet: [UInt8], at time: Instant = .zero) {
    packet.withUnsafeBytes { bytes in
      let header = UnsafeRawBufferPointer(rebasing: bytes[..<12])
      history.append(header: header, payload: UnsafeRawBufferPointer(rebasing: bytes[12...]), at: time)
    }
  }

  func receive(_ bytes: [UInt8], at time: Instant = .zero) throws -> ViewerFeedback.Requests {
    try bytes.withUnsafeBytes { buffer in
      try feedback.receive(buffer, at: time, ntp: NTPTimestamp(rawValue: 0) + (time - .zero), history: history) {
        sent.append(Array($0) + Array($1))
        return hasRoom
      }
    }
  }

  func find(_ sequenceNumber: UInt16, at time: Instant = .zero) -> [UInt8]? {
    history.withPacket(sequenceNumber, at: time) { Array($0) }
  }
}

@Suite struct PacketHistoryTests {
  @Test func `the newest packets are found, the oldest make room`() {
    let viewer = Viewer(packets: 16, bytes: 1 << 20)
    for number in UInt16(65530)...65535 { viewer.append(packet(number, [UInt8(number & 0xff)])) }
    for number in UInt16(0)..<14 { viewer.append(packet(number, [UInt8(number)])) }
    #expect((UInt16(65530)...65533).allSatisfy { viewer.find($0) == nil })
    for number in [UInt16(65534), 65535, 0, 13] {
      #expect(viewer.find(number) == packet(number, [UInt8(number & 0xff)]))
    }
    #expect(viewer.find(14) == nil)
  }

  @Test func `bytes bound it as packets do, at any packet sizes`() {
    var random = SeededGenerator(seed: 8)
    let viewer = Viewer(packets: 1024, bytes: 20_000)
    let memory = viewer.history.memoryBytes
    var sent: [[UInt8]] = []
    for number in UInt16(0)..<3000 {
      let bytes = packet(number, random.bytes(Int.random(in: 0...1500, using: &random)))
      sent.append(bytes)
      viewer.append(bytes)
      var found = 0
      for back in 0..<min(sent.count, 60) {
        guard let held = viewer.find(number &- UInt16(back)) else { continue }
        #expect(held == sent[sent.count - 1 - back])
        found += held.count
      }
      #expect(found <= 20_000)
      if sent.count > 60 { #expect(found > 20_000 - 3100) }
    }
    #expect(viewer.history.memoryBytes == memory)
  }

  @Test func `a packet that is too large or too old is not found`() {
    let viewer = Viewer(bytes: 1000)
    viewer.append(packet(1, H264Case.run(0, 1000)))
    viewer.append(packet(2, [1]))
    #expect(viewer.find(1) == nil)
    #expect(viewer.find(2, at: Instant(seconds: 1)) != nil)
    #expect(viewer.find(2, at: Instant(seconds: 1.001)) == nil)
  }
}

@Suite struct ViewerFeedbackTests {
  static func nack(_ entries: [NACKEntry], media: UInt32 = 7) throws -> [UInt8] {
    try written { try $0.appendNACK(sender: 5, media: media, entries: entries) }
  }

  @Test func `a NACK is answered with the packets as they were`() throws {
    let viewer = Viewer()
    let packets = (UInt16(10)..<15).map { packet($0, ssrc: 7, [0x41, UInt8($0)]) }
    for packet in packets { viewer.append(packet) }
    let requests = try viewer.receive(Self.nack([NACKEntry(packetID: 11, followers: 0b10), NACKEntry(packetID: 99)]))
    #expect(requests.retransmissions == 2 && !requests.keyFrame)
    #expect(viewer.sent == [packets[1], packets[3]])
    #expect(viewer.feedback.counts.packetsGone == 1)
    _ = try viewer.receive(Self.nack([NACKEntry(packetID: 11)], media: 8))
    #expect(viewer.sent.count == 2)
  }

  @Test func `with RTX it has a source, type and numbers of its own, and the original number in front`() throws {
    let type = try #require(RTPPayloadType(rawValue: 97))
    let stream = RTPStream(payloadType: type, ssrc: 0xaabb_ccdd, firstSequenceNumber: 0xffff, timestampOffset: 0)
    let viewer = Viewer(retransmissions: RetransmissionStream(stream))
    viewer.append(hex("80 e0 1234 01020304 00000007 4111"))
    // Contributing source, extension and padding: all but the padding stay.
    viewer.append(hex("b1 60 1235 01020304 00000007 00000001 bede0001 51aa0000 4122 0002"))
    _ = try viewer.receive(Self.nack([NACKEntry(packetID: 0x1234, followers: 1)]))
    #expect(
      viewer.sent == [
        hex("80 e1 ffff 01020304 aabbccdd 1234 4111"),
        hex("91 61 0000 01020304 aabbccdd 00000001 bede0001 51aa0000 1235 4122"),
      ])
    #expect(viewer.feedback.retransmissions?.stream.packetsSent == 2)
  }

  @Test func `a flood of NACKs costs no more than the limits`() throws {
    let viewer = Viewer(packets: 1024, bytes: 2 << 20, limits: .init(bytesPerSecond: 100_000, burstBytes: 50_000))
    for number in UInt16(0)..<1000 { viewer.append(packet(number, ssrc: 7, H264Case.run(0, 988))) }
    let flood = try Self.nack((0..<400).map { NACKEntry(packetID: UInt16($0 * 2), followers: 0xffff) })
    for step in 0..<100 {
      _ = try viewer.receive(flood, at: Instant(seconds: Double(step) / 100))
    }
    let counts = viewer.feedback.counts
    #expect(counts.packetsRequested == 400 * 17 * 100)
    #expect(counts.bytesRetransmitted <= 150_000 && counts.bytesRetransmitted > 140_000)
    #expect(counts.packetsRefused + counts.packetsRetransmitted + counts.packetsGone == counts.packetsRequested)
  }

  @Test func `in a group one receiver with heavy loss does not take retransmission from the others`() throws {
    func report(from sender: UInt32, lost: UInt8) throws -> [UInt8] {
      return try written {
        try $0.appendReceiverReport(sender: sender, blocks: [ReportBlock(ssrc: 7, fractionLost: lost)])
      }
    }
    let viewer = Viewer()
    for number in UInt16(1)...3 { viewer.append(packet(number, ssrc: 7, [0x41])) }
    _ = try viewer.receive(report(from: 5, lost: 128))
    _ = try viewer.receive(Self.nack([NACKEntry(packetID: 1)]))
    #expect(viewer.sent.isEmpty, "half of what goes to one viewer is lost: more packets would lose more")
    _ = try viewer.receive(report(from: 6, lost: 0))
    _ = try viewer.receive(report(from: 5, lost: 128))
    _ = try viewer.receive(Self.nack([NACKEntry(packetID: 2)]))
    #expect(viewer.sent.count == 1)
  }

  @Test func `the same packet goes out three times at most, and not twice within 10 ms`() throws {
    let viewer = Viewer()
    viewer.append(packet(3, ssrc: 7, [0x41]))
    var times: [Int] = []
    for millisecond in 0..<500 {
      let before = viewer.sent.count
      _ = try viewer.receive(Self.nack([NACKEntry(packetID: 3)]), at: Instant(seconds: Double(millisecond) / 1000))
      if viewer.sent.count > before { times.append(millisecond) }
    }
    #expect(times == [0, 10, 20])
  }

  @Test func `PLI and new FIRs ask for a key frame, repeated FIRs and those for others do not`() throws {
    let viewer = Viewer()
    func fir(_ number: UInt8, sender: UInt32 = 5, media: UInt32 = 7) throws -> Bool {
      let bytes = try written {
        try $0.appendFullIntraRequest(
          sender: sender, entries: [FullIntraRequestEntry(ssrc: media, sequenceNumber: number)])
      }
      return try viewer.receive(bytes).keyFrame
    }
    #expect(try fir(1) && !fir(1) && fir(2) && !fir(2) && fir(1))
    #expect(try fir(1, sender: 6) && !fir(1))
    #expect(try !fir(9, media: 8))
    #expect(try viewer.receive(written { try $0.appendPictureLoss(sender: 5, media: 7) }).keyFrame)
    #expect(try !viewer.receive(written { try $0.appendPictureLoss(sender: 5, media: 8) }).keyFrame)
    #expect(viewer.feedback.counts.pictureLosses == 1 && viewer.feedback.counts.fullIntraRequests == 4)
  }

  @Test func `a reference time is passed on, to be answered in a compound datagram`() throws {
    let viewer = Viewer()
    let extended = "80cf0004 00000005 04000002 83aa7e80 80000000"
    let request = try viewer.receive(hex("80c90001 00000005" + extended))
    let reference = try #require(request.reference)
    // Not with each datagram of a browser, and not for another of its media.
    #expect(try viewer.receive(hex("80c90001 00000005" + extended), at: Instant(seconds: 0.1)).reference == nil)
    let other = try written { try $0.appendReceiverReport(sender: 5, blocks: [ReportBlock(ssrc: 8)]) }
    #expect(try viewer.receive(other + hex(extended), at: Instant(seconds: 0.3)).reference == nil)
    #expect(try viewer.receive(hex("80c90001 00000005" + extended), at: Instant(seconds: 0.3)).reference != nil)
    #expect(reference.receiver == 5 && reference.time.rawValue == 0x83aa_7e80_8000_0000)
    #expect(try viewer.receive(hex("80c90001 00000005")).reference == nil)

    let control = try SenderControl(canonicalName: "abc", sessionBitsPerSecond: 1_000_000, at: .zero)
    let type = try #require(RTPPayloadType(rawValue: 96))
    let stream = RTPStream(payloadType: type, ssrc: 7, firstSequenceNumber: 0, timestampOffset: 0)
    let memory = UnsafeMutableRawBufferPointer.allocate(byteCount: SenderControl.room, alignment: 8)
    defer { memory.deallocate() }
    let delay = ReceiverDelay(ssrc: reference.receiver, reference: reference.time, delay: .milliseconds(250))
    let count = control.writeIntroduction(
      of: stream, answering: delay, into: memory, at: .zero, ntp: NTPTimestamp(rawValue: 0))
    let bytes = Array(memory[..<count])
    #expect(try read(bytes, allowReducedSize: false).last == "XR 7")
    // The middle of the reference time, and a quarter of a second.
    #expect(Array(bytes.suffix(24)) == hex("80cf0005 00000007 05000003 00000005 7e808000 00004000"))
  }

  @Test func `a report about our stream is kept, and one about another is not`() throws {
    let viewer = Viewer()
    let bytes = try written {
      try $0.appendReceiverReport(
        sender: 5, blocks: [ReportBlock(ssrc: 8, fractionLost: 255), RTCPPacketTests.block])
    }
    _ = try viewer.receive(bytes, at: Instant(seconds: 3))
    let reception = viewer.feedback.reception
    #expect(reception.reports == 1 && reception.fractionLost == 0.25 && reception.cumulativeLost == -2)
    #expect(reception.highestSequenceNumber == 65538 && reception.jitter.nanoseconds == 100_000)
    #expect(reception.lastReport == Instant(seconds: 3))
  }

  @Test func `a browser's limit counts if it names our stream`() throws {
    let viewer = Viewer()
    let report = "80c90001 00000005"
    let others = hex(report + "8fce0005 00000005 00000000 52454d42 010bd090 00000008")
    #expect(try viewer.receive(others).receiverLimit == nil)
    #expect(try viewer.receive(hex(report + "8fce0004 00000005 00000000 52454d42 000bd090")).receiverLimit == nil)
    let ours = hex(report + "8fce0006 00000005 00000000 52454d42 020bd090 00000008 00000007")
    #expect(try viewer.receive(ours).receiverLimit == 1_000_000)
    // It says that it names a source, and does not.
    _ = try viewer.receive(hex(report + "8fce0004 00000005 00000000 52454d42 010bd090"))
    #expect(viewer.feedback.counts.refused == 1)
  }

  @Test func `receivers are a group if they report on our stream in the same time`() throws {
    let viewer = Viewer()
    func report(from sender: UInt32, on media: UInt32? = 7, at seconds: Double) throws -> Bool {
      let bytes = try written {
        try $0.appendReceiverReport(sender: sender, blocks: media.map { [ReportBlock(ssrc: $0)] } ?? [])
      }
      let requests = try viewer.receive(bytes, at: Instant(seconds: seconds))
      #expect(requests.isReport == (media == 7) && requests.reporter == (media == 7 ? sender : 0))
      return viewer.feedback.isGroup(at: Instant(seconds: seconds))
    }
    #expect(try !report(from: 5, at: 0))
    // Without a block, and about another stream.
    #expect(try !report(from: 6, on: nil, at: 1) && !report(from: 8, on: 9, at: 1) && !report(from: 5, at: 2))
    // Another one takes its place.
    #expect(try !report(from: 10, at: 3) && !report(from: 10, at: 4))
    // The former one is still there.
    #expect(try report(from: 5, at: 5))
    #expect(viewer.feedback.isGroup(at: Instant(seconds: 100)) && !viewer.feedback.isGroup(at: Instant(seconds: 130)))
    // Who derives its name from ours is no second one.
    viewer.feedback.changeMedia(to: 7, at: Instant(seconds: 131))
    #expect(try !report(from: 11, at: 132) && !report(from: 11, at: 133))
  }

  @Test
  func `a receiver that comes back after a long silence was not there meanwhile, and one that sends as well is one`()
    throws
  {
    let viewer = Viewer()
    func report(
      from sender: UInt32, isSender: Bool = false, _ blocks: [ReportBlock] = [ReportBlock(ssrc: 7)], at seconds: Double
    )
      throws -> ViewerFeedback.Requests
    {
      let bytes = try written {
        guard isSender else { return try $0.appendReceiverReport(sender: sender, blocks: blocks) }
        let report = SenderReport(
          ssrc: sender, ntp: NTPTimestamp(rawValue: 0), rtpTimestamp: 0, packetCount: 0, octetCount: 0)
        try $0.append(report, blocks: blocks)
      }
      return try viewer.receive(bytes, at: Instant(seconds: seconds))
    }
    func isGroup(at seconds: Double) -> Bool { viewer.feedback.isGroup(at: Instant(seconds: seconds)) }
    _ = try report(from: 5, at: 0)
    // Known by empty reports alone.
    for second in 1..<20 { _ = try report(from: 5, [], at: Double(second) * 10) }
    _ = try report(from: 6, at: 195)
    _ = try report(from: 5, at: 200)
    #expect(!isGroup(at: 200))
    _ = try report(from: 6, at: 201)
    #expect(isGroup(at: 201))
    // One leaves.
    _ = try viewer.receive(hex("80c90001 00000005 81cb0001 00000005"), at: Instant(seconds: 202))
    #expect(!isGroup(at: 202))
    #expect(try report(from: 9, isSender: true, at: 203).newReceiver)
    #expect(!isGroup(at: 203))
    _ = try report(from: 6, at: 204)
    #expect(isGroup(at: 204))
  }

  @Test func `BYE is passed on, and garbage counted`() throws {
    let viewer = Viewer()
    #expect(try viewer.receive(hex("80c90001 00000005 81cb0001 00000005")).goodbye)
    #expect(throws: RTCPError.version(0, offset: 0)) { try viewer.receive([0, 1, 2, 3]) }
    #expect(try viewer.receive(hex("82c90001 00000005 81ce0002 00000005 00000007")).keyFrame)
    #expect(viewer.feedback.counts.refused == 2 && viewer.feedback.counts.datagrams == 3)
  }

  @Test func `key frames are granted at most every 500 ms, and none is forgotten`() {
    var limiter = KeyFrameRequestLimiter()
    var granted: [Int] = []
    for millisecond in 0..<2000 {
      if limiter.request(at: Instant(seconds: Double(millisecond) / 1000)) { granted.append(millisecond) }
    }
    #expect(granted == [0, 500, 1000, 1500])
    #expect(limiter.requests == 2000 && limiter.granted == 4)
    // One is kept: granted at the end of the interval, unless a key frame went meanwhile.
    #expect(limiter.deadline == Instant(seconds: 2))
    var answered = limiter
    answered.keyFrameSent()
    let (kept, gone) = (limiter.poll(at: Instant(seconds: 2)), answered.poll(at: Instant(seconds: 2)))
    #expect(kept && !gone && limiter.deadline == nil)
  }
}

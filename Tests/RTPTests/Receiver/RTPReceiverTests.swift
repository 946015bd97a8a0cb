import Media
import Platform
import RTP
import TestSupport
import Testing

/// A sender and a receiver with a network between them that delays, drops, repeats and reorders; its own clock.
final class Link {
  struct Conditions {
    /// Chance that a packet to the receiver is lost, and that one to the sender is.
    var loss = (forth: 0.0, back: 0.0)
    /// Chance that a packet is repeated, or takes longer than those behind it.
    var repetition = 0.0
    var reordering = 0.0
    /// One way, in milliseconds.
    var delay = 10.0
    /// The most milliseconds by which a packet to the receiver takes longer or shorter.
    var jitter = 0.0
  }

  private struct Flight {
    var due: Double
    var order: Int
    var bytes: [UInt8]
  }

  let receiver: RTPReceiver
  let viewer: ViewerFeedback
  var packetizer: H264Packetizer
  var history = PacketHistory(packets: 2048, bytes: 4 << 20)
  var limiter = KeyFrameRequestLimiter()
  var conditions: Conditions
  var random: SeededGenerator
  /// Milliseconds since the beginning.
  private(set) var now = 0.0
  private(set) var units: [Delivered] = []
  private(set) var sent: [Delivered] = []
  private(set) var sentLost = 0
  private(set) var keyFramesGranted: [Double] = []
  private(set) var feedback: [(time: Double, bytes: [UInt8])] = []
  private var forth: [Flight] = []
  private var back: [Flight] = []
  private var order = 0
  private var keyFrameWanted = true
  private let batch = PacketBatch()
  private let memory = UnsafeMutableRawBufferPointer.allocate(byteCount: RTPReceiver.feedbackRoom, alignment: 8)

  static let rtx = RTPPayloadType(rawValue: 97)

  init(
    _ conditions: Conditions, policy: RetransmissionPolicy = .init(), isRetransmissionStream: Bool = true,
    packets: Int = 1024, seed: UInt64 = 1
  ) throws {
    self.conditions = conditions
    random = SeededGenerator(seed: seed)
    let stream = RTPStream(payloadType: .h264, ssrc: 7, firstSequenceNumber: 0xff00, timestampOffset: 0xffff_0000)
    packetizer = try H264Packetizer(stream: stream)
    receiver = try RTPReceiver(
      .init(
        ssrc: 5, retransmissionPayloadType: isRetransmissionStream ? Self.rtx : nil, retransmission: policy,
        packets: packets, seed: seed), at: .zero)
    var retransmissions: RetransmissionStream?
    if isRetransmissionStream, let type = Self.rtx {
      retransmissions = RetransmissionStream(
        RTPStream(payloadType: type, ssrc: 8, firstSequenceNumber: 0, timestampOffset: 0))
    }
    viewer = ViewerFeedback(media: 7, retransmissions: retransmissions)
  }

  deinit {
    memory.deallocate()
  }

  private var time: Instant { Instant(seconds: now / 1000) }

  /// Sends `frames` pictures, 30 a second, of some 5 kB, and lets the network run on for `tail` milliseconds.
  func run(frames: Int, tail: Double = 0) {
    let end = now + Double(frames) * 100 / 3
    var next = now
    while now < end + tail {
      if now >= next, now < end {
        sendFrame()
        next += 100.0 / 3
      }
      step()
      now += 1
    }
  }

  func sendFrame() {
    if limiter.poll(at: time) { grant() }
    var unit = [[keyFrameWanted ? 0x65 : 0x41] + random.bytes(Int.random(in: 2000...8000, using: &random))]
    if keyFrameWanted { unit = [hex("67 42c01e"), hex("68 ce3c80")] + unit }
    let isKeyFrame = keyFrameWanted
    keyFrameWanted = false
    batch.removeAll()
    let packets = withAccessUnit(unit, isKeyFrame: isKeyFrame, at: time.nanoseconds) {
      packetizer.packetize($0, into: batch)
      for index in 0..<batch.count { history.append(batch[index], at: time) }
      return batch.packets
    }
    sent.append(Delivered(unit, timestamp: packetizer.stream.rtpTimestamp(of: time)))
    if isKeyFrame { limiter.keyFrameSent() }
    for packet in packets where !send(packet) { sentLost += 1 }
  }

  private func grant() {
    keyFrameWanted = true
    keyFramesGranted.append(now)
  }

  @discardableResult
  private func send(_ bytes: [UInt8]) -> Bool {
    guard Double.random(in: 0..<1, using: &random) >= conditions.loss.forth else { return false }
    var due = now + conditions.delay
    if conditions.jitter > 0 { due += .random(in: -conditions.jitter...conditions.jitter, using: &random) }
    if Double.random(in: 0..<1, using: &random) < conditions.reordering { due += .random(in: 0...8, using: &random) }
    order += 1
    forth.append(Flight(due: due, order: order, bytes: bytes))
    if Double.random(in: 0..<1, using: &random) < conditions.repetition {
      forth.append(Flight(due: due + 2, order: order, bytes: bytes))
    }
    return true
  }

  private func step() {
    for flight in take(&forth) {
      flight.bytes.withUnsafeBytes { bytes in
        try? receiver.receive(bytes, at: time) { units.append(Delivered($0)) }
      }
    }
    receiver.poll(at: time) { units.append(Delivered($0)) }
    while case let count = receiver.writeFeedback(into: memory, at: time), count > 0 {
      let bytes = Array(UnsafeRawBufferPointer(rebasing: memory[..<count]))
      feedback.append((now, bytes))
      guard Double.random(in: 0..<1, using: &random) >= conditions.loss.back else { continue }
      order += 1
      back.append(Flight(due: now + conditions.delay, order: order, bytes: bytes))
    }
    for flight in take(&back) {
      flight.bytes.withUnsafeBytes { bytes in
        let requests = try? viewer.receive(
          bytes, at: time, ntp: NTPTimestamp(rawValue: 0) + (time - .zero), history: history
        ) {
          send(Array($0) + Array($1))
        }
        if requests?.keyFrame == true, limiter.request(at: time) { grant() }
      }
    }
    if limiter.poll(at: time) { grant() }
  }

  private func take(_ flights: inout [Flight]) -> [Flight] {
    let due = flights.filter { $0.due <= now }.sorted { ($0.due, $0.order) < ($1.due, $1.order) }
    flights.removeAll { $0.due <= now }
    return due
  }

  /// A sender report on the way to the receiver.
  func sendReport() throws {
    let report = SenderReport(packetizer.stream, at: time, ntp: NTPTimestamp(rawValue: 0) + (time - .zero))
    send(try written { try $0.append(report) })
  }
}

@Suite struct RTPReceiverTests {
  @Test(arguments: [true, false])
  func `with 5 % loss each way nearly every lost packet is there within 200 ms`(isRetransmissionStream: Bool) throws {
    let link = try Link(
      .init(loss: (0.05, 0.05), reordering: 0.02), isRetransmissionStream: isRetransmissionStream)
    link.run(frames: 1500, tail: 400)
    let counts = link.receiver.counts
    #expect(link.sentLost > 300)
    // Every packet that is not given up came within the policy's 200 ms.
    #expect(Double(counts.packetsLost) < 0.05 * Double(link.sentLost), "\(counts), \(link.sentLost) lost on the way")
    #expect(counts.packetsRecovered > UInt64(Double(link.sentLost) * 0.9))
    let whole = link.units.filter { !$0.isDamaged }
    #expect(whole.count > 1450)
    // Not the first: nothing tells that a stream's first packet, its parameter sets, was lost.
    let sent = Dictionary(uniqueKeysWithValues: link.sent.map { ($0.timestamp, $0) })
    #expect(whole.dropFirst().allSatisfy { sent[$0.timestamp] == $0 })
    #expect(try #require(link.receiver.roundTrip).milliseconds < 60)
  }

  @Test func `without NACK the picture is whole again one key-frame request after the loss ends`() throws {
    let link = try Link(.init(loss: (0.05, 0)), policy: .reorderOnly)
    link.run(frames: 90)
    link.conditions.loss = (0, 0)
    let asked = link.keyFramesGranted.count
    link.run(frames: 60, tail: 100)
    #expect(link.receiver.counts.packetsLost > 10 && link.receiver.counts.nacksSent == 0)
    #expect(link.keyFramesGranted.count - asked <= 2)
    #expect(!link.receiver.needsKeyFrame)
    #expect(Array(link.units.suffix(30)) == Array(link.sent.suffix(30)))
    let gaps = zip(link.keyFramesGranted, link.keyFramesGranted.dropFirst()).map { $1 - $0 }
    #expect(gaps.allSatisfy { $0 >= 500 })
  }

  @Test func `reordered and repeated packets come out in order, once, and cost no request`() throws {
    let link = try Link(.init(repetition: 0.1, reordering: 0.2), policy: .reorderOnly)
    link.run(frames: 600, tail: 200)
    #expect(link.units == link.sent)
    #expect(link.receiver.counts.packetsReordered > 200 && link.receiver.counts.packetsRepeated > 200)
    #expect(link.receiver.counts.packetsLost == 0 && link.receiver.counts.pictureLossesSent == 0)
    // The feedback that was sent is compound or of reduced size, and nothing but reports.
    #expect(try link.feedback.allSatisfy { try read($0.bytes).count == 2 })
  }

  @Test func `under jitter, few of the packets that others have overtaken come twice`() throws {
    // On the way for 10 to 70 ms each, and none is lost.
    let link = try Link(.init(delay: 40, jitter: 30))
    func watch(_ rounds: Int) throws {
      for _ in 0..<rounds {
        try link.sendReport()
        link.run(frames: 15)
      }
    }
    // Before the first reports nothing tells of the jitter.
    try watch(6)
    let (before, received) = (link.viewer.counts, try #require(link.receiver.statistics).received)
    try watch(40)
    let counts = link.viewer.counts
    let requested = counts.packetsRequested - before.packetsRequested
    let repeated = counts.packetsRetransmitted - before.packetsRetransmitted
    let all = try #require(link.receiver.statistics).received - received
    #expect(all > 1000 && requested > all / 10, "\(requested) requested of \(all)")
    #expect(repeated < all / 20, "\(repeated) of \(all) again")
  }

  @Test func `a burst of loss longer than the window is skipped, not asked for`() throws {
    let link = try Link(.init(), packets: 64)
    link.run(frames: 30)
    link.conditions.loss.forth = 1
    link.run(frames: 60)
    link.conditions.loss.forth = 0
    let before = link.receiver.counts.nacksSent
    link.run(frames: 60, tail: 200)
    #expect(link.receiver.counts.packetsLost > 64)
    #expect(link.receiver.counts.nacksSent - before < 10)
    #expect(Array(link.units.suffix(30)) == Array(link.sent.suffix(30)))
  }

  @Test func `no packet is asked for more than three times, and no PLI follows another within 500 ms`() throws {
    let link = try Link(.init(loss: (0.3, 1)))
    link.run(frames: 300, tail: 400)
    var asked: [String: Int] = [:]
    var pictureLosses: [Double] = []
    for (time, bytes) in link.feedback {
      for line in try read(bytes) {
        if line.hasPrefix("NACK 5 7 [") {
          for number in line.dropFirst(10).dropLast().split(separator: ", ") { asked[String(number), default: 0] += 1 }
        }
        if line.hasPrefix("PLI") { pictureLosses.append(time) }
      }
    }
    #expect(asked.count > 300 && asked.values.allSatisfy { $0 <= 3 })
    #expect(pictureLosses.count > 10)
    #expect(zip(pictureLosses, pictureLosses.dropFirst()).allSatisfy { $1 - $0 >= 500 })
  }

  @Test func `reports say what was lost, and the round trip comes of them`() throws {
    let link = try Link(.init(loss: (0.1, 0), delay: 25), policy: .reorderOnly)
    for _ in 0..<40 {
      try link.sendReport()
      link.run(frames: 15)
    }
    let reception = link.viewer.reception
    #expect(reception.reports > 50)
    #expect(abs(Int(reception.cumulativeLost) - link.sentLost) < 30, "\(reception), \(link.sentLost)")
    #expect((0...0.4).contains(reception.fractionLost))
    // 25 ms each way, and one step of the clock each way.
    let roundTrip = try #require(reception.roundTrip).milliseconds
    #expect((49...54).contains(roundTrip), "\(roundTrip) ms")
    // The sequence number had wrapped once.
    #expect(reception.highestSequenceNumber > 0xffff)
  }

  /// Returns the events of one receiver for packets of source 1, a millisecond apart.
  static func take(_ packets: [[UInt8]], _ receiver: RTPReceiver, from time: Int64 = 0) -> [Delivered] {
    var units: [Delivered] = []
    for (index, packet) in packets.enumerated() {
      packet.withUnsafeBytes { bytes in
        try? receiver.receive(bytes, at: Instant(nanoseconds: (time + Int64(index)) * 1_000_000)) {
          units.append(Delivered($0))
        }
      }
    }
    return units
  }

  @Test func `a source is followed from its second packet on, and none of its pictures is lost`() throws {
    let receiver = try RTPReceiver(.init(), at: .zero)
    let first = Self.take([packet(10, timestamp: 1, marker: true, hex("65 01"))], receiver)
    #expect(first.isEmpty && receiver.source == nil)
    let second = Self.take([packet(11, timestamp: 2, marker: true, hex("41 02"))], receiver)
    #expect(second == [Delivered([hex("65 01")], timestamp: 1), Delivered([hex("41 02")], timestamp: 2)])
    // One packet of another source changes nothing, two do.
    let other = (UInt16(50)..<53).map { packet($0, timestamp: UInt32($0), marker: true, ssrc: 2, hex("65 03")) }
    #expect(Self.take([other[0]], receiver).isEmpty && receiver.source == 1)
    #expect(Self.take([packet(12, timestamp: 3, marker: true, hex("41 04"))], receiver).count == 1)
    #expect(Self.take([other[1], other[2]], receiver).count == 2 || receiver.source == 2)
    #expect(receiver.source == 2)
  }

  @Test func `a sender that starts anew under its old source is followed from its second packet on`() throws {
    let receiver = try RTPReceiver(.init(), at: .zero)
    _ = Self.take((UInt16(10)..<20).map { packet($0, timestamp: 1, marker: true, hex("65 01")) }, receiver)
    let anew = (UInt16(30_000)..<30_003).map { packet($0, timestamp: 9, marker: true, hex("65 02")) }
    #expect(Self.take(anew, receiver).count == 2)
    #expect(receiver.counts.packetsDropped == 1 && receiver.statistics?.received == 2)
  }

  @Test func `a packet of another stream is refused by name`() throws {
    let receiver = try RTPReceiver(.init(source: 1), at: .zero)
    func refusal(_ bytes: [UInt8]) -> RTPReceiverError? {
      bytes.withUnsafeBytes { buffer in
        do throws(RTPReceiverError) {
          try receiver.receive(buffer, at: .zero) { _ in }
          return nil
        } catch {
          return error
        }
      }
    }
    #expect(refusal([]) == .unknown(bytes: 0))
    #expect(refusal(hex("00010000")) == .unknown(bytes: 4))
    #expect(refusal(hex("80600000")) == .packet(.short(4)))
    #expect(refusal(hex("80c90002 00000001")) == .control(.length(12, available: 8)))
    #expect(refusal(packet(1, ssrc: 3, [0x41])) == .source(3, expected: 1))
    #expect(refusal(packet(1, H264Case.run(0, 1489))) == .size(1501, limit: 1500))
    #expect(refusal(hex("80 21 0002 00000000 00000001 47")) == .payloadType(.transportStream, expected: .h264))
    #expect(receiver.counts.datagramsRefused == 7)
    #expect(throws: RTCPWriterError.text(256, limit: 255)) {
      try RTPReceiver(.init(canonicalName: String(repeating: "a", count: 256)), at: .zero)
    }
  }

  @Test func `jitter is appendix A8's, worked out by hand`() throws {
    let receiver = try RTPReceiver(.init(), at: .zero)
    // Timestamps 90 ticks a millisecond, the third packet 16 ms late, the fourth in time again.
    for (number, (timestamp, milliseconds)) in [(0, 0), (90, 1), (180, 18), (270, 3)].enumerated() {
      let bytes = packet(UInt16(number), timestamp: UInt32(timestamp), marker: true, [0x41, 1])
      _ = Self.take([bytes], receiver, from: Int64(milliseconds))
    }
    // |D| is 0, 1440, 1440: J16 = 1440, then 1440 + 1440 - (1448 >> 4) = 2790, and 2790 >> 4.
    #expect(receiver.statistics?.jitter == 174)
    #expect(receiver.statistics?.expected == 4 && receiver.statistics?.lost == 0)
  }

  @Test func `nothing that is sent makes it hold more memory`() throws {
    var random = SeededGenerator(seed: 4)
    let limits = H264Depacketizer.Limits(nalBytes: 3000, nalUnits: 8, unitBytes: 6000)
    let receiver = try RTPReceiver(.init(packets: 64, limits: limits, seed: 1), at: .zero)
    let before = receiver.memoryBytes
    var sequenceNumber: UInt16 = 0
    for step in 0..<40_000 {
      let jump = Int.random(in: 0...9, using: &random)
      sequenceNumber &+= jump == 0 ? .random(in: 0 ... .max, using: &random) : UInt16.random(in: 0...3, using: &random)
      let bytes = packet(sequenceNumber, timestamp: UInt32(step), random.bytes(Int.random(in: 0...300, using: &random)))
      _ = Self.take([bytes], receiver, from: Int64(step))
      receiver.poll(at: Instant(nanoseconds: Int64(step) * 1_000_000)) { _ in }
    }
    #expect(receiver.memoryBytes <= before + 32_000)
    #expect(receiver.counts.packetsLost > 1000)
  }

  @Test func `nothing is due before the deadline that it names`() throws {
    let link = try Link(.init(loss: (0.1, 0)))
    link.run(frames: 100)
    let receiver = link.receiver
    let memory = UnsafeMutableRawBufferPointer.allocate(byteCount: RTPReceiver.feedbackRoom, alignment: 8)
    defer { memory.deallocate() }
    var time = Instant(seconds: 3.334)
    for _ in 0..<50 {
      while receiver.writeFeedback(into: memory, at: time) > 0 {}
      receiver.poll(at: time) { _ in }
      while receiver.writeFeedback(into: memory, at: time) > 0 {}
      let deadline = receiver.nextDeadline
      #expect(deadline > time)
      let lost = receiver.counts.packetsLost
      let before = Instant(nanoseconds: deadline.nanoseconds - 1)
      receiver.poll(at: before) { _ in }
      #expect(receiver.counts.packetsLost == lost && receiver.writeFeedback(into: memory, at: before) == 0)
      time = deadline
    }
    #expect(receiver.writeGoodbye(into: memory, at: time) == 32 + 20 + 8)
  }
}

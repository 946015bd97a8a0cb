import Foundation
import Media
import Platform
import RTP
import Streaming
import TestSupport
import Testing

/// A pipeline's RTCP, over sockets of the test's own and with datagrams that the test writes byte by byte.
@Suite(.serialized) struct RTCPExchangeTests {
  private static func word(_ value: UInt32) -> [UInt8] {
    (0..<4).map { UInt8(truncatingIfNeeded: value >> (24 - 8 * $0)) }
  }

  /// Feedback of `type` and `format` about `media`, RFC 4585 section 6.1, without a report before it (RFC 5506).
  private static func feedback(_ type: UInt8, _ format: UInt8, media: UInt32, _ rest: [UInt8] = []) -> [UInt8] {
    [0x80 | format, type, 0, UInt8(2 + rest.count / 4)] + word(0xabcd) + word(media) + rest
  }

  private static func pictureLoss(_ media: UInt32) -> [UInt8] { feedback(206, 1, media: media) }

  private static func fullIntraRequest(_ media: UInt32, number: UInt8) -> [UInt8] {
    feedback(206, 4, media: 0, word(media) + [number, 0, 0, 0])
  }

  private static func negative(_ media: UInt32, _ first: UInt16, followers: UInt16 = 0) -> [UInt8] {
    feedback(205, 1, media: media, word(UInt32(first) << 16 | UInt32(followers)))
  }

  /// A receiver report of one block, RFC 3550 section 6.4.2.
  private static func report(
    _ media: UInt32, fraction: UInt8, lost: UInt32, highest: UInt32, jitter: UInt32, last: UInt32, delay: UInt32
  ) -> [UInt8] {
    [0x81, 201, 0, 7] + word(0xabcd) + word(media) + [fraction] + word(lost).dropFirst() + word(highest) + word(jitter)
      + word(last) + word(delay)
  }

  private static func destination(
    _ port: UInt16, isMuxed: Bool = false, host: String = "127.0.0.1"
  ) -> StreamDestination {
    StreamDestination(host: host, port: port, multiplexesRTCP: isMuxed)
  }

  private func isRTCP(_ bytes: [UInt8]) -> Bool { bytes.count > 1 && (200...207).contains(bytes[1]) }

  /// Families with an address of this machine, and whether RTCP has RTP's port.
  private static let ways: [(Int32, String, Bool)] =
    [(AF_INET, "127.0.0.1", false), (AF_INET, "127.0.0.1", true)]
    + (hasIPv6 ? [(AF_INET6, "::1", false), (AF_INET6, "::1", true)] : [])

  @Test(arguments: ways)
  func `a viewer hears who sends, the clock, and the end`(family: Int32, host: String, isMuxed: Bool) throws {
    let (media, control) = try TestSocket.pair(family: family)
    let running = try RunningPipeline(
      try SizedEncoder(keyBytes: 3000, bytes: 500), to: [Self.destination(media.port, isMuxed: isMuxed, host: host)])
    let heard = isMuxed ? media : control
    let first = try #require(heard.first(where: isRTCP))
    // Pictures after that report: a busy machine leaves some out.
    let before = running.pipeline.statistics.sent
    #expect(eventually { running.pipeline.statistics.sent > before + 12 })
    running.end()
    var packets = media.drain()
    let goodbye = try #require(isMuxed ? packets.last { isRTCP($0.bytes) } : control.drain().last)
    if isMuxed { #expect(control.drain().isEmpty) }
    packets.removeAll { isRTCP($0.bytes) }
    #expect(packets.count > 10)
    let source = try #require(packets.first).bytes.rtpSource

    #expect(first.bytes.rtcpPackets.map(\.type) == [200, 202])
    #expect(first.bytes.number(at: 4, bytes: 4) == UInt64(source))
    // One chunk with the source, then item 1, its length, and the name; then at least one zero.
    let name = first.bytes.rtcpPackets[1].start + 8
    #expect(first.bytes[name] == 1)
    let text = String(decoding: first.bytes[(name + 2)..<(name + 2 + Int(first.bytes[name + 1]))], as: UTF8.self)
    #expect(text.hasPrefix("nightjar-") && text.count == 29)

    // RTP comes from the even port, RTCP from the next, or from the same.
    #expect(Set(packets.map(\.port)).count == 1 && packets[0].port.isMultiple(of: 2))
    #expect(first.port == packets[0].port + (isMuxed ? 0 : 1))

    #expect(goodbye.bytes.rtcpPackets.map(\.type) == [200, 202, 203])
    let bye = goodbye.bytes.rtcpPackets[2].start
    #expect(goodbye.bytes.number(at: bye + 4, bytes: 4) == UInt64(source))
    // Its counts are those of all packets. The first may have gone by while the report was looked for.
    let octets = packets.reduce(0) { $0 + $1.bytes.count - 12 }
    if !isMuxed {
      #expect(goodbye.bytes.number(at: 20, bytes: 4) == UInt64(packets.count))
      #expect(goodbye.bytes.number(at: 24, bytes: 4) == UInt64(octets))
    }

    // Both reports say which wall clock time a timestamp is: no picture came before it was taken, or long after.
    for report in [first.bytes, goodbye.bytes] {
      let fraction = Double(report.number(at: 12, bytes: 4)) / 0x1p32
      let seconds = Double(report.number(at: 8, bytes: 4)) - 2_208_988_800 + fraction
      let timestamp = UInt32(report.number(at: 16, bytes: 4))
      let delays = packets.map { packet in
        let ticks = Int32(bitPattern: packet.bytes.rtpTimestamp &- timestamp)
        return Double(packet.arrival) / 1e9 - (seconds + Double(ticks) / 90_000)
      }.sorted()
      #expect(delays[0] > -0.02 && delays[delays.count / 2] < 0.5, "\(delays[0]) \(delays[delays.count / 2])")
    }
    #expect(packets.allSatisfy { $0.trafficClass == 34 << 2 }, "AF41")
    #expect(first.trafficClass == 34 << 2 && goodbye.trafficClass == 34 << 2)
  }

  @Test(arguments: [false, true])
  func `a viewer's report is passed on, and the round trip is measured`(isMuxed: Bool) throws {
    let (media, control) = try TestSocket.pair()
    let running = try RunningPipeline(
      try SizedEncoder(keyBytes: 3000, bytes: 500), to: [Self.destination(media.port, isMuxed: isMuxed)])
    defer { running.end() }
    let heard = isMuxed ? media : control
    let report = try #require(heard.first(where: isRTCP))
    let source = UInt32(report.bytes.number(at: 4, bytes: 4))
    // The middle of the NTP time; as if it had been held for an eighth of a second, which it has.
    let last = UInt32(report.bytes.number(at: 10, bytes: 4))
    usleep(125_000)
    heard.send(
      Self.report(source, fraction: 64, lost: 0xff_fffe, highest: 0x1_0007, jitter: 900, last: last, delay: 8192),
      to: report.port)
    func reception() -> ReportedReception { running.pipeline.statistics.destinations[0].reception }
    #expect(eventually { reception().reports == 1 })
    #expect(reception().fractionLost == 0.25)
    #expect(reception().cumulativeLost == -2)
    #expect(reception().highestSequenceNumber == 0x1_0007)
    #expect(reception().jitter == .milliseconds(10))
    let roundTrip = try #require(reception().roundTrip)
    #expect(roundTrip < Duration(seconds: 5))
    // About somebody else: not taken.
    heard.send(
      Self.report(source &+ 1, fraction: 255, lost: 1, highest: 1, jitter: 1, last: 0, delay: 0), to: report.port)
    #expect(eventually { running.pipeline.statistics.destinations[0].feedback.datagrams == 2 })
    #expect(reception().reports == 1)
  }

  @Test(arguments: [false, true])
  func `PLI and FIR bring a key frame, a flood of them two a second at most`(isMuxed: Bool) throws {
    let (media, control) = try TestSocket.pair()
    let encoder = try SizedEncoder(keyBytes: 3000, bytes: 500)
    let running = try RunningPipeline(encoder, to: [Self.destination(media.port, isMuxed: isMuxed)])
    defer { running.end() }
    let heard = isMuxed ? media : control
    let report = try #require(heard.first(where: isRTCP))
    let source = UInt32(report.bytes.number(at: 4, bytes: 4))
    // The first picture alone, and one more that the viewer that had just come may have asked for.
    sleep(1)
    let before = encoder.keyFrames.count
    heard.send(Self.pictureLoss(source), to: report.port)
    #expect(eventually { encoder.keyFrames.count == before + 1 })
    usleep(700_000)
    heard.send(Self.fullIntraRequest(source, number: 1), to: report.port)
    #expect(eventually { encoder.keyFrames.count == before + 2 })
    usleep(700_000)
    // The same again is a repetition (RFC 5104 section 4.3.1.1); and what is about somebody else is none of ours.
    heard.send(Self.fullIntraRequest(source, number: 1), to: report.port)
    heard.send(Self.pictureLoss(source &+ 1), to: report.port)
    usleep(700_000)
    #expect(encoder.keyFrames.count == before + 2)
    let feedback = running.pipeline.statistics.destinations[0].feedback
    #expect(feedback.pictureLosses == 1 && feedback.fullIntraRequests == 1)

    let begin = Instant.now()
    func keyFrames() -> [Instant] { encoder.keyFrames.filter { $0 >= begin } }
    // For three seconds, or for longer where the machine keeps the camera from its frames.
    for number in 0..<6000 where number < 300 || keyFrames().count < 3 {
      heard.send(Self.pictureLoss(source), to: report.port)
      heard.send(Self.fullIntraRequest(source, number: UInt8(truncatingIfNeeded: number + 2)), to: report.port)
      usleep(10_000)
    }
    sleep(1)
    let made = keyFrames()
    #expect(made.count >= 3)
    #expect(Double(made.count) <= (Instant.now() - begin).seconds * 2 + 1, "\(made.count)")
    for (index, time) in made.enumerated() {
      // Granted half a second apart; made with the next frame, which may be late, but never early.
      #expect(Double(index) <= (time - begin).seconds * 2 + 1, "\(index) in \((time - begin).milliseconds) ms")
    }
  }

  @Test(arguments: [false, true])
  func `NACK brings the packets again, byte for byte`(isMuxed: Bool) throws {
    let (media, control) = try TestSocket.pair()
    let running = try RunningPipeline(
      try SizedEncoder(keyBytes: 20_000, bytes: 5000), to: [Self.destination(media.port, isMuxed: isMuxed)])
    defer { running.end() }
    let heard = isMuxed ? media : control
    let report = try #require(heard.first(where: isRTCP))
    let source = UInt32(report.bytes.number(at: 4, bytes: 4))
    /// The packets that were requested so far, sent again, and gone.
    func counts() -> [UInt64] {
      let feedback = running.pipeline.statistics.destinations[0].feedback
      return [feedback.packetsRequested, feedback.packetsRetransmitted, feedback.packetsGone]
    }
    var packets: [UInt16: [UInt8]] = [:]
    var (wanted, again): ([UInt16], [UInt16]) = ([], [])
    var told: [UInt64] = []
    // Packets are kept for a second. A machine that is held up for longer has others requested.
    for _ in 0..<3 where told.isEmpty || told[2] > 0 {
      let before = counts()
      // What has waited here may be older.
      for datagram in media.drain(quiet: 0) where !isRTCP(datagram.bytes) {
        packets[datagram.bytes.rtpSequenceNumber] = datagram.bytes
      }
      var order: [UInt16] = []
      while order.count < 40, let datagram = media.next() {
        guard !isRTCP(datagram.bytes) else { continue }
        packets[datagram.bytes.rtpSequenceNumber] = datagram.bytes
        order.append(datagram.bytes.rtpSequenceNumber)
      }
      try #require(order.count == 40)
      let first = order[36]
      // That one, the next, and the third after it.
      heard.send(Self.negative(source, first, followers: 0b101), to: report.port)
      (wanted, again) = ([first, first &+ 1, first &+ 3], [])
      let deadline = Date(timeIntervalSinceNow: 20)
      while again.count < 3, counts()[2] == before[2], Date() < deadline, let datagram = media.next() {
        guard !isRTCP(datagram.bytes) else { continue }
        let number = datagram.bytes.rtpSequenceNumber
        guard let known = packets.updateValue(datagram.bytes, forKey: number) else { continue }
        #expect(known == datagram.bytes)
        again.append(number)
      }
      // They are told after the packets have left.
      _ = eventually { counts()[0] == before[0] + 3 }
      told = zip(counts(), before).map { $0 - $1 }
    }
    #expect(again == wanted)
    #expect(told == [3, 3, 0])
  }

  @Test func `reports of unknown senders are ignored and counted`() throws {
    let (media, control) = try TestSocket.pair()
    let encoder = try SizedEncoder(keyBytes: 3000, bytes: 500)
    let running = try RunningPipeline(encoder, to: [Self.destination(media.port)])
    defer { running.end() }
    let report = try #require(control.first(where: isRTCP))
    let source = UInt32(report.bytes.number(at: 4, bytes: 4))
    sleep(1)
    let before = encoder.keyFrames.count
    let (stranger, _) = try TestSocket.pair()
    for _ in 0..<5 {
      stranger.send(Self.pictureLoss(source), to: report.port)
      stranger.send(Self.pictureLoss(source), to: report.port - 1)
      usleep(50_000)
    }
    // What a viewer sends from RTP's port is RTP's, even if it looks like RTCP.
    media.send(Self.pictureLoss(source), to: report.port - 1)
    #expect(eventually { running.pipeline.statistics.unknownSenders == 10 })
    usleep(700_000)
    #expect(running.pipeline.statistics.unknownSenders == 10)
    #expect(encoder.keyFrames.count == before)
    #expect(running.pipeline.statistics.destinations[0].feedback.datagrams == 0)
  }

  @Test func `a flood of garbage, PLI and NACK costs bounded work and no frame`() throws {
    let (media, control) = try TestSocket.pair()
    let (other, _) = try TestSocket.pair()
    let encoder = try SizedEncoder(keyBytes: 3000, bytes: 500)
    let running = try RunningPipeline(
      encoder, to: [Self.destination(media.port), Self.destination(other.port)])
    defer { running.end() }
    let report = try #require(control.first(where: isRTCP))
    let source = UInt32(report.bytes.number(at: 4, bytes: 4))
    var generator = SeededGenerator(seed: 3)
    let garbage = generator.bytes(1400)
    let begin = Instant.now()
    let figuresBefore = running.pipeline.statistics
    var sent = 0
    func hasEnough() -> Bool {
      let seconds = (Instant.now() - begin).seconds
      guard seconds >= 3, seconds < 12 else { return seconds >= 12 }
      return running.pipeline.statistics.destinations[1].frames >= figuresBefore.destinations[1].frames + 9
    }
    while !hasEnough() {
      for _ in 0..<50 {
        control.send(Self.pictureLoss(source), to: report.port)
        let lost = UInt16.random(in: 0 ... .max, using: &generator)
        control.send(Self.negative(source, lost, followers: .max), to: report.port)
        control.send(garbage, to: report.port)
        media.send(garbage, to: report.port)
        other.send(garbage, to: report.port)
        sent += 5
      }
      usleep(1000)
    }
    let span = (Instant.now() - begin).seconds
    let figures = running.pipeline.statistics
    let frames = figures.destinations[1].frames - figuresBefore.destinations[1].frames
    // Ninety in three seconds, if the machine is not too busy for its own camera; all that were encoded leave.
    #expect(frames >= 9)
    #expect(eventually { running.pipeline.statistics.sent >= figures.encoded })
    #expect(figures.destinations[1].framesDropped == 0 && figures.destinations[0].framesDropped == 0)
    let feedback = figures.destinations[0].feedback
    #expect(feedback.datagrams > 0 && feedback.refused > 0)
    // Four at a time, and then a rest of 10 ms.
    #expect(Double(feedback.datagrams) < (span + 1) * 4 / 0.010, "\(feedback.datagrams) of \(sent)")
    #expect(Double(figures.unknownSenders) < (span + 1) * 2 * 8 / 0.010)
    #expect(feedback.bytesRetransmitted < UInt64((span + 2) * 250_000))
    #expect(Double(encoder.keyFrames.filter { $0 >= begin }.count) <= (span + 1) * 2 + 1)
  }
}

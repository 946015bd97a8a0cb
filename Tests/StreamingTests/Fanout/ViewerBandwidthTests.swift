import Media
import Platform
import RTP
import Streaming
import TestSupport
import Testing

/// Viewers on a path that takes less than the stream, beside one on a path that takes all.
@Suite struct ViewerBandwidthTests {
  private let transport = ScriptedTransport()
  private let otherTransport = ScriptedTransport()
  private let maker: FrameMaker
  private var viewer: Viewer
  private let other: Viewer

  init() throws {
    maker = try FrameMaker()
    viewer = Self.viewer(1, transport, ViewerBandwidth(wanted: 600_000, takesReceiverLimit: true))
    other = Self.viewer(2, otherTransport, ViewerBandwidth(wanted: 600_000, takesReceiverLimit: true))
  }

  private static func viewer(_ number: UInt64, _ transport: ScriptedTransport, _ bandwidth: ViewerBandwidth) -> Viewer {
    let figures = ViewerFigures(id: ViewerID(number: number), name: "viewer \(number)")
    return Viewer(
      transport: transport, feedback: ViewerFeedback(media: 1), figures: figures, bandwidth: bandwidth)
  }

  /// The bandwidth of a path with a circuit breaker.
  private static func broken() -> ViewerBandwidth {
    ViewerBandwidth(
      wanted: 600_000,
      breaker: CircuitBreaker(frameInterval: .milliseconds(33), groupInterval: .seconds(1), expectsReports: true))
  }

  private func time(_ milliseconds: Int) -> Instant { Instant(seconds: 100) + .milliseconds(Int64(milliseconds)) }

  /// Offers a frame to both. Returns `true` if the viewer took it.
  private func send(_ frame: OutgoingFrame, at milliseconds: Int) -> Bool {
    let isTaken = viewer.offer(frame, at: time(milliseconds))
    viewer.flush(at: time(milliseconds))
    #expect(other.offer(frame, at: time(milliseconds)))
    other.flush(at: time(milliseconds))
    return isTaken
  }

  /// Begins, and lets the viewer's browser say that it takes `bits` a second, less than was sent.
  private func begin(limit bits: UInt64) throws {
    #expect(send(try maker.frame(packets: 500, isKeyFrame: true), at: 0))
    #expect(transport.packets.count == 500 && viewer.step == .idle)
    // One decrease leaves a quarter, and the first limit is none. A browser counts 200 of 228 bytes.
    var said = ViewerFeedback.Requests()
    for more in [2, 1, 0] as [UInt64] {
      said.receiverLimit = bits * 200 / 228 + more
      viewer.note(said, at: time(5))
    }
    let target = try #require(viewer.bandwidth?.target(at: time(10)))
    #expect(abs(target - Double(bits)) < 10, "\(target)")
  }

  @Test func `packets to a path with a limit are spread at one and a half times the limit, and to others they are not`()
    throws
  {
    try begin(limit: 100_000)
    #expect(send(try maker.frame(packets: 40), at: 20))
    #expect(viewer.step == .spread && viewer.isBlocked)
    #expect(otherTransport.packets.count == 540)
    var now = 20
    while viewer.isBlocked, now < 5000 {
      now += 1
      viewer.flush(at: time(now))
    }
    #expect(viewer.step == .idle && transport.packets.count == 540)
    // 40 packets of 228 bytes with their headers, at 150 kbit/s, less the one that leaves at once.
    let expected = 39 * 228 * 8 / 150
    #expect((expected - 60...expected + 60).contains(now - 20), "\(now - 20) ms, \(expected) expected")
  }

  @Test func `a path that takes half of the stream gets whole groups of pictures, and nobody else loses any`() throws {
    try begin(limit: 300_000)
    var taken: [Bool] = []
    for index in 0..<300 {
      let isKeyFrame = index.isMultiple(of: 15)
      taken.append(send(try maker.frame(packets: 10, isKeyFrame: isKeyFrame), at: 1000 + index * 33))
      for step in 1..<33 { viewer.flush(at: time(1000 + index * 33 + step)) }
      // After a gap, only a key frame.
      if index > 0, taken[index], !taken[index - 1] { #expect(isKeyFrame) }
    }
    for step in 0..<2000 where viewer.isBlocked { viewer.flush(at: time(1000 + 300 * 33 + step)) }
    // Frames that wait give way to a key frame, and count as lost.
    let figures = viewer.figures.current
    #expect((100...220).contains(figures.frames), "\(figures.frames) of 300")
    #expect(figures.frames + figures.framesDropped == 301 && figures.lost == 0)
    // Less than 2 s without a picture.
    let longest = taken.split(separator: true, omittingEmptySubsequences: true).map(\.count).max() ?? 0
    #expect((5..<60).contains(longest), "\(longest) pictures in a row")
    #expect(other.figures.current.framesDropped == 0 && otherTransport.packets.count == 500 + 3000)
    #expect((viewer.bandwidth?.pauses ?? 0) > 0)
    // What left is what the path takes.
    let bits = Double(transport.packets.count - 500) * 228 * 8 / 10
    #expect(bits < 345_000, "\(bits) bits a second")
  }

  @Test func `reports tell the bandwidth, and numbers that were left out are no losses`() {
    let bandwidth = ViewerBandwidth(wanted: 3_000_000)
    var reception = ReportedReception()
    // The stream's number, which is the viewer's and 5000 more; it wraps.
    var number: UInt16 = 65_000
    var highest = UInt32(60_000)
    var reported = 0
    func report(at now: Instant) {
      let block = ReportBlock(ssrc: 1, cumulativeLost: Int32(reported), highestSequenceNumber: highest, jitter: 0)
      reception.take(block, at: now, ntp: NTPTimestamp(rawValue: 0))
      bandwidth.take(reception, of: 5, repeated: 0, offset: 5000, at: now)
    }
    for frame in 0..<300 {
      let now = time(frame * 33)
      // A group of pictures is left out now and then: 20 numbers.
      if frame.isMultiple(of: 30), frame > 0 {
        number &+= 20
        highest &+= 20
        reported += 20
      }
      number &+= 10
      highest &+= 10
      bandwidth.noteSent(number: number, packets: 10, bytes: 12_000, at: now)
      report(at: now + .milliseconds(20))
    }
    #expect(!bandwidth.isLimited && bandwidth.estimate.lossShare == 0)
    // The viewer no longer gets them all: more than half of each picture stays on its way.
    for frame in 300..<330 {
      number &+= 10
      bandwidth.noteSent(number: number, packets: 10, bytes: 12_000, at: time(frame * 33))
      highest &+= 4
      report(at: time(frame * 33 + 20))
    }
    #expect(bandwidth.isLimited)
    #expect((bandwidth.target(at: time(330 * 33)) ?? .infinity) < 1_400_000)
  }

  @Test
  mutating func `a viewer that its breaker has stopped gets nothing until the pause is over, then a key frame first`()
    throws
  {
    viewer = Self.viewer(1, transport, Self.broken())
    func run(from: Int, to: Int, reports: Bool) throws -> [Bool] {
      var taken: [Bool] = []
      for index in from..<to {
        taken.append(send(try maker.frame(packets: 12, isKeyFrame: index.isMultiple(of: 30)), at: index * 33))
        // Not after as many bytes each time: the silence of such a viewer would be a queue.
        guard reports, index.isMultiple(of: 10) || index.isMultiple(of: 17), let sent = transport.packets.last else {
          continue
        }
        var reception = ReportedReception()
        let block = ReportBlock(
          ssrc: 1, cumulativeLost: 0, highestSequenceNumber: UInt32(sent[2]) << 8 | UInt32(sent[3]), jitter: 0)
        reception.take(block, at: time(index * 33), ntp: NTPTimestamp(rawValue: 0))
        viewer.bandwidth?.take(reception, of: 5, repeated: 0, offset: 0, at: time(index * 33))
      }
      return taken
    }
    #expect(try run(from: 0, to: 300, reports: true).allSatisfy { $0 })
    // 15 s of silence stop the stream for as long.
    let taken = try run(from: 300, to: 900, reports: false)
    let stop = try #require(taken.firstIndex(of: false))
    #expect((440...455).contains(stop), "\(stop)")
    #expect(taken[stop...].allSatisfy { !$0 })
    viewer.tellBandwidth(at: time(900 * 33))
    #expect(viewer.figures.current.stopped == .silence && viewer.figures.current.stops.silence == 1)
    #expect(!viewer.wantsKeyFrame(at: time(900 * 33)) && viewer.bandwidth?.target(at: time(900 * 33)) == nil)
    let later = try run(from: 900, to: 1350, reports: true)
    let again = try #require(later.firstIndex(of: true))
    #expect((900 + again).isMultiple(of: 30) && later[again...].allSatisfy { $0 })
    #expect(((again + 900 - stop - 300) * 33 - 15_000) < 1100)
    viewer.tellBandwidth(at: time(1350 * 33))
    #expect(viewer.figures.current.stopped == nil && viewer.figures.current.lost == 0)
    #expect(other.figures.current.framesDropped == 0)
  }

  @Test mutating func `a limit by REMB counts for browsers alone, and no limit outlasts a viewer's silence`() throws {
    var said = ViewerFeedback.Requests()
    func say(_ bits: UInt64, at milliseconds: Int) {
      said.receiverLimit = bits
      viewer.note(said, at: time(milliseconds))
    }
    viewer = Self.viewer(1, transport, ViewerBandwidth(wanted: 600_000))
    #expect(send(try maker.frame(packets: 500, isKeyFrame: true), at: 0))
    say(1, at: 9)
    say(0, at: 10)
    #expect(viewer.bandwidth?.isLimited == false)
    viewer = Self.viewer(1, transport, ViewerBandwidth(wanted: 600_000, takesReceiverLimit: true))
    #expect(send(try maker.frame(packets: 500, isKeyFrame: true), at: 20))
    say(1, at: 29)
    say(0, at: 30)
    #expect(viewer.bandwidth?.isLimited == true && viewer.bandwidth?.isSilent(at: time(31)) == false)
    // It says no more; packets leave at once again, and no picture is left out.
    viewer.giveUp()
    _ = viewer.offer(try maker.frame(packets: 5), at: time(15_040))
    #expect(viewer.bandwidth?.isLimited == false && viewer.bandwidth?.isPaused == false)
    #expect(viewer.bandwidth?.isSilent(at: time(15_040)) == true)
    #expect(send(try maker.frame(packets: 500, isKeyFrame: true), at: 15_050))
    #expect(viewer.step == .idle && !viewer.isBlocked)
  }

  @Test func `a receiver that begins anew, or counts no cycles, has lost nothing by that`() {
    let bandwidth = ViewerBandwidth(wanted: 3_000_000)
    var number: UInt16 = 60_000
    var (highest, lost) = (UInt32(number), 0)
    func run(_ frames: Range<Int>, of reporter: UInt32, _ highest: () -> UInt32) {
      for frame in frames {
        number &+= 10
        let now = time(frame * 33)
        bandwidth.noteSent(number: number, packets: 10, bytes: 12_000, at: now)
        let block = ReportBlock(ssrc: 1, cumulativeLost: Int32(lost), highestSequenceNumber: highest(), jitter: 0)
        var reception = ReportedReception()
        reception.take(block, at: now, ntp: NTPTimestamp(rawValue: 0))
        bandwidth.take(reception, of: reporter, repeated: 0, offset: 0, at: now + .milliseconds(20))
      }
    }
    // The cycles are not counted: 60 000, 65 530, 4.
    run(0..<1000, of: 5) { UInt32(number) }
    #expect(!bandwidth.isLimited && bandwidth.estimate.lossShare == 0)
    // With cycles, and losses of its own.
    (highest, lost) = (7 << 16, 5000)
    run(1000..<1200, of: 6) { highest | UInt32(number) }
    #expect(!bandwidth.isLimited && bandwidth.estimate.lossShare == 0)
    // The same receiver, which has begun anew and counts nothing, and then much at once.
    lost = 0
    run(1200..<1400, of: 6) { UInt32(number) }
    lost = 9000
    run(1400..<1600, of: 6) { UInt32(number) }
    #expect(!bandwidth.isLimited && bandwidth.estimate.lossShare == 0)
    // Real losses count.
    for frame in 1600..<1700 {
      lost += 3
      run(frame..<frame + 1, of: 6) { UInt32(number) }
    }
    #expect(bandwidth.estimate.lossShare > 0.2 && bandwidth.isLimited)
  }

  @Test func `after a stop nothing leaves that waited, and nothing is sent again`() throws {
    let viewer = Self.viewer(3, transport, Self.broken())
    #expect(viewer.offer(try maker.frame(packets: 10, isKeyFrame: true), at: time(0)))
    viewer.flush(at: time(0))
    let sent = try #require(transport.packets.last)
    let history = PacketHistory(packets: 16, bytes: 1 << 16)
    func report(at milliseconds: Int) throws {
      // A receiver report of source 5 about source 1: nothing lost, and the highest number.
      let bytes: [UInt8] = [0x81, 0xc9, 0, 7, 0, 0, 0, 5, 0, 0, 0, 1, 0, 0, 0, 0, 0, 0, sent[2], sent[3]]
      let said = try (bytes + [UInt8](repeating: 0, count: 12)).withUnsafeBytes {
        try viewer.feedback.receive($0, at: time(milliseconds), ntp: NTPTimestamp(rawValue: 0), history: history) {
          _, _ in true
        }
      }
      viewer.note(said, at: time(milliseconds))
    }
    try report(at: 10)
    // All that follows is on its way for ever, and in the end a frame finds no room.
    for frame in 1..<120 {
      _ = viewer.offer(try maker.frame(packets: 10), at: time(frame * 33))
      viewer.flush(at: time(frame * 33))
      if frame == 65 { transport.otherwise = (0, .full) }
      if frame.isMultiple(of: 10) { try report(at: frame * 33) }
      if viewer.isStopped { break }
      #expect(frame < 66 || viewer.isBlocked)
    }
    #expect(viewer.isStopped && viewer.bandwidth?.breaker?.stopped == .mediaTimeout && !viewer.isBlocked)
    transport.otherwise = nil
    let count = transport.packets.count
    let attempts = transport.attempts
    viewer.flush(at: time(4000))
    viewer.sendAside(try maker.frame(packets: 1), at: time(4000))
    sent.withUnsafeBytes { #expect(!viewer.sendAgain($0, at: time(4000))) }
    #expect(!viewer.takesAgain(UInt16(sent[2]) << 8 | UInt16(sent[3])))
    #expect(transport.packets.count == count && transport.attempts == attempts)
    #expect(viewer.figures.current.lost > 0 && viewer.awaitsKeyFrame)
  }

  @Test func `packets that are sent again take the place of others on a path with a limit`() throws {
    try begin(limit: 100_000)
    // 20 packets of 228 bytes at 150 kbit/s: 243 ms.
    let sent = try #require(transport.packets.last)
    for _ in 0..<20 {
      let isSent = sent.withUnsafeBytes {
        viewer.repeatPacket(header: $0, payload: UnsafeRawBufferPointer(rebasing: $0[$0.count...]))
      }
      #expect(isSent)
    }
    let count = transport.packets.count
    #expect(send(try maker.frame(packets: 5), at: 20))
    for now in 21..<200 { viewer.flush(at: time(now)) }
    #expect(transport.packets.count == count && viewer.step == .spread)
    for now in 200..<600 { viewer.flush(at: time(now)) }
    #expect(transport.packets.count == count + 5)
  }

  @Test func `repetitions that never arrive hide no losses`() {
    let bandwidth = ViewerBandwidth(wanted: 3_000_000)
    var (number, lost, repeated) = (0, 0, UInt64(0))
    for frame in 0..<300 {
      number += 10
      // From here on much is lost, and sent again in vain.
      if frame >= 200 {
        lost += 8
        repeated += 8
      }
      let now = time(frame * 33)
      bandwidth.noteSent(number: UInt16(number), packets: 10, bytes: 12_000, at: now)
      var reception = ReportedReception()
      let block = ReportBlock(ssrc: 1, cumulativeLost: Int32(lost), highestSequenceNumber: UInt32(number), jitter: 0)
      reception.take(block, at: now, ntp: NTPTimestamp(rawValue: 0))
      bandwidth.take(reception, of: 5, repeated: repeated, offset: 0, at: now + .milliseconds(20))
    }
    #expect(bandwidth.estimate.lossShare > 0.7 && bandwidth.isLimited)
  }

  @Test func `a viewer that takes no picture has no part in the bitrate, and has it again with its first one`() throws {
    try begin(limit: 300_000)
    #expect(viewer.target(at: time(10)) != nil)
    // A laptop that sleeps: nothing leaves any more.
    transport.otherwise = (0, .full)
    var now = 20
    while now < 3000 {
      _ = send(try maker.frame(packets: 5), at: now)
      now += 33
    }
    #expect(viewer.target(at: time(2500)) != nil)
    for _ in 0..<40 {
      _ = send(try maker.frame(packets: 5), at: now)
      now += 33
    }
    #expect(viewer.target(at: time(now)) == nil)
    transport.otherwise = nil
    viewer.giveUp()
    #expect(viewer.target(at: time(now)) == nil)
    _ = send(try maker.frame(packets: 5, isKeyFrame: true), at: now + 3000)
    #expect(viewer.target(at: time(now + 3000)) != nil)
  }

  @Test func `random loss on a long path makes the stream softer, and never stops it`() {
    // LTE: 300 ms and 4 %, of which TCP would get 1/13 of 3 Mbit/s.
    let bandwidth = ViewerBandwidth(
      wanted: 3_000_000,
      breaker: CircuitBreaker(frameInterval: .milliseconds(33), groupInterval: .seconds(1), expectsReports: true))
    var packets = 0
    var budget = 0.0
    var least = Double.infinity
    for step in 0..<30_000 {
      let now = time(step * 10)
      bandwidth.refill(isGroup: false, at: now)
      #expect(!bandwidth.isStopped)
      let target = min(3_000_000, bandwidth.target(at: now) ?? .infinity)
      if step > 6000 { least = min(least, target) }
      budget += target / 800
      while budget >= 1228 {
        budget -= 1228
        packets += 1
        bandwidth.noteSent(number: UInt16(truncatingIfNeeded: packets), packets: 1, bytes: 1200, at: now)
      }
      guard step.isMultiple(of: 50), packets > 100 else { continue }
      var reception = ReportedReception()
      // What left 0.3 s ago has arrived, but each 25th packet.
      let highest = packets - Int(target * 0.3 / 8 / 1228)
      let block = ReportBlock(
        ssrc: 1, cumulativeLost: Int32(highest / 25), highestSequenceNumber: UInt32(highest), jitter: 0,
        lastSenderReport: 0x1_0000, delaySinceLastSenderReport: 0)
      // 0.3 s of 1/65536 s.
      reception.take(block, at: now, ntp: NTPTimestamp(rawValue: (0x1_0000 + 19_661) << 16))
      bandwidth.take(reception, of: 5, repeated: 0, offset: 0, at: now)
    }
    #expect(bandwidth.breaker?.counts == .init())
    #expect((600_000..<2_000_000).contains(least), "\(least)")
  }

  @Test func `an encoder gets the lesser of what was requested and what the network takes`() {
    let requests = EncoderRequests()
    #expect(requests.takeBitrate() == nil)
    requests.noteBitrate(3_000_000)
    #expect(requests.takeBitrate() == nil)
    requests.setNetworkLimit(1_000_000)
    #expect(requests.takeBitrate() == 1_000_000 && requests.takeBitrate() == nil)
    requests.setBitrate(2_000_000)
    #expect(requests.takeBitrate() == 1_000_000)
    requests.setBitrate(500_000)
    #expect(requests.takeBitrate() == 500_000)
    requests.setBitrate(2_000_000)
    requests.setNetworkLimit(nil)
    #expect(requests.takeBitrate() == 2_000_000)
  }
}

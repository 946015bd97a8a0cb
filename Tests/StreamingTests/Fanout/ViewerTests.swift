import Foundation
import Media
import Platform
import RTP
import Streaming
import TestSupport
import Testing

/// One viewer, whose way out does what the test says.
@Suite struct ViewerTests {
  private let transport = ScriptedTransport()
  private let maker: FrameMaker
  private let viewer: Viewer
  private let start = Instant(seconds: 100)

  init() throws {
    maker = try FrameMaker()
    let figures = ViewerFigures(
      id: ViewerID(number: 1), name: "viewer 1")
    viewer = Viewer(transport: transport, feedback: ViewerFeedback(media: 1), figures: figures)
  }

  private var figures: DestinationStatistics { viewer.figures.current }

  /// Offers a frame and sends what may leave; whether it was taken.
  @discardableResult
  private func send(_ frame: OutgoingFrame, at milliseconds: Int64 = 0) -> Bool {
    let now = start + .milliseconds(milliseconds)
    let isTaken = viewer.offer(frame, at: now)
    viewer.flush(at: now)
    return isTaken
  }

  @Test func `a viewer starts with a key frame, and frames before it do not count as lost`() throws {
    #expect(!send(try maker.frame()))
    #expect(!send(try maker.frame()))
    #expect(figures.framesDropped == 0 && !figures.isSlow)
    #expect(send(try maker.frame(packets: 7, isKeyFrame: true)))
    #expect(send(try maker.frame(packets: 1)))
    #expect(transport.packetsPerFrame == [7, 1])
    #expect((figures.frames, figures.packets, figures.framesDropped, figures.lost) == (2, 8, 0, 0))
    #expect(figures.bytes == transport.packets.reduce(0) { $0 + $1.count })
    #expect(transport.wholeFrames == 2)
  }

  @Test func `a sound beside pictures is no frame on the way`() throws {
    #expect(send(try maker.frame(isKeyFrame: true)))
    for _ in 0..<3 {
      let sound = try maker.frame(packets: 1)
      sound.fill(isFrame: false, isKeyFrame: false, isPaced: false)
      #expect(viewer.offer(sound: sound, at: start))
      viewer.flush(at: start)
    }
    #expect(transport.packets.count == 8 && transport.wholeFrames == 1 && figures.frames == 1)
  }

  /// Offers a frame of three parts; how many were taken.
  private func sendInParts(isKeyFrame: Bool = false) throws -> Int {
    try (0..<3).count { part in
      send(try maker.frame(packets: 2, isKeyFrame: isKeyFrame, isFirstPart: part == 0, isLastPart: part == 2))
    }
  }

  @Test func `a frame in parts counts as one, and three of them wait at most`() throws {
    #expect(try sendInParts() == 0)
    #expect(try sendInParts(isKeyFrame: true) == 3)
    #expect(transport.wholeFrames == 1 && figures.frames == 1)
    transport.script = [(1, .full)]
    transport.otherwise = (0, .full)
    for _ in 0..<3 { #expect(try sendInParts() == 3) }
    for _ in 0..<2 { #expect(try sendInParts() == 0) }
    #expect(figures.framesDropped == 2 && figures.isSlow)
    // What has not begun goes when decoding can begin anew; what has is finished.
    #expect(try sendInParts(isKeyFrame: true) == 3)
    #expect(figures.framesDropped == 4)
    transport.otherwise = nil
    viewer.flush(at: start)
    #expect(viewer.step == .idle && !viewer.isBlocked)
    #expect(transport.wholeFrames == 3 && figures.frames == 3)
    #expect(transport.packets.count == 18)
  }

  @Test func `a viewer that drops a frame in the middle takes no later part of it`() throws {
    #expect(try sendInParts(isKeyFrame: true) == 3)
    #expect(send(try maker.frame(isLastPart: false)))
    transport.otherwise = (0, .full)
    let second = try maker.frame(isFirstPart: false, isLastPart: false)
    #expect(send(second) && second.holders == 1)
    #expect(viewer.expire(at: start + Duration(seconds: 100)))
    #expect(second.holders == 0 && figures.framesDropped == 1 && figures.lost == 5)
    transport.otherwise = nil
    #expect(!send(try maker.frame(isFirstPart: false)))
    #expect(!send(try maker.frame()))
    #expect(try sendInParts(isKeyFrame: true) == 3)
    #expect(figures.frames == 2 && figures.framesDropped == 2)
    // One whose encoder failed counts as well.
    #expect(send(try maker.frame(isLastPart: false)))
    viewer.breakOff()
    viewer.breakOff()
    #expect(figures.framesDropped == 3 && viewer.awaitsKeyFrame)
  }

  @Test func `one that is broken off while it waits is lost once, whatever becomes of it`() throws {
    #expect(try sendInParts(isKeyFrame: true) == 3)
    for (lost, end) in ["leaves", "is let go of", "makes room for a key frame"].enumerated() {
      transport.otherwise = (0, .full)
      #expect(send(try maker.frame(isLastPart: false)))
      viewer.breakOff()
      #expect(figures.framesDropped == lost, "\(end)")
      if lost == 1 { #expect(viewer.expire(at: start + Duration(seconds: 100))) }
      if lost != 2 { transport.otherwise = nil }
      viewer.flush(at: start)
      #expect(try sendInParts(isKeyFrame: true) == 3)
      #expect(figures.framesDropped == lost + 1, "\(end)")
    }
    transport.otherwise = nil
    viewer.flush(at: start)
    #expect(figures.frames == 4 && !viewer.isBlocked)
  }

  @Test(arguments: [SendProgress.End.full, .busy])
  func `three frames wait at most, and the next is lost with all up to a key frame`(end: SendProgress.End) throws {
    send(try maker.frame(isKeyFrame: true))
    transport.otherwise = (0, end)
    let waiting = try (0..<3).map { _ in try maker.frame() }
    for frame in waiting { #expect(send(frame)) }
    #expect(viewer.step == (end == .full ? .full : .busy))
    #expect(!figures.isSlow)
    #expect(waiting.map(\.holders) == [1, 1, 1])
    for _ in 0..<2 { #expect(!send(try maker.frame())) }
    #expect(figures.framesDropped == 2 && figures.isSlow)
    transport.otherwise = nil
    viewer.flush(at: start)
    #expect(viewer.step == .idle && !viewer.isBlocked)
    #expect(waiting.map(\.holders) == [0, 0, 0])
    #expect(transport.packetsPerFrame == [5, 5, 5, 5])
    // Nothing of what follows a lost frame can be decoded.
    #expect(!send(try maker.frame()))
    #expect(figures.framesDropped == 3 && figures.isSlow)
    #expect(send(try maker.frame(isKeyFrame: true)))
    #expect(!figures.isSlow)
    #expect(transport.packetsPerFrame == [5, 5, 5, 5, 5])
    #expect(figures.lost == 0)
  }

  @Test func `sound waits up to the limit of its track, and a lost packet takes no other with it`() throws {
    let viewer = Viewer(
      transport: transport, feedback: ViewerFeedback(media: 1), figures: viewer.figures, framesInFlightLimit: 25)
    func send() throws -> Bool {
      let unit = try maker.frame(packets: 2)
      unit.fill(isKeyFrame: true, replacesWaiting: false, isPaced: false)
      defer { viewer.flush(at: start) }
      return viewer.offer(unit, at: start)
    }
    transport.otherwise = (0, .full)
    for _ in 0..<25 { #expect(try send()) }
    #expect(try !send())
    transport.otherwise = nil
    viewer.flush(at: start)
    #expect(try send())
    #expect(transport.packetsPerFrame == [Int](repeating: 2, count: 26))
  }

  @Test func `frames that the kernel still holds count as on their way`() throws {
    send(try maker.frame(isKeyFrame: true))
    transport.framesInFlight = 2
    #expect(send(try maker.frame()))
    transport.framesInFlight = 3
    #expect(!send(try maker.frame()))
    #expect(!viewer.wantsKeyFrame(at: start), "it could not take one")
    transport.framesInFlight = 0
    #expect(viewer.wantsKeyFrame(at: start))
  }

  @Test func `a key frame takes the place of what has not begun to leave, and never of what has`() throws {
    send(try maker.frame(isKeyFrame: true))
    transport.script = [(2, .full)]
    transport.otherwise = (0, .full)
    let (begun, waiting, key) = (try maker.frame(), try maker.frame(), try maker.frame(isKeyFrame: true))
    for frame in [begun, waiting, key] { #expect(send(frame)) }
    #expect(begun.holders == 1 && waiting.holders == 0 && key.holders == 1)
    #expect(figures.framesDropped == 1)
    transport.otherwise = nil
    viewer.flush(at: start)
    #expect(transport.packetsPerFrame == [5, 5, 5], "three whole frames: half of one is no use")
    #expect(figures.lost == 0)
  }

  @Test func `a frame with progress is waited for, a frame without progress for too long is dropped`() throws {
    transport.otherwise = (1, .full)
    let frame = try maker.frame(packets: 4, isKeyFrame: true)
    // 0, 400 and 800 ms: longer than its patience, but there is progress.
    for step in 0..<3 {
      let now = start + .milliseconds(Int64(step) * 400)
      if step == 0 { #expect(viewer.offer(frame, at: now)) }
      viewer.flush(at: now)
      #expect(!viewer.expire(at: now + .milliseconds(399)))
    }
    let waiting = try maker.frame()
    #expect(viewer.offer(waiting, at: start + .milliseconds(900)))
    #expect(!viewer.expire(at: start + .milliseconds(1300)))
    #expect(viewer.expire(at: start + .milliseconds(1301)))
    #expect((figures.packets, figures.lost, figures.framesDropped) == (3, 6, 2))
    #expect(figures.errorNumber == EAGAIN)
    #expect(frame.holders == 0 && waiting.holders == 0)
    transport.otherwise = nil
    #expect(!send(try maker.frame(), at: 1400))
    #expect(send(try maker.frame(isKeyFrame: true), at: 1500))
    #expect(figures.errorNumber == 0)
  }

  @Test func `packets that are refused one by one are counted, and the others leave`() throws {
    transport.refused = [0, 3]
    #expect(send(try maker.frame(packets: 5, isKeyFrame: true)))
    #expect((figures.packets, figures.lost, figures.frames) == (3, 2, 1))
    #expect(figures.errorNumber == EMSGSIZE)
    transport.refused = []
    #expect(send(try maker.frame()))
    #expect(figures.errorNumber == 0)
  }

  @Test func `without a way nothing is tried but the way, and then it begins with a key frame`() throws {
    send(try maker.frame(isKeyFrame: true))
    transport.script = [(2, .unreachable)]
    transport.isThere = false
    let frame = try maker.frame(packets: 5)
    #expect(send(frame))
    #expect(frame.holders == 0 && !viewer.isBlocked)
    #expect((figures.lost, figures.framesDropped, figures.errorNumber) == (3, 1, ENETUNREACH))
    let attempts = transport.attempts
    #expect(!send(try maker.frame(packets: 4, isKeyFrame: true)))
    #expect(transport.attempts == attempts)
    #expect((figures.lost, figures.framesDropped) == (7, 2))
    #expect(!viewer.wantsKeyFrame(at: start))
    transport.isThere = true
    #expect(!send(try maker.frame()))
    #expect((figures.lost, figures.framesDropped) == (7, 3))
    #expect(!figures.isSlow, "the way was gone; it was not slow")
    #expect(viewer.wantsKeyFrame(at: start))
    #expect(send(try maker.frame(isKeyFrame: true)))
    #expect(figures.errorNumber == 0)
  }

  @Test func `it asks for key frames ever more seldom, and at once again after a while`() throws {
    var asked: [Int64] = []
    for milliseconds in Int64(0)..<30_000 where viewer.wantsKeyFrame(at: start + .milliseconds(milliseconds)) {
      asked.append(milliseconds)
    }
    #expect(asked == [0, 500, 1500, 3500, 7500, 15_500, 23_500])
    send(try maker.frame(isKeyFrame: true), at: 30_000)
    #expect(!viewer.wantsKeyFrame(at: start + .milliseconds(60_000)), "it has got one")
    #expect(viewer.offer(try maker.frame(), at: start + .milliseconds(60_000)))
    viewer.giveUp()
    asked = []
    for milliseconds in Int64(60_000)..<61_000 where viewer.wantsKeyFrame(at: start + .milliseconds(milliseconds)) {
      asked.append(milliseconds)
    }
    #expect(asked == [60_000, 60_500])
  }

  @Test func `a packet that was never sent is not sent again, and none is while the viewer is blocked`() throws {
    var history = PacketHistory()
    func frame(isKeyFrame: Bool = false) throws -> OutgoingFrame {
      let frame = try maker.frame(isKeyFrame: isKeyFrame)
      for index in 0..<frame.count { history.append(frame.batch[index], at: start) }
      return frame
    }
    /// The first packets of these frames, as far as they come.
    func ask(_ frames: [OutgoingFrame]) throws -> [UInt16] {
      var again: [UInt16] = []
      let entries = frames.flatMap { [UInt8($0.sequenceNumber >> 8), UInt8($0.sequenceNumber & 255), 0, 0] }
      let datagram = [0x81, 205, 0, UInt8(2 + frames.count), 0, 0, 0, 9, 0, 0, 0, 1] + entries
      try datagram.withUnsafeBytes {
        _ = try viewer.feedback.receive(
          $0, at: start, ntp: NTPTimestamp(rawValue: 0), history: history, has: viewer.takesAgain
        ) { header, _ in
          again.append(UInt16(header[2]) << 8 | UInt16(header[3]))
          return true
        }
      }
      return again
    }
    let early = try frame(isKeyFrame: true)
    let first = try frame(isKeyFrame: true)
    send(first)
    #expect(try ask([early, first]) == [first.sequenceNumber])
    transport.otherwise = (0, .full)
    let begun = try frame()
    send(begun)
    #expect(try ask([first, begun]) == [])
    viewer.giveUp()
    #expect(try ask([begun]) == [], "it awaits a key frame")
    transport.otherwise = nil
    let left = try frame()
    send(left)
    let (key, last) = (try frame(isKeyFrame: true), try frame())
    for frame in [key, last] { send(frame) }
    #expect(try ask([first, begun, left, key, last]) == [key.sequenceNumber, last.sequenceNumber])
    #expect(viewer.feedback.counts.packetsGone == 7 && viewer.feedback.counts.packetsRetransmitted == 3)
  }

  @Test func `packets of no frame wait for nobody`() throws {
    let clock = try maker.frame(packets: 3, isKeyFrame: true)
    viewer.sendAside(clock, at: start)
    transport.script = [(1, .full)]
    viewer.sendAside(clock, at: start)
    #expect((figures.packets, figures.lost, figures.frames) == (4, 2, 0))
    #expect(!viewer.isBlocked && clock.holders == 0)
    transport.script = [(1, .full)]
    send(try maker.frame(isKeyFrame: true))
    let attempts = transport.attempts
    viewer.sendAside(clock, at: start)
    #expect(transport.attempts == attempts, "they would come between the packets of a frame")
  }

  @Test func `the packets of a paced frame leave as they are let go`() throws {
    let frame = try maker.frame(packets: 20, isKeyFrame: true, isPaced: true)
    #expect(send(frame))
    #expect(transport.packets.count == 8 && viewer.isBlocked && viewer.step == .idle)
    frame.release(9)
    viewer.flush(at: start)
    #expect(transport.packets.count == 16)
    frame.release(20)
    viewer.flush(at: start)
    #expect(transport.packetsPerFrame == [20] && !viewer.isBlocked)
  }
}

@Suite struct OutflowTests {
  @Test func `frames are told by their bytes`() {
    var outflow = Outflow()
    #expect(outflow.framesInFlight(unsent: 0) == 0)
    outflow.notePart(isFirst: true, unsent: 10_000)
    #expect(outflow.framesInFlight(unsent: 10_000) == 1)
    outflow.notePart(isFirst: true, unsent: 30_000)
    #expect(outflow.framesInFlight(unsent: 30_000) == 2)
    outflow.notePart(isFirst: true, unsent: 60_000)
    #expect(outflow.framesInFlight(unsent: 60_000) == 3)
    let kept = Outflow.keptBytes
    #expect(outflow.framesInFlight(unsent: kept + 50_001) == 3)
    #expect(outflow.framesInFlight(unsent: kept + 50_000) == 2)
    #expect(outflow.framesInFlight(unsent: kept + 30_000) == 1)
    #expect(outflow.framesInFlight(unsent: kept) == 0)
    #expect(outflow.framesInFlight(unsent: 0) == 0)
  }

  @Test func `a frame is as large as its parts, whatever has left between them`() {
    var outflow = Outflow()
    // 40000 bytes in four parts, of which half leaves before the next one comes.
    outflow.notePart(isFirst: true, unsent: 10_000)
    for before in [5000, 7500, 8750] {
      outflow.willContinue(unsent: before)
      outflow.notePart(isFirst: false, unsent: before + 10_000)
    }
    #expect(outflow.framesInFlight(unsent: 18_750) == 1)
    #expect(outflow.framesInFlight(unsent: 40_000) == 1)
    // All of the next one waits too.
    outflow.notePart(isFirst: true, unsent: 80_000)
    #expect(outflow.framesInFlight(unsent: 80_000) == 2)
  }

  @Test(arguments: [1, 768, 2304, 4096])
  func `a network driver that keeps the last packets until others come holds nothing up`(kept: Int) {
    var outflow = Outflow()
    for _ in 0..<20 {
      #expect(outflow.framesInFlight(unsent: kept) < Viewer.framesInFlightLimit)
      // The frame's packet takes the place of the one before.
      outflow.notePart(isFirst: true, unsent: kept)
    }
    #expect(outflow.framesInFlight(unsent: kept) == 0, "nothing waits: a key frame may be asked for")
  }
}

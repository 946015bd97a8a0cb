import Capture
import Glibc
import Media
import Platform
import TestSupport
import Testing

/// A clip as a camera, and at full speed.
@Suite struct Y4MPacingTests {
  @Test func `in real time pictures keep to the clock, and each is delivered or told as lost`() throws {
    let clip = try Clip(testClip(Y4MFileTests.small, "yuv420p", frames: 10, rate: "100"))
    let rate = try #require(FrameRate(100))
    let file = try Y4MFile(path: clip.path, loops: 2)
    #expect(file.isLive)
    let interrupt = try Interrupt()
    let before = Instant.now()
    try file.start()
    var tick: Int64 = 0
    var start: Instant?
    while true {
      let event = try file.next(interrupt: interrupt)
      switch event {
      case .frame(let frame):
        let origin = start ?? frame.timestamp - rate.time(ofFrame: tick)
        start = origin
        #expect(origin >= before && Instant.now() >= frame.timestamp)
        #expect(frame.timestamp == origin + rate.time(ofFrame: tick) && frame.captured == frame.timestamp)
        tick += 1
        if tick == 5 { usleep(55_000) }
      case .dropped(let cause, let count):
        #expect(cause == .driver && count > 0)
        tick += Int64(count)
      case .idle:
        Issue.record("idle")
        return
      case .ended:
        #expect(tick == 20)
        return
      }
    }
  }

  /// The next picture of a clip in real time, whatever a busy machine lost before it.
  private static func picture(of file: Y4MFile, _ interrupt: borrowing Interrupt) throws -> Frame {
    for _ in 0..<100 {
      if case .frame(let frame) = try file.next(interrupt: interrupt) { return frame }
    }
    throw SystemFailure("no picture from the clip", errorNumber: ETIMEDOUT)
  }

  @Test func `in real time a picture without memory is lost; at full speed it is waited for`() throws {
    let clip = try Clip(testClip(Y4MFileTests.small, "yuv420p", frames: 3, rate: "50"))
    let interrupt = try Interrupt()
    let live = try Y4MFile(path: clip.path, pacing: .realtime, loops: nil, capacity: 1)
    try live.start()
    let held = try Self.picture(of: live, interrupt)
    try expectExhaustion(of: live, interrupt)
    #expect(held.planes.size == Y4MFileTests.small)

    let file = try Y4MFile(path: clip.path, pacing: .maximum, loops: 1, capacity: 1)
    try file.start()
    guard case .frame(let first) = try file.next(interrupt: interrupt) else {
      Issue.record("no frame")
      return
    }
    let slot = LateReturn(first)
    var thread = pthread_t()
    let context = Unmanaged.passRetained(slot)
    pthread_create(
      &thread, nil,
      { context in
        guard let context else { return nil }
        usleep(30_000)
        Unmanaged<LateReturn>.fromOpaque(context).takeRetainedValue().release()
        return nil
      }, context.toOpaque())
    guard case .frame(let second) = try file.next(interrupt: interrupt) else {
      Issue.record("no frame")
      return
    }
    pthread_join(thread, nil)
    #expect(slot.isReleased)
    #expect(second.timestamp == FrameRate(50).map { Instant.zero + $0.time(ofFrame: 1) })
    // Nobody returns this one: only the interrupt ends the wait.
    interrupt.fire()
    guard case .idle = try file.next(interrupt: interrupt) else {
      Issue.record("not interrupted")
      return
    }
  }

}

/// A frame that another thread lets go.
final class LateReturn: @unchecked Sendable {
  // Sendable: written by one thread, and read after that one was joined.
  private var frame: Frame?
  private(set) var isReleased = false

  init(_ frame: consuming Frame) {
    self.frame = consume frame
  }

  func release() {
    isReleased = true
    frame = nil
  }
}

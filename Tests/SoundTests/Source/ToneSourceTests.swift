import Platform
import Sound
import TestSupport
import Testing

/// The beep at the beginning of each second.
@Suite struct ToneSourceTests {
  @Test func `a beep that began while the machine paused is left out whole`() throws {
    let source = try ToneSource()
    let timeline = SoundTimeline(channels: 1, start: .now())
    let wallClock = WallClockOffset()
    func fill() { _ = source.fill(timeline, patience: Duration.milliseconds(20)) }
    fill()
    // Longer than what is computed at once, and into the middle of a beep.
    let end = Instant.now() + Duration(seconds: 1)
    let isPaused = eventually {
      let now = Instant.now()
      let phase = wallClock.phase(at: now)
      return now > end && phase > .milliseconds(20) && phase < .milliseconds(60)
    }
    #expect(isPaused)
    let resumed = Instant.now()
    var frame = [Int16](repeating: 0, count: 48)
    var beginning: Instant?
    // Taken as they come: the timeline keeps a second.
    while beginning == nil, Instant.now() < resumed + Duration(seconds: 60) {
      fill()
      while beginning == nil, let time = frame.withUnsafeMutableBufferPointer({ timeline.take($0) }) {
        if time >= resumed, frame.contains(where: { abs($0) > 1000 }) { beginning = time }
      }
    }
    let phase = wallClock.phase(at: try #require(beginning, "no beep after the pause"))
    // Frames are a millisecond long.
    #expect(phase < .milliseconds(5) || phase > .milliseconds(995), "\(phase)")
  }
}

import Platform
import Sound
import Testing

@Suite struct SoundTimelineTests {
  private let start = Instant(nanoseconds: 1_000_000_000_000)

  /// Takes all frames; the time and the first sample of each.
  private func frames(of timeline: SoundTimeline) -> [(time: Instant, sample: Int16)] {
    var frame = [Int16](repeating: -1, count: 960 * timeline.channels)
    var found: [(Instant, Int16)] = []
    while let time = frame.withUnsafeMutableBufferPointer({ timeline.take($0) }) { found.append((time, frame[0])) }
    return found
  }

  private func append(_ count: Int, _ sample: Int16, to timeline: SoundTimeline) {
    [Int16](repeating: sample, count: count * timeline.channels).withUnsafeBufferPointer { timeline.append($0) }
  }

  @Test(arguments: [1, 5, 100, 199, 200], [1, 2])
  func `a short gap is silence, and the time goes on by 20 ms`(milliseconds: Int64, channels: Int) {
    let timeline = SoundTimeline(channels: channels, start: start)
    append(1000, 7, to: timeline)
    timeline.appendSilence(until: timeline.end + .milliseconds(milliseconds))
    append(2000, 9, to: timeline)
    let frames = frames(of: timeline)
    #expect(frames.count == (3000 + Int(milliseconds) * 48) / 960)
    for (index, frame) in frames.enumerated() { #expect(frame.time == start + .milliseconds(20) * Int64(index)) }
    #expect(timeline.silentSamples == 48 * milliseconds)
  }

  @Test(arguments: [201, 220, 500, 979, 990, 1000, 1001, 5000, 36_000_000], [0, 1, 959, 960, 1500])
  func `a long gap is a step of whole frames, and what comes before and after keeps its time`(
    milliseconds: Int64, waiting: Int
  ) throws {
    let timeline = SoundTimeline(channels: 1, start: start)
    append(960 + waiting, 7, to: timeline)
    let gap = timeline.end..<(timeline.end + .milliseconds(milliseconds))
    timeline.appendSilence(until: gap.upperBound)
    #expect(abs((timeline.end - gap.upperBound).nanoseconds) < 30_000)
    append(1920, 9, to: timeline)
    let frames = frames(of: timeline)
    #expect(frames.first?.time == start)
    // Each frame of sound is where it was recorded, to the sample.
    let before = frames.filter { $0.sample == 7 }
    #expect(before.count == 1 + (waiting + 959) / 960)
    for (index, frame) in before.enumerated() { #expect(frame.time == start + .milliseconds(20) * Int64(index)) }
    let after = try #require(frames.first { $0.sample == 9 })
    #expect(after.time - gap.upperBound < .milliseconds(20) && after.time - gap.upperBound > .milliseconds(-1))
    let steps = zip(frames, frames.dropFirst()).map { ($1.time - $0.time).nanoseconds }
    #expect(steps.allSatisfy { $0 > 0 && $0 % 20_000_000 == 0 }, "\(steps)")
    let long = steps.filter { $0 != 20_000_000 }
    // The frame that the gap begins in and the one that it ends in are whole.
    #expect(long.count == 1 && abs((long.first ?? 0) - milliseconds * 1_000_000) <= 40_000_000, "\(steps)")
    #expect(timeline.silentSamples == 48 * milliseconds)
  }

  @Test func `gaps one after the other, before anything is taken, never turn the time back`() {
    let timeline = SoundTimeline(channels: 1, start: start)
    for turn in 1...5 {
      append(1000, Int16(turn), to: timeline)
      timeline.appendSilence(until: timeline.end + .milliseconds(700))
    }
    append(960, 6, to: timeline)
    let end = timeline.end
    let frames = frames(of: timeline)
    let steps = zip(frames, frames.dropFirst()).map { ($1.time - $0.time).nanoseconds }
    #expect(steps.allSatisfy { $0 > 0 && $0 % 20_000_000 == 0 }, "\(steps)")
    #expect((frames.last.map { end - $0.time } ?? .zero) < .milliseconds(41))
  }
}

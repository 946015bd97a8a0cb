import Platform
import Sound
import Streaming
import Synchronization
import TestSupport
import Testing

/// The thread that takes sound from its source: its end, and what it notices.
@Suite struct SoundStageTests {
  /// A source without sound, whose device may hang.
  private final class SilentSource: SoundSource {
    let isHung: Bool
    let stopped: Interrupt
    /// Ends the hang.
    let repaired: Interrupt
    /// The calls that found the source stopped.
    let refusals = Atomic(0)
    let ends = Atomic(0)

    init(isHung: Bool) throws {
      self.isHung = isHung
      stopped = try Interrupt()
      repaired = try Interrupt()
    }

    var condition: SoundCondition { SoundCondition() }
    func takeEvents() -> [SoundEvent] { [] }
    func stop() { stopped.fire() }

    func fill(_ timeline: SoundTimeline, patience: Duration) -> Bool {
      let goesOn = stopped.wait(until: .now() + patience)
      if !goesOn { refusals.add(1, ordering: .relaxed) }
      return goesOn
    }

    func end() {
      if isHung { _ = repaired.wait(until: .now() + Duration(seconds: 600)) }
      ends.add(1, ordering: .relaxed)
    }
  }

  /// A source whose time runs faster than the clock: a tenth of a second for each call.
  private final class QuickSource: SoundSource {
    let sample = Mutex<Int16>(0)
    let isPresent = Mutex(true)
    /// The calls that are still allowed; the others wait.
    let allowed = Atomic(0)
    /// `true` once a call waits, so that the stage has counted those before.
    let isWaiting = Atomic(false)
    let stopped: Interrupt

    init() throws { stopped = try Interrupt() }

    var condition: SoundCondition {
      var condition = SoundCondition()
      (condition.isPresent, condition.name) = (isPresent.withLock { $0 }, "quick")
      return condition
    }
    func takeEvents() -> [SoundEvent] { [] }
    func stop() { stopped.fire() }
    func end() {}

    func fill(_ timeline: SoundTimeline, patience: Duration) -> Bool {
      while allowed.load(ordering: .acquiring) == 0 {
        isWaiting.store(true, ordering: .releasing)
        guard stopped.wait(until: .now() + Duration.milliseconds(1)) else { return false }
      }
      isWaiting.store(false, ordering: .releasing)
      allowed.subtract(1, ordering: .releasing)
      let sample = sample.withLock { $0 }
      let block = [Int16](repeating: sample, count: 4800)
      block.withUnsafeBufferPointer { timeline.append($0) }
      return !stopped.hasFired()
    }

    /// Lets that many seconds go by.
    func pass(seconds: Int) {
      allowed.add(10 * seconds, ordering: .relaxed)
      while allowed.load(ordering: .acquiring) > 0 || !isWaiting.load(ordering: .acquiring), !stopped.hasFired() {
        _ = stopped.wait(until: .now() + Duration.milliseconds(1))
      }
    }
  }

  @Test func `a minute of digital silence is noticed whatever the gain is, and its end too`() throws {
    let source = try QuickSource()
    let (stage, track) = try make(source)
    // Sound that this gain makes digital silence.
    stage.setGain(-30)
    source.sample.withLock { $0 = 20 }
    try stage.start(.off)
    defer {
      stage.waitUntilEnd()
      track.close()
    }
    /// Returns the events once a round after the last sound has gone by.
    func events(after seconds: Int) -> [String] {
      source.pass(seconds: seconds)
      source.pass(seconds: 1)
      return stage.takeEvents().map(\.description)
    }
    #expect(events(after: 90).isEmpty && stage.figures.digitalSilence == 0)
    source.sample.withLock { $0 = 0 }
    #expect(events(after: 50).isEmpty)
    let soFar = stage.figures.digitalSilence
    #expect((49...52).contains(soFar), "\(soFar)")
    #expect(
      events(after: 20) == [
        "the microphone quick has recorded digital silence for 60 s. Look for a switch on it: nightjar doctor"
      ])
    #expect(events(after: 20).isEmpty && stage.figures.digitalSilence > 80)
    source.sample.withLock { $0 = 3000 }
    let ended = events(after: 5)
    #expect(ended.count == 1 && ended[0].hasPrefix("the microphone quick records sound again, after "), "\(ended)")
    #expect(stage.figures.digitalSilence == 0)
    // A microphone that is away has a state of its own.
    source.sample.withLock { $0 = 0 }
    source.isPresent.withLock { $0 = false }
    #expect(events(after: 120).isEmpty && stage.figures.digitalSilence == 0)
  }

  @Test func `a thread that stands still is noticed after ten checks, and that it goes on`() throws {
    let source = try QuickSource()
    let (stage, track) = try make(source)
    try stage.start(.off)
    defer {
      stage.waitUntilEnd()
      track.close()
    }
    source.pass(seconds: 1)
    // The first check sees the rounds so far.
    for _ in 0..<SoundPulse.limit { stage.checkProgress() }
    #expect(!stage.figures.isStuck && stage.takeEvents().isEmpty)
    // Two checks, because the thread may have passed one more round after the first check.
    for _ in 0..<2 { stage.checkProgress() }
    #expect(stage.figures.isStuck)
    #expect(stage.takeEvents().map(\.description).first?.hasPrefix("the sound has stood still for 10 s") == true)
    source.pass(seconds: 1)
    source.pass(seconds: 1)
    stage.checkProgress()
    #expect(!stage.figures.isStuck && stage.takeEvents().map(\.description) == ["the sound goes on"])
  }

  private func make(_ source: any SoundSource) throws -> (SoundStage, Track) {
    let track = try Track(
      1, SoundStage.trackFormat(SoundSettings()), pacing: 0, canonicalName: "test", requests: EncoderRequests(),
      statistics: StatisticsRecorder(encoderName: "", started: .now()), sending: PacketSending())
    return (SoundStage(source, SoundSettings(), track: track, muxed: nil), track)
  }

  @Test func `the thread ends with its source, which it releases, while the track is still open`() throws {
    let source = try SilentSource(isHung: false)
    let (stage, track) = try make(source)
    try stage.start(.off)
    stage.waitUntilEnd()
    // A machine that is held up lets the wait end before the thread.
    #expect(eventually { source.ends.load(ordering: .relaxed) == 1 })
    #expect(track.isOpen)
    // It asks no more after that.
    #expect(source.refusals.load(ordering: .relaxed) == 1)
    track.close()
  }

  @Test func `a thread that hangs in the driver of a sound card is left behind`() throws {
    let source = try SilentSource(isHung: true)
    let (stage, track) = try make(source)
    try stage.start(.off)
    let begin = Instant.now()
    stage.waitUntilEnd()
    #expect(Instant.now() - begin >= SoundStage.endPatience)
    #expect(source.ends.load(ordering: .relaxed) == 0)
    source.repaired.fire()
    track.close()
  }
}

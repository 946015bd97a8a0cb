import Platform
import Sound
import Synchronization
import Testing

@testable import Streaming

/// The end of the thread that takes sound from its source.
@Suite struct SoundStageTests {
  /// A source without sound, whose device may hang.
  private final class SilentSource: SoundSource {
    let isHung: Bool
    let stopped: Interrupt
    /// Ends the hang.
    let repaired: Interrupt
    let calls = Atomic(0)
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
      calls.add(1, ordering: .relaxed)
      return stopped.wait(until: .now() + patience)
    }

    func end() {
      if isHung { _ = repaired.wait(until: .now() + Duration(seconds: 600)) }
      ends.add(1, ordering: .relaxed)
    }
  }

  private func make(_ source: SilentSource) throws -> (SoundStage, Track) {
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
    #expect(track.isOpen && source.ends.load(ordering: .relaxed) == 1)
    #expect(source.calls.load(ordering: .relaxed) <= 1)
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

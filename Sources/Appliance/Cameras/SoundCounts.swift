import Serving
import Sound
import Streaming

/// The counters of a camera's sound. Those of pipelines that followed each other are added.
struct SoundCounts: Hashable, Sendable {
  private(set) var clipped: Int64 = 0
  private(set) var silentSamples: Int64 = 0
  private(set) var overruns = 0
  private(set) var losses = 0
  private(set) var (failed, dropped) = (0, 0)
  private(set) var (mp3Frames, mp3Skipped) = (0, 0)

  /// Creates counters that have counted nothing.
  init() {}

  /// Creates the counters of a pipeline.
  init(_ figures: SoundFigures) {
    (clipped, silentSamples) = (figures.clipped, figures.condition.silentSamples)
    (overruns, losses) = (figures.condition.overruns, figures.condition.losses)
    (failed, dropped) = (figures.failed, figures.dropped)
    (mp3Frames, mp3Skipped) = (figures.mp3.encoded, figures.mp3.skipped)
  }

  /// The silence in the place of samples that did not come, in seconds.
  var silenceSeconds: Double { Double(silentSamples) / Double(SoundFormat.trackRate) }

  static func + (left: SoundCounts, right: SoundCounts) -> SoundCounts {
    var sum = left
    sum.clipped += right.clipped
    sum.silentSamples += right.silentSamples
    sum.overruns += right.overruns
    sum.losses += right.losses
    sum.failed += right.failed
    sum.dropped += right.dropped
    sum.mp3Frames += right.mp3Frames
    sum.mp3Skipped += right.mp3Skipped
    return sum
  }
}

extension MetricsText {
  /// Adds the figures of a camera's sound: nothing for a camera without sound, and only counters while nothing streams.
  mutating func add(sound camera: CameraFigures) {
    guard let (counts, now) = camera.sound() else { return }
    let name = [camera.name]
    add(.soundClipped, name, counts.clipped)
    add(.soundSilence, name, counts.silenceSeconds)
    add(.soundOverruns, name, counts.overruns)
    add(.soundLosses, name, counts.losses)
    add(.soundFailures, name, counts.failed)
    add(.soundDropped, name, counts.dropped)
    add(.mp3Frames, name, counts.mp3Frames)
    add(.mp3Skipped, name, counts.mp3Skipped)
    guard let now else { return }
    add(.viewers, name + ["mp3"], now.mp3.listeners.count)
    add(.soundPresent, name, now.condition.isPresent && !now.isStuck ? 1 : 0)
    add(.soundDigitalSilence, name, now.digitalSilence)
    add(.soundDrift, name, now.condition.drift)
    add(.soundMuted, name, now.isMuted ? 1 : 0)
    add(.soundLevel, name, now.level.rms)
    add(.soundPeak, name, now.level.peak)
  }
}

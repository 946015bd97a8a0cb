// In an optimized build, timespec is a type of the module that includes its header first.
import CALSA
import Glibc
package import Platform

/// A source of sound without a card: a beep at the beginning of each second of the wall clock, when the synthetic
/// camera shows a white field too. Whoever sees and hears both at once has lip sync.
package final class ToneSource: SoundSource, @unchecked Sendable {
  // Sendable: one thread uses what is not under the mutex.

  private var samples: [Int16] = []
  private let stopped: Interrupt
  /// The distance from `CLOCK_MONOTONIC` to the wall clock, so that seconds are those that the picture shows.
  private var wallClock = WallClockOffset()
  private var nextSync: Instant
  /// The end of the last longer pause of the machine. A beep that began before is left out whole: its rest would begin
  /// later than the white field.
  private var resumed = Instant.zero

  /// The frequency of the beep in Hz.
  package static let frequency = 1_000.0
  /// The length of the beep: several frame intervals, so that a picture shows it.
  package static let length = Duration(nanoseconds: 100_000_000)
  /// A quarter of full scale: −12 dBFS.
  private static let amplitude = 8192.0
  /// The most samples that are computed at once. After a longer pause of the machine, the tone goes on at the present time.
  private static let delayLimit = Int64(SoundTimeline.capacity * 9 / 10)
  /// The time that samples are late, as those of a card with periods of 10 ms.
  private static let period = Duration(nanoseconds: 10_000_000)

  /// Creates the source.
  ///
  /// - Throws: ``SystemFailure`` where the process has no descriptor left.
  package init() throws(SystemFailure) {
    stopped = try Interrupt()
    nextSync = .now()
  }

  /// Appends the samples up to the present time; see ``SoundSource``.
  package func fill(_ timeline: SoundTimeline, patience: Duration) -> Bool {
    guard stopped.wait(until: .now() + min(patience, Self.period)) else { return false }
    let now = Instant.now()
    if now >= nextSync {
      wallClock = WallClockOffset()
      nextSync = now + Duration(nanoseconds: 1_000_000_000)
    }
    let count = timeline.samples(until: now)
    guard count > 0 else { return true }
    guard count <= Self.delayLimit else {
      timeline.appendSilence(until: now)
      resumed = now
      return true
    }
    let first = timeline.end
    samples.removeAll(keepingCapacity: true)
    for number in 0..<count {
      let time = first + Duration(nanoseconds: number * 1_000_000_000 / Int64(SoundFormat.trackRate))
      let phase = wallClock.phase(at: time)
      let isBeep = phase < Self.length && time - phase >= resumed
      let value = isBeep ? Self.amplitude * sin(2 * .pi * Self.frequency * phase.seconds) : 0
      for _ in 0..<timeline.channels { samples.append(Int16(value)) }
    }
    samples.withUnsafeBufferPointer { timeline.append($0) }
    return true
  }

  /// The source's state: always present.
  package var condition: SoundCondition {
    var condition = SoundCondition()
    (condition.isPresent, condition.name) = (true, "test tone")
    return condition
  }

  /// Returns no events.
  package func takeEvents() -> [SoundEvent] { [] }

  /// Ends the source.
  package func stop() { stopped.fire() }

  /// Ends the source, which has no device.
  package func end() { stop() }
}

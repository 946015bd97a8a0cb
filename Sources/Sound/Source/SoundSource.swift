package import Platform

/// An event of a sound source, for the log.
package enum SoundEvent: Sendable, CustomStringConvertible {
  /// The source was opened and delivers samples.
  case found(name: String, format: SoundFormat)
  /// The source failed or cannot be opened. The stream carries silence while nightjar searches for the source.
  case lost(SoundError)

  /// One line for the log.
  package var description: String {
    switch self {
    case .found(let name, let format): "microphone: \(name), \(format)"
    case .lost(let error): "viewers hear silence until the microphone is back: \(error)"
    }
  }
}

/// The state of a source of sound.
package struct SoundCondition: Hashable, Sendable {
  /// `true` if the source delivers samples.
  package var isPresent = false
  /// The source's name, for people; empty before one was found.
  package var name = ""
  /// The number of times that the source lost samples, because nobody read them in time.
  package var overruns = 0
  /// The number of times that the source was lost.
  package var losses = 0
  /// The deviation of the source's clock against `CLOCK_MONOTONIC` in ppm.
  package var drift = 0.0
  /// The samples of silence in the place of missing ones, each channel's.
  package var silentSamples: Int64 = 0

  /// Creates the state of a source that was never found.
  package init() {}
}

/// A source of sound, which fills a ``SoundTimeline``. One thread uses a source. Members that any thread may call say
/// so.
package protocol SoundSource: AnyObject, Sendable {
  /// Waits for samples, at most for `patience`, and appends what has come to `timeline`. It appends silence where the
  /// source is away.
  ///
  /// - Returns: `false` once the source was stopped.
  func fill(_ timeline: SoundTimeline, patience: Duration) -> Bool
  /// The source's state. Any thread may call it.
  var condition: SoundCondition { get }
  /// Returns the events since the last call, oldest first. Any thread may call it.
  func takeEvents() -> [SoundEvent]
  /// Ends the source, and the wait of ``fill(_:patience:)``: at once, or where a card is open, after its patience at the
  /// latest. Any thread may call it.
  func stop()
  /// Ends the source and closes its device, even if objects still refer to the source. The thread that calls
  /// ``fill(_:patience:)`` calls it last.
  func end()
}

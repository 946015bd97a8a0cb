package import Platform

/// An event of a stream's sound, for the log.
package enum SoundEvent: Sendable, CustomStringConvertible {
  /// The source was opened and delivers samples, once a period.
  case found(name: String, format: SoundFormat, period: Duration, times: SampleTimes)
  /// The source delivers samples without waiting for them. The clock paces the readings from now on.
  case paced(name: String, rate: Int)
  /// The source failed or cannot be opened. The stream carries silence while nightjar searches for the source.
  case lost(SoundError)
  /// The source has delivered nothing but digital silence for some seconds.
  case silent(name: String, seconds: Int)
  /// The source delivers sound again, after so many seconds of digital silence.
  case audible(name: String, seconds: Int)
  /// The thread of the sound has stood still for some seconds.
  case stuck(seconds: Int)
  /// The thread of the sound goes on.
  case unstuck

  /// `true` if the event needs attention.
  package var isWarning: Bool {
    switch self {
    case .found, .paced, .audible, .unstuck: false
    case .lost, .silent, .stuck: true
    }
  }

  /// One line for the log.
  package var description: String {
    switch self {
    case .found(let name, let format, let period, let times):
      "microphone: \(name), \(format), every \(Int(period.milliseconds.rounded())) ms"
        + (times == .wakeUp ? "; its driver has no time stamps, so sound and picture may be some ms apart" : "")
    case .paced(let name, let rate):
      "the microphone \(name) does not wait for its samples, so nightjar takes \(rate) of them a second by its own clock"
    case .lost(let error): "viewers hear silence until the microphone is back: \(error)"
    case .silent(let name, let seconds):
      "the microphone \(name) has recorded digital silence for \(seconds) s. Look for a switch on it: nightjar doctor"
    case .audible(let name, let seconds):
      "the microphone \(name) records sound again, after \(seconds) s of digital silence"
    case .stuck(let seconds):
      "the sound has stood still for \(seconds) s, and viewers hear nothing. Restart the stream, and report this"
    case .unstuck: "the sound goes on"
    }
  }
}

/// The source of the times of a card's samples.
package enum SampleTimes: String, Hashable, Sendable {
  /// The time stamps of the driver.
  case driver
  /// The time at which the program woke up for the samples: the driver has no plausible time stamps.
  case wakeUp = "wake-up"
  /// The program's own clock: the device does not wait for its samples, as no card does.
  case clock
}

/// The state of a source of sound.
package struct SoundCondition: Hashable, Sendable {
  /// `true` if the source delivers samples.
  package var isPresent = false
  /// `true` if the source is away because it neither delivered nor failed, and was not removed since.
  package var isHung = false
  /// The source's name, for people; empty before one was found.
  package var name = ""
  /// The number of times that the source lost samples, because nobody read them in time.
  package var overruns = 0
  /// The number of times that the source was lost.
  package var losses = 0
  /// The deviation of the source's clock against `CLOCK_MONOTONIC` in ppm.
  package var drift = 0.0
  /// The time between two deliveries of the card that is open, or was last; zero for a source without a card.
  package var period = Duration.zero
  /// The source of the times of that card's samples, by its first ones; nil for a source without a card.
  package var times: SampleTimes?
  /// The blocks of samples whose time is not the driver's, because the driver had no plausible time stamp.
  package var unstampedBlocks = 0
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
  /// Gives the source's own threads real-time priority as the value says. To be called before the first call of
  /// ``fill(_:patience:)``.
  func setPriority(_ priority: RealTimePriority)
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

extension SoundSource {
  /// Does nothing: the source has no threads of its own.
  package func setPriority(_ priority: RealTimePriority) {}
}

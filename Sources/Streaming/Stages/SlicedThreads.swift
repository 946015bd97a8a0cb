package import Platform

/// Finds out by trial whether two sliced threads of x264 bring the last packet of a picture forward, and keeps them while they do.
/// x264 cuts each picture into two slices, and encodes these at once (`b_sliced_threads`).
///
/// ```
///                 a minute without a change, and room for no greater effort
/// one thread ───────────────────────────────────────────────────────────► two threads on trial ─────► two threads
///            ◄─────────────────────────────────────────────────────────── no gain, another effort, budget
/// ```
///
/// The effort comes first: a greater one makes better pictures, and a trial begins only if there is room for none. While two threads
/// are at work, the effort does not grow: it would take the time that they save.
///
/// The value has no clock, no thread and no encoder: ``note(_:isSettled:budget:at:claim:)`` takes what was measured in about a second.
package struct SlicedThreads: Sendable {
  /// The outcome of a trial, or the reason for its end.
  package enum Outcome: Hashable, Sendable {
    /// A picture takes `two` instead of `one`, by the medians.
    case kept(one: Duration, two: Duration)
    /// Two threads gain too little: a picture takes `two`, and `one` with one thread.
    case noGain(one: Duration, two: Duration)
    /// The effort changed, or something else on which the encode times depend, or no picture came during the trial.
    case unsettled
    /// The process used more than its share of the processors.
    case budget
  }

  /// The number of threads on trial.
  package static let threads = 2
  /// The fewest samples of a picture, those of 1280x720, that are worth a trial: smaller pictures take little time anyway.
  package static let leastPixels = 1280 * 720
  /// The time for which the effort must have been the same.
  package static let calm = Duration(seconds: 60)
  /// The time after a request without judgement: the encoder must be made, and waits up to ten seconds for a key frame.
  package static let settling = Duration(seconds: 15)
  /// The length of each of the two measurements of a trial: with one thread, and with two.
  static let measuring = Duration(seconds: 10)
  /// The length of a measurement by which kept threads are judged again.
  static let review = Duration(seconds: 60)
  /// The fewest pictures that decide anything.
  static let fewest = 60
  /// The longest time of a picture with which two threads are kept after the trial, as a part of the time with one thread.
  static let gain = 0.85
  /// The longest time of a picture with which kept threads stay, as a part of the time with one thread.
  static let loss = 0.95
  /// The processor time of two threads, as a multiple of that of one: some work is done for each slice.
  static let cost = 1.15
  /// The time from the end of one trial to the next: at first, and at most.
  static let pauses = Duration(seconds: 600)...Duration(seconds: 7200)

  private enum Phase {
    case resting(until: Instant)
    case alone
    case onTrial(since: Instant)
    case kept
  }

  /// `true` while two threads are requested.
  package var isRequested: Bool {
    switch phase {
    case .onTrial, .kept: true
    case .resting, .alone: false
    }
  }
  /// `true` while two threads are kept, because the trial showed a gain.
  package var isKept: Bool { if case .kept = phase { true } else { false } }
  /// The last outcome; nil before any, and during a trial.
  package private(set) var outcome: Outcome?

  private var phase = Phase.alone
  private var pause = Self.pauses.lowerBound
  /// The median time of a picture with one thread.
  private var one = Duration.zero
  private var times = LatencyHistogram()
  private var elapsed = Duration.zero
  private var encoderTime = Duration.zero
  private var processTime = Duration.zero

  /// Creates the state with one thread.
  package init() {}

  /// Takes a measurement. Returns `true` if ``isRequested`` or ``isKept`` has changed.
  ///
  /// - Parameters:
  ///   - isSettled: `true` if there is no room for a greater effort, and if the effort, and all else on which the encode times
  ///     depend, has been the same for ``calm``.
  ///   - budget: the processors that the process may use together.
  ///   - claim: returns `true` if this stream may begin a trial now; of several streams on one budget one at a time may.
  package mutating func note(
    _ measurement: QualityGovernor.Measurement, isSettled: Bool, budget: Double, at now: Instant,
    claim: () -> Bool = { true }
  ) -> Bool {
    // Without viewers nothing is encoded. Earlier measurements do not count: the scene may be another one afterwards.
    guard measurement.times.count > 0 else {
      forget()
      if case .onTrial = phase { return end(.unsettled, at: now) }
      return false
    }
    switch phase {
    case .resting(let until):
      if now >= until { phase = .alone }
      return false
    case .alone:
      // On a warm host the effort has no room, whatever the times are.
      guard isSettled, measurement.heat == .none else {
        forget()
        return false
      }
      add(measurement)
      guard isMeasured(for: Self.measuring) else { return false }
      one = times.percentile(0.5)
      let hasRoom = processors + encoder * (Self.cost - 1) <= budget
      forget()
      guard hasRoom, claim() else { return false }
      (phase, outcome) = (.onTrial(since: now), nil)
      return true
    case .onTrial(let since):
      guard isSettled else { return end(.unsettled, at: now) }
      guard now - since >= Self.settling else { return false }
      add(measurement)
      guard isMeasured(for: Self.measuring) else { return false }
      return judge(Self.gain, budget, at: now)
    case .kept:
      guard isSettled else { return end(.unsettled, at: now) }
      add(measurement)
      guard isMeasured(for: Self.review) else { return false }
      return judge(Self.loss, budget, at: now)
    }
  }

  /// Ends what is requested, because of `outcome`. Returns `true` if that is a change.
  package mutating func end(_ outcome: Outcome = .unsettled, at now: Instant) -> Bool {
    forget()
    guard isRequested else { return false }
    (phase, self.outcome) = (.resting(until: now + pause), outcome)
    pause = min(pause * 2, Self.pauses.upperBound)
    return true
  }

  /// Judges two threads by the measurements. They are kept if a picture takes at most `part` of the time with one.
  private mutating func judge(_ part: Double, _ budget: Double, at now: Instant) -> Bool {
    let (two, isOver) = (times.percentile(0.5), processors > budget)
    forget()
    if isOver { return end(.budget, at: now) }
    guard two.seconds <= one.seconds * part else { return end(.noGain(one: one, two: two), at: now) }
    guard !isKept else { return false }
    (phase, outcome, pause) = (.kept, .kept(one: one, two: two), Self.pauses.lowerBound)
    return true
  }

  private var processors: Double { processTime.seconds / max(elapsed.seconds, 0.001) }
  private var encoder: Double { encoderTime.seconds / max(elapsed.seconds, 0.001) }

  private func isMeasured(for length: Duration) -> Bool { elapsed >= length && times.count >= Self.fewest }

  private mutating func add(_ measurement: QualityGovernor.Measurement) {
    times.add(measurement.times)
    elapsed = elapsed + measurement.elapsed
    encoderTime = encoderTime + measurement.encoderTime
    processTime = processTime + measurement.processTime
  }

  private mutating func forget() {
    times.removeAll()
    (elapsed, encoderTime, processTime) = (.zero, .zero, .zero)
  }
}

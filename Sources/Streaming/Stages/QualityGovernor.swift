package import Media
package import Platform

/// Chooses the effort of a stream's encoder from its measured encode times: the greatest with which 99 of 100 frames are
/// encoded within half a frame interval, and the process stays within its share of the host's processors.
///
/// ```
///               3 s of room          8 s of room            minutes of room
/// ultrafast ──────────────► superfast ──────────► veryfast ────────────────► faster
///           ◄────────────── late frames, slow frames, too many processors in use, heat
/// ```
///
/// The value has no clock, no thread and no encoder: ``note(_:at:claim:)`` takes what was measured in about a second.
/// Each step down lengthens the wait for the next step up; a step up that did not last doubles it.
package struct QualityGovernor: Sendable {
  /// One rung of the ladder.
  package struct Rung: Hashable, Sendable {
    /// The effort of the encoder.
    package var effort: EncodingEffort
    /// The encode time, as a multiple of that of the lowest rung.
    package var cost: Double

    /// Creates a rung.
    package init(effort: EncodingEffort, cost: Double) {
      (self.effort, self.cost) = (effort, cost)
    }
  }

  /// The host's heat, as far as it concerns the effort.
  package enum Heat: Int, Comparable, Sendable {
    /// No limit.
    case none
    /// The effort may stay, and not grow.
    case warm
    /// The effort shrinks.
    case hot

    package static func < (left: Heat, right: Heat) -> Bool { left.rawValue < right.rawValue }
  }

  /// The measurements of about one second.
  package struct Measurement: Sendable {
    /// The encode times of the frames.
    package var times: LatencyHistogram
    /// The frame interval.
    package var interval: Duration
    /// The length of the measurement.
    package var elapsed: Duration
    /// The time for which the stream's encoders used processors: that of all their threads together.
    package var encoderTime: Duration
    /// The time for which the process used processors.
    package var processTime: Duration
    /// The number of frames that were dropped because the encoder was late.
    package var dropped: Int
    /// The host's heat.
    package var heat: Heat

    /// Creates a measurement.
    package init(
      times: LatencyHistogram, interval: Duration, elapsed: Duration, encoderTime: Duration, processTime: Duration,
      dropped: Int = 0, heat: Heat = .none
    ) {
      (self.times, self.interval, self.elapsed) = (times, interval, elapsed)
      (self.encoderTime, self.processTime) = (encoderTime, processTime)
      (self.dropped, self.heat) = (dropped, heat)
    }
  }

  /// The reason for a change of the effort.
  package enum Reason: Hashable, Sendable {
    /// Encode time and processors leave room.
    case room
    /// Two frames in a row took longer than a frame interval, or frames were dropped.
    case late
    /// One frame in a hundred or more took longer than half a frame interval.
    case slow
    /// The process uses more than its share of the processors.
    case budget
    /// The host is hot.
    case heat
  }

  /// The part of a frame interval within which 99 of 100 frames are to be encoded.
  package static let limit = 0.5
  /// The part of both limits that an estimate for a greater effort must keep.
  static let caution = 0.9
  /// The time without judgement after a change, which takes effect only once its encoder is ready.
  static let settling = Duration(seconds: 2)
  /// The time without judgement at the start.
  static let warmUp = Duration(seconds: 1)
  /// The shortest measurement that decides anything.
  static let shortest = Duration(seconds: 3)
  /// The length of a measurement, after which the older half is forgotten.
  static let longest = Duration(seconds: 10)
  /// The fewest frames that decide anything.
  static let fewest = 12
  /// The time after the start in which the effort grows quickly.
  static let opening = Duration(seconds: 60)
  /// The time for which there must be room before the effort grows during the opening: the first time, once the first
  /// measurement is there, and the next times.
  static let openingWaits = (first: Duration.zero, next: Duration(seconds: 5))
  /// The time for which there must be room before the effort grows afterwards: at first, and at most.
  static let recovery = Duration(seconds: 120)...Duration(seconds: 1800)
  /// The time for which a step up is on trial.
  static let trial = Duration(seconds: 60)
  /// The time between two steps down because of heat or processors.
  static let patience = Duration(seconds: 10)
  /// The time without a frame after which earlier measurements no longer count.
  static let pause = Duration(seconds: 3)

  /// The ladder.
  package let rungs: [Rung]
  /// The processors that the process may use together.
  package let budget: Double
  /// The number of the present rung.
  package private(set) var rung: Int
  /// The encode time of 99 in 100 frames in the last seconds; nil before it is known.
  package private(set) var percentile99: Duration?
  /// The processors that the process used in the last seconds; nil before it is known.
  package private(set) var processors: Double?
  /// The reason for the last change; nil before any.
  package private(set) var reason: Reason?
  /// The number of changes so far.
  package private(set) var changes = 0

  private var began: Instant?
  private var last = Instant.zero
  private var settledAt = Instant.zero
  private var window = Window()
  private var former = Window()
  private var roomSince: Instant?
  private var raisedAt: Instant?
  private var lowered = Instant.zero
  private var hasLowered = false
  private var hasRaised = false
  private var wait = Self.recovery.lowerBound

  /// Measurements together.
  private struct Window {
    var times = LatencyHistogram()
    var elapsed = Duration.zero
    var encoderTime = Duration.zero
    var processTime = Duration.zero

    mutating func add(_ times: LatencyHistogram, _ elapsed: Duration, _ encoderTime: Duration, _ processTime: Duration)
    {
      self.times.add(times)
      self.elapsed = self.elapsed + elapsed
      self.encoderTime = self.encoderTime + encoderTime
      self.processTime = self.processTime + processTime
    }

    mutating func removeAll() {
      times.removeAll()
      (elapsed, encoderTime, processTime) = (.zero, .zero, .zero)
    }
  }

  /// Creates a governor.
  ///
  /// - Parameters:
  ///   - rungs: The ladder, the least effort first; at least one rung.
  ///   - start: The number of the rung at the start.
  ///   - budget: The processors that the process may use together.
  package init(rungs: [Rung], start: Int, budget: Double) {
    precondition(rungs.indices.contains(start), "a rung of the ladder")
    (self.rungs, self.budget, rung) = (rungs, budget, start)
  }

  /// `true` while there is room for a greater effort, which begins after a wait.
  package var hasRoom: Bool { roomSince != nil }
  /// The present effort.
  package var effort: EncodingEffort { rungs[rung].effort }
  /// The effort that the encoder takes by itself when two frames in a row are late; nil at the lowest rung.
  package var fallback: EncodingEffort? { rung > 0 ? rungs[rung - 1].effort : nil }

  /// Takes a measurement. Returns `true` if ``rung`` has changed.
  ///
  /// - Parameter claim: Returns `true` if this stream may change now; of several streams on one budget one at a time may. It is
  ///   called for more effort, and for less because of the budget.
  package mutating func note(_ measurement: Measurement, at now: Instant, claim: () -> Bool = { true }) -> Bool {
    // A start has its own delays.
    if began == nil { settledAt = now + Self.warmUp }
    let since = began ?? now
    began = since
    if now - last > Self.pause || measurement.times.count == 0 { forget() }
    guard measurement.times.count > 0 else { return false }
    last = now
    if measurement.heat == .hot, rung > 0, now - lowered >= Self.patience { return lower(to: rung - 1, .heat, at: now) }
    guard now >= settledAt else { return false }
    add(measurement)
    if measurement.dropped > 0, rung > 0 {
      return lower(to: fitting(measurement.times.maximum, measurement.interval), .late, at: now)
    }
    guard judge(), let percentile99, let processors else { return false }
    let allowed = measurement.interval.seconds * Self.limit
    if percentile99.seconds > allowed, rung > 0 {
      return lower(to: fitting(percentile99, measurement.interval), .slow, at: now)
    }
    if processors > budget, rung > 0 {
      roomSince = nil
      guard now - lowered >= Self.patience, claim() else { return false }
      return lower(to: rung - 1, .budget, at: now)
    }
    let next = highest(percentile99, processors, allowed: allowed, isOpening: isOpening(since, now))
    guard next > rung, measurement.heat == .none else {
      roomSince = nil
      return false
    }
    let room = roomSince ?? now
    roomSince = room
    guard now - room >= wait(since, now), claim() else { return false }
    raise(to: next, at: now)
    return true
  }

  /// Notes that the encoder has taken `effort` by itself, because frames were late; nil for ``fallback``.
  package mutating func noteFallen(to effort: EncodingEffort? = nil, at now: Instant) {
    guard rung > 0 else { return }
    let taken = effort.flatMap { effort in rungs.prefix(rung).lastIndex { $0.effort.rawValue <= effort.rawValue } }
    _ = lower(to: taken ?? rung - 1, .late, at: now)
  }

  /// Forgets the measurements, and adds none before `time`. Until then, something else than the effort changes the encode times.
  package mutating func settle(until time: Instant) {
    forget()
    settledAt = max(settledAt, time)
  }

  /// Returns `true` if the start is so recent, and untroubled, that the effort may grow quickly.
  private func isOpening(_ since: Instant, _ now: Instant) -> Bool { !hasLowered && now - since < Self.opening }

  /// The time for which there must be room.
  private func wait(_ since: Instant, _ now: Instant) -> Duration {
    guard isOpening(since, now) else { return wait }
    return hasRaised ? Self.openingWaits.next : Self.openingWaits.first
  }

  private mutating func forget() {
    window.removeAll()
    former.removeAll()
    (roomSince, percentile99, processors) = (nil, nil, nil)
  }

  private mutating func add(_ measurement: Measurement) {
    if window.elapsed >= Self.longest {
      swap(&window, &former)
      window.removeAll()
    }
    window.add(measurement.times, measurement.elapsed, measurement.encoderTime, measurement.processTime)
  }

  /// Computes ``percentile99`` and ``processors``. Returns `false` if there is too little to judge by.
  private mutating func judge() -> Bool {
    let elapsed = (window.elapsed + former.elapsed).seconds
    let count = window.times.count + former.times.count
    guard elapsed >= Self.shortest.seconds, count >= Self.fewest else { return false }
    processors = (window.processTime + former.processTime).seconds / elapsed
    // One frame in a hundred, and one at least: a single frame says nothing, and no step down is taken for it.
    let outliers = max(1, count / 100)
    percentile99 =
      former.times.count == 0
      ? window.times.percentile(Double(count - outliers) / Double(count))
      : max(Self.percentile99(of: window.times), Self.percentile99(of: former.times))
    return true
  }

  private static func percentile99(of times: LatencyHistogram) -> Duration {
    guard times.count >= fewest else { return .zero }
    return times.percentile(Double(times.count - max(1, times.count / 100)) / Double(times.count))
  }

  /// Returns the highest rung whose estimates keep both limits: one rung above the present one, or two during the
  /// opening.
  private func highest(_ percentile99: Duration, _ processors: Double, allowed: Double, isOpening: Bool) -> Int {
    let elapsed = (window.elapsed + former.elapsed).seconds
    let encoder = (window.encoderTime + former.encoderTime).seconds / elapsed
    var highest = rung
    for next in rungs.indices.dropFirst(rung + 1).prefix(isOpening ? 2 : 1) {
      let factor = rungs[next].cost / rungs[rung].cost
      guard percentile99.seconds * factor <= allowed * Self.caution,
        processors + encoder * (factor - 1) <= budget * Self.caution
      else { break }
      highest = next
    }
    return highest
  }

  /// Returns the highest rung below the present one whose estimate keeps half of the interval, if frames take `time`.
  private func fitting(_ time: Duration, _ interval: Duration) -> Int {
    let fits = rungs.indices.prefix(rung).last { lower in
      time.seconds * rungs[lower].cost / rungs[rung].cost <= interval.seconds * Self.limit
    }
    return fits ?? 0
  }

  private mutating func raise(to next: Int, at now: Instant) {
    if let raisedAt, now - raisedAt >= Self.trial { wait = Self.recovery.lowerBound }
    (raisedAt, hasRaised) = (now, true)
    move(to: next, .room, at: now)
  }

  private mutating func lower(to next: Int, _ reason: Reason, at now: Instant) -> Bool {
    if let raisedAt, now - raisedAt < Self.trial { wait = min(wait * 2, Self.recovery.upperBound) }
    (raisedAt, hasLowered, lowered) = (nil, true, now)
    move(to: next, reason, at: now)
    return true
  }

  private mutating func move(to next: Int, _ reason: Reason, at now: Instant) {
    (rung, self.reason) = (next, reason)
    changes += 1
    forget()
    settledAt = now + Self.settling
  }
}

package import Media
package import Platform

/// Decides, from the encoder's load, how far to restrict the stream. It takes the load about once a second, and moves
/// one step at a time down or up a ladder.
///
/// A step down comes after ``patience`` above ``limit``, because encoding that takes longer than a frame interval drops
/// frames. A step up comes after some time below ``room``. A step up that proved too much within ``trial`` is tried
/// again only after twice as long.
package struct LoadAdaptation: Sendable {
  /// One rung of the ladder. The restrictions of the rungs before it stay.
  package enum Step: Hashable, Sendable {
    /// Less work for a picture.
    case effort(EncodingEffort)
    /// So many frames a second at most.
    case frameRate(Double)
    /// A smaller picture.
    case size(PictureSize)
  }

  /// The part of the time that encoding may take.
  package static let limit = 0.8
  /// The part of the time below which more may be tried.
  package static let room = 0.5
  /// The part from which two steps are taken at once: frames are lost already.
  static let saturation = 0.97
  /// The time for which the load must be too high.
  static let patience = Duration(seconds: 5)
  /// The time without judgement after a step, which takes effect only once its encoder is ready.
  static let settling = Duration(seconds: 3)
  /// The time for which there must be room before a step is taken back, the first time and at most.
  static let recovery = Duration(seconds: 30)...Duration(seconds: 900)
  /// The time without a call after which earlier loads no longer count.
  static let pause = Duration(seconds: 3)
  /// The time for which a step that was taken back is on trial.
  static let trial = Duration(seconds: 60)

  /// The ladder.
  package let steps: [Step]
  /// The number of its steps that are taken.
  package private(set) var level = 0
  /// The restrictions of these steps together.
  package var restrictions: StreamRestrictions {
    var restrictions = StreamRestrictions()
    for step in steps.prefix(level) {
      switch step {
      case .effort(let effort): restrictions.encoder.effort = effort
      case .frameRate(let rate): restrictions.maximumFrameRate = rate
      case .size(let size): restrictions.encoder.maximumSize = size
      }
    }
    return restrictions
  }

  private var last = Instant.zero
  private var overSince: Instant?
  private var roomSince: Instant?
  private var settledAt = Instant.zero
  private var raisedAt: Instant?
  private var wait = Self.recovery.lowerBound

  /// Creates an adaptation that restricts nothing yet.
  package init(steps: [Step]) {
    self.steps = steps
  }

  /// Takes the part of the last second or so in which the encoder was at work. Returns `true` if ``level`` has
  /// changed.
  ///
  /// - Parameters:
  ///   - load: the part; more than 1 if a picture took longer than that second.
  ///   - isLeast: `false` while a governor can still choose a lesser effort, which comes before a step down. Steps are taken back
  ///     all the same.
  ///   - now: the present time.
  package mutating func note(load: Double, isLeast: Bool = true, at now: Instant) -> Bool {
    // While the stream had no viewer, nothing was judged. While one picture was encoded, nothing was said.
    if now - last > Self.pause + Duration(seconds: max(load - 1, 0)) { (overSince, roomSince) = (nil, nil) }
    last = now
    guard now >= settledAt else { return false }
    if load > Self.limit {
      roomSince = nil
      guard isLeast else {
        overSince = nil
        return false
      }
      let since = overSince ?? now
      overSince = since
      guard now - since >= Self.patience, level < steps.count else { return false }
      if let raisedAt, now - raisedAt < Self.trial { wait = min(wait * 2, Self.recovery.upperBound) }
      raisedAt = nil
      move(to: min(level + (load > Self.saturation ? 2 : 1), steps.count), at: now)
      return true
    }
    overSince = nil
    guard level > 0, load < Self.room else {
      roomSince = nil
      return false
    }
    let since = roomSince ?? now
    roomSince = since
    guard now - since >= wait else { return false }
    if let raisedAt, now - raisedAt >= Self.trial { wait = Self.recovery.lowerBound }
    raisedAt = now
    move(to: level - 1, at: now)
    return true
  }

  private mutating func move(to level: Int, at now: Instant) {
    self.level = level
    (overSince, roomSince) = (nil, nil)
    settledAt = now + Self.settling
  }

  /// Returns the ladder for a requested stream: less effort, then fewer frames, then smaller pictures.
  ///
  /// - Parameter effort: that of the encoder at work, nil where it has no such choice.
  package static func ladder(effort: EncodingEffort?, size: PictureSize, frameRate: FrameRate) -> [Step] {
    var steps = (0..<(effort?.rawValue ?? 0)).reversed().map { Step.effort(EncodingEffort(rawValue: $0)) }
    let rate = frameRate.framesPerSecond
    for part in [2.0 / 3, 0.5] where rate * part >= 10 { steps.append(.frameRate(rate * part)) }
    for smaller in [(1280, 720), (960, 540), (640, 360)] {
      let smaller = PictureSize(width: smaller.0, height: smaller.1)
      let restricted = EncoderRestrictions(maximumSize: smaller).size(of: size)
      if restricted.pixels < size.pixels { steps.append(.size(smaller)) }
    }
    return steps
  }
}

public import Media

/// Decides, from how busy the encoder is, how much the stream is to do with less of: a value that is fed about once a
/// second, and takes one step at a time down or up a ladder.
///
/// Down after ``patience`` above ``limit``, because encoding that takes longer than a frame interval drops frames; up
/// after some time below ``room``. What proved too much within ``trial`` is tried again only after twice as long.
public struct LoadAdaptation: Sendable {
  /// One rung of the ladder; what those before it restrict stays restricted.
  public enum Step: Hashable, Sendable {
    /// A cheaper preset of x264.
    case preset(String)
    /// So many frames a second at most.
    case frameRate(Double)
    /// A smaller picture.
    case size(PictureSize)
  }

  /// The part of the time that encoding may take.
  public static let limit = 0.8
  /// Where so little is taken that more may be tried.
  public static let room = 0.5
  /// The part from which two steps are taken at once: frames are lost already.
  static let saturation = 0.97
  /// How long it must be too much.
  static let patience = MediaTime(seconds: 5)
  /// How long nothing is judged after a step, which takes effect only once its encoder is ready.
  static let settling = MediaTime(seconds: 3)
  /// How long there must be room before a step is taken back, the first time and at most.
  static let recovery = MediaTime(seconds: 30)...MediaTime(seconds: 900)
  /// After so long without a word what was before counts no longer.
  static let pause = MediaTime(seconds: 3)
  /// How long a step that was taken back is on trial.
  static let trial = MediaTime(seconds: 60)

  /// The ladder.
  public let steps: [Step]
  /// How many of its steps are taken.
  public private(set) var level = 0
  /// What they come to.
  public var restrictions: StreamRestrictions {
    var restrictions = StreamRestrictions()
    for step in steps.prefix(level) {
      switch step {
      case .preset(let preset): restrictions.encoder.x264Preset = preset
      case .frameRate(let rate): restrictions.maximumFrameRate = rate
      case .size(let size): restrictions.encoder.maximumSize = size
      }
    }
    return restrictions
  }

  private var last = MediaTime.zero
  private var overSince: MediaTime?
  private var roomSince: MediaTime?
  private var settledAt = MediaTime.zero
  private var raisedAt: MediaTime?
  private var wait = Self.recovery.lowerBound

  /// Nothing is restricted yet.
  public init(steps: [Step]) {
    self.steps = steps
  }

  /// Takes the part of the last second or so in which the encoder was at work, 0…1; true where ``level`` has changed.
  public mutating func note(load: Double, at now: MediaTime) -> Bool {
    // While nobody watched nothing was judged.
    if now - last > Self.pause { (overSince, roomSince) = (nil, nil) }
    last = now
    guard now >= settledAt else { return false }
    if load > Self.limit {
      roomSince = nil
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

  private mutating func move(to level: Int, at now: MediaTime) {
    self.level = level
    (overSince, roomSince) = (nil, nil)
    settledAt = now + Self.settling
  }

  /// The ladder for a stream as it was asked for: cheaper presets, then fewer frames, then smaller pictures.
  ///
  /// - Parameters:
  ///   - preset: x264's, nil where another encoder is at work.
  ///   - presets: x264's, fastest first.
  public static func ladder(
    preset: String?, of presets: [String], size: PictureSize, frameRate: FrameRate
  ) -> [Step] {
    let cheaper = preset.flatMap { presets.firstIndex(of: $0) }.map { presets[..<$0].reversed() } ?? []
    var steps = cheaper.map { Step.preset($0) }
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

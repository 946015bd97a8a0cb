public import Media

/// An encoder for a picture that turns: it takes frames of its size and, from one frame to the next, of width and
/// height swapped.
///
/// ```
/// frames     1280x720 ─────────────────► 720x1280 ─────────────► 1280x720 ─────►
/// active     landscape                   portrait                landscape
/// standby    portrait (being made, warm) landscape (warm)        portrait (warm)
/// ```
///
/// There is one encoder of each orientation. The first frame of the other one goes to the standby, whose picture is
/// an IDR with its own parameter sets; what the former encoder held back is delivered before it. The former becomes the
/// next standby at once, or where it looks ahead after it was warmed up again on a thread of its own (`nj-standby`).
/// That thread makes the standby too, and sleeps otherwise.
///
/// Where something else is to be done (``restrict(_:)``), the standby is made anew first, for smaller pictures, of
/// another preset or for other colours, and takes over once it is warm; ``frameSize(for:)`` tells to which size frames
/// are to be scaled meanwhile. Then the encoder of the other orientation is made once more.
public final class OrientedEncoder: VideoEncoder, @unchecked Sendable {
  // Sendable: used by one thread at a time, as `VideoEncoder` demands; the standby's thread has none of it.
  //
  // `any`: one call a frame through a witness table; the selector learns only at run time what there is.

  /// Opens an encoder.
  public typealias MakeEncoder = @Sendable (EncoderConfiguration) throws(EncoderError) -> any VideoEncoder

  /// What becomes of the encoder that is not at work.
  public struct Policy: Hashable, Sendable {
    /// Whether it is kept warm. If not, an encoder is made when the picture turns, and the former one ends.
    public var keepsStandby = true
    /// How long its preparation may take before a frame that needs it is given up.
    public var preparationLimit = MediaTime(nanoseconds: 10_000_000_000)

    /// The values above.
    public init() {}
  }

  /// What happened to the encoders.
  public let events: EncoderEvents

  private let policy: Policy
  private let standby: StandbyThread
  /// As it was at the start: parameter sets and level follow from it, whatever is asked for later.
  private let initial: EncoderConfiguration
  /// The same for the other orientation; nil for a square picture.
  private let turned: EncoderConfiguration?
  private var active: any VideoEncoder
  private var current: Shape
  /// What is asked for; another one than ``current`` has while its encoder is being made.
  private var wanted = EncoderRestrictions()
  private var bitrate: Int
  private var frameRate: FrameRate
  /// When one that could not be made is tried again.
  private var nextAttempt = MediaTime.zero
  private static let retryInterval = MediaTime(seconds: 10)
  /// Whether the next picture is the active encoder's first since the picture turned.
  private var needsKeyFrame = false
  /// Whether the first standby was asked for.
  private var hasStandby = false
  private var isStopped = false
  /// Of the encoder that was active before, as it was then.
  private var formerCounters = EncoderCounters()
  /// Of all that are gone.
  private var pastCounters = EncoderCounters()
  private var switches = 0
  private var adaptations = 0
  private let succession = IDRSuccession()

  /// What an encoder is made for.
  private struct Shape {
    var isTurned = false
    var restrictions = EncoderRestrictions()
    var configuration: EncoderConfiguration

    var size: PictureSize { configuration.size }
  }

  /// An encoder of which `active` is the one orientation; ``prepare()`` begins to make the other.
  ///
  /// - Parameters:
  ///   - active: the encoder of the orientation at the start, never changed so far. It is ended with this one.
  ///   - policy: whether the other orientation's encoder is kept warm, and how long making one may take.
  ///   - events: where to tell what happens; the same that the encoders made by `makeEncoder` use.
  ///   - makeEncoder: opens an encoder of either orientation; called on the thread `nj-standby`.
  /// - Throws: ``/Media/EncoderError/unavailable(_:)`` where the system has no thread left.
  public init(
    active: any VideoEncoder, policy: Policy = Policy(), events: EncoderEvents = EncoderEvents(),
    makeEncoder: @escaping MakeEncoder
  ) throws(EncoderError) {
    self.active = active
    self.policy = policy
    self.events = events
    initial = active.configuration
    turned = initial.turned
    current = Shape(configuration: initial)
    bitrate = initial.bitrate
    frameRate = initial.frameRate
    do throws(SystemFailure) {
      standby = try StandbyThread(makeEncoder: makeEncoder) { events.add(.standbyFailed(size: $0, reason: $1)) }
    } catch {
      throw .unavailable("no thread for the standby encoder: \(error)")
    }
  }

  deinit {
    stop()
  }

  /// That of the encoder at work: its size is that of the last frame.
  public var configuration: EncoderConfiguration { active.configuration }
  /// That of the encoder at work.
  public var name: String { active.name }
  /// Those of the encoder at work.
  public var parameterSets: ParameterSets { active.parameterSets }

  /// Of both, and the switches.
  public var counters: EncoderCounters {
    var sum = active.counters + formerCounters + pastCounters
    sum.switches = switches
    sum.adaptations = adaptations
    return sum
  }

  /// What the encoder at work lays by itself.
  public var turns: OrientationSet { active.turns }

  /// Whether the next turn waits for nothing. Any thread may ask.
  public var isStandbyReady: Bool { standby.isReady }

  /// By how much the process's resident memory grew while the standby was made, in bytes: what it costs, without what
  /// the driver has elsewhere, and less where memory that was free already served. Nil before it was made. Any thread
  /// may ask.
  public var standbyMemory: Int? { standby.residentGrowth }

  /// Warms up the encoder at work, and begins to make the standby, without waiting for it.
  ///
  /// - Throws: ``/Media/EncoderError`` as the encoder at work does. A standby that cannot be had is told by an event.
  public func prepare() throws(EncoderError) {
    guard !isStopped else { throw .stopped }
    try active.prepare()
    guard !hasStandby, policy.keepsStandby, let other = shape(isTurned: true, current.restrictions) else { return }
    hasStandby = true
    standby.make(other.configuration)
  }

  /// Encodes `frame` by the encoder of its orientation; see ``/Media/VideoEncoder``. At a turn, what the former one
  /// held back is delivered first, and the picture is a key frame.
  ///
  /// - Throws: ``/Media/EncoderError/frameSize(_:expected:)`` for a frame of neither orientation, what the encoder
  ///   throws, or why there is none for this orientation; then the former one goes on with the next frame of its own.
  public func encode(
    _ frame: borrowing Frame, keyFrame: Bool, to sink: any AccessUnitSink
  ) throws(EncoderError) {
    guard !isStopped else { throw .stopped }
    if let next = next(for: frame.laidSize) {
      // Before anything turns: a frame that is the caller's mistake changes nothing.
      try frame.check(for: next.size)
      try turn(to: next, sink)
    }
    // What looks ahead delivers it in another call, when it is too late to encode it once more.
    let isFirst = needsKeyFrame && initial.lookahead == 0
    try succession.pass(ofNewEncoder: isFirst, keyFrame: keyFrame || needsKeyFrame, to: sink) {
      keyFrame throws(EncoderError) in try active.encode(frame, keyFrame: keyFrame, to: succession)
    }
    needsKeyFrame = false
  }

  /// Changes the encoder at work now, and the other one when the picture turns; see ``/Media/VideoEncoder``.
  ///
  /// - Throws: ``/Media/EncoderError`` for an impossible value; then the old ones go on.
  public func change(bitrate: Int, frameRate: FrameRate) throws(EncoderError) {
    guard !isStopped else { throw .stopped }
    try active.change(bitrate: bitrate, frameRate: frameRate)
    self.bitrate = bitrate
    self.frameRate = frameRate
  }

  /// Lends what the encoder at work holds back; the other one holds nothing.
  ///
  /// - Throws: ``/Media/EncoderError`` as that encoder does.
  public func flush(deliver: (borrowing AccessUnit) -> Void) throws(EncoderError) {
    guard !isStopped else { throw .stopped }
    try active.flush(deliver: deliver)
  }

  /// Ends both encoders. A standby that is being made and does not get ready within two seconds is left behind.
  public func stop() {
    guard !isStopped else { return }
    isStopped = true
    active.stop()
    standby.stop()
  }

  // MARK: Shapes

  /// An encoder's shape for one orientation; nil where a square picture has no other.
  private func shape(isTurned: Bool, _ restrictions: EncoderRestrictions) -> Shape? {
    guard let configuration = isTurned ? turned : initial else { return nil }
    return Shape(
      isTurned: isTurned, restrictions: restrictions, configuration: configuration.restricted(by: restrictions))
  }

  /// The shape that is asked for, where it is not the current one.
  private var pending: Shape? {
    guard wanted != current.restrictions else { return nil }
    return shape(isTurned: current.isTurned, wanted)
  }

  /// The shape for a frame of `size`; nil where the encoder at work is the one for it.
  private func next(for size: PictureSize) -> Shape? {
    let pending = pending
    if let pending, pending.size == size, standby.isReady(for: pending.configuration) { return pending }
    if size == current.size { return nil }
    let others = [
      shape(isTurned: !current.isTurned, wanted), shape(isTurned: !current.isTurned, current.restrictions), pending,
    ]
    for case let other? in others where other.size == size { return other }
    return nil
  }

  /// The size of the encoder at work, or of the one that takes over with the next frame.
  public func frameSize(for laid: PictureSize) -> PictureSize {
    guard laid == initial.size || laid == turned?.size else { return laid }
    guard (laid != initial.size) == current.isTurned else {
      return shape(isTurned: !current.isTurned, wanted)?.size ?? laid
    }
    guard let pending else { return current.size }
    if standby.isReady(for: pending.configuration) { return pending.size }
    let now = MediaTime.now()
    if now >= nextAttempt, standby.hasFailed {
      nextAttempt = now + Self.retryInterval
      standby.make(pending.configuration)
    }
    return current.size
  }

  /// Has an encoder of these restrictions take over, with one of the next frames, once it is ready; where the preset
  /// alone is another and x264 obeys, it is the one at work. Does nothing after ``stop()``.
  public func restrict(_ restrictions: EncoderRestrictions) {
    guard !isStopped else { return }
    wanted = restrictions
    if let pending, pending.configuration.differsInPresetAlone(from: current.configuration),
      changePreset(to: pending.configuration.x264Preset)
    {
      current = pending
      adaptations += 1
    }
    hasStandby = true
    if let pending {
      standby.make(pending.configuration)
    } else if policy.keepsStandby, let other = shape(isTurned: !current.isTurned, wanted) {
      standby.adopt(other.configuration)
    } else {
      standby.clear()
    }
  }

  private func changePreset(to x264Preset: String) -> Bool {
    do throws(EncoderError) {
      return try active.change(x264Preset: x264Preset)
    } catch {
      return false
    }
  }

  /// Makes the standby the encoder at work, and the former one the standby, where it has its shape.
  private func turn(to next: Shape, _ sink: any AccessUnitSink) throws(EncoderError) {
    hasStandby = true
    let taken = try standby.take(or: next.configuration, within: policy.preparationLimit)
    do throws(EncoderError) {
      let rates = taken.encoder.configuration
      if rates.bitrate != bitrate || rates.frameRate != frameRate {
        try taken.encoder.change(bitrate: bitrate, frameRate: frameRate)
      }
    } catch {
      if taken.isFormer { pastCounters = pastCounters + formerCounters }
      formerCounters = EncoderCounters()
      standby.retire(taken.encoder, thenMake: policy.keepsStandby ? next.configuration : nil)
      throw error
    }
    if !taken.isFormer { pastCounters = pastCounters + formerCounters }
    let former = active
    var isSound = true
    do throws(EncoderError) {
      try former.flush {
        succession.note($0)
        sink.take($0)
      }
    } catch {
      isSound = false
      events.add(.flushFailed(reason: error))
    }
    formerCounters = former.counters
    active = taken.encoder
    needsKeyFrame = true
    if next.isTurned != current.isTurned { switches += 1 }
    if next.restrictions != current.restrictions { adaptations += 1 }
    current = next
    // What is to stand by: the other orientation's, or what was asked for meanwhile.
    let other = pending ?? shape(isTurned: !next.isTurned, next.restrictions)
    guard let other, policy.keepsStandby || pending != nil else { return standby.retire(former, thenMake: nil) }
    if !isSound || !former.isMade(for: other.configuration) {
      standby.retire(former, thenMake: other.configuration)
    } else if other.configuration.lookahead > 0 {
      standby.warm(former, other.configuration)
    } else {
      standby.keep(former)
    }
  }
}

extension EncoderConfiguration {
  fileprivate func differsInPresetAlone(from other: EncoderConfiguration) -> Bool {
    var same = other
    same.x264Preset = x264Preset
    return self == same
  }

  /// The same with width and height swapped, and no more slices than fit; nil for a square picture.
  var turned: EncoderConfiguration? {
    guard size.width != size.height else { return nil }
    var turned = self
    turned.size = PictureSize(width: size.height, height: size.width)
    turned.slices = min(slices, max(1, (turned.size.height + 15) / 16))
    return turned
  }
}

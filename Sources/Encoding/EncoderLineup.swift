public import Media
public import Platform

/// The encoders of one stream, one of them live at a time. A frame that the live encoder fails on is encoded again by
/// another encoder, in the same stream, as a key frame with its own parameter sets.
///
/// ```
/// slots        hardware (nj-driver)    software
/// 1280x720     live ──── fails ──────► live, until the hardware is back
/// 720x1280     stands by               stands by          made on nj-standby, live after a rotation
/// ```
///
/// - After an **error** the hardware is opened again with a growing back-off. It takes over again at a key frame that
///   is due.
/// - No encoder that shares its ``DriverHealth`` calls a driver that **hangs** for a while. Then another thread opens
///   it again, and it takes over in the same way.
/// - Without software the first failure ends the stream: ``/Media/EncoderError/lost(reason:)``.
/// - The first frame of the other **orientation** goes to the standby slots, after the pictures that the former encoder
///   held back. The former slots become the standby; an encoder with lookahead is prepared again first.
/// - After ``restrict(_:)``, slots for smaller pictures, another effort or other colours take over once they are
///   prepared; those of a greater effort or with other threads at the next key frame that is due. ``frameSize(for:)``
///   returns the size to which frames are to be scaled meanwhile. The live hardware takes another quality level itself,
///   unless its driver refuses it.
///
/// A standby software encoder costs some 18 MB at 1280x720. Without ``Policy/keepsStandby`` it is opened when it is
/// needed, and freed once the hardware works again.
public final class EncoderLineup: VideoEncoder, @unchecked Sendable {
  // Sendable: used by one thread at a time, as `VideoEncoder` demands; the threads of driver and standby do not use it.

  /// Opens the hardware encoder; called again after a failure, on the thread `nj-driver`.
  public typealias MakeHardware = @Sendable (EncoderConfiguration) throws(EncoderError) -> any StagedVideoEncoder
  /// Opens the software encoder.
  public typealias MakeSoftware = @Sendable (EncoderConfiguration) throws(EncoderError) -> any VideoEncoder

  /// The time limits of the hardware, and the use of standby encoders.
  public struct Policy: Hashable, Sendable {
    /// The number of frame intervals that a driver has for a frame before it counts as hung.
    public var hangLimit = 3
    /// The time that a driver has for the first frame after a rest of a second or more: a GPU that the kernel has
    /// suspended wakes up first. Less than half of the time that systemd's watchdog waits.
    public var wakingLimit = Duration.seconds(3)
    /// `true` keeps the software and the other orientation's encoders prepared. `false` opens an encoder when it is
    /// needed, and the former one ends.
    public var keepsStandby = true
    /// The time that a driver has to open and to encode its first picture.
    public var openingLimit = Duration.seconds(5)
    /// The maximum wait for the other orientation's encoders before a frame that needs them is dropped.
    public var preparationLimit = Duration.seconds(10)

    /// Creates a policy with the default values.
    public init() {}

    /// The valid hang limits, in frame intervals.
    public static let hangLimits = 1...100

    func check() throws(EncoderError) {
      guard !Self.hangLimits.contains(hangLimit) else { return }
      throw .configuration(
        "a hang limit of \(hangLimit) frames: choose \(Self.hangLimits.lowerBound) to \(Self.hangLimits.upperBound)")
    }
  }

  package let makers: EncoderMakers
  let standby: StandbyThread?
  let succession = IDRSuccession()
  var state: LineupState
  /// The slots whose encoder is live.
  package var active: EncoderSlots
  /// The time of the next attempt to make slots that could not be made.
  var nextAttempt = Instant.zero
  /// `true` if standby slots were requested.
  var hasStandby = false
  private(set) var isStopped = false

  /// Opens the hardware with software as its fallback, or one of both alone.
  ///
  /// - Parameters:
  ///   - configuration: The configuration of every encoder.
  ///   - library: The name of the hardware's library, for messages.
  ///   - policy: The time limits of the hardware, and the use of standby encoders.
  ///   - aspects: The picture sizes that the encoders must accept.
  ///   - offer: Receives the orientations that the hardware applies. With an offer, the CPU applies the others.
  ///   - health: The hangs of the driver, shared by all encoders on it.
  ///   - events: Receives the events of the encoders.
  ///   - software: Opens the fallback of the hardware; nil for none.
  ///   - hardware: Opens the hardware; nil for none.
  /// - Throws: ``/Media/EncoderError`` with the reason if the encoder cannot be opened.
  public convenience init(
    _ configuration: EncoderConfiguration, library: String = "hardware", policy: Policy = Policy(),
    aspects: EncoderAspects = .one, offer: TurnOffer? = nil, health: DriverHealth = DriverHealth(),
    events: EncoderEvents = EncoderEvents(), software: MakeSoftware?, hardware: MakeHardware? = nil
  ) throws(EncoderError) {
    let makers = EncoderMakers(
      library: library, policy: policy, health: health, events: events, offer: offer, software: software,
      hardware: hardware)
    try self.init(active: EncoderSlots.open(configuration, makers), makers, aspects)
  }

  /// Creates a lineup with `active` as the live slots, whose rates were never changed. The lineup ends them with
  /// itself.
  package init(active: EncoderSlots, _ makers: EncoderMakers, _ aspects: EncoderAspects) throws(EncoderError) {
    self.active = active
    self.makers = makers
    state = LineupState(active.configuration, aspects, keepsStandby: makers.policy.keepsStandby)
    do throws(SystemFailure) {
      standby = aspects == .one ? nil : try StandbyThread(makers)
    } catch {
      active.stop()
      throw .unavailable("no thread for the standby encoder: \(error)")
    }
  }

  deinit {
    stop()
  }

  /// The events of the encoders.
  public var events: EncoderEvents { makers.events }
  /// The live encoder's configuration, whose size is that of the last frame.
  public var configuration: EncoderConfiguration { active.configuration }
  /// The live encoder's name.
  public var name: String { active.name }
  /// The live encoder's parameter sets.
  public var parameterSets: ParameterSets { active.parameterSets }
  /// The orientations that the live encoder applies; all eight if the CPU applies the others.
  public var turns: OrientationSet { makers.offer == nil ? active.turns : OrientationSet(rawValue: .max) }
  /// The counters of all encoders and of the switches between them.
  public var counters: EncoderCounters { makers.ledger.counters + state.changes }
  /// `true` if the next rotation needs no wait. Any thread may read it.
  public var isStandbyReady: Bool { standby?.isReady ?? false }
  /// The growth of the process's resident memory during the creation of the standby, in bytes. It excludes memory that
  /// the driver holds elsewhere, and is less if free memory was reused. Nil before the standby was made.
  public var standbyMemory: Int? { standby?.residentGrowth }

  /// Prepares the live encoder and its software fallback, and starts to make the other orientation's encoders without
  /// waiting for them.
  ///
  /// - Throws: ``/Media/EncoderError`` as these encoders do. A failure of the other orientation's encoders is reported
  ///   by an event.
  public func prepare() throws(EncoderError) {
    guard !isStopped else { throw .stopped }
    try active.prepare()
    let first = state.firstStandby
    guard !hasStandby, first != .end else { return }
    hasStandby = true
    standby?.perform(first)
  }

  /// Encodes `frame` with an encoder for its size; see ``/Media/VideoEncoder``. At a rotation, the pictures that the
  /// former encoder held back are delivered first, and the picture is a key frame.
  ///
  /// - Throws: ``/Media/EncoderError/frameSize(_:expected:)``; ``/Media/EncoderError/notTurned(_:reason:)`` if no
  ///   encoder or CPU pass can rotate the frame; ``/Media/EncoderError/lost(reason:)``; or the error of the software.
  ///   If there is no encoder for this orientation, the error has the reason, and the former encoder continues with the
  ///   next frame of its own orientation.
  public func encode(
    _ frame: borrowing Frame, keyFrame: Bool, to sink: any AccessUnitSink
  ) throws(EncoderError) {
    guard !isStopped else { throw .stopped }
    // Checked before any switch and before the hardware gets the frame: a frame that breaks the contract changes
    // nothing.
    let size = frame.rotatedSize
    if !state.isSettled(for: size),
      let next = state.next(for: size, isDue: keyFrame, isReady: { isReady($0) })
    {
      try frame.check(for: next.size)
      try change(to: next, sink)
    } else {
      try frame.check(for: active.configuration.size)
    }
    guard makers.offer != nil else { return try encodeByLive(frame, keyFrame: keyFrame, to: sink) }
    defer { active.tellRotations() }
    if frame.orientation == .upright || active.turns.contains(frame.orientation) {
      do throws(EncoderError) {
        return try encodeByLive(frame, keyFrame: keyFrame, to: sink)
      } catch {
        guard case .notTurned = error, frame.orientation != .upright else { throw error }
      }
    }
    try encodeByLive(active.upright(frame), keyFrame: keyFrame, to: sink)
  }

  /// Encodes with the hardware; with the software if the hardware is not live or fails.
  private func encodeByLive(
    _ frame: borrowing Frame, keyFrame: Bool, to sink: any AccessUnitSink
  ) throws(EncoderError) {
    let slots = active
    if slots.hasHardware { try mindHardware(isDue: keyFrame || state.isFirst, sink) }
    if slots.live == .hardware, let driver = slots.driver {
      do throws(EncoderError) {
        try succession.pass(ofNewEncoder: state.isFirst, keyFrame: keyFrame || state.isFirst, to: sink) {
          keyFrame throws(EncoderError) in
          try driver.encode(frame, keyFrame: keyFrame, within: slots.patience) { succession.take($0) }
        }
        state.notePicture()
        if makers.levels.takeRefusal() { replaceRefusingHardware() }
        return
      } catch {
        if case .notTurned(_, let reason) = error {
          // The encoder itself has not failed: it accepts the frame once the frame is rotated.
          if slots.noteRotationFailed() { events.add(.turningFailed(reason: reason)) }
          throw error
        }
        try failOver(error)
      }
    }
    let software = try slots.openSoftware()
    // An encoder with lookahead delivers the picture in another call, when it is too late to encode it again.
    let isFirst = state.isFirst && slots.configuration.lookahead == 0
    try succession.pass(ofNewEncoder: isFirst, keyFrame: keyFrame || state.isFirst, to: sink) {
      keyFrame throws(EncoderError) in try software.encode(frame, keyFrame: keyFrame, to: succession)
    }
    state.notePicture()
  }

  /// Changes the encoders for this orientation now, and the others when the picture is rotated; see
  /// ``/Media/VideoEncoder``.
  ///
  /// - Throws: ``/Media/EncoderError`` for an impossible value, or if the software refuses.
  public func change(bitrate: Int, frameRate: FrameRate) throws(EncoderError) {
    guard !isStopped else { throw .stopped }
    try active.change(bitrate: bitrate, frameRate: frameRate)
  }

  /// Lends the pictures that the live encoder holds back; the other encoders hold none.
  ///
  /// - Throws: ``/Media/EncoderError`` as the live encoder does.
  public func flush(deliver: (borrowing AccessUnit) -> Void) throws(EncoderError) {
    guard !isStopped else { throw .stopped }
    try active.flush {
      succession.note($0)
      deliver($0)
    }
  }

  /// Ends all encoders. A driver, or a standby in preparation, that does not end within two seconds is abandoned.
  public func stop() {
    guard !isStopped else { return }
    isStopped = true
    active.stop()
    standby?.stop()
  }
}

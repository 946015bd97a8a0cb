package import Media

/// The decisions of an ``EncoderLineup``, without encoders, threads or clocks: which slot gets a frame, what happens to
/// the standby slots, when the stream leaves the hardware and returns to it, and what is counted.
package struct LineupState {
  /// The shape of the pictures for which two slots, hardware and software, are made.
  package struct Shape: Hashable {
    package var isRotated = false
    package var restrictions = EncoderRestrictions()
    package var configuration: EncoderConfiguration

    var size: PictureSize { configuration.size }
  }

  /// The next task for the standby slots.
  package enum Standby: Hashable {
    /// The former slots become the standby as they are.
    case keep
    /// The former slots become the standby once they are prepared again; if that fails, other slots are made.
    case warm(EncoderConfiguration)
    /// Other slots are made.
    case make(EncoderConfiguration)
    /// The standby slots change to this effort, quality level and number of threads, or other slots are made.
    case adopt(EncoderConfiguration)
    /// The standby is ended.
    case end
  }

  /// The slot that is live.
  package enum Kind { case hardware, software }

  /// The step to take with the hardware before a frame.
  package enum HardwareStep {
    case stay, leave, reopen, takeBack
  }

  /// The configuration at the start: the parameter sets and the level follow from it, whatever is requested later.
  private let initial: EncoderConfiguration
  /// The configuration at the start for the other orientation; nil for a square picture, or if pictures are not
  /// rotated.
  private let turned: EncoderConfiguration?
  /// `true` if the other orientation's encoders are made before they are needed.
  private let keepsStandby: Bool
  private var current: Shape { didSet { isPending = wanted != current.restrictions } }
  /// The requested restrictions; ``current`` has others while the encoders for these are being made.
  private var wanted = EncoderRestrictions() { didSet { isPending = wanted != current.restrictions } }
  /// `true` if other slots must take over.
  private(set) var isPending = false
  /// `true` if the next picture is the first one of another encoder, and so a key frame.
  package private(set) var isFirst = false
  /// The number of frames for which prepared slots of a greater effort, or with other threads, have waited for a key frame that
  /// is due.
  private var waited = 0
  /// The counts of changes of the live encoder; no other events are counted.
  package private(set) var changes = EncoderCounters()

  /// Creates the state for pictures of `initial`, which may be rotated if `aspects` says so.
  package init(_ initial: EncoderConfiguration, _ aspects: EncoderAspects, keepsStandby: Bool) {
    self.initial = initial
    turned = aspects == .one ? nil : initial.turned
    self.keepsStandby = keepsStandby && aspects == .both
    current = Shape(configuration: initial)
  }

  // MARK: Shapes

  /// Returns the slots' shape for one orientation; nil if there is no other orientation.
  private func shape(isRotated: Bool, _ restrictions: EncoderRestrictions) -> Shape? {
    guard let configuration = isRotated ? turned : initial else { return nil }
    return Shape(
      isRotated: isRotated, restrictions: restrictions, configuration: configuration.restricted(by: restrictions))
  }

  /// The requested shape; nil if it is the current one.
  private var pending: Shape? { isPending ? shape(isRotated: current.isRotated, wanted) : nil }

  /// Returns `true` if a frame of `size` is for the live slots and no other restrictions are pending, as for most
  /// frames.
  package func isSettled(for size: PictureSize) -> Bool { size == current.size && !isPending }

  /// The first task for the standby slots.
  package var firstStandby: Standby {
    guard keepsStandby, let other = shape(isRotated: true, current.restrictions) else { return .end }
    return .make(other.configuration)
  }

  /// Returns the shape for a frame of `size`; nil if the live slots are for it. `isDue` is `true` if the frame is to be a
  /// key frame. `isReady` returns `true` if standby slots of a configuration are ready.
  package mutating func next(for size: PictureSize, isDue: Bool, isReady: (EncoderConfiguration) -> Bool) -> Shape? {
    let pending = pending
    if let pending, pending.size == size, isReady(pending.configuration), isDue || !waits(for: pending) {
      return pending
    }
    if size == current.size { return nil }
    let others = [
      shape(isRotated: !current.isRotated, wanted), shape(isRotated: !current.isRotated, current.restrictions), pending,
    ]
    for case let other? in others where other.size == size { return other }
    return nil
  }

  /// Returns `true` if `pending` waits for a key frame that is due: nothing is urgent about a greater effort, a better quality
  /// level or another number of threads, and a key frame of its own costs bits. After ten seconds of frames it waits no longer.
  private mutating func waits(for pending: Shape) -> Bool {
    let (next, now) = (pending.configuration, current.configuration)
    guard next.differsInEffortOrThreadsAlone(from: now), !now.isBetter(than: next), next.refreshFrames == nil,
      next.isBetter(than: now) || next.threads != now.threads
    else { return false }
    waited += 1
    return Double(waited) <= now.frameRate.framesPerSecond * 10
  }

  /// Returns the size that the next frame must have, for a source whose pictures have the size `upright`.
  package func frameSize(for upright: PictureSize, isReady: (EncoderConfiguration) -> Bool) -> PictureSize {
    guard upright == initial.size || upright == turned?.size else { return upright }
    guard (upright != initial.size) == current.isRotated else {
      return shape(isRotated: !current.isRotated, wanted)?.size ?? upright
    }
    guard let pending, isReady(pending.configuration) else { return current.size }
    return pending.size
  }

  /// Returns `true` if `next` is for the other orientation than the live slots.
  func isOtherOrientation(_ next: Shape) -> Bool { next.isRotated != current.isRotated }

  /// Makes the slots of `next` live. `configuration` is that of the former slots; nil if they failed.
  package mutating func change(to next: Shape, former configuration: EncoderConfiguration?) -> Standby {
    isFirst = true
    waited = 0
    if isOtherOrientation(next) { changes.switches += 1 }
    if next.restrictions != current.restrictions { changes.adaptations += 1 }
    current = next
    guard let other = pending ?? shape(isRotated: !next.isRotated, next.restrictions), keepsStandby || pending != nil
    else { return .end }
    guard let configuration, configuration.isMade(for: other.configuration) else { return .make(other.configuration) }
    return other.configuration.lookahead > 0 ? .warm(other.configuration) : .keep
  }

  /// Returns the task for the standby slots after the slots of `next` failed.
  package func standby(insteadOf next: Shape) -> Standby { keepsStandby ? .make(next.configuration) : .end }

  /// Requests other restrictions. If only the effort, the quality level or the number of threads differs, `change` returns `true`
  /// if the live encoder accepted those of the configuration. A lesser effort does not wait for slots with other threads: if the
  /// live encoder refuses both together, `change` gets the effort and the quality level alone.
  package mutating func restrict(_ restrictions: EncoderRestrictions, change: (EncoderConfiguration) -> Bool) -> Standby
  {
    wanted = restrictions
    waited = 0
    adopt(restrictions, change)
    if isPending, restrictions.threads != current.restrictions.threads {
      var kept = restrictions
      kept.threads = current.restrictions.threads
      adopt(kept, change)
    }
    if let pending { return .make(pending.configuration) }
    guard keepsStandby, let other = shape(isRotated: !current.isRotated, wanted) else { return .end }
    return .adopt(other.configuration)
  }

  /// Makes `restrictions` those of the live slots if they change the effort, the quality level or the number of threads alone,
  /// and `change` returns `true` for them.
  private mutating func adopt(_ restrictions: EncoderRestrictions, _ change: (EncoderConfiguration) -> Bool) {
    guard restrictions != current.restrictions, let next = shape(isRotated: current.isRotated, restrictions),
      next.configuration.differsInEffortOrThreadsAlone(from: current.configuration), change(next.configuration)
    else { return }
    current = next
    changes.adaptations += 1
  }

  /// Notes that the live hardware keeps `level`, and refuses the requested one. Returns the task for the standby slots; nil if
  /// no other level is requested any more.
  package mutating func noteRefusal(keeping level: Int?) -> Standby? {
    var kept = current
    kept.restrictions.vaapiQuality = level
    kept.configuration.vaapiQuality = level
    current = kept
    waited = 0
    return pending.map { Standby.make($0.configuration) }
  }

  // MARK: Hardware and software

  /// Returns the step to take before a frame while `live` is live.
  ///
  /// - Parameters:
  ///   - isLeftAlone: `true` if the driver hung and must not be called for now.
  ///   - isStale: `true` if a call by the present connection to the driver might hang, or there is no connection.
  ///   - isDue: `true` if the frame is to be a key frame.
  package static func step(
    _ live: Kind, isLeftAlone: Bool, isStale: @autoclosure () -> Bool, isDue: Bool
  ) -> HardwareStep {
    switch live {
    case .hardware: isLeftAlone || isStale() ? .leave : .stay
    case .software where isLeftAlone: .stay
    case .software: isStale() ? .reopen : isDue ? .takeBack : .stay
    }
  }

  /// Records that the software took over, after `hangs` of the driver.
  package mutating func noteFailover(hangs: Int) {
    isFirst = true
    changes.failovers += 1
    changes.hangs += hangs
  }

  /// Records that the hardware took over again.
  package mutating func noteRecovery() {
    isFirst = true
    changes.recoveries += 1
  }

  /// Records a picture of the live encoder.
  package mutating func notePicture() { isFirst = false }

  /// Counts `hangs` of the driver.
  mutating func note(hangs: Int) { changes.hangs += hangs }
}

extension EncoderConfiguration {
  /// The step of the effort in x264's presets.
  fileprivate var effortStep: Int { (effort ?? EncoderSelector.effort(ofPreset: x264Preset))?.rawValue ?? 0 }

  /// Returns `true` if the effort is greater than that of `other`, or the quality level better.
  fileprivate func isBetter(than other: EncoderConfiguration) -> Bool {
    if effortStep > other.effortStep { return true }
    guard let level = vaapiQuality, let otherLevel = other.vaapiQuality else { return false }
    return level < otherLevel
  }

  /// Returns `true` if nothing differs but the effort, the quality level and the number of threads.
  fileprivate func differsInEffortOrThreadsAlone(from other: EncoderConfiguration) -> Bool {
    var same = other
    (same.effort, same.vaapiQuality, same.threads) = (effort, vaapiQuality, threads)
    return self == same
  }

  /// Returns `true` if an encoder of this configuration fits `other`, apart from values that change while it runs.
  func isMade(for other: EncoderConfiguration) -> Bool {
    size == other.size && color == other.color && x264Preset == other.x264Preset && effort == other.effort
      && vaapiQuality == other.vaapiQuality && threads == other.threads
  }

  /// The configuration with width and height swapped, and no more slices than fit; nil for a square picture.
  package var turned: EncoderConfiguration? {
    guard size.width != size.height else { return nil }
    var turned = self
    turned.size = PictureSize(width: size.height, height: size.width)
    turned.slices = min(slices, max(1, (turned.size.height + 15) / 16))
    return turned
  }
}

public import Media

/// A hardware encoder with another behind it: what the hardware fails on is encoded again by the other one, as a
/// key frame with its own parameter sets, in the same stream.
///
/// - After an error the hardware is opened again with a growing back-off, and taken back at a key frame that is due.
/// - A driver that hangs is left alone for a while, by whichever encoder shares its ``DriverHealth``, then opened anew on
///   another thread and taken back in the same way.
/// - Without a fall-back the first failure is the end: ``/Media/EncoderError/lost(reason:)``.
///
/// The fall-back is made and warmed up by ``prepare()`` (some 18 MB at 1280x720); or, with
/// ``Policy/keepsStandby`` off, when it is needed, and given up once the hardware is back.
public final class FailoverEncoder: VideoEncoder, @unchecked Sendable {
  // Sendable: used by one thread at a time, as `VideoEncoder` demands; the driver's thread has none of it.

  /// How the hardware and the fall-back are used.
  public struct Policy: Hashable, Sendable {
    /// How many frame intervals a driver may take for a frame before it counts as hung.
    public var hangLimit = 3
    /// How long a driver may take for the first frame after a rest of a second or more: a GPU that the kernel has
    /// suspended wakes up first. Less than half of what systemd's watchdog waits.
    public var wakingLimit = MediaTime(nanoseconds: 3_000_000_000)
    /// Whether the fall-back is kept warm while the hardware works.
    public var keepsStandby = true
    /// How long a driver may take to open and to encode its first picture.
    public var openingLimit = MediaTime(nanoseconds: 5_000_000_000)

    /// The values above.
    public init() {}

    /// The hang limits that are taken, in frame intervals.
    public static let hangLimits = 1...100
  }

  /// Makes a fall-back encoder.
  public typealias MakeFallback = @Sendable (EncoderConfiguration) throws(EncoderError) -> any VideoEncoder

  /// What is asked for.
  public private(set) var configuration: EncoderConfiguration
  /// What happened to it.
  public let events: EncoderEvents

  /// As it was at the start: parameter sets and level follow from it, whatever is asked for later.
  private var initial: EncoderConfiguration
  /// Of the nominal rate: measured at an encoder that is slow, the rate would forgive it its slowness.
  private let patience: DriverPatience
  private let policy: Policy
  private let health: DriverHealth
  private let library: String
  private let makeHardware: @Sendable () throws(EncoderError) -> any StagedVideoEncoder
  /// Nil while a driver that hung is left alone.
  private var driver: DriverThread?
  /// What happened on those that were abandoned.
  private var formerTotals = EncoderCounters()
  private let makeFallback: MakeFallback?
  /// What the hardware is that is in use, or was last; what stands behind it where there has been none.
  private var hardware: DriverThread.Description
  private var fallback: (any VideoEncoder)?
  private var usesHardware = true
  private var isStopped = false
  /// Whether the fall-back's next picture is its first one after the hardware's.
  private var needsKeyFrame = false
  /// Whether the hardware's next picture is its first one after the fall-back's. A frame that it does not turn is none.
  private var isRecovered = false
  private var switches = EncoderCounters()
  private let succession = IDRSuccession()

  /// Opens and warms up the hardware on a thread of its own.
  ///
  /// - Parameters:
  ///   - configuration: what either encoder is to make.
  ///   - library: what the hardware is, for messages.
  ///   - policy: how the hardware and the fall-back are used.
  ///   - health: the same for all encoders on one driver.
  ///   - events: where to tell what happens.
  ///   - fallback: makes the encoder behind it; nil for none.
  ///   - mayStartOnFallback: whether to begin with the fall-back, and tell so, where the hardware fails to open by what
  ///     may pass; it is tried again with the back-off then.
  ///   - hardware: opens the hardware; called again after a failure.
  /// - Throws: ``/Media/EncoderError`` where the hardware cannot be had, with the reason.
  public init(
    _ configuration: EncoderConfiguration, library: String, policy: Policy = Policy(),
    health: DriverHealth = DriverHealth(), events: EncoderEvents = EncoderEvents(), fallback: MakeFallback?,
    mayStartOnFallback: Bool = false, hardware: @escaping @Sendable () throws(EncoderError) -> any StagedVideoEncoder
  ) throws(EncoderError) {
    try configuration.check()
    guard Policy.hangLimits.contains(policy.hangLimit) else {
      throw .configuration(
        "a hang limit of \(policy.hangLimit) frames: choose \(Policy.hangLimits.lowerBound) to "
          + "\(Policy.hangLimits.upperBound)")
    }
    self.configuration = configuration
    initial = configuration
    let interval = configuration.frameRate.interval.nanoseconds
    patience = DriverPatience(
      working: MediaTime(nanoseconds: interval * Int64(policy.hangLimit)), waking: policy.wakingLimit)
    self.policy = policy
    makeFallback = fallback
    self.health = health
    self.events = events
    self.library = library
    makeHardware = hardware
    if mayStartOnFallback, health.reason != nil, let fallback {
      // Once it may be asked again, it is.
      let opened = try fallback(configuration)
      self.hardware = DriverThread.Description(of: opened)
      self.fallback = opened
      usesHardware = false
      needsKeyFrame = true
      return
    }
    let driver: DriverThread
    do throws(SystemFailure) {
      driver = try DriverThread(
        library: library, health: health, outlivesFirstFailure: mayStartOnFallback && fallback != nil,
        onRetryFailed: { events.add(.retryFailed(reason: $0, retry: $1)) },
        makeEncoder: hardware)
    } catch {
      throw .unavailable("no thread for \(library): \(error)")
    }
    do throws(EncoderError) {
      self.hardware = try driver.waitUntilOpen(within: policy.openingLimit)
    } catch {
      let isHung = if case .hung = error { true } else { false }
      do throws(EncoderError) {
        guard mayStartOnFallback, error.mayPass || isHung, let fallback else { throw error }
        let opened = try fallback(configuration)
        self.hardware = DriverThread.Description(of: opened)
        self.fallback = opened
      } catch {
        driver.stop()
        throw error
      }
      usesHardware = false
      needsKeyFrame = true
      events.add(
        .standbyWithoutHardware(
          size: configuration.size, reason: error, retry: isHung ? health.retryDelay : driver.retryDelay))
    }
    self.driver = driver
  }

  deinit {
    stop()
  }

  /// The encoder that is at work.
  public var name: String { usesHardware ? hardware.name : fallback?.name ?? hardware.name }

  /// Those of the encoder that is at work.
  public var parameterSets: ParameterSets {
    usesHardware ? hardware.parameterSets : fallback?.parameterSets ?? hardware.parameterSets
  }

  /// What the hardware lays by itself, while it is in use.
  public var turns: OrientationSet { usesHardware && health.reason == nil ? hardware.turns : [] }

  /// The hardware's, and the switches.
  public var counters: EncoderCounters {
    var sum = driver.map { $0.totals + formerTotals } ?? formerTotals
    sum.failovers = switches.failovers
    sum.hangs = switches.hangs
    sum.recoveries = switches.recoveries
    return sum
  }

  /// Warms up the fall-back, once more where it was flushed; the hardware has been since it was opened.
  ///
  /// - Throws: ``/Media/EncoderError`` where the fall-back cannot be had.
  public func prepare() throws(EncoderError) {
    guard !isStopped else { throw .stopped }
    if policy.keepsStandby { try openFallback() }
    try fallback?.prepare()
  }

  /// Encodes `frame` by the hardware, or where that fails by the fall-back; see ``/Media/VideoEncoder``.
  ///
  /// - Throws: ``/Media/EncoderError/frameSize(_:expected:)``, ``/Media/EncoderError/notTurned(_:reason:)`` for a frame
  ///   to be laid yet where the encoder at work does not do that (any more), ``/Media/EncoderError/lost(reason:)``, or
  ///   what the fall-back throws.
  public func encode(
    _ frame: borrowing Frame, keyFrame: Bool, to sink: any AccessUnitSink
  ) throws(EncoderError) {
    guard !isStopped else { throw .stopped }
    // Before the hardware sees it: a frame that is the caller's mistake is no failure of the hardware's.
    try frame.check(for: configuration.size)
    let reason = health.reason
    if usesHardware {
      // A connection from before a hang may wait for what hangs.
      if let reason { try failOver(reason) } else if driver?.isStale == true { try failOver(.stopped) }
    } else if reason == nil {
      if driver.map({ $0.isOver || $0.isStale }) ?? true {
        openAgain()
      } else if keyFrame {
        try lookForHardware(sink)
      }
    }
    if health.hangs > 0 { switches.hangs += health.takeHangs() }
    guard usesHardware, let driver else { return try encodeByFallback(frame, keyFrame: keyFrame, to: sink) }
    do throws(EncoderError) {
      try succession.pass(ofNewEncoder: isRecovered, keyFrame: keyFrame, to: sink) { keyFrame throws(EncoderError) in
        try driver.encode(frame, keyFrame: keyFrame, within: patience) { succession.take($0) }
      }
      isRecovered = false
    } catch {
      if case .notTurned(_, let reason) = error {
        // Not the encoder's failure: it goes on with the frame as soon as somebody has laid it.
        if !hardware.turns.isEmpty { events.add(.turningFailed(reason: reason)) }
        hardware.turns = []
        throw error
      }
      try failOver(error)
      try encodeByFallback(frame, keyFrame: true, to: sink)
    }
  }

  /// Changes both encoders; see ``/Media/VideoEncoder``.
  ///
  /// - Throws: ``/Media/EncoderError`` for an impossible value, or where the fall-back refuses.
  public func change(bitrate: Int, frameRate: FrameRate) throws(EncoderError) {
    guard !isStopped else { throw .stopped }
    var wanted = configuration
    wanted.bitrate = bitrate
    wanted.frameRate = frameRate
    try wanted.check()
    try fallback?.change(bitrate: bitrate, frameRate: frameRate)
    driver?.change(bitrate: bitrate, frameRate: frameRate)
    configuration = wanted
  }

  /// Changes the fall-back, or has the next one opened so; the hardware has no such presets. One that stands by and
  /// cannot change stays as it is.
  ///
  /// - Throws: ``/Media/EncoderError`` where the fall-back refuses.
  public func change(x264Preset: String) throws(EncoderError) -> Bool {
    guard !isStopped else { throw .stopped }
    let isChanged = try fallback?.change(x264Preset: x264Preset) ?? true
    guard isChanged || usesHardware else { return false }
    initial.x264Preset = x264Preset
    configuration.x264Preset = x264Preset
    return true
  }

  /// Lends what the fall-back holds back; hardware holds nothing.
  ///
  /// - Throws: ``/Media/EncoderError`` as the fall-back does.
  public func flush(deliver: (borrowing AccessUnit) -> Void) throws(EncoderError) {
    guard !isStopped else { throw .stopped }
    if usesHardware { return }
    try fallback?.flush {
      succession.note($0)
      deliver($0)
    }
  }

  /// Ends both encoders. A driver that does not come back within two seconds is left behind on its thread.
  public func stop() {
    guard !isStopped else { return }
    isStopped = true
    driver?.stop()
    fallback?.stop()
    fallback = nil
  }

  private func openFallback() throws(EncoderError) {
    guard fallback == nil, let makeFallback else { return }
    let opened = try makeFallback(initial)
    do throws(EncoderError) {
      try opened.prepare()
      if configuration != initial {
        try opened.change(bitrate: configuration.bitrate, frameRate: configuration.frameRate)
      }
    } catch {
      opened.stop()
      throw error
    }
    fallback = opened
  }

  /// Leaves the hardware, which failed here or hung under another encoder.
  private func failOver(_ reason: EncoderError) throws(EncoderError) {
    guard makeFallback != nil else {
      stop()
      throw .lost(reason: reason.description)
    }
    usesHardware = false
    needsKeyFrame = true
    switches.failovers += 1
    switches.hangs += health.takeHangs()
    do throws(EncoderError) {
      try openFallback()
    } catch {
      events.add(.failedTwice(reason: reason, fallback: error))
      throw error
    }
    switch reason {
    case .hung: tellHang(reason) { .failedOver(to: name, reason: reason, retry: $0) }
    // Another encoder on the same driver has told the hang.
    case .stopped: break
    default: events.add(.failedOver(to: name, reason: reason, retry: driver?.retryDelay ?? RetryBackOff.shortest))
    }
  }

  /// Tells of a hang, once for all encoders on the driver.
  private func tellHang(_ reason: EncoderError, _ event: (_ retry: MediaTime) -> EncoderEvent) {
    guard health.takeNotice() else { return }
    events.add(health.retryDelay.map(event) ?? .abandoned(to: name, reason: reason))
  }

  /// Opens the hardware anew on another thread, in the place of one that was abandoned.
  private func openAgain() {
    if let driver {
      formerTotals = formerTotals + driver.totals
      driver.stop()
    }
    driver = nil
    do throws(SystemFailure) {
      let events = events
      let driver = try DriverThread(
        library: library, health: health, isReplacement: true,
        onRetryFailed: { events.add(.retryFailed(reason: $0, retry: $1)) }, makeEncoder: makeHardware)
      if configuration != initial {
        driver.change(bitrate: configuration.bitrate, frameRate: configuration.frameRate)
      }
      self.driver = driver
    } catch {
      health.postpone()
    }
  }

  private func encodeByFallback(
    _ frame: borrowing Frame, keyFrame: Bool, to sink: any AccessUnitSink
  ) throws(EncoderError) {
    try openFallback()
    guard let fallback else { throw .stopped }
    // What looks ahead delivers it in another call, when it is too late to encode it once more.
    let isFirst = needsKeyFrame && configuration.lookahead == 0
    try succession.pass(ofNewEncoder: isFirst, keyFrame: keyFrame || needsKeyFrame, to: sink) {
      keyFrame throws(EncoderError) in try fallback.encode(frame, keyFrame: keyFrame, to: succession)
    }
    needsKeyFrame = false
  }

  /// Goes back to the hardware where it is ready, whose first picture is a key frame; leaves it alone where it hangs.
  private func lookForHardware(_ sink: any AccessUnitSink) throws(EncoderError) {
    guard let driver else { return }
    if driver.abandonReopening(after: policy.openingLimit) {
      let reason = EncoderError.hung(library: library, after: policy.openingLimit)
      tellHang(reason) { .retryFailed(reason: reason, retry: $0) }
    }
    guard let hardware = driver.ready else { return }
    // What the fall-back still holds comes before whatever the hardware makes.
    try fallback?.flush {
      succession.note($0)
      sink.take($0)
    }
    self.hardware = hardware
    usesHardware = true
    isRecovered = true
    needsKeyFrame = false
    switches.recoveries += 1
    events.add(.recovered(to: hardware.name))
    if !policy.keepsStandby {
      fallback?.stop()
      fallback = nil
    }
  }
}

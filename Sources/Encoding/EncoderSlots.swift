package import Media
import Platform

/// The closures and shared objects with which a lineup opens its encoders.
package struct EncoderMakers: Sendable {
  /// The name of the hardware's library, for messages.
  var library = ""
  var policy = EncoderLineup.Policy()
  /// The hangs of the driver, shared by all encoders on it.
  var health = DriverHealth()
  var events = EncoderEvents()
  var ledger = EncoderLedger()
  /// The quality levels of the hardware, as its last picture had them.
  package var levels = HardwareLevels()
  /// Receives the orientations that the hardware applies; nil if all frames come upright.
  var offer: TurnOffer?
  var software: EncoderLineup.MakeSoftware?
  var hardware: EncoderLineup.MakeHardware?

  /// Creates makers; without arguments, none that makes an encoder.
  package init(
    library: String = "", policy: EncoderLineup.Policy = EncoderLineup.Policy(), health: DriverHealth = DriverHealth(),
    events: EncoderEvents = EncoderEvents(), ledger: EncoderLedger = EncoderLedger(),
    levels: HardwareLevels = HardwareLevels(), offer: TurnOffer? = nil, software: EncoderLineup.MakeSoftware? = nil,
    hardware: EncoderLineup.MakeHardware? = nil
  ) {
    self.library = library
    self.policy = policy
    self.health = health
    self.events = events
    self.ledger = ledger
    self.levels = levels
    self.offer = offer
    self.software = software
    self.hardware = hardware
  }

  func openSoftware(_ configuration: EncoderConfiguration) throws(EncoderError) -> any VideoEncoder {
    guard let software else { throw .unavailable("no software encoder") }
    return try software(configuration)
  }
}

/// The two slots of a lineup for pictures of one shape: hardware on its own thread, and its software fallback.
package final class EncoderSlots: @unchecked Sendable {
  // Sendable: used by one thread at a time, first the standby's, then the one that encodes.

  /// The requested configuration.
  private(set) var configuration: EncoderConfiguration
  /// The slot that encodes.
  private(set) var live: LineupState.Kind
  /// `true` if the hardware was live and failed, and is not live again.
  private(set) var hasLeftHardware = false
  /// `true` if hardware is tried, or tried again.
  let hasHardware: Bool
  /// The hardware's thread; nil while a driver that hung is not called.
  package private(set) var driver: DriverThread?
  /// The time limits of the driver, which follow from the nominal frame rate. With a measured rate, a slow encoder
  /// would extend its own limit.
  let patience: DriverPatience

  private let makers: EncoderMakers
  /// The configuration at the start: the parameter sets and the level follow from it, whatever is requested later.
  private var initial: EncoderConfiguration
  private var software: (any VideoEncoder)?
  /// The properties of the hardware that is or was last in use; those of the software if no hardware was.
  private var description: DriverThread.Description
  private var rotator: FrameRotator?
  private var isStopped = false

  private init(
    _ configuration: EncoderConfiguration, _ makers: EncoderMakers, _ description: DriverThread.Description,
    driver: DriverThread?, software: (any VideoEncoder)?, hasHardware: Bool
  ) {
    self.configuration = configuration
    initial = configuration
    self.makers = makers
    self.description = description
    self.driver = driver
    self.software = software
    self.hasHardware = hasHardware
    live = software == nil ? .hardware : .software
    let interval = configuration.frameRate.interval.nanoseconds
    patience = DriverPatience(
      working: Duration(nanoseconds: interval * Int64(makers.policy.hangLimit)), waking: makers.policy.wakingLimit)
  }

  /// Creates slots in which `software` encodes. The hardware is not open yet, or there is none.
  package convenience init(_ software: any VideoEncoder, _ makers: EncoderMakers, hasHardware: Bool = false) {
    self.init(
      software.configuration, makers, DriverThread.Description(of: software), driver: nil, software: software,
      hasHardware: hasHardware)
  }

  deinit {
    stop()
  }

  // MARK: Opening

  /// Opens the hardware on its own thread, or software if there is no hardware.
  ///
  /// Standby slots (`isStandby`) start with software and report it if the hardware hangs or fails: rotation must work
  /// even if the hardware limits the size in one dimension. A failure that may pass is retried with the back-off.
  ///
  /// - Throws: ``/Media/EncoderError`` with the reason if no encoder can be opened.
  static func open(
    _ configuration: EncoderConfiguration, _ makers: EncoderMakers, isStandby: Bool = false
  ) throws(EncoderError) -> EncoderSlots {
    try configuration.check()
    try makers.policy.check()
    guard makers.hardware != nil else { return EncoderSlots(try makers.openSoftware(configuration), makers) }
    let canBeginOnSoftware = isStandby && makers.software != nil
    if isStandby, let reason = makers.health.reason {
      guard canBeginOnSoftware else { throw reason }
      // The hardware is opened once the driver may be called again.
      return EncoderSlots(try makers.openSoftware(configuration), makers, hasHardware: true)
    }
    var opened: DriverThread?
    do throws(EncoderError) {
      let driver = try DriverThread(configuration, makers, outlivesFirstFailure: canBeginOnSoftware)
      opened = driver
      let description = try driver.waitUntilOpen(within: makers.policy.openingLimit)
      return EncoderSlots(configuration, makers, description, driver: driver, software: nil, hasHardware: true)
    } catch {
      let isHung = if case .hung = error { true } else { false }
      let isTriedAgain = error.mayPass || isHung
      do throws(EncoderError) {
        guard canBeginOnSoftware else { throw error }
        let slots = EncoderSlots(try makers.openSoftware(configuration), makers, hasHardware: isTriedAgain)
        let retry = isHung ? makers.health.retryDelay : opened?.retryDelay
        makers.events.add(
          .standbyWithoutHardware(size: configuration.size, reason: error, retry: isTriedAgain ? retry : nil))
        if isTriedAgain { slots.driver = opened } else { opened?.stop() }
        return slots
      } catch {
        opened?.stop()
        throw error
      }
    }
  }

  // MARK: What is live

  /// The name of the live encoder.
  var name: String { live == .software ? software?.name ?? description.name : description.name }

  /// The parameter sets of the live encoder.
  var parameterSets: ParameterSets {
    live == .software ? software?.parameterSets ?? description.parameterSets : description.parameterSets
  }

  /// The orientations that the hardware applies; empty while the hardware is not live.
  var turns: OrientationSet { live == .hardware && makers.health.reason == nil ? description.turns : [] }

  /// `true` if a call by the present connection to the driver might hang, or if a connection is needed and missing.
  var isStale: Bool {
    guard let driver else { return true }
    return live == .software && driver.isOver || driver.isStale
  }

  // MARK: Work

  /// Prepares the software, again if it was flushed, and the rotation of frames. The hardware is prepared when it is
  /// opened.
  ///
  /// - Throws: ``/Media/EncoderError`` if the software cannot be opened.
  func prepare() throws(EncoderError) {
    if makers.policy.keepsStandby, makers.software != nil { try openSoftware() }
    try software?.prepare()
    guard makers.offer != nil else { return }
    if rotator == nil { rotator = try FrameRotator(size: configuration.size) }
    tellRotations()
  }

  /// Publishes the orientations that the live encoder applies.
  func tellRotations() { makers.offer?.set(turns, for: configuration.size) }

  /// Records that the hardware no longer rotates frames. Returns `true` if it did before.
  func noteRotationFailed() -> Bool {
    defer { description.turns = [] }
    return !description.turns.isEmpty
  }

  /// Returns `frame`, rotated upright on the CPU.
  ///
  /// - Throws: ``/Media/EncoderError`` if memory is short.
  func upright(_ frame: borrowing Frame) throws(EncoderError) -> Frame {
    if rotator == nil { try prepare() }
    guard let rotator else { throw .notTurned(frame.orientation, reason: "the encoder does not rotate") }
    return try rotator.upright(frame)
  }

  /// Changes both encoders; see ``/Media/VideoEncoder``.
  ///
  /// - Throws: ``/Media/EncoderError`` for an impossible value, or if the software refuses.
  func change(bitrate: Int, frameRate: FrameRate) throws(EncoderError) {
    var wanted = configuration
    wanted.bitrate = bitrate
    wanted.frameRate = frameRate
    try wanted.check()
    try software?.change(bitrate: bitrate, frameRate: frameRate)
    driver?.change(bitrate: bitrate, frameRate: frameRate)
    configuration = wanted
  }

  /// Changes the effort of the software, the threads of the software that is opened next, and the quality level of the hardware.
  /// A software standby that cannot change stays as it is. Returns `false` if other slots are needed.
  func change(effort: EncodingEffort?, vaapiQuality: Int?, threads: Int) -> Bool {
    // x264 has the threads that it was opened with.
    if threads != configuration.threads, live == .software { return false }
    let isOtherLevel = vaapiQuality != configuration.vaapiQuality
    if isOtherLevel, live == .hardware, makers.levels.isFixed { return false }
    do throws(EncoderError) {
      guard try software?.change(effort: effort) ?? true || live == .hardware else { return false }
    } catch {
      // The creation of other slots reports why they cannot be had.
      return false
    }
    (initial.effort, initial.threads) = (effort, threads)
    (configuration.effort, configuration.threads) = (effort, threads)
    if isOtherLevel {
      driver?.change(vaapiQuality: vaapiQuality)
      note(vaapiQuality: vaapiQuality)
    }
    return true
  }

  /// Notes the quality level with which the hardware encodes, or is opened next.
  func note(vaapiQuality: Int?) {
    initial.vaapiQuality = vaapiQuality
    configuration.vaapiQuality = vaapiQuality
  }

  /// Lends the pictures that the software holds back; hardware holds none.
  ///
  /// - Throws: ``/Media/EncoderError`` as the software does.
  func flush(deliver: (borrowing AccessUnit) -> Void) throws(EncoderError) {
    if live == .software { try software?.flush(deliver: deliver) }
  }

  /// Ends both encoders. A driver that does not return within two seconds is abandoned on its thread.
  func stop() {
    guard !isStopped else { return }
    isStopped = true
    makers.offer?.set([], for: configuration.size)
    driver?.stop()
    software?.stop()
    software = nil
  }

  // MARK: From one to the other

  /// Returns the software, prepared if this call opened it.
  ///
  /// - Throws: ``/Media/EncoderError`` if the software cannot be opened.
  @discardableResult func openSoftware() throws(EncoderError) -> any VideoEncoder {
    if let software { return software }
    let opened = try makers.openSoftware(initial)
    do throws(EncoderError) {
      try opened.prepare()
      if configuration != initial {
        try opened.change(bitrate: configuration.bitrate, frameRate: configuration.frameRate)
      }
    } catch {
      opened.stop()
      throw error
    }
    software = opened
    return opened
  }

  /// Makes the software live.
  func leaveHardware() { (live, hasLeftHardware) = (.software, true) }

  /// Makes the hardware live again; `description` has its properties.
  func takeBack(_ description: DriverThread.Description) {
    self.description = description
    (live, hasLeftHardware) = (.hardware, false)
    guard !makers.policy.keepsStandby else { return }
    software?.stop()
    software = nil
  }

  /// Opens the hardware again on another thread, which replaces an abandoned one.
  func reopen() {
    driver?.stop()
    driver = nil
    do throws(EncoderError) {
      let driver = try DriverThread(initial, makers, isReplacement: true)
      if configuration != initial {
        driver.change(bitrate: configuration.bitrate, frameRate: configuration.frameRate)
      }
      self.driver = driver
    } catch {
      makers.health.postpone()
    }
  }
}

public import Media
import Platform

extension EncoderLineup {
  // MARK: Hardware and software

  /// Leaves, reopens or takes back the hardware before a frame if that is due. `isDue` is `true` if the frame is a key
  /// frame.
  func mindHardware(isDue: Bool, _ sink: any AccessUnitSink) throws(EncoderError) {
    let health = makers.health
    let reason = health.reason
    switch LineupState.step(active.live, isLeftAlone: reason != nil, isStale: active.isStale, isDue: isDue) {
    case .stay: break
    // A connection that was opened before a hang may wait for the hung one.
    case .leave: try failOver(reason ?? .stopped)
    case .reopen: active.reopen()
    case .takeBack: try takeBack(sink)
    }
    if health.hangs > 0 { state.note(hangs: health.takeHangs()) }
  }

  /// Fails over from the hardware, which failed here or hung under another encoder.
  func failOver(_ reason: EncoderError) throws(EncoderError) {
    guard makers.software != nil else {
      stop()
      throw .lost(reason: reason.description)
    }
    active.leaveHardware()
    state.noteFailover(hangs: makers.health.takeHangs())
    do throws(EncoderError) {
      try active.openSoftware()
    } catch {
      events.add(.failedTwice(reason: reason, fallback: error))
      throw error
    }
    switch reason {
    case .hung: tellHang(reason) { .failedOver(to: name, reason: reason, retry: $0) }
    // Another encoder on the same driver has reported the hang.
    case .stopped: break
    default:
      events.add(.failedOver(to: name, reason: reason, retry: active.driver?.retryDelay ?? RetryBackOff.shortest))
    }
  }

  /// Reports a hang, once for all encoders on the driver.
  private func tellHang(_ reason: EncoderError, _ event: (_ retry: Duration) -> EncoderEvent) {
    guard makers.health.takeNotice() else { return }
    events.add(makers.health.retryDelay.map(event) ?? .abandoned(to: name, reason: reason))
  }

  /// Switches back to the hardware if it is ready, or abandons it if it hangs.
  private func takeBack(_ sink: any AccessUnitSink) throws(EncoderError) {
    guard let driver = active.driver else { return }
    let limit = makers.policy.openingLimit
    if driver.abandonReopening(after: limit) {
      let reason = EncoderError.hung(library: makers.library, after: limit)
      tellHang(reason) { .retryFailed(reason: reason, retry: $0) }
    }
    guard let description = driver.ready else { return }
    // The pictures that the software holds back come before those of the hardware.
    try flush { sink.take($0) }
    active.takeBack(description)
    state.noteRecovery()
    events.add(.recovered(to: name))
  }

  // MARK: From one shape to another

  /// Returns the frame size of the live encoder, or of the encoder that takes over with the next frame.
  public func frameSize(for rotated: PictureSize) -> PictureSize {
    if state.isSettled(for: rotated) { return rotated }
    return state.frameSize(for: rotated) { pending in
      guard let standby else { return false }
      if standby.isReady(for: pending) { return true }
      let now = Instant.now()
      if now >= nextAttempt, standby.hasFailed {
        nextAttempt = now + Duration(seconds: 10)
        standby.perform(.make(pending))
      }
      return false
    }
  }

  /// Requests encoders with these restrictions; they take over with one of the next frames once they are ready. If only
  /// the effort, the quality level or the number of threads differs and the live encoder accepts that, the live encoder
  /// changes. Does nothing after ``stop()``, or for pictures of one size.
  public func restrict(_ restrictions: EncoderRestrictions) {
    guard !isStopped, let standby else { return }
    hasStandby = true
    let slots = active
    standby.perform(
      state.restrict(restrictions) {
        slots.change(effort: $0.effort, vaapiQuality: $0.vaapiQuality, threads: $0.threads)
      })
  }

  /// Has other slots made for a quality level that the driver has refused in mid-stream.
  func replaceRefusingHardware() {
    guard let standby else { return }
    let level = makers.levels.levels?.present
    active.note(vaapiQuality: level)
    guard let task = state.noteRefusal(keeping: level) else { return }
    hasStandby = true
    standby.perform(task)
  }

  /// Returns `true` if standby slots of `configuration` may take over: prepared, and not software where hardware encodes and only
  /// its quality level is another one.
  func isReady(_ configuration: EncoderConfiguration) -> Bool {
    let isForLevel =
      active.live == .hardware && configuration.vaapiQuality != active.configuration.vaapiQuality
      && configuration.size == active.configuration.size && configuration.color == active.configuration.color
    return standby?.isReady(for: configuration, needsHardware: isForLevel) ?? false
  }

  /// Makes the standby slots the active ones. The former slots become the standby slots if they have the shape for it.
  func change(to next: LineupState.Shape, _ sink: any AccessUnitSink) throws(EncoderError) {
    guard let standby else { return }
    hasStandby = true
    let former = active
    let slots = try standby.take(or: next.configuration, within: makers.policy.preparationLimit)
    do throws(EncoderError) {
      let (rates, own) = (former.configuration, slots.configuration)
      if own.bitrate != rates.bitrate || own.frameRate != rates.frameRate {
        try slots.change(bitrate: rates.bitrate, frameRate: rates.frameRate)
      }
    } catch {
      standby.perform(state.standby(insteadOf: next), slots)
      throw error
    }
    var isSound = true
    do throws(EncoderError) {
      try flush { sink.take($0) }
    } catch {
      isSound = false
      events.add(.flushFailed(reason: error))
    }
    active = slots
    // Slots of another effort or size have opened the hardware anew, and replace those that await it.
    if former.hasLeftHardware, slots.live == .hardware, !state.isOtherOrientation(next) {
      state.noteRecovery()
      events.add(.recovered(to: name))
    }
    standby.perform(state.change(to: next, former: isSound ? former.configuration : nil), former)
  }
}

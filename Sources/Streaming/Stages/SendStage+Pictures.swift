import CTracing
import Media
import Platform
import RTP
import Synchronization

/// The handling of pictures on the send thread.
extension SendStage {
  /// Prepares for a picture that begins.
  func begin(_ picture: CodedPicture, at now: Instant) {
    hasHadPicture = true
    for output in outputs { output.endPacing(at: now) }
    recordLastFrame(at: now)
    makeRoom()
    if !parting.isEmpty { partViewers(at: now) }
    for output in outputs
    where output.renditions?.present != .small
      && output.changeSourceIfDue(beforeKeyFrame: picture.part.isKeyFrame, at: now)
    {
      // The packet before the picture is one that receivers can lose.
      parameterSetCache?.invalidate()
    }
    openOutcome = Outcome()
    if repeatsParameterSets.exchange(false, ordering: .relaxed) { parameterSetCache?.invalidate() }
  }

  /// Sends the new part of a picture, mostly all of it.
  ///
  /// - Returns: The time at which it was sent.
  func send(_ picture: CodedPicture, at begin: Instant) -> Instant {
    let part = picture.part
    let before = openOutcome.packets
    openOutcome.packetizing = .zero
    if part.isFirstPart {
      openOutcome.lacksParameterSets = complete(part) { unit, isAnotherStream in
        openOutcome.isAnotherStream = isAnotherStream
        sendToAll(unit, picture, at: begin)
      }
      if part.isKeyFrame { limiter.keyFrameSent() }
    } else {
      sendToAll(part, picture, at: begin)
    }
    if part.isLastPart, !part.isWhole, outputs.contains(where: { !$0.takesParts }) {
      if openOutcome.lacksParameterSets { parameterSetCache?.invalidate() }
      complete(picture.accessUnit) { unit, _ in sendToAll(unit, picture, at: .now()) }
    }
    var end = begin
    if before == 0, openOutcome.packets > 0 {
      end = .now()
      let latency = end - part.captured
      statistics.send.withLock { $0.toFirstPacket.record(latency) }
    }
    guard part.isLastPart else { return end }
    // A transport stream's clock goes with the whole picture.
    nextKeepAlive = begin + Self.keepAliveInterval
    openOutcome.isTaken = picture.holders > 1 || outputs.contains { $0.isReplaying }
    let times = FrameTimes(
      timestamp: part.timestamp, captured: part.captured, encoded: picture.encoded, begin: begin,
      packetizing: openOutcome.packetizing)
    let isSent = openOutcome.packets > 0 || openOutcome.isTaken
    // One reading of the clock is enough for a picture that was sent whole.
    if before > 0 || openOutcome.packets == 0 || !part.isWhole { end = .now() }
    pictures.release(picture)
    followNetworks(at: begin)
    askForKeyFrames(at: begin)
    statistics.send.withLock { $0.pictures += 1 }
    guard openOutcome.isWanted else {
      FrameMark.skipped(times.timestamp, .unsent)
      return end
    }
    if isSent {
      lastFrame = times
      recordLastFrame(at: end)
    } else {
      FrameMark.dropped(times.timestamp, .network)
      statistics.send.withLock { $0.unsent += 1 }
    }
    return end
  }

  /// Ends a picture whose encoder has failed in the middle of it. The next one is a key frame.
  func breakOff(_ picture: CodedPicture) {
    for output in outputs { output.breakOff() }
    pictures.release(picture)
    statistics.send.withLock { $0.pictures += 1 }
  }

  /// Sends the sound that has come to the streams that carry it beside the pictures.
  func send(from sound: CodedPictureQueue, at now: Instant) {
    while case .picture(let unit) = sound.take() {
      for output in outputs where output.carriesSound && !output.viewers.isEmpty {
        _ = output.send(sound: unit.accessUnit, at: now)
      }
      sound.release(unit)
    }
  }

  /// Lends a picture, or the first part of one, with the parameter sets in front where it needs them. `isAnotherStream`
  /// is `true` if the sets differ from those before.
  ///
  /// - Returns: `true` if the picture lacked them.
  @discardableResult
  func complete(
    _ unit: borrowing AccessUnit, _ body: (borrowing AccessUnit, _ isAnotherStream: Bool) -> Void
  ) -> Bool {
    guard let parameterSetCache else {
      body(unit, false)
      return false
    }
    let count = unit.nalUnits.count
    var isCompleted = false
    do throws(ParameterSetError) {
      try parameterSetCache.complete(unit) { completed in
        isCompleted = completed.nalUnits.count > count
        body(completed, noteParameterSets(of: parameterSetCache))
      }
    } catch {
      // More NAL units, or longer sets, than the cache holds: our encoders make none such, and a receiver may cope.
      body(unit, false)
    }
    return isCompleted
  }

  /// Records the time that the last frame has taken, once all of it has left, except what waits in a viewer's way.
  func recordLastFrame(at end: Instant) {
    guard let frame = lastFrame, !outputs.contains(where: \.isPacing) else { return }
    lastFrame = nil
    nightjar_frame_sent(frame.timestamp.nanoseconds, frame.captured.nanoseconds, end.nanoseconds)
    statistics.send.withLock {
      $0.keyFrameRequests = (limiter.requests, limiter.granted)
      $0.frames += 1
      $0.queue.record(frame.begin - frame.encoded)
      $0.packetizing.record(frame.packetizing)
      $0.latency.record(end - frame.begin - frame.packetizing)
      $0.total.record(end - frame.captured)
      $0.recent.record(end - frame.captured)
      if $0.firstPacket == nil { $0.firstPacket = end }
    }
  }

  /// Sends a picture to all; or sends a part of one to the streams that take parts, and after the last part the whole
  /// picture to the others.
  func sendToAll(
    _ unit: borrowing AccessUnit, _ picture: CodedPicture, at now: Instant
  ) {
    let usualBytes = Double(bitrate.load(ordering: .relaxed)) / 8 * frameInterval.seconds
    for output in outputs where output.viewers.isEmpty { output.skip() }
    for output in outputs
    where !output.viewers.isEmpty && (picture.part.isWhole || output.takesParts != unit.isWhole)
      && takes(output, unit, of: .full, at: now)
    {
      openOutcome.isWanted = true
      // The picture of an orientation switch or of a fail-over is late already.
      let spread = openOutcome.isAnotherStream ? .zero : Duration(seconds: frameInterval.seconds * pacing)
      let plan = PacedFrame.Plan(spread: spread, usual: Int(usualBytes) / output.kind.packetSize)
      // The packetizing of each stream is measured from here.
      let begin = output === outputs.first ? now : .now()
      let sent = output.send(unit, in: picture, plan, at: begin)
      openOutcome.packets += sent.packets
      openOutcome.packetizing = openOutcome.packetizing + sent.packetizing
    }
  }

  /// The outcome of sending a picture.
  struct Outcome {
    /// The number of packets that left at once, over all viewers.
    var packets = 0
    /// `true` if it is for some viewer.
    var isWanted = false
    /// `true` if some viewer has it on its way.
    var isTaken = false
    /// The time that packetizing took. For a picture in parts, that of its last part: the others were packetized while
    /// the picture was coded.
    var packetizing = Duration.zero
    /// `true` if its parameter sets differ from those before, as from another encoder.
    var isAnotherStream = false
    /// `true` if the parameter sets had to be put before it.
    var lacksParameterSets = false
  }

  /// Gives back the oldest picture that viewers keep, where they keep too many.
  func makeRoom() {
    guard let oldest = pictures.oldestTaken(beyond: heldLimit) else { return }
    for output in outputs { output.letGo(of: oldest) }
  }

  /// Requests a key frame for viewers that have lost frames and could take some again.
  func askForKeyFrames(at now: Instant) {
    for output in outputs where output.keyFrameRule == .keyFrames {
      for viewer in output.viewers where viewer.wantsKeyFrame(at: now) { requestKeyFrame(for: output, at: now) }
    }
  }

  /// Returns `true` if there were new parameter sets since the last call, as from another encoder.
  private func noteParameterSets(of cache: ParameterSetCache) -> Bool {
    guard cache.changes != notedChanges else { return false }
    notedChanges = cache.changes
    return cache.isComplete
  }
}

import CTracing
import FrameTracing
import Media
import RTP
import Synchronization

/// What becomes of a picture on the send thread.
extension SendStage {
  /// Readies for a picture that begins.
  func begin(_ picture: CodedPicture, at now: MediaTime) {
    hasHadPicture = true
    for output in outputs { output.endPacing(at: now) }
    recordLastFrame(at: now)
    makeRoom()
    for output in outputs where output.changeSourceIfDue(beforeKeyFrame: picture.part.isKeyFrame, at: now) {
      // In front of the picture: a packet that nobody misses.
      parameterSetCache.invalidate()
    }
    openOutcome = Outcome()
    if repeatsParameterSets.exchange(false, ordering: .relaxed) { parameterSetCache.invalidate() }
  }

  /// Sends what is new of a picture, mostly all of it.
  ///
  /// - Returns: When it was sent.
  func send(_ picture: CodedPicture, at begin: MediaTime) -> MediaTime {
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
      if openOutcome.lacksParameterSets { parameterSetCache.invalidate() }
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
    if picture.holders > 1 { held.append(picture) }
    let times = FrameTimes(
      timestamp: part.timestamp, captured: part.captured, encoded: picture.encoded, begin: begin,
      packetizing: openOutcome.packetizing)
    let isSent = openOutcome.packets > 0 || openOutcome.isTaken
    // One look at the clock is enough for a picture that was sent whole.
    if before > 0 || openOutcome.packets == 0 || !part.isWhole { end = .now() }
    pictures.release(picture)
    askForKeyFrames(at: begin)
    statistics.send.withLock { $0.pictures += 1 }
    guard !viewers.isEmpty else {
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

  /// Ends a picture whose encoder has failed in its middle. The next one is a key frame.
  func breakOff(_ picture: CodedPicture) {
    for output in outputs { output.breakOff() }
    if picture.holders > 1 { held.append(picture) }
    pictures.release(picture)
    statistics.send.withLock { $0.pictures += 1 }
  }

  /// Lends a picture, or the first part of one, with the parameter sets in front where it needs them, and whether they
  /// are others than before; returns whether it lacked them.
  @discardableResult
  func complete(
    _ unit: borrowing AccessUnit, _ body: (borrowing AccessUnit, _ isAnotherStream: Bool) -> Void
  ) -> Bool {
    let count = unit.nalUnits.count
    var isCompleted = false
    do throws(ParameterSetError) {
      try parameterSetCache.complete(unit) { completed in
        isCompleted = completed.nalUnits.count > count
        body(completed, noteParameterSets())
      }
    } catch {
      // More NAL units, or longer sets, than the cache holds: no encoder of ours makes them, and a receiver may cope.
      body(unit, false)
    }
    return isCompleted
  }

  /// Records how long the last frame has taken once all of it that is not in anybody's way has left.
  func recordLastFrame(at end: MediaTime) {
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

  /// Sends a picture to all; or a part of one to those that take parts, and where it was the last, all of it to the
  /// others.
  func sendToAll(
    _ unit: borrowing AccessUnit, _ picture: CodedPicture, at now: MediaTime
  ) {
    let usualBytes = Double(bitrate.load(ordering: .relaxed)) / 8 * frameInterval.seconds
    for output in outputs where output.viewers.isEmpty { output.skip() }
    for output in outputs where !output.viewers.isEmpty && (picture.part.isWhole || output.takesParts != unit.isWhole) {
      // The picture of an orientation switch or of a fail-over comes late as it is.
      let spread = openOutcome.isAnotherStream ? .zero : MediaTime(seconds: frameInterval.seconds * pacing)
      let plan = PacedFrame.Plan(spread: spread, usual: Int(usualBytes) / output.kind.packetSize)
      // Each one's own packetizing is measured from here.
      let begin = output === outputs.first ? now : .now()
      let sent = output.send(unit, in: picture, plan, at: begin)
      openOutcome.packets += sent.packets
      openOutcome.packetizing = openOutcome.packetizing + sent.packetizing
    }
  }

  /// What became of a picture.
  struct Outcome {
    /// Packets that left at once, over all viewers.
    var packets = 0
    /// Whether some viewer has it on its way.
    var isTaken = false
    /// How long packetizing took, of its last part where it came in parts: what came before was done while it was coded.
    var packetizing = MediaTime.zero
    /// Whether its parameter sets are others than before, as from another encoder.
    var isAnotherStream = false
    /// Whether the parameter sets had to be put before it.
    var lacksParameterSets = false
  }

  /// Gives back the oldest picture that viewers keep, where they keep too many.
  func makeRoom() {
    guard held.count >= heldLimit, let oldest = held.first else { return }
    for output in outputs { output.letGo(of: oldest) }
    held.removeFirst()
  }

  /// Viewers that have lost frames and could take some again.
  func askForKeyFrames(at now: MediaTime) {
    for output in outputs {
      for viewer in output.viewers where viewer.wantsKeyFrame(at: now) {
        if limiter.request(at: now) { requests.setKeyFrame() }
      }
    }
  }

  /// Takes over new parameter sets; whether there were, as from another encoder.
  func noteParameterSets() -> Bool {
    guard parameterSetCache.changes != notedChanges else { return false }
    notedChanges = parameterSetCache.changes
    guard let sets = parameterSetCache.parameterSets else { return false }
    currentParameterSets.withLock { $0 = (sets, $0.changes + 1) }
    return true
  }
}

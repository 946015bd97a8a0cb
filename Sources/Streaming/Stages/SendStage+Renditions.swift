import CTracing
import Media
import Platform
import RTP
import Synchronization

/// The small rendition, for viewers whose networks take less than the floor.
extension SendStage {
  /// The bits a second on the network that the small rendition has at its full bitrate.
  var wantedSmallBandwidth: Double {
    Double(SmallRendition.bitrate(of: bitrate.load(ordering: .relaxed))) / Self.payloadShare
  }

  /// The limit in bits a second of a network that has shown none, when its viewer returns to full pictures. The limit is clearly above
  /// the least bitrate of full pictures; the small pictures have proved nothing above that.
  private var provenBandwidth: Double {
    Double(floor(hasSmall: true)) / Self.payloadShare * RenditionChoice.strongShare
  }

  /// Returns `true` if the viewers of a stream can get the small rendition: one viewer at a time, or each in a stream of its own.
  /// Under a key that several viewers share, two streams of one source would reveal both (RFC 3711 section 9.1).
  func canChange(_ output: RTPOutput) -> Bool {
    output.keyFrameRule == .keyFrames && output.kind.payload == guestPayload
      && (output.kind.protection == nil || output.viewers.count == 1)
  }

  /// Chooses the rendition for a viewer whose network has shown a limit, or that has another rendition, by what its network takes.
  ///
  /// - Parameter needed: the bits a second that the full rendition has at least.
  func chooseRendition(
    for viewer: Viewer, _ bandwidth: ViewerBandwidth, of output: RTPOutput, _ small: SmallRendition, needed: Double,
    at now: Instant
  ) {
    guard canChange(output), small.isPossible(at: now), !viewer.feedback.isGroup(at: now) else {
      guard viewer.choice.rendition == .small else { return }
      viewer.choice.reset()
      bandwidth.bound(to: provenBandwidth, at: now)
      output.renditions?.want(.full, at: now)
      return
    }
    // Of a viewer that is stopped, or no longer reports, nothing is known: it keeps what it has.
    guard !bandwidth.isStopped, !bandwidth.isSilent(at: now),
      !bandwidth.isLimited || viewer.target(at: now) != nil, viewer.hasBegun, !viewer.isCatchingUp
    else { return }
    let before = viewer.choice.rendition
    let rendition = viewer.choice.choose(
      limit: bandwidth.estimate.limit, decreases: bandwidth.estimate.decreases, needed: needed, at: now)
    output.renditions?.want(rendition, at: now)
    guard rendition != before else { return }
    if rendition == .full {
      // A network without a limit has proved only that it takes the small pictures, and what it was last measured to take.
      bandwidth.bound(to: provenBandwidth, at: now)
      if viewer.choice.isTry { bandwidth.tryRate(needed, at: now) }
    }
    if rendition == .small, output.renditions == nil { parting.append(viewer.id) }
  }

  /// The most viewers that have streams of their own beside a shared one. The others lose groups of pictures instead.
  static let ownStreamLimit = 32

  /// `true` if another viewer may have a stream of its own.
  var hasRoomForOwnStream: Bool { outputs.count { $0.isOwn } < Self.ownStreamLimit }

  /// Gives a viewer that is to change a stream of its own, between two pictures. One at a picture: the others wait meanwhile.
  func partViewers(at now: Instant) {
    var hasParted = false
    while !hasParted, let id = parting.popLast() {
      guard let (viewer, output) = viewers[id], viewer.choice.rendition == .small, canChange(output) else { continue }
      defer { viewers[id]?.output.renditions?.want(.small, at: now) }
      guard output.renditions == nil else { continue }
      guard output.kind.protection == nil, output.kind.viewer == nil else {
        output.renditions = RenditionSwitch(frameInterval: frameInterval, after: output.lastKeyFramePicture)
        continue
      }
      var kind = output.kind
      kind.viewer = id
      // The packet size was good for the stream before.
      guard hasRoomForOwnStream,
        let own = try? RTPOutput(
          kind, continuing: output, canonicalName: canonicalName, bitrate: bitrate.load(ordering: .relaxed),
          keeps: viewer.transport.losesBursts ? .smallSecond : .nothing, pictures: pictures, blocked: blocked, sending,
          at: now)
      else {
        viewer.choice.refuse(at: now)
        continue
      }
      own.renditions = RenditionSwitch(frameInterval: frameInterval, after: output.lastKeyFramePicture)
      output.release(viewer)
      own.takeOver(viewer)
      viewers[id] = (viewer, own)
      outputs.append(own)
      hasParted = true
      letGoIfUnwatched(output)
      noteStreams()
    }
  }

  /// Has the encoder of the small rendition made while a viewer needs it, and requests the key frames at which streams change.
  func advanceRenditions(_ small: SmallRendition, at now: Instant) {
    for output in outputs {
      guard let renditions = output.renditions, !output.viewers.isEmpty else { continue }
      guard renditions.isSmall || renditions.wanted == .small else { continue }
      guard small.isPossible(at: now) else {
        endSmall(output, isMissed: false, at: now)
        continue
      }
      // The viewer of a protected stream that needed small pictures may have left it to another one.
      if !canChange(output) || !output.viewers.contains(where: { $0.choice.rendition == .small }) {
        output.renditions?.want(.full, at: now)
      }
      // The encoder is not kept for a viewer that its circuit breaker has stopped.
      if !output.viewers.allSatisfy(\.isStopped) { small.need(at: now) }
      if let since = renditions.leavesOutSince, now - since > RenditionSwitch.patience {
        endSmall(output, isMissed: true, at: now)
      } else if renditions.lacksKeyFrame {
        if smallLimiter.request(at: now) { small.requests.setKeyFrame() }
      } else if let since = renditions.waitsSince, renditions.leavesOutSince == nil {
        switch renditions.wanted {
        case .small: if small.isReady, smallLimiter.request(at: now) { small.requests.setKeyFrame() }
        case .full:
          // The clock mostly makes one soon, and a request would cost all the other viewers one.
          if now - since > RenditionSwitch.returnPatience, limiter.request(at: now) { requests.setKeyFrame() }
        }
      }
    }
  }

  /// Goes on with full pictures, from the next key frame on: what the viewer has is of no use for the others.
  ///
  /// - Parameter isMissed: `true` if a small key frame that was announced has not come.
  private func endSmall(_ output: RTPOutput, isMissed: Bool, at now: Instant) {
    let wasSmall = output.renditions?.isSmall == true
    output.renditions?.giveUp()
    for viewer in output.viewers {
      if isMissed {
        viewer.choice.refuse(at: now)
        small?.noteMissed()
        viewer.figures.update { $0.smallMissed += 1 }
      } else {
        viewer.choice.reset()
      }
      if wasSmall { viewer.bandwidth?.bound(to: provenBandwidth, at: now) }
      noteRendition(.full, of: viewer)
      if wasSmall { viewer.fallBehind() }
    }
  }

  /// Returns `true` if a stream takes the picture that begins with `unit`, or the part of it.
  func takes(_ output: RTPOutput, _ unit: borrowing AccessUnit, of source: Rendition, at now: Instant) -> Bool {
    guard let before = output.renditions?.present else { return source == .full }
    guard !output.isInPicture else { return source == before }
    guard unit.isFirstPart else { return false }
    let isLosing = output.viewers.contains { $0.awaitsKeyFrame }
    let isTaken =
      output.renditions?.takes(
        unit, of: source, keyFrameTime: small?.keyFrameTime, after: output.lastPicture?.timestamp, isLosing: isLosing,
        at: now) == true
    if let lost = output.renditions?.takeLost(), lost > 0 {
      for viewer in output.viewers where viewer.hasBegun { viewer.figures.update { $0.framesDropped += lost } }
    }
    if isTaken, source != before { for viewer in output.viewers { noteRendition(source, of: viewer) } }
    return isTaken
  }

  /// Tells those who look which rendition a viewer gets.
  func noteRendition(_ rendition: Rendition, of viewer: Viewer) {
    let size = rendition == .small ? small?.configuration.size : nil
    let height = size.map { min($0.width, $0.height) }
    nightjar_rendition_change(Int64(truncatingIfNeeded: viewer.id.number), Int64(height ?? 0))
    viewer.figures.update {
      guard $0.smallHeight != height else { return }
      $0.smallHeight = height
      $0.renditionChanges += 1
    }
  }

  /// Sends the pictures of the small rendition that have come.
  func sendSmallPictures(at now: Instant) {
    guard let queue = small?.pictures else { return }
    while case .picture(let picture) = queue.take() {
      if let oldest = queue.oldestTaken(beyond: heldLimit) { for output in outputs { output.letGo(of: oldest) } }
      if picture.part.isWhole { sendSmall(picture, from: queue, at: max(now, picture.encoded)) }
      queue.release(picture)
    }
  }

  private func sendSmall(_ picture: CodedPicture, from queue: CodedPictureQueue, at now: Instant) {
    let unit = picture.part
    for output in outputs where output.renditions?.present == .small {
      // The packet before the picture is one that receivers can lose.
      if output.changeSourceIfDue(beforeKeyFrame: unit.isKeyFrame, at: now) { smallParameterSets.invalidate() }
    }
    var packets = 0
    do throws(ParameterSetError) {
      try smallParameterSets.complete(unit) { packets = sendSmall($0, of: picture, from: queue, at: now) }
    } catch {
      // Our encoders make none that the cache has no room for, and a receiver may cope.
      packets = sendSmall(unit, of: picture, from: queue, at: now)
    }
    if unit.isKeyFrame { smallLimiter.keyFrameSent() }
    if packets > 0 { countSmall(unit) }
  }

  /// Sends a small picture to the streams that take it. Returns the number of packets that left at once, over all viewers.
  private func sendSmall(
    _ unit: borrowing AccessUnit, of picture: CodedPicture, from queue: CodedPictureQueue, at now: Instant
  ) -> Int {
    var packets = 0
    for output in outputs where output.renditions != nil && !output.viewers.isEmpty {
      if takes(output, unit, of: .small, at: now) {
        packets += output.send(unit, in: picture, from: queue, PacedFrame.Plan(), at: now).packets
      }
    }
    return packets
  }

  /// Counts the frame of a small picture as sent, where no viewer takes full pictures, with which the frame is counted.
  private func countSmall(_ unit: borrowing AccessUnit) {
    guard !outputs.contains(where: { !$0.viewers.isEmpty && $0.renditions?.present != .small }) else { return }
    let latency = Instant.now() - unit.captured
    statistics.send.withLock {
      $0.frames += 1
      $0.recent.record(latency)
    }
  }

  /// Requests a key frame of the rendition that a stream carries, within the limit on such requests.
  func requestKeyFrame(for output: RTPOutput, at now: Instant) {
    guard let small, output.renditions?.isSmall == true else {
      if limiter.request(at: now) { requests.setKeyFrame() }
      return
    }
    if smallLimiter.request(at: now) { small.requests.setKeyFrame() }
  }
}

import Glibc
package import Platform
package import RTP
package import SRTP

/// One viewer of a stream: the frames on their way to it, and its requests. Only the send thread uses it, except for
/// ``figures``.
///
/// A viewer gets whole frames, the parts of which may come one by one. While three of its frames are on their way
/// (``PacketTransport/framesInFlight``), it loses the new ones, and all that follow up to the next key frame, because they
/// could not be decoded. It never holds up another viewer.
package final class Viewer {
  /// The viewer's identity in its pipeline.
  let id: ViewerID
  /// The viewer's figures, which other threads read.
  package let figures: ViewerFigures
  /// The viewer's RTCP.
  package let feedback: ViewerFeedback
  /// The bandwidth of the path to the viewer; nil for a stream that cannot follow it, as sound, or that has several receivers.
  package let bandwidth: ViewerBandwidth?
  /// The choice of the rendition that the viewer gets.
  @exclusivity(unchecked) var choice = RenditionChoice()
  let transport: any PacketTransport
  /// `true` if the viewer joined by itself, as by RTSP. Such a viewer is one receiver, which gets a key frame first. At a
  /// destination, receivers come and go without a request.
  let isGuest: Bool
  /// The unprotector of the viewer's RTCP; nil where the stream is not protected.
  let unprotector: ControlUnprotector?

  /// A frame or a part of one that is on its way, and its first packet that has not left.
  private struct Pending {
    var frame: OutgoingFrame
    var next = 0
    /// `true` if no part follows, although this is not the last part of its frame.
    var isBrokenOff = false
  }
  // `exclusivity(unchecked)`: no function of the viewer is called while one of these changes. With ten viewers, the checks were a
  // third of the send thread's instructions.
  @exclusivity(unchecked) private var pending: [Pending] = []
  /// The most frames on their way to the viewer, if their packets are not spread.
  let framesInFlightLimit: Int
  /// `true` if frames are left out until a key frame comes, because they are of no use without it.
  @exclusivity(unchecked) package private(set) var awaitsKeyFrame = true
  /// `true` if the viewer gets the current frame, of which more parts follow.
  private var isInFrame = false
  /// `true` if the viewer has ever got a frame. Frames before that are not lost.
  private(set) var hasBegun = false
  var isUnreachable = false
  @exclusivity(unchecked) private var reachability = PortReachability()
  /// `true` if a key frame has left since the last refusal.
  private var hasKeyFrameSinceRefusal = false
  /// `true` if a receiver has joined at the viewer's port in the middle of the stream.
  var lacksKeyFrame = false
  /// `true` if a receiver that joined in the middle of the stream does not know the stream's clock yet.
  var lacksClock = false
  /// `true` if the viewer gets the packets of a ``Replay``, and no frames until it has got all of them.
  private(set) var isCatchingUp = false
  /// `true` if the viewer awaits a key frame because it took frames too slowly, and not because it was unreachable.
  private var hasFallenBehind = false
  /// The first packet since the viewer began, or began again. Packets before that are not available.
  var firstSequenceNumber: UInt16 = 0
  /// The number of packets since ``firstSequenceNumber``, up to the limit that matters.
  var packetsSinceFirst = 0
  /// The time since which the viewer takes no pictures; nil while it takes them.
  @exclusivity(unchecked) var leftOutSince: Instant?
  /// The time at which a packet last left, or the wait for room began.
  private var lastProgress = Instant.zero
  var nextKeyFrameRequest = Instant.zero
  var requestInterval = Viewer.firstRequestInterval
  private var onStart: (@Sendable (StreamStart) -> Void)?
  private var onGoodbye: (@Sendable () -> Void)?
  /// The number of packets that have left.
  var packetsSent = 0
  /// The result of the last attempt to send.
  @exclusivity(unchecked) package private(set) var step = Step.idle

  /// The most pictures on their way to one viewer; the reference design's figure.
  package static let framesInFlightLimit = 3
  /// The most frames, parts of frames and packets of sound that wait, where sound shares the stream with pictures.
  private static let pendingLimit = 32
  /// The most frames on their way if packets are spread by the bandwidth: as many as a large key frame delays.
  static let pacedFramesLimit = 7
  /// The time that a frame waits for room without progress.
  package static let patience = Duration.milliseconds(500)
  /// The first interval at which a key frame is requested again after a frame was left out. It doubles each time, up to
  /// ``lastRequestInterval``.
  static let firstRequestInterval = Duration.milliseconds(500)
  /// The longest interval at which a key frame is requested again.
  static let lastRequestInterval = Duration.seconds(8)

  /// Half of all sequence numbers: two that are nearer can be told apart (RFC 3550 appendix A.1).
  static let numberSpan = 1 << 15

  /// The result of an attempt to send.
  package enum Step {
    /// Everything that may leave has left.
    case idle
    /// There is no room; the transport reports when there is.
    case full
    /// There is no room; try again soon.
    case busy
    /// The next packets wait for their time, so that the path can take them.
    case spread
  }

  /// Creates a viewer that begins with the next key frame.
  ///
  /// - Parameters:
  ///   - framesInFlightLimit: the most frames on their way. For sound, as many as come within ``patience``: no frame of
  ///     sound replaces another.
  ///   - onStart: is told of the first packet, just before the packet leaves.
  ///   - onGoodbye: is called once, when the viewer says BYE.
  package init(
    transport: any PacketTransport, feedback: ViewerFeedback, figures: ViewerFigures, bandwidth: ViewerBandwidth? = nil,
    framesInFlightLimit: Int = Viewer.framesInFlightLimit, unprotector: ControlUnprotector? = nil,
    onStart: (@Sendable (StreamStart) -> Void)? = nil, onGoodbye: (@Sendable () -> Void)? = nil
  ) {
    self.framesInFlightLimit = framesInFlightLimit
    self.onStart = onStart
    self.onGoodbye = onGoodbye
    isGuest = onStart != nil
    id = figures.id
    self.transport = transport
    self.unprotector = unprotector
    self.feedback = feedback
    self.figures = figures
    self.bandwidth = bandwidth
    pending.reserveCapacity(framesInFlightLimit)
  }

  /// `true` if something has begun to leave and has not ended.
  package var isBlocked: Bool { !pending.isEmpty }

  /// Takes a frame, which the viewer holds until all of it has left, or leaves it out.
  ///
  /// - Returns: `true` if it was taken.
  package func offer(_ frame: OutgoingFrame, at now: Instant) -> Bool {
    guard !isCatchingUp else { return false }
    guard frame.isFirstPart else { return follow(frame, at: now) }
    noteArrivals(at: now)
    if isUnreachable, transport.isReachable() {
      isUnreachable = false
      awaitsKeyFrame = true
      hasFallenBehind = false
    }
    // Frames that have not begun to leave are of no use once decoding can begin with a key frame.
    if frame.replacesWaiting { dropUnbegun() }
    guard frame.count > 0, !isUnreachable, frame.isKeyFrame || !awaitsKeyFrame, bandwidth?.isPaused != true,
      pendingFrames + transport.framesInFlight < framesLimit
    else {
      // A key frame that could be sent, or the next frame of a stream that can be decoded, finds no room.
      if !isUnreachable, frame.isKeyFrame || !awaitsKeyFrame { hasFallenBehind = true }
      (awaitsKeyFrame, leftOutSince) = (true, leftOutSince ?? now)
      guard hasBegun else { return false }
      let lost = isUnreachable ? frame.count : 0
      let isSlow = hasFallenBehind && !isUnreachable
      figures.update {
        $0.framesDropped += 1
        $0.lost += lost
        if isSlow { $0.isSlow = true }
      }
      return false
    }
    if awaitsKeyFrame { begins(at: frame.sequenceNumber) }
    packetsSinceFirst = min(packetsSinceFirst + frame.count, Self.numberSpan)
    (awaitsKeyFrame, leftOutSince) = (false, nil)
    hasFallenBehind = false
    isInFrame = !frame.isLastPart
    if !hasBegun { begin(with: frame.batch[0].header) }
    take(frame, at: now)
    return true
  }

  /// Takes packets of the sound that shares the stream with the pictures. They wait behind a picture that is on its way,
  /// and are left out where too much waits.
  ///
  /// - Returns: `true` if the viewer took them.
  package func offer(sound: OutgoingFrame, at now: Instant) -> Bool {
    guard hasBegun, !isCatchingUp, !isUnreachable, !isInFrame, !isStopped else { return false }
    guard pending.count < Self.pendingLimit else {
      figures.update { $0.framesDropped += 1 }
      return false
    }
    packetsSinceFirst = min(packetsSinceFirst + sound.count, Self.numberSpan)
    take(sound, at: now)
    return true
  }

  /// Takes a further part of the frame that the viewer got, unless the viewer has dropped that frame meanwhile.
  private func follow(_ frame: OutgoingFrame, at now: Instant) -> Bool {
    guard isInFrame else { return false }
    guard frame.count > 0 else {
      breakOff()
      return false
    }
    packetsSinceFirst = min(packetsSinceFirst + frame.count, Self.numberSpan)
    isInFrame = !frame.isLastPart
    take(frame, at: now)
    return true
  }

  private func take(_ frame: OutgoingFrame, at now: Instant) {
    if pending.isEmpty { lastProgress = now }
    frame.addHolder()
    pending.append(Pending(frame: frame))
  }

  /// The number of frames that have packets waiting to leave.
  private var pendingFrames: Int {
    var count = 0
    for item in pending where item.frame.isFrame && (item.frame.isLastPart || item.isBrokenOff) { count += 1 }
    // The last frame is still incomplete.
    if let last = pending.last, !last.frame.isLastPart, !last.isBrokenOff { count += 1 }
    return count
  }

  /// Ends a frame that gets no more parts. No frame can be decoded until the next key frame.
  package func breakOff() {
    guard isInFrame else { return }
    isInFrame = false
    awaitsKeyFrame = true
    if let last = pending.indices.last, !pending[last].frame.isLastPart {
      // The frame is counted when the part has left, or is dropped.
      pending[last].isBrokenOff = true
    } else {
      figures.update { $0.framesDropped += 1 }
    }
  }

  /// Begins with packets that other viewers have got before. The first of them, `packet`, begins a key frame.
  func catchUp(withFirst packet: UnsafeRawBufferPointer) {
    (awaitsKeyFrame, isCatchingUp) = (false, true)
    if let start = StreamStart(packet) { begins(at: start.sequenceNumber) }
    if !hasBegun { begin(with: packet) }
  }

  /// Continues with new packets, because the viewer has got all former ones. `isInFrame` is `true` if more parts of the
  /// last frame follow.
  func caughtUp(isInFrame: Bool) {
    isCatchingUp = false
    self.isInFrame = isInFrame
  }

  /// Waits for a key frame, because packets that the viewer was to get are no longer available.
  func fallBehind() {
    (awaitsKeyFrame, isInFrame, isCatchingUp) = (true, false, false)
  }

  /// Changes to another source, whose first packet is `first`.
  func sourceChanged(to ssrc: UInt32, first: UInt16, at now: Instant) {
    feedback.changeMedia(to: ssrc, at: now)
    unprotector?.changeMedia(to: ssrc)
    bandwidth?.restart()
    begins(at: first)
  }

  private func begins(at sequenceNumber: UInt16) {
    firstSequenceNumber = sequenceNumber
    packetsSinceFirst = 0
  }

  private func begin(with header: UnsafeRawBufferPointer) {
    hasBegun = true
    if let start = StreamStart(header) { onStart?(start) }
    onStart = nil
  }

  /// Handles the viewer's BYE (RFC 3550 section 6.6).
  func hasSaidGoodbye() {
    onGoodbye?()
    onGoodbye = nil
  }

  /// Sends the packets that may leave by now.
  package func flush(at now: Instant) {
    step = .idle
    while let first = pending.first {
      let frame = first.frame
      if first.next < frame.released {
        let end = leavingEnd(of: frame, from: first.next, at: now)
        // A breaker that has stopped the stream has dropped all that waited.
        guard isBlocked else { return }
        guard end > first.next else { return step = .spread }
        if first.next == 0, !frame.isFirstPart { transport.willContinue() }
        let progress = transport.send(frame, first.next..<end)
        pending[0].next = progress.next
        count(progress, at: now)
        noteLeft(progress, of: frame, at: now)
        if progress.packets > 0 { lastProgress = now }
        packetsSent += progress.packets
        switch progress.end {
        case .done where end < frame.released: continue
        case .done: break
        case .full: return step = .full
        case .busy: return step = .busy
        case .unreachable:
          isUnreachable = true
          return giveUp(progress.errorNumber)
        }
      }
      guard pending[0].next >= frame.count else { return }
      pending.removeFirst()
      defer { frame.removeHolder() }
      // The sound beside pictures is no frame of its own here: its bytes count with the frame before it.
      transport.notePart(isFirst: frame.isFrame && frame.isFirstPart, isLast: frame.isLastPart)
      guard frame.isLastPart else {
        if first.isBrokenOff { figures.update { $0.framesDropped += 1 } }
        continue
      }
      guard frame.isFrame else { continue }
      noteSent(frame, at: now)
      let isWhole = pending.isEmpty
      figures.update {
        $0.frames += 1
        if isWhole { $0.isSlow = false }
      }
    }
  }

  /// Counts the result of sending packets. A refused port is reported until a program listens there: between two
  /// answers by ICMP, packets leave without one.
  func count(_ progress: SendProgress, at now: Instant) {
    if progress.errorNumber == ECONNREFUSED {
      // A receiver that has got a key frame has gone. The next one is another, and does not repeat its request.
      if hasKeyFrameSinceRefusal, !reachability.isRefused { forgetRequests() }
      reachability.noteRefusal(at: now)
      // Nobody is there to take a key frame that was requested for an arrival.
      (hasKeyFrameSinceRefusal, lacksKeyFrame) = (false, false)
    }
    let isRefused = reachability.isRefused
    figures.update {
      $0.count(progress)
      if isRefused, $0.errorNumber == 0 { $0.errorNumber = ECONNREFUSED }
    }
  }

  /// Notes that all of a frame has left. A receiver that has come to the port since the last refusal has only a key
  /// frame to begin with.
  private func noteSent(_ frame: OutgoingFrame, at now: Instant) {
    let hasArrived = reachability.isRefused && reachability.noteSent(at: now)
    if frame.isKeyFrame, !reachability.isRefused || reachability.isSilent(at: now) {
      (hasKeyFrameSinceRefusal, lacksKeyFrame) = (true, false)
    }
    guard hasArrived else { return }
    lacksClock = true
    lacksKeyFrame = !hasKeyFrameSinceRefusal
    figures.update { if $0.errorNumber == ECONNREFUSED { $0.errorNumber = 0 } }
  }

  /// Drops everything on its way if nothing of it has left for too long. The rest of a frame that had begun is lost,
  /// and so is all up to the next key frame.
  ///
  /// - Returns: `true` if frames were dropped.
  package func expire(at now: Instant) -> Bool {
    guard isBlocked, now - lastProgress > Self.patience else { return false }
    hasFallenBehind = true
    giveUp(EAGAIN)
    return true
  }

  /// Drops everything on its way.
  package func giveUp(_ errorNumber: CInt = 0) {
    guard isBlocked else { return }
    var lost = 0
    for item in pending {
      lost += item.frame.count - item.next
    }
    let frames = pendingFrames
    for item in pending { item.frame.removeHolder() }
    pending.removeAll(keepingCapacity: true)
    step = .idle
    (awaitsKeyFrame, isInFrame) = (true, false)
    figures.update {
      $0.lost += lost
      $0.framesDropped += frames
      if errorNumber != 0 { $0.errorNumber = errorNumber }
    }
  }

  /// Returns `true` if `picture` is on its way to the viewer.
  func holds(_ picture: CodedPicture) -> Bool {
    for item in pending where item.frame.picture === picture { return true }
    return false
  }

  private func dropUnbegun() {
    var dropped = 0
    while let first = pending.lastIndex(where: { $0.frame.isFirstPart }), pending[first].next == 0 {
      for item in pending[first...] {
        if item.frame.isFrame, item.frame.isFirstPart { dropped += 1 }
        item.frame.removeHolder()
      }
      pending.removeSubrange(first...)
    }
    guard dropped > 0 else { return }
    figures.update { $0.framesDropped += dropped }
  }
}

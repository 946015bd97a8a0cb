import Glibc
import Media
import RTP
import SRTP
import Synchronization

/// One viewer of a stream: what is on its way, and what it asked for. Used by the send thread alone, but for ``figures``.
///
/// A viewer gets whole frames, the parts of which may come one by one. While three of its frames are on their way, it loses
/// those that come, and all that follow up to the next key frame, because they could not be decoded; it never holds up
/// another viewer.
final class Viewer {
  /// What tells it from the others of its pipeline.
  let id: ViewerID
  /// Where others read what happened to it.
  let figures: ViewerFigures
  /// What it says by RTCP.
  let feedback: ViewerFeedback
  let transport: any PacketTransport
  /// Whether it came by itself, as by RTSP, and is one receiver that has got a key frame first. At a destination receivers
  /// come and go unasked.
  let isGuest: Bool
  /// What makes RTCP of what it sends; nil where the stream is not protected.
  let unprotector: ControlUnprotector?

  /// A frame or a part of one that is on its way, and the first packet that has not left.
  private struct Pending {
    var frame: OutgoingFrame
    var next = 0
    /// Whether nothing follows, though it is not its frame's last part.
    var isBrokenOff = false
  }
  private var pending: [Pending] = []
  /// Whether frames are left out until a key frame comes: of no use without it.
  private(set) var awaitsKeyFrame = true
  /// Whether it gets the frame of which parts follow.
  private var isInFrame = false
  /// Whether it has ever got a frame: what went by before is not lost.
  private(set) var hasBegun = false
  private var isUnreachable = false
  private var reachability = PortReachability()
  /// Whether a key frame has left since the last refusal.
  private var hasKeyFrameSinceRefusal = false
  /// Whether somebody has come to its port in the middle of the stream.
  private var lacksKeyFrame = false
  /// Whether it gets what others have got before (``Replay``), and no frames until it has got all of it.
  private(set) var isCatchingUp = false
  /// Whether it awaits a key frame because it took frames too slowly, and not because there was no way to it.
  private var hasFallenBehind = false
  /// The first packet since it began, or began anew: what was left out before is not to be had.
  private var firstSequenceNumber: UInt16 = 0
  /// Packets since then, as far as it matters.
  private var packetsSinceFirst = 0
  /// When a packet last left, or the wait for room began.
  private var lastProgress = MediaTime.zero
  private var nextKeyFrameRequest = MediaTime.zero
  private var requestInterval = Viewer.firstRequestInterval
  private var onStart: (@Sendable (StreamStart) -> Void)?
  private var onGoodbye: (@Sendable () -> Void)?
  /// Packets that have left.
  private(set) var packetsSent = 0
  /// Whether the transport had no room at the last attempt.
  private(set) var step = Step.idle

  /// The most frames on their way to one viewer; the reference design's figure.
  static let framesInFlightLimit = 3
  /// How long a frame that has begun waits for room while none is made.
  static let patience = MediaTime(nanoseconds: 500_000_000)
  /// How soon after a frame was left out a key frame is asked for again: each time twice as late, up to the last.
  static let firstRequestInterval = MediaTime(nanoseconds: 500_000_000)
  static let lastRequestInterval = MediaTime(nanoseconds: 8_000_000_000)

  /// Half of all sequence numbers: two that are nearer can be told apart (RFC 3550 appendix A.1).
  private static let numberSpan = 1 << 15

  /// What an attempt to send came to.
  enum Step {
    /// Everything that may leave has left.
    case idle
    /// There is no room; the transport says when there is.
    case full
    /// Try again soon.
    case busy
  }

  /// A viewer that begins with the next key frame, tells `onStart` of its first packet just before that leaves, and
  /// `onGoodbye` once that it says BYE.
  init(
    transport: any PacketTransport, feedback: ViewerFeedback, figures: ViewerFigures,
    unprotector: ControlUnprotector? = nil, onStart: (@Sendable (StreamStart) -> Void)? = nil,
    onGoodbye: (@Sendable () -> Void)? = nil
  ) {
    self.onStart = onStart
    self.onGoodbye = onGoodbye
    isGuest = onStart != nil
    id = figures.id
    self.transport = transport
    self.unprotector = unprotector
    self.feedback = feedback
    self.figures = figures
    pending.reserveCapacity(Self.framesInFlightLimit)
  }

  /// Whether something has begun to leave and has not ended.
  var isBlocked: Bool { !pending.isEmpty }

  /// Takes a frame, which it holds until all of it has left, or leaves it out.
  ///
  /// - Returns: Whether it was taken.
  func offer(_ frame: OutgoingFrame, at now: MediaTime) -> Bool {
    guard !isCatchingUp else { return false }
    guard frame.isFirstPart else { return follow(frame, at: now) }
    if isUnreachable, transport.isReachable() {
      isUnreachable = false
      awaitsKeyFrame = true
      hasFallenBehind = false
    }
    // What has not begun to leave is of no use once decoding can begin anew.
    if frame.isKeyFrame { dropUnbegun() }
    guard frame.count > 0, !isUnreachable, frame.isKeyFrame || !awaitsKeyFrame,
      pendingFrames + transport.framesInFlight < Self.framesInFlightLimit
    else {
      // A key frame that could be sent, or the next frame of a stream that can be decoded, finds no room.
      if !isUnreachable, frame.isKeyFrame || !awaitsKeyFrame { hasFallenBehind = true }
      awaitsKeyFrame = true
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
    awaitsKeyFrame = false
    hasFallenBehind = false
    isInFrame = !frame.isLastPart
    if !hasBegun { begin(with: frame.batch[0].header) }
    take(frame, at: now)
    return true
  }

  /// Takes a further part of the frame that it has been given, unless it has let go of that meanwhile.
  private func follow(_ frame: OutgoingFrame, at now: MediaTime) -> Bool {
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

  private func take(_ frame: OutgoingFrame, at now: MediaTime) {
    if pending.isEmpty { lastProgress = now }
    frame.holders += 1
    pending.append(Pending(frame: frame))
  }

  /// Frames of which something waits to leave.
  private var pendingFrames: Int {
    var count = 0
    for item in pending where item.frame.isLastPart || item.isBrokenOff { count += 1 }
    // One is still being made.
    if let last = pending.last, !last.frame.isLastPart, !last.isBrokenOff { count += 1 }
    return count
  }

  /// Nothing follows of a frame that it was to get in parts, and none can be decoded up to the next key frame.
  func breakOff() {
    guard isInFrame else { return }
    isInFrame = false
    awaitsKeyFrame = true
    if let last = pending.indices.last, !pending[last].frame.isLastPart {
      // Counted when that has left, or is let go of.
      pending[last].isBrokenOff = true
    } else {
      figures.update { $0.framesDropped += 1 }
    }
  }

  /// Begins with packets that others have got before; `packet` is the first of them, that of a key frame.
  func catchUp(withFirst packet: UnsafeRawBufferPointer) {
    (awaitsKeyFrame, isCatchingUp) = (false, true)
    if let start = StreamStart(packet) { begins(at: start.sequenceNumber) }
    if !hasBegun { begin(with: packet) }
  }

  /// Goes on where the packets end that were sent last, of which it has got all now. The last frame's were only a part of it
  /// where `isInFrame`.
  func caughtUp(isInFrame: Bool) {
    isCatchingUp = false
    self.isInFrame = isInFrame
  }

  /// Packets that it was to get are not to be had any more: it goes on with a key frame.
  func fallBehind() {
    (awaitsKeyFrame, isInFrame, isCatchingUp) = (true, false, false)
  }

  /// The stream goes on as another source, whose first packet is `first`.
  func sourceChanged(to ssrc: UInt32, first: UInt16, at now: MediaTime) {
    feedback.changeMedia(to: ssrc, at: now)
    unprotector?.changeMedia(to: ssrc)
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

  /// It has said BYE (RFC 3550 section 6.6).
  func hasSaidGoodbye() {
    onGoodbye?()
    onGoodbye = nil
  }

  /// A key frame was asked for on its behalf.
  func keyFrameRequested(at now: MediaTime) {
    nextKeyFrameRequest = now + requestInterval
  }

  /// Sends what may leave by now.
  func flush(at now: MediaTime) {
    step = .idle
    while let first = pending.first {
      let frame = first.frame
      if first.next < frame.released {
        if first.next == 0, !frame.isFirstPart { transport.willContinue() }
        let progress = transport.send(frame, first.next..<frame.released)
        pending[0].next = progress.next
        count(progress, at: now)
        if progress.packets > 0 { lastProgress = now }
        packetsSent += progress.packets
        switch progress.end {
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
      frame.holders -= 1
      transport.notePart(isFirst: frame.isFirstPart, isLast: frame.isLastPart)
      guard frame.isLastPart else {
        if first.isBrokenOff { figures.update { $0.framesDropped += 1 } }
        continue
      }
      noteSent(frame, at: now)
      let isWhole = pending.isEmpty
      figures.update {
        $0.frames += 1
        if isWhole { $0.isSlow = false }
      }
    }
  }

  /// Counts what came of sending packets. That nobody listens is told until somebody does: between two answers by ICMP
  /// packets leave without one.
  private func count(_ progress: SendProgress, at now: MediaTime) {
    if progress.errorNumber == ECONNREFUSED {
      reachability.noteRefusal(at: now)
      hasKeyFrameSinceRefusal = false
    }
    let isRefused = reachability.isRefused
    figures.update {
      $0.count(progress)
      if isRefused, $0.errorNumber == 0 { $0.errorNumber = ECONNREFUSED }
    }
  }

  /// All of a frame has left: who has come to the port since others were refused there has nothing to begin with but a key
  /// frame.
  private func noteSent(_ frame: OutgoingFrame, at now: MediaTime) {
    if frame.isKeyFrame, reachability.isSilent(at: now) { (hasKeyFrameSinceRefusal, lacksKeyFrame) = (true, false) }
    guard reachability.isRefused, reachability.noteSent(at: now) else { return }
    lacksKeyFrame = !hasKeyFrameSinceRefusal
    figures.update { if $0.errorNumber == ECONNREFUSED { $0.errorNumber = 0 } }
  }

  /// Sends one packet that others have got before; false where there is no room, and then a key frame must come.
  func sendAgain(_ packet: UnsafeRawBufferPointer) -> Bool {
    let isSent = transport.send(header: packet, payload: UnsafeRawBufferPointer(rebasing: packet[packet.count...]))
    if isSent { packetsSent += 1 } else { fallBehind() }
    figures.update {
      if isSent {
        $0.packets += 1
        $0.bytes += packet.count
      } else {
        $0.lost += 1
      }
    }
    return isSent
  }

  /// Whether a packet may be sent to it again. What was left out is not sent after all, nor anything while there is no
  /// room: a slow viewer asks for all that it has missed, and would be held up by that for ever.
  func takesAgain(_ sequenceNumber: UInt16) -> Bool {
    guard !isBlocked, !awaitsKeyFrame else { return false }
    // After so many, what came before the first one is no longer kept, and its number is another packet's.
    return packetsSinceFirst >= Self.numberSpan || sequenceNumber &- firstSequenceNumber < UInt16(Self.numberSpan)
  }

  /// Sends packets that belong to no frame, such as a transport stream's clock; they are lost where there is no room.
  func sendAside(_ packets: OutgoingFrame, at now: MediaTime) {
    guard !isBlocked, !isUnreachable, !isCatchingUp else { return }
    var progress = transport.send(packets, 0..<packets.count)
    progress.lost += packets.count - progress.next
    packetsSent += progress.packets
    count(progress, at: now)
  }

  /// Lets go of all that is on its way where nothing of it has left for too long; the rest of a frame that had begun is
  /// lost, and so is all up to the next key frame.
  func expire(at now: MediaTime) -> Bool {
    guard isBlocked, now - lastProgress > Self.patience else { return false }
    hasFallenBehind = true
    giveUp(EAGAIN)
    return true
  }

  /// Lets go of all that is on its way.
  func giveUp(_ errorNumber: CInt = 0) {
    guard isBlocked else { return }
    var lost = 0
    for item in pending {
      lost += item.frame.count - item.next
      item.frame.holders -= 1
    }
    let frames = pendingFrames
    pending.removeAll(keepingCapacity: true)
    step = .idle
    (awaitsKeyFrame, isInFrame) = (true, false)
    figures.update {
      $0.lost += lost
      $0.framesDropped += frames
      if errorNumber != 0 { $0.errorNumber = errorNumber }
    }
  }

  /// Whether `frame` is on its way to it.
  func holds(_ picture: CodedPicture) -> Bool {
    for item in pending where item.frame.picture === picture { return true }
    return false
  }

  /// Whether it needs a key frame now that it could take one: asked after each frame.
  func wantsKeyFrame(at now: MediaTime) -> Bool {
    guard awaitsKeyFrame || lacksKeyFrame, !isUnreachable, pending.isEmpty, now >= nextKeyFrameRequest,
      transport.framesInFlight == 0
    else { return false }
    lacksKeyFrame = false
    // One that comes soon after another was asked for has not helped.
    let isAgain = now - nextKeyFrameRequest < Self.lastRequestInterval
    requestInterval =
      isAgain ? min(requestInterval + requestInterval, Self.lastRequestInterval) : Self.firstRequestInterval
    nextKeyFrameRequest = now + requestInterval
    return true
  }

  private func dropUnbegun() {
    var dropped = 0
    while let first = pending.lastIndex(where: { $0.frame.isFirstPart }), pending[first].next == 0 {
      for item in pending[first...] { item.frame.holders -= 1 }
      pending.removeSubrange(first...)
      dropped += 1
    }
    guard dropped > 0 else { return }
    figures.update { $0.framesDropped += dropped }
  }
}

/// The first packet that a viewer gets (RTSP's RTP-Info, RFC 2326 section 12.33).
public struct StreamStart: Hashable, Sendable {
  /// Its sequence number.
  public let sequenceNumber: UInt16
  /// Its timestamp.
  public let timestamp: UInt32
  /// The stream's source.
  public let ssrc: UInt32

  init?(_ header: UnsafeRawBufferPointer) {
    guard let header = try? RTPPacket(parsing: header).header else { return nil }
    (sequenceNumber, timestamp, ssrc) = (header.sequenceNumber, header.timestamp, header.ssrc)
  }
}

/// What tells one viewer of a pipeline from another.
public struct ViewerID: Hashable, Sendable {
  let number: UInt64
}

/// One viewer's figures: written by the send thread, read by any.
final class ViewerFigures: Sendable {
  let id: ViewerID
  private let value: Mutex<DestinationStatistics>

  init(id: ViewerID, name: String, peer: ViewerPeer? = nil) {
    self.id = id
    value = Mutex(DestinationStatistics(id: id, name: name, peer: peer))
  }

  func update(_ body: (inout DestinationStatistics) -> Void) {
    value.withLock { body(&$0) }
  }

  var current: DestinationStatistics { value.withLock { $0 } }
}

extension DestinationStatistics {
  fileprivate mutating func count(_ progress: SendProgress) {
    packets += progress.packets
    bytes += progress.bytes
    lost += progress.lost
    // Waiting for room is no refusal.
    errorNumber = progress.end == .full || progress.end == .busy ? 0 : progress.errorNumber
  }
}

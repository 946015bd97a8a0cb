import CTracing
import Glibc
import Media
import Platform
import RTP
import SRTP
import Synchronization

/// One RTP stream and its viewers: an access unit is packetized once for all that share payload and packet size.
///
/// Used by the send thread alone.
package final class RTPOutput {
  /// The properties that the viewers of one stream share.
  package struct Kind: Hashable {
    let payload: StreamPayload
    /// The most bytes of a packet, protection included.
    let packetSize: Int
    /// The protection of the packets; nil for none.
    var protection: StreamProtection?
    /// `true` for the stream of all WebRTC peers, each of which has keys of its own.
    var isForPeers = false
    /// The stream's only viewer, where each viewer is to have a stream of its own (``PacketSending/sharesPackets``).
    var viewer: ViewerID?

    /// Creates a kind.
    package init(
      payload: StreamPayload, packetSize: Int, protection: StreamProtection? = nil, isForPeers: Bool = false,
      viewer: ViewerID? = nil
    ) {
      self.payload = payload
      self.packetSize = packetSize
      self.protection = protection
      self.isForPeers = isForPeers
      self.viewer = viewer
    }

    /// Returns `true` if the stream goes on without viewers: a viewer by RTSP that pauses comes back to the same one.
    /// Such viewers get `guestPayload`.
    func isKept(forGuestsOf guestPayload: StreamPayload) -> Bool {
      if isForPeers { return viewer == nil }
      if let protection { return protection.progress.isHeld.load(ordering: .relaxed) }
      return viewer == nil && payload == guestPayload && packetSize == Pipeline.guestPacketSize
    }

    /// The packet size that is left to the packetizer.
    var plainPacketSize: Int { packetSize - (protection?.key.suite.packetOverhead ?? 0) }
  }

  let kind: Kind
  private(set) var viewers: [Viewer] = []

  /// `true` if the stream sends a picture's parts as they come. Another one waits for the whole picture.
  let takesParts: Bool
  /// The pictures at which a viewer can begin.
  let keyFrameRule: KeyFrameRule
  /// `true` if the stream's clock is repeated where no picture comes.
  let repeatsClock: Bool
  /// `true` if the stream carries sound beside the pictures.
  let carriesSound: Bool

  // A reference, which is called as it is. An enum of packetizers would be copied out and back for each access unit.
  private let packetizer: any PacketizerReference
  /// Protects the packets in ``plain``; nil where nothing is protected.
  private(set) var protector: PacketProtector?
  private let plain: PacketBatch?
  var control: SenderControl
  private(set) var history: PacketHistory
  private let blocked: BlockedViewers
  private let frames: OutgoingFramePool
  /// The frames of small pictures; nil before the first one.
  private var smallFrames: OutgoingFramePool?
  /// The frames of the stream that the viewer came from, some of which may still be on their way.
  private let formerFrames: OutgoingFramePool?
  private let keeping: RetransmissionRoom
  private let sending: PacketSending
  /// The change of the stream from one rendition to the other; nil where all viewers share full pictures.
  var renditions: RenditionSwitch?
  private let clockPackets: OutgoingFrame
  /// Room for one RTCP datagram of ours.
  let controlMemory = UnsafeMutableRawBufferPointer.allocate(
    byteCount: SenderControl.room + PacketProtector.controlRoom, alignment: 8)
  /// The frame that leaves packet by packet; the stream is one of its holders.
  private var pacing: PacedFrame?
  /// The replays for viewers that have joined late.
  var replays: [Replay] = []
  /// `true` if parts follow of the picture that was sent last.
  private(set) var isInPicture = false
  /// The first packet of the last key frame: its sequence number, and the number of packets before it.
  private(set) var lastKeyFrame: (number: UInt16, index: UInt64)?
  /// The `idr_pic_id` of that key frame, nil where it is unknown, and whether no picture has come since.
  private(set) var lastKeyFramePicture: (id: Int?, isLast: Bool) = (nil, false)
  /// The first packet of the stream's source.
  private var firstSequenceNumber: UInt16
  /// The last picture's time on the stream's timeline, the time at which the camera took it, and the time at which it
  /// was sent.
  private(set) var lastPicture: (timestamp: Instant, captured: Instant, sent: Instant)?

  /// Creates a stream without viewers.
  ///
  /// - Parameters:
  ///   - numbering: the numbering of a stream whose source was told before; nil for a new one.
  ///   - shared: a stream in the clear, or of peers, that the only viewer of this one leaves. This one goes on with the
  ///     numbers, the clock and the packets of the other: the viewer sees one stream.
  ///   - canonicalName: this side's CNAME in RTCP.
  ///   - bitrate: bits a second of the stream. RTCP's interval follows from it, and the amount that is kept for
  ///     retransmission: about a second.
  ///   - keeps: the packets that are kept for retransmission.
  ///   - pictures: takes back a picture that all viewers have got.
  ///   - blocked: is told of viewers that wait for room.
  ///   - sending: the way in which packets are made and leave.
  /// - Throws: ``PacketizerError``, ``SRTPError``.
  init(
    _ kind: Kind, numbering: RTPStream? = nil, continuing shared: RTPOutput? = nil, canonicalName: String, bitrate: Int,
    keeps: RetransmissionRoom = .second, pictures: CodedPictureQueue, blocked: BlockedViewers,
    _ sending: PacketSending = PacketSending(), at now: Instant
  ) throws {
    self.kind = kind
    keeping = keeps
    self.sending = sending
    formerFrames = shared?.frames
    lastPicture = shared?.lastPicture
    clockPackets = OutgoingFrame(sending)
    frames = OutgoingFramePool(pictures: pictures, sending)
    self.blocked = blocked
    let size = kind.plainPacketSize
    let format = kind.payload.format
    takesParts = format.takesParts
    repeatsClock = format.repeatsClock
    carriesSound = format.sound != nil
    keyFrameRule = format.keyFrameRule
    let encoding = format.encoding
    let numbering =
      shared?.stream ?? numbering ?? kind.protection?.stream(encoding)
      ?? RTPStream(payloadType: encoding.payloadType, clockRate: encoding.clockRate)
    firstSequenceNumber = numbering.nextSequenceNumber
    packetizer = try format.packetizer(of: numbering, maximumPacketSize: size)
    protector = try kind.protection.map { protection throws(SRTPError) in try PacketProtector(protection.key) }
    plain = protector == nil && !sending.copiesPayloads ? nil : PacketBatch(storedBytes: 1 << 16)
    control = try SenderControl(
      canonicalName: canonicalName, sessionBitsPerSecond: Double(bitrate), minimum: .standard, at: now)
    history = keeps.history(of: kind, bitrate: bitrate, after: shared, at: now)
  }

  deinit {
    controlMemory.deallocate()
  }

  /// `true` if the stream is that of one viewer that has left a shared one for small pictures.
  var isOwn: Bool { keeping != .second }

  /// The stream's numbering.
  var stream: RTPStream { packetizer.stream }

  /// `true` if there was a picture: before that there is no clock to report.
  var hasBegun: Bool { lastPicture != nil }

  // MARK: Viewers

  /// Adds a viewer, which gets the next frame, or the next key frame.
  func add(_ viewer: Viewer) {
    viewers.append(viewer)
    guard hasBegun else { return }
    greet(viewer)
  }

  /// Notes a picture that no viewer gets. The pictures after it cannot be decoded behind those that were sent before.
  func skip() { lastKeyFrame = nil }

  /// Removes a viewer. Sends BYE if `goodbye` is `true` and the viewer has got RTCP from us (RFC 3550 section 6.3.7).
  func remove(_ viewer: Viewer, goodbye: Bool) {
    release(viewer)
    viewer.giveUp()
    if goodbye, hasBegun { dismiss(viewer) }
    // The next viewer begins with full pictures, as all do.
    if viewers.isEmpty { renditions = nil }
  }

  /// Removes a viewer that goes on in another stream.
  func release(_ viewer: Viewer) {
    viewers.removeAll { $0 === viewer }
    replays.removeAll { $0.viewer === viewer }
  }

  /// Adds a viewer that was in the middle of the stream that this one continues.
  func takeOver(_ viewer: Viewer) { viewers.append(viewer) }

  // MARK: Sources

  /// Changes to another source before a picture, where that is due (``StreamProtection/hasSuccessors``). Receivers may
  /// take the first packet that follows for one out of order, and lose it (RFC 3550 appendix A.1). So it must be a
  /// packet that they can do without.
  ///
  /// - Returns: `true` if the source has changed.
  func changeSourceIfDue(beforeKeyFrame isKeyFrame: Bool, at now: Instant) -> Bool {
    guard let protection = kind.protection, protection.hasSuccessors,
      StreamProtection.isSourceDue(before: stream.nextSequenceNumber, isKeyFrame: isKeyFrame),
      // Where there is no memory for another one, the source stays, and its rollover counter goes on.
      let anew = try? PacketProtector(protection.key)
    else { return false }
    protector = anew
    let ssrc = SourceNumbers.next()
    firstSequenceNumber = 0
    packetizer.changeSource(to: ssrc, firstSequenceNumber: firstSequenceNumber)
    // The packets that were sent before are another stream's.
    lastKeyFrame = nil
    for replay in replays { replay.viewer.fallBehind() }
    replays.removeAll()
    for viewer in viewers {
      viewer.sourceChanged(to: ssrc, first: firstSequenceNumber, at: now)
      greet(viewer)
    }
    keepAlive(at: now)
    return true
  }

  // MARK: Frames

  /// Packetizes `unit`, whose bytes lie in `picture`, and gives it to every viewer. A part of a picture is never
  /// spread.
  ///
  /// - Parameters:
  ///   - plan: the spread of a large picture.
  ///   - picture: is held while a viewer has not got all of it.
  ///   - small: the queue of the picture, where it is one of the small rendition.
  /// - Returns: The number of packets that left at once, over all viewers, and the time that packetizing took,
  ///   protection included.
  func send(
    _ unit: borrowing AccessUnit, in picture: CodedPicture, from small: CodedPictureQueue? = nil,
    _ plan: PacedFrame.Plan, at now: Instant
  ) -> (packets: Int, packetizing: Duration) {
    // A frame's way in a trace is that of its full picture.
    let isMarked = small == nil
    let mark = isMarked ? nightjar_packetize_begin(unit.timestamp.nanoseconds) : 0
    let frame = pool(of: small).take(holding: picture)
    defer { frame.removeHolder() }
    let stream = stream
    let first = (number: stream.nextSequenceNumber, index: stream.packetsSent)
    packetizer.packetize(unit, into: plain ?? frame.batch)
    protect(into: frame.batch)
    let isKeyFrame = unit.isKeyFrame || keyFrameRule == .everyUnit
    if unit.isFirstPart {
      if isKeyFrame { lastKeyFrame = first }
      lastKeyFramePicture = unit.isKeyFrame ? (unit.idrPictureID, true) : (lastKeyFramePicture.id, false)
    }
    isInPicture = !unit.isLastPart
    for index in 0..<frame.count { history.append(frame.batch[index], at: now) }
    let isFirst = !hasBegun
    lastPicture = (unit.timestamp, unit.captured, now)
    let isPaced = unit.isWhole && plan.spreads(packets: frame.count)
    frame.fill(
      isKeyFrame: isKeyFrame, replacesWaiting: keyFrameRule == .keyFrames, isPaced: isPaced,
      isFirstPart: unit.isFirstPart, isLastPart: unit.isLastPart)
    if isPaced {
      frame.addHolder()
      pacing = PacedFrame(frame: frame, begin: now, spread: plan.spread)
    }
    if isMarked { nightjar_packetize_end(unit.timestamp.nanoseconds, mark, Int64(frame.count)) }
    // The time of the last part counts.
    let packetizing = unit.isLastPart ? Instant.now() - now : .zero
    let sending = isMarked ? nightjar_send_begin(unit.timestamp.nanoseconds) : 0
    var packets = 0
    for viewer in viewers where viewer.offer(frame, at: now) {
      packets -= viewer.packetsSent
      flush(viewer, at: now)
      packets += viewer.packetsSent
    }
    if isMarked { nightjar_send_end(unit.timestamp.nanoseconds, sending, Int64(packets)) }
    // Without the clocks of picture and sound, a receiver that has just come cannot play them in step.
    for viewer in viewers where isFirst || viewer.takeArrival() { greet(viewer) }
    return (packets, packetizing)
  }

  /// The frames of pictures of the small rendition's queue, or of full ones.
  private func pool(of small: CodedPictureQueue?) -> OutgoingFramePool {
    guard let small else { return frames }
    if let smallFrames { return smallFrames }
    let made = OutgoingFramePool(pictures: small, sending)
    smallFrames = made
    return made
  }

  /// Packetizes an access unit of the sound that the stream carries beside the pictures, and gives it to every viewer.
  /// Before the first picture there is no clock for it.
  ///
  /// - Returns: The number of packets that left at once, over all viewers.
  func send(sound unit: borrowing AccessUnit, at now: Instant) -> Int {
    guard carriesSound, hasBegun, !isInPicture else { return 0 }
    let frame = frames.take()
    defer { frame.removeHolder() }
    packetizer.packetize(sound: unit, into: plain ?? frame.batch)
    protect(into: frame.batch)
    guard frame.count > 0 else { return 0 }
    for index in 0..<frame.count { history.append(frame.batch[index], at: now) }
    frame.fill(isFrame: false, isKeyFrame: false, isPaced: false)
    var packets = 0
    for viewer in viewers where viewer.offer(sound: frame, at: now) {
      packets -= viewer.packetsSent
      flush(viewer, at: now)
      packets += viewer.packetsSent
    }
    return packets
  }

  /// Ends the picture whose first parts were sent, and of which nothing follows.
  func breakOff() {
    isInPicture = false
    for viewer in viewers { viewer.breakOff() }
  }

  /// Protects the packets, where that is wanted; later steps see only the protected ones. Where it fails, there are no
  /// packets, and each viewer counts a frame that it has lost.
  private func protect(into batch: PacketBatch) {
    guard let plain else { return }
    guard let protector else {
      for index in 0..<plain.count { _ = batch.append(copying: plain[index]) }
      return plain.removeAll()
    }
    do throws(SRTPError) { try protector.protect(plain, into: batch) } catch { batch.removeAll() }
    plain.removeAll()
    let index = UInt64(firstSequenceNumber) + stream.packetsSent
    kind.protection?.progress.rolloverCounter.store(UInt32(truncatingIfNeeded: index >> 16), ordering: .relaxed)
  }

  /// Sends the packets that may leave to a viewer.
  private func flush(_ viewer: Viewer, at now: Instant) {
    viewer.flush(at: now)
    blocked.note(viewer)
  }

  /// Sends the waiting packets of a viewer that has room now, or has had none for too long.
  func resume(_ viewer: Viewer, at now: Instant) { flush(viewer, at: now) }

  /// Drops `picture` for the viewers that have not got all of it.
  func letGo(of picture: CodedPicture) {
    for viewer in viewers where viewer.holds(picture) {
      viewer.giveUp(EAGAIN)
      blocked.note(viewer)
    }
    if pacing?.frame.picture === picture { leavePacing() }
  }

  // MARK: Pacing

  /// `true` if packets of a frame wait for their time.
  var isPacing: Bool { pacing != nil }

  /// The time at which the next packets of a paced frame may leave; nil where there is none.
  var pacingDeadline: Instant? { pacing?.deadline }

  /// Sends the packets of a paced frame whose time has come.
  func pace(at now: Instant) {
    guard let frame = pacing?.frame, pacing?.release(at: now) == true else { return }
    sendPaced(frame, at: now)
    if pacing?.isOver == true { leavePacing() }
  }

  /// Sends all that is left of a paced frame.
  func endPacing(at now: Instant) {
    guard let frame = pacing?.frame else { return }
    frame.release(frame.count)
    sendPaced(frame, at: now)
    leavePacing()
  }

  private func leavePacing() {
    let frame = pacing?.frame
    pacing = nil
    frame?.removeHolder()
  }

  /// Sends the released packets of a paced frame.
  private func sendPaced(_ frame: OutgoingFrame, at now: Instant) {
    guard let timestamp = frame.picture?.timestamp.nanoseconds else { return }
    let mark = nightjar_send_begin(timestamp)
    var packets = 0
    for viewer in viewers where viewer.isBlocked && viewer.step == .idle {
      packets -= viewer.packetsSent
      flush(viewer, at: now)
      packets += viewer.packetsSent
    }
    nightjar_send_end(timestamp, mark, Int64(packets))
  }

  // MARK: Clocks

  /// Repeats the transport stream's clock where no picture did. The clock goes on from the last picture by the time
  /// since that was sent, so that it never runs ahead of a picture that is still on its way.
  func keepAlive(at now: Instant) {
    guard repeatsClock, let lastPicture else { return }
    clockPackets.batch.removeAll()
    let clock = lastPicture.timestamp + (now - lastPicture.sent)
    packetizer.keepAlive(at: clock, into: plain ?? clockPackets.batch)
    protect(into: clockPackets.batch)
    guard clockPackets.count > 0 else { return }
    clockPackets.fill(isFrame: false, isKeyFrame: false, isPaced: false)
    for viewer in viewers { viewer.sendAside(clockPackets, at: now) }
  }
}

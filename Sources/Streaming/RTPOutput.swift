import CTracing
import Glibc
import Media
import RTP
import SRTP
import Synchronization

/// One RTP stream and its viewers: an access unit is packetized once for all that share payload and packet size.
///
/// Used by the send thread alone.
final class RTPOutput {
  /// What the viewers of one stream have in common.
  struct Kind: Hashable {
    let payload: StreamPayload
    /// The most bytes of a packet, with what protects it.
    let packetSize: Int
    /// Nil is not at all.
    var protection: StreamProtection?
    /// Whose it is alone, where each viewer is to have its own (``Optimization/sharing``).
    var viewer: ViewerID?

    /// Whether the stream goes on while nobody gets it: a viewer by RTSP that pauses comes back to the same one.
    var isKept: Bool {
      if let protection { return protection.progress.isHeld.load(ordering: .relaxed) }
      return viewer == nil && payload == .h264 && packetSize == Pipeline.guestPacketSize
    }

    /// What is left to the packetizer.
    var plainPacketSize: Int { packetSize - (protection?.key.suite.packetOverhead ?? 0) }
  }

  let kind: Kind
  private(set) var viewers: [Viewer] = []

  // One of the two is there. Two optionals and not an enum with payloads, because these are mutated in place, where
  // an enum's payload would be copied out and back for each access unit.
  private var h264: H264Packetizer?
  private var transportStream: TransportStreamPacketizer?
  /// Protects what was packetized into ``plain``; nil where nothing is protected.
  private var protector: PacketProtector?
  private let plain: PacketBatch?
  private var control: SenderControl
  private var history: PacketHistory
  private let pictures: CodedPictureQueue
  private let blocked: BlockedViewers
  /// Frames that nobody needs, and those that some viewer has not got whole.
  private var free: [OutgoingFrame] = []
  private var held: [OutgoingFrame] = []
  private let clockPackets: OutgoingFrame
  private let without: Set<Optimization>
  private let controlMemory = UnsafeMutableRawBufferPointer.allocate(
    byteCount: SenderControl.room + PacketProtector.controlRoom, alignment: 8)
  private var pacing: PacedFrame?
  /// What viewers get that have come late.
  private var replays: [Replay] = []
  /// Whether parts follow of the picture that was sent last.
  private var isInPicture = false
  /// The first packet of the last key frame, by its number and by how many went before it.
  private var lastKeyFrame: (number: UInt16, index: UInt64)?
  /// The first packet of the stream's source.
  private var firstSequenceNumber: UInt16
  /// The last picture's time on the stream's timeline, when the camera took it, and when it was sent.
  private var lastPicture: (timestamp: MediaTime, captured: MediaTime, sent: MediaTime)?

  /// A stream without viewers.
  ///
  /// - Parameters:
  ///   - canonicalName: Ours, in RTCP.
  ///   - bitrate: Bits a second of the stream, from which follow RTCP's interval and how much is kept for
  ///     retransmission: about a second.
  ///   - pictures: Where a picture goes that all viewers have got.
  ///   - blocked: Is told of viewers that wait for room.
  ///   - without: What it is to do without.
  /// - Throws: ``PacketizerError``, ``SRTPError``.
  init(
    _ kind: Kind, canonicalName: String, bitrate: Int, pictures: CodedPictureQueue, blocked: BlockedViewers,
    without: Set<Optimization> = [], at now: MediaTime
  ) throws {
    self.kind = kind
    self.without = without
    clockPackets = OutgoingFrame(without: without)
    self.pictures = pictures
    self.blocked = blocked
    let size = kind.plainPacketSize
    func stream(_ type: RTPPayloadType) -> RTPStream { kind.protection?.stream(type) ?? RTPStream(payloadType: type) }
    let numbering = stream(kind.payload == .h264 ? .h264 : .transportStream)
    firstSequenceNumber = numbering.nextSequenceNumber
    h264 = kind.payload == .h264 ? try H264Packetizer(stream: numbering, maximumPacketSize: size) : nil
    transportStream =
      kind.payload == .mp2t
      ? try TransportStreamPacketizer(stream: numbering, maximumPacketSize: size) : nil
    protector = try kind.protection.map { protection throws(SRTPError) in try PacketProtector(protection.key) }
    plain = protector == nil && !without.contains(.zerocopy) ? nil : PacketBatch(storedBytes: 1 << 16)
    control = try SenderControl(
      canonicalName: canonicalName, sessionBitsPerSecond: Double(bitrate), minimum: .standard, at: now)
    let kept = min(max(bitrate / 8, 1 << 18), 1 << 22)
    // Many slices make many small packets.
    history = PacketHistory(packets: max(kept / min(kind.packetSize, 1000), Self.leastKept), bytes: kept)
  }

  deinit {
    controlMemory.deallocate()
  }

  /// The stream's numbering.
  var stream: RTPStream { h264?.stream ?? transportStream.unsafelyUnwrapped.stream }

  /// Whether there was a picture: before that there is no clock to report.
  var hasBegun: Bool { lastPicture != nil }

  // MARK: Viewers

  /// Adds a viewer, who gets the next frame, or the next key frame.
  func add(_ viewer: Viewer) {
    viewers.append(viewer)
    guard hasBegun else { return }
    greet(viewer)
  }

  /// Begins to send a viewer the last key frame and all that followed it, so that its first packet is that of a picture that
  /// can be decoded; false where they are not held any more, or have no room on its way. It gets frames once it has got all
  /// of that.
  ///
  /// - Parameter bitrate: Bits a second of the stream.
  func replay(to viewer: Viewer, bitrate: Int, at now: MediaTime) -> Bool {
    // After so many, its number is another packet's.
    guard let lastKeyFrame, stream.packetsSent - lastKeyFrame.index < 1 << 15 else { return false }
    let first = lastKeyFrame.number
    let next = stream.nextSequenceNumber
    var number = first
    // First whether all are there: half a picture is worth less than none.
    while number != next {
      guard history.withPacket(number, at: now, { _ in true }) == true else { return false }
      number &+= 1
    }
    history.withPacket(first, at: now) { viewer.catchUp(withFirst: $0) }
    replays.append(Replay(to: viewer, from: first, bitrate: bitrate, at: now))
    continueReplays(at: now)
    // Those that have got all of it are in no list any more.
    return !viewer.awaitsKeyFrame
  }

  /// When the next packets of a replay may leave; nil where there is none.
  var replayDeadline: MediaTime? { replays.lazy.map { $0.deadline }.min() }

  /// Whether some viewer gets what was sent before instead of frames.
  var isReplaying: Bool { !replays.isEmpty }

  /// Sends what may leave by now to viewers that have come late.
  func continueReplays(at now: MediaTime) {
    for index in replays.indices.reversed() where !continueReplay(index, at: now) { replays.remove(at: index) }
  }

  /// Sends what may leave of a replay; false once nothing follows.
  private func continueReplay(_ index: Int, at now: MediaTime) -> Bool {
    let viewer = replays[index].viewer
    guard viewer.isCatchingUp else { return false }
    guard replays[index].refill(at: now) || !viewer.transport.losesBursts else { return true }
    while replays[index].next != stream.nextSequenceNumber {
      guard replays[index].allowsPacket || !viewer.transport.losesBursts else { return true }
      let bytes = history.withPacket(replays[index].next, at: now) { viewer.sendAgain($0) ? $0.count : 0 } ?? 0
      guard bytes > 0 else {
        // It is held no longer, or there was no room.
        viewer.fallBehind()
        return false
      }
      replays[index].noteSent(bytes: bytes)
    }
    viewer.caughtUp(isInFrame: isInPicture)
    return false
  }

  /// A picture goes by that nobody gets: what follows it cannot be decoded behind what was sent before.
  func skip() { lastKeyFrame = nil }

  /// Lets a viewer go, and tells it so by BYE where `goodbye` says and it has heard from us (RFC 3550 section 6.3.7).
  func remove(_ viewer: Viewer, goodbye: Bool) {
    viewers.removeAll { $0 === viewer }
    replays.removeAll { $0.viewer === viewer }
    viewer.giveUp()
    reclaim()
    guard goodbye, hasBegun else { return }
    let bytes = control.writeGoodbye(of: stream, into: controlMemory, at: streamTime(at: .now()), ntp: .now())
    send(control: bytes, to: CollectionOfOne(viewer))
  }

  private func greet(_ viewer: Viewer) {
    // The two clocks at once: sending to many viewers takes its time.
    let bytes = control.writeIntroduction(of: stream, into: controlMemory, at: streamTime(at: .now()), ntp: .now())
    send(control: bytes, to: CollectionOfOne(viewer))
  }

  /// What the stream's own clock shows: a picture taken now would have this timestamp.
  private func streamTime(at now: MediaTime) -> MediaTime {
    guard let lastPicture else { return now }
    return lastPicture.timestamp + (now - lastPicture.captured)
  }

  // MARK: Sources

  /// Goes on as another source before a picture, where that is due (``StreamProtection/hasSuccessors``); whether it does. The first
  /// packet that follows is lost to receivers that take it for one out of order (RFC 3550 appendix A.1), so it must be one that
  /// they can do without.
  func changeSourceIfDue(beforeKeyFrame isKeyFrame: Bool, at now: MediaTime) -> Bool {
    guard let protection = kind.protection, protection.hasSuccessors,
      StreamProtection.isSourceDue(before: stream.nextSequenceNumber, isKeyFrame: isKeyFrame),
      // Where there is no memory for another one, the source stays, and its rollover counter goes on.
      let anew = try? PacketProtector(protection.key)
    else { return false }
    protector = anew
    let ssrc = SourceNumbers.next()
    firstSequenceNumber = 0
    h264?.changeSource(to: ssrc, firstSequenceNumber: firstSequenceNumber)
    transportStream?.changeSource(to: ssrc, firstSequenceNumber: firstSequenceNumber)
    // What was sent before is another stream's.
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

  /// Whether it sends a picture's parts as they come. A PES packet says its length in front, and a transport stream's
  /// clock goes with a picture: there it waits for all of it.
  var takesParts: Bool { kind.payload == .h264 }

  /// Packetizes `unit`, whose bytes lie in `picture`, and gives it to every viewer; how many packets left at once, over
  /// all viewers, and how long packetizing took, with what protects them. A part of a picture is never spread.
  ///
  /// - Parameters:
  ///   - plan: How a large one is spread.
  ///   - picture: Is held while a viewer has not got all of it.
  func send(
    _ unit: borrowing AccessUnit, in picture: CodedPicture, _ plan: PacedFrame.Plan, at now: MediaTime
  ) -> (packets: Int, packetizing: MediaTime) {
    let mark = nightjar_packetize_begin(unit.timestamp.nanoseconds)
    let frame = free.popLast() ?? OutgoingFrame(without: without)
    frame.batch.removeAll()
    let first = (number: stream.nextSequenceNumber, index: stream.packetsSent)
    h264?.packetize(unit, into: plain ?? frame.batch)
    transportStream?.packetize(unit, into: plain ?? frame.batch)
    protect(into: frame.batch)
    if unit.isKeyFrame, unit.isFirstPart { lastKeyFrame = first }
    isInPicture = !unit.isLastPart
    for index in 0..<frame.count { history.append(frame.batch[index], at: now) }
    let isFirst = !hasBegun
    lastPicture = (unit.timestamp, unit.captured, now)
    let isPaced = unit.isWhole && plan.spreads(packets: frame.count)
    frame.fill(
      isKeyFrame: unit.isKeyFrame, isPaced: isPaced, isFirstPart: unit.isFirstPart, isLastPart: unit.isLastPart)
    if isPaced { pacing = PacedFrame(frame: frame, begin: now, spread: plan.spread) }
    frame.picture = picture
    picture.holders += 1
    held.append(frame)
    nightjar_packetize_end(unit.timestamp.nanoseconds, mark, Int64(frame.count))
    // That of the last part counts.
    let packetizing = unit.isLastPart ? MediaTime.now() - now : .zero
    let sending = nightjar_send_begin(unit.timestamp.nanoseconds)
    var packets = 0
    for viewer in viewers where viewer.offer(frame, at: now) {
      packets -= viewer.packetsSent
      flush(viewer, at: now)
      packets += viewer.packetsSent
    }
    nightjar_send_end(unit.timestamp.nanoseconds, sending, Int64(packets))
    reclaim()
    if isFirst { for viewer in viewers { greet(viewer) } }
    return (packets, packetizing)
  }

  /// Nothing follows of the picture whose first parts were sent.
  func breakOff() {
    isInPicture = false
    for viewer in viewers { viewer.breakOff() }
  }

  /// Protects what was packetized, where that is wanted: everybody behind this sees nothing else. Where it fails, there
  /// are no packets, and each viewer counts a frame that it has lost.
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

  /// Sends what may leave to a viewer.
  private func flush(_ viewer: Viewer, at now: MediaTime) {
    viewer.flush(at: now)
    blocked.note(viewer)
  }

  /// Sends what was in the way of a viewer that has room now, or has had none for too long.
  func resume(_ viewer: Viewer, at now: MediaTime) {
    flush(viewer, at: now)
    reclaim()
  }

  /// Has the viewers that have not got all of `picture` do without.
  func letGo(of picture: CodedPicture) {
    for viewer in viewers where viewer.holds(picture) {
      viewer.giveUp(EAGAIN)
      blocked.note(viewer)
    }
    if pacing?.frame.picture === picture { pacing = nil }
    reclaim()
  }

  /// Gives back the frames that every viewer has got.
  func reclaim() {
    var index = 0
    while index < held.count {
      let frame = held[index]
      guard frame.holders == 0, pacing?.frame !== frame else {
        index += 1
        continue
      }
      held.remove(at: index)
      if let picture = frame.picture { pictures.release(picture) }
      frame.clear()
      free.append(frame)
    }
  }

  // MARK: Pacing

  /// Whether packets of a frame wait for their time.
  var isPacing: Bool { pacing != nil }

  /// When the next packets of a paced frame may leave; nil where there is none.
  var pacingDeadline: MediaTime? { pacing?.deadline }

  /// Sends the packets of a paced frame whose time has come.
  func pace(at now: MediaTime) {
    guard let picture = pacing?.frame.picture, pacing?.release(at: now) == true else { return }
    if pacing?.isOver == true { pacing = nil }
    sendPaced(picture, at: now)
  }

  /// Sends all that is left of a paced frame.
  func endPacing(at now: MediaTime) {
    guard let frame = pacing?.frame, let picture = frame.picture else { return }
    frame.release(frame.count)
    pacing = nil
    sendPaced(picture, at: now)
  }

  /// Sends what has been released of a paced frame.
  private func sendPaced(_ picture: CodedPicture, at now: MediaTime) {
    let timestamp = picture.timestamp.nanoseconds
    let mark = nightjar_send_begin(timestamp)
    var packets = 0
    for viewer in viewers where viewer.isBlocked && viewer.step == .idle {
      packets -= viewer.packetsSent
      flush(viewer, at: now)
      packets += viewer.packetsSent
    }
    nightjar_send_end(timestamp, mark, Int64(packets))
    reclaim()
  }

  // MARK: Clocks and RTCP

  /// Repeats the transport stream's clock where no picture did. The clock goes on from the last picture by the time
  /// since that was sent, so that it never runs ahead of a picture that is still on its way.
  func keepAlive(at now: MediaTime) {
    guard transportStream != nil, let lastPicture else { return }
    clockPackets.batch.removeAll()
    let clock = lastPicture.timestamp + (now - lastPicture.sent)
    transportStream?.keepAlive(at: clock, into: plain ?? clockPackets.batch)
    protect(into: clockPackets.batch)
    guard clockPackets.count > 0 else { return }
    clockPackets.fill(isFrame: false, isKeyFrame: false, isPaced: false)
    for viewer in viewers { viewer.sendAside(clockPackets, at: now) }
  }

  /// When the next report is due.
  var reportDeadline: MediaTime { control.schedule.deadline }

  /// Sends every viewer the report that is due at `now`.
  func report(at now: MediaTime, bitrate: Int) {
    guard hasBegun else { return }
    control.schedule.sessionBitsPerSecond = Double(max(bitrate, 1000))
    let bytes = control.writeReport(
      of: stream, into: controlMemory, at: now, streamTime: streamTime(at: .now()), ntp: .now())
    guard bytes > 0 else { return }
    send(control: bytes, to: viewers)
  }

  /// Sends the RTCP datagram in the first `count` bytes of ``controlMemory``, protected once where that is wanted.
  private func send(control count: Int, to viewers: some Collection<Viewer>) {
    var count = count
    if let protector {
      do throws(SRTPError) { count = try protector.protectControl(controlMemory, count: count) } catch { return }
    }
    let datagram = UnsafeRawBufferPointer(rebasing: controlMemory[..<count])
    for viewer in viewers { viewer.transport.send(control: datagram) }
  }

  /// Takes what a viewer says by RTCP, a few datagrams at most, and answers its NACKs.
  ///
  /// - Parameter memory: For one datagram.
  /// - Returns: What it asks for; `isFlooding` where there may be more to read than is read at a time.
  func receive(
    from viewer: Viewer, into memory: UnsafeMutableRawBufferPointer, at now: MediaTime
  ) -> (requests: ViewerFeedback.Requests, isHeard: Bool, isFlooding: Bool) {
    var requests = ViewerFeedback.Requests()
    var isHeard = false
    for _ in 0..<Self.datagramsAtATime {
      var hasMore = false
      var count = viewer.transport.receiveControl(into: memory, hasMore: &hasMore)
      guard hasMore else { return (requests, isHeard, false) }
      // What we say to a group ourselves comes back where this machine is a member. With a key it is counted below.
      guard count > 0, viewer.unprotector != nil || !isOurs(memory, count: count) else { continue }
      if let unprotector = viewer.unprotector {
        // Counted there.
        do throws(SRTPError) { count = try unprotector.unprotect(memory, count: count) } catch { continue }
      }
      let datagram = UnsafeRawBufferPointer(rebasing: memory[..<count])
      let result = try? viewer.feedback.receive(
        datagram, at: now, ntp: .now(), history: history, has: viewer.takesAgain
      ) { header, payload in
        _ = viewer.transport.send(header: header, payload: payload)
      }
      // What is no RTCP was counted there.
      if result != nil { isHeard = true }
      requests.keyFrame = requests.keyFrame || result?.keyFrame == true
      requests.goodbye = requests.goodbye || result?.goodbye == true
      requests.newReceiver = requests.newReceiver || result?.newReceiver == true
    }
    return (requests, isHeard, true)
  }

  /// Whether an RTCP datagram bears our own source.
  private func isOurs(_ memory: UnsafeMutableRawBufferPointer, count: Int) -> Bool {
    count >= 8 && UInt32(bigEndian: memory.loadUnaligned(fromByteOffset: 4, as: UInt32.self)) == stream.ssrc
  }

  /// For how many packets there is room in what is kept, however small they are.
  private static let leastKept = 4096

  /// How many datagrams of one viewer are read before it is others' turn.
  static let datagramsAtATime = 4
}

extension NTPTimestamp {
  /// What the wall clock shows.
  static func now() -> NTPTimestamp {
    var time = timespec()
    clock_gettime(CLOCK_REALTIME, &time)
    return NTPTimestamp(unixSeconds: Int64(time.tv_sec), nanoseconds: Int64(time.tv_nsec))
  }
}

import Glibc
import Platform
import RTP
import SRTP

/// The stream's own RTCP, and that of its viewers.
extension RTPOutput {
  /// Tells a viewer the stream's clock and name, which it learns from no packet.
  func greet(_ viewer: Viewer) {
    // Both clocks are read at once: sending to many viewers takes time.
    let bytes = control.writeIntroduction(of: stream, into: controlMemory, at: streamTime(at: .now()), ntp: .now())
    send(control: bytes, to: CollectionOfOne(viewer))
  }

  /// Returns the time of the stream's own clock: the timestamp of a picture taken now.
  private func streamTime(at now: Instant) -> Instant {
    guard let lastPicture else { return now }
    return lastPicture.timestamp + (now - lastPicture.captured)
  }

  /// The time at which the next report is due.
  var reportDeadline: Instant { control.schedule.deadline }

  /// Sends every viewer the report that is due at `now`.
  func report(at now: Instant, bitrate: Int) {
    guard hasBegun else { return }
    control.schedule.sessionBitsPerSecond = Double(max(bitrate, 1000))
    let bytes = control.writeReport(
      of: stream, into: controlMemory, at: now, streamTime: streamTime(at: .now()), ntp: .now())
    guard bytes > 0 else { return }
    send(control: bytes, to: viewers)
  }

  /// Sends BYE to a viewer that has got RTCP from us (RFC 3550 section 6.3.7).
  func dismiss(_ viewer: Viewer) {
    let bytes = control.writeGoodbye(of: stream, into: controlMemory, at: streamTime(at: .now()), ntp: .now())
    send(control: bytes, to: CollectionOfOne(viewer))
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

  /// Takes a viewer's RTCP, a few datagrams at most, and answers its NACKs.
  ///
  /// - Parameter memory: room for one datagram.
  /// - Returns: The viewer's requests. `isHeard` is `true` if there was valid RTCP, and `isFlooding` if there may be
  ///   more to read than is read at a time.
  func receive(
    from viewer: Viewer, into memory: UnsafeMutableRawBufferPointer, at now: Instant
  ) -> (requests: ViewerFeedback.Requests, isHeard: Bool, isFlooding: Bool) {
    var requests = ViewerFeedback.Requests()
    var isHeard = false
    for _ in 0..<Self.datagramsAtATime {
      var hasMore = false
      var count = viewer.transport.receiveControl(into: memory, hasMore: &hasMore)
      guard hasMore else { return (requests, isHeard, false) }
      // Our own RTCP to a group comes back where this host is a member. With a key it is counted below.
      guard count > 0, viewer.unprotector != nil || !isOurs(memory, count: count) else { continue }
      if let unprotector = viewer.unprotector {
        // `unprotector` counts the refused datagram.
        do throws(SRTPError) { count = try unprotector.unprotect(memory, count: count) } catch { continue }
      }
      let datagram = UnsafeRawBufferPointer(rebasing: memory[..<count])
      viewer.feedback.sequenceOffset = viewer.transport.sequenceOffset
      let result = try? viewer.feedback.receive(
        datagram, at: now, ntp: .now(), history: history, has: viewer.takesAgain
      ) { header, payload in
        viewer.repeatPacket(header: header, payload: payload)
      }
      // A datagram that is not RTCP was counted by `feedback`.
      if let result {
        isHeard = true
        viewer.note(result, at: now)
      }
      requests.keyFrame = requests.keyFrame || result?.keyFrame == true
      requests.goodbye = requests.goodbye || result?.goodbye == true
      requests.newReceiver = requests.newReceiver || result?.newReceiver == true
      if let reference = result?.reference, viewer.isGuest { answer(reference, of: viewer, receivedAt: now) }
    }
    return (requests, isHeard, true)
  }

  /// Answers a receiver's reference time at once, so that the receiver knows after how long to repeat a NACK. Without
  /// the answer, browsers take a tenth of a second for the round trip.
  private func answer(_ reference: ViewerFeedback.Reference, of viewer: Viewer, receivedAt time: Instant) {
    let now = Instant.now()
    let delay = ReceiverDelay(ssrc: reference.receiver, reference: reference.time, delay: now - time)
    let bytes = control.writeIntroduction(
      of: stream, answering: delay, into: controlMemory, at: streamTime(at: now), ntp: .now())
    send(control: bytes, to: CollectionOfOne(viewer))
  }

  /// Returns `true` if an RTCP datagram bears our own source.
  private func isOurs(_ memory: UnsafeMutableRawBufferPointer, count: Int) -> Bool {
    count >= 8 && UInt32(bigEndian: memory.loadUnaligned(fromByteOffset: 4, as: UInt32.self)) == stream.ssrc
  }

  /// The number of datagrams of one viewer that are read before it is others' turn.
  static let datagramsAtATime = 4
}

extension NTPTimestamp {
  /// Returns the time of the wall clock.
  static func now() -> NTPTimestamp {
    var time = timespec()
    clock_gettime(CLOCK_REALTIME, &time)
    return NTPTimestamp(unixSeconds: Int64(time.tv_sec), nanoseconds: Int64(time.tv_nsec))
  }
}

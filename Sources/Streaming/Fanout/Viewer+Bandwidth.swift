import CTracing
package import Platform
package import RTP

/// The bandwidth of the path to a viewer, and what leaves for it.
extension Viewer {
  /// The most frames on their way to the viewer.
  var framesLimit: Int {
    isSpread ? max(Self.pacedFramesLimit, framesInFlightLimit) : framesInFlightLimit
  }

  /// The time after which a viewer that takes no picture has no part in the bitrate. One whose network takes less than
  /// the floor has a picture again before.
  static let leftOutTime = Duration.seconds(3)

  /// The bits a second that the stream may have for this viewer; nil where that does not matter: its network is open, or
  /// it gets nothing that a lower bitrate would bring it, as on a computer that sleeps.
  package func target(at now: Instant) -> Double? {
    if let leftOutSince, now - leftOutSince > Self.leftOutTime { return nil }
    return bandwidth?.target(at: now)
  }

  /// `true` if packets leave no faster than the path takes them. A connection does that by itself.
  private var isSpread: Bool { transport.losesBursts && bandwidth?.isLimited == true }

  /// Takes what the transport tells of the path, before a frame.
  func noteArrivals(at now: Instant) {
    guard let bandwidth else { return }
    if let sample = transport.takeReception() {
      bandwidth.take(sample, at: now)
      transport.noteLimit(bandwidth.estimate.limit)
    }
    refill(at: now)
  }

  /// Adds what may leave by now. Where the stream is stopped instead, nothing waits to leave any more.
  private func refill(at now: Instant) {
    guard let bandwidth, bandwidth.isHeard else { return }
    bandwidth.refill(isGroup: bandwidth.hasBreaker && feedback.isGroup(at: now), at: now)
    if isStopped { leaveAll() }
  }

  /// Drops everything on its way, and waits for a key frame.
  private func leaveAll() {
    giveUp()
    guard !awaitsKeyFrame || isCatchingUp else { return }
    breakOff()
    fallBehind()
  }

  /// `true` if a circuit breaker has stopped the stream: no packet may leave, not even one that waits (RFC 8083 section
  /// 4.5).
  package var isStopped: Bool { bandwidth?.isStopped == true }

  /// Takes what the viewer's RTCP tells of the path.
  package func note(_ said: ViewerFeedback.Requests, at now: Instant) {
    guard bandwidth != nil, !feedback.isGroup(at: now) else { return }
    if said.isReport {
      // Packets in a stream of their own are none of the reported one.
      let repeated = feedback.retransmissions == nil ? feedback.counts.packetsRetransmitted : 0
      bandwidth?.take(
        feedback.reception, of: said.reporter, repeated: repeated, offset: transport.sequenceOffset, at: now)
      if isStopped { leaveAll() }
    }
    if let limit = said.receiverLimit { bandwidth?.take(receiverLimit: limit, at: now) }
  }

  /// Tells the present bandwidth to those who look.
  package func tellBandwidth(at now: Instant) {
    guard let bandwidth, bandwidth.isHeard else { return }
    if bandwidth.isKnown {
      nightjar_network_estimate(
        Int64(truncatingIfNeeded: id.number), Int64(bandwidth.estimate.limit ?? 0), bandwidth.estimate.queue.nanoseconds
      )
    }
    figures.update {
      // More than the stream needs is no weakness.
      $0.bandwidth = bandwidth.estimate.limit.flatMap { $0 < bandwidth.estimate.wanted ? Int($0) : nil }
      $0.queueing = bandwidth.isKnown ? bandwidth.estimate.queue : nil
      $0.pauses = bandwidth.pauses
      if let breaker = bandwidth.breaker { ($0.stops, $0.stopped) = (breaker.counts, breaker.stopped) }
    }
  }

  /// Returns the end of the released packets of `frame` that may leave now.
  func leavingEnd(of frame: OutgoingFrame, from first: Int, at now: Instant) -> Int {
    guard isSpread else { return frame.released }
    refill(at: now)
    guard !isStopped else { return first }
    return bandwidth?.end(from: first, to: frame.released, of: frame) ?? frame.released
  }

  /// Notes packets that have left.
  func noteLeft(_ progress: SendProgress, of frame: OutgoingFrame, at now: Instant) {
    guard bandwidth != nil, progress.packets > 0 else { return }
    let header = frame.batch[progress.next - 1].header
    let number = UInt16(header[2]) << 8 | UInt16(header[3])
    bandwidth?.noteSent(number: number, packets: progress.packets, bytes: progress.bytes, at: now)
  }

  /// Notes a packet that others have got before, and that has left.
  func noteLeft(_ packet: UnsafeRawBufferPointer, at now: Instant) {
    guard bandwidth != nil, packet.count >= RTPHeader.byteCount else { return }
    let number = UInt16(packet[2]) << 8 | UInt16(packet[3])
    bandwidth?.noteSent(number: number, packets: 1, bytes: packet.count, at: now)
  }
}

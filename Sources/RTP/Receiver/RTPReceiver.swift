public import Platform

/// A receiver of one stream of H.264, HEVC or Opus by RTP.
///
/// The receiver reorders packets, requests missing ones and gives up those that come too late. It requests a key
/// frame when a picture is finally lost, and it reports.
///
/// Bytes and times go in; access units and RTCP datagrams come out. Sockets and clocks belong to the caller:
///
///     try receiver.receive(datagram, at: now) { unit in … }      // for each datagram
///     receiver.poll(at: now) { unit in … }                       // at `nextDeadline`, at the latest
///     while case let count = receiver.writeFeedback(into: buffer, at: now), count > 0 { send }
///
/// The receiver allocates all memory at creation, except for the depacketizer's, which grows up to its limits. Use it
/// from one thread. The closures must not call back into the receiver.
public final class RTPReceiver {
  /// The receiver's configuration.
  public let configuration: Configuration
  /// The receiver's counts.
  public internal(set) var counts = Counts()
  /// The sequence numbers, loss and jitter of the source; `nil` before there is one.
  public internal(set) var statistics: ReceptionStatistics?
  /// The source being received; `nil` before two packets of one source came in sequence (RFC 3550 appendix A.1).
  public internal(set) var source: UInt32?
  /// The last sender report: the mapping of RTP time to wall-clock time.
  public internal(set) var senderReport: SenderReport?
  /// `true` if the sender sent BYE.
  public internal(set) var hasEnded = false
  /// `true` if the delivered access units cannot be decoded until an undamaged key frame comes.
  public internal(set) var needsKeyFrame = false

  var depacketizer: H264Depacketizer
  private var hevc: HEVCDepacketizer
  private var sound: OpusDepacketizer
  var window: ReorderBuffer
  var missing: NACKScheduler
  var schedule: RTCPSchedule
  var random: SplitMix64
  var lastSenderReportArrival = Instant.zero
  var lastPictureLoss: Instant?
  /// `true` after the first delivery of an access unit. Before it, there is nothing that a loss could damage.
  private var hasDelivered = false
  /// The first packet of a source that is not received yet; its bytes are in `candidateMemory`.
  private var candidate: (header: RTPHeader, count: Int, time: Instant)?
  private let candidateMemory: UnsafeMutableRawBufferPointer
  private let unwrapMemory: UnsafeMutableRawBufferPointer
  let nackEntries: UnsafeMutableBufferPointer<NACKEntry>

  /// Creates a receiver that begins at `time`.
  ///
  /// - Throws: ``RTCPWriterError/text(_:limit:)`` for a CNAME that is longer than RTCP allows.
  public init(_ configuration: Configuration, at time: Instant) throws(RTCPWriterError) {
    try RTCPWriter.check(configuration.canonicalName)
    self.configuration = configuration
    depacketizer = H264Depacketizer(payloadType: configuration.payloadType, limits: configuration.limits)
    hevc = HEVCDepacketizer(payloadType: configuration.payloadType, limits: configuration.limits)
    sound = OpusDepacketizer(payloadType: configuration.payloadType)
    window = ReorderBuffer(packets: configuration.packets, packetBytes: configuration.maximumPacketSize)
    missing = NACKScheduler(configuration.retransmission, capacity: window.capacity)
    random = SplitMix64(seed: configuration.seed)
    schedule = RTCPSchedule(
      sessionBitsPerSecond: configuration.sessionBitsPerSecond, isSender: false, at: time, using: &random)
    candidateMemory = .allocate(byteCount: configuration.maximumPacketSize, alignment: 16)
    unwrapMemory = .allocate(byteCount: configuration.maximumPacketSize, alignment: 16)
    nackEntries = .allocate(capacity: Self.nackEntriesPerDatagram)
    nackEntries.initialize(repeating: NACKEntry(packetID: 0))
  }

  deinit {
    candidateMemory.deallocate()
    unwrapMemory.deallocate()
    nackEntries.deallocate()
  }

  /// The receiver's memory in bytes. Only the depacketizer's part grows.
  public var memoryBytes: Int {
    depacketizer.memoryBytes + hevc.memoryBytes + window.memoryBytes + missing.memoryBytes + 2
      * configuration.maximumPacketSize
      + nackEntries.count * NACKEntry.byteCount
  }

  /// The time that retransmissions take; `nil` before the first.
  public var roundTrip: Duration? { missing.roundTrip }

  /// Takes a datagram that came at `time`, and lends each access unit that the datagram completes to `deliver`.
  ///
  /// - Throws: ``RTPReceiverError`` for a datagram that is refused as a whole. The next datagram can follow as usual.
  public func receive(
    _ datagram: UnsafeRawBufferPointer, at time: Instant, deliver: (borrowing ReceivedAccessUnit) -> Void
  ) throws(RTPReceiverError) {
    do throws(RTPReceiverError) {
      if configuration.isMultiplexed {
        switch RTPMultiplexing(datagram) {
        case .rtp: break
        case .rtcp: return try takeControl(datagram, at: time)
        case .other: throw .unknown(bytes: datagram.count)
        }
      }
      try takeMedia(datagram, at: time, deliver: deliver)
    } catch {
      counts.datagramsRefused &+= 1
      throw error
    }
  }

  /// Gives up packets that have been missing for too long at `time`, and lends the access units behind them to
  /// `deliver`.
  public func poll(at time: Instant, deliver: (borrowing ReceivedAccessUnit) -> Void) {
    while window.span > 0, !window.holds(window.head) {
      if let deadline = missing.deadline(of: window.head), deadline > time { return }
      step(deliver: deliver)
      drain(deliver: deliver)
    }
  }

  /// Lends all held data, complete or not, to `deliver`, for the end of a stream.
  public func finish(deliver: (borrowing ReceivedAccessUnit) -> Void) {
    flush(deliver: deliver)
    depacketizer.finish { note($0, deliver: deliver) }
    hevc.finish { note($0, deliver: deliver) }
  }

  // MARK: Packets

  private func takeMedia(
    _ datagram: UnsafeRawBufferPointer, at time: Instant, deliver: (borrowing ReceivedAccessUnit) -> Void
  ) throws(RTPReceiverError) {
    guard datagram.count <= configuration.maximumPacketSize else {
      throw .size(datagram.count, limit: configuration.maximumPacketSize)
    }
    let packet: RTPPacket
    do { packet = try RTPPacket(parsing: datagram) } catch { throw .packet(error) }
    let header = packet.header
    if let payloadType = configuration.retransmissionPayloadType, header.payloadType == payloadType {
      takeRetransmission(packet, bytes: datagram, at: time, deliver: deliver)
      return
    }
    guard header.payloadType == configuration.payloadType else {
      throw .payloadType(header.payloadType, expected: configuration.payloadType)
    }
    if let expected = configuration.source, header.ssrc != expected {
      throw .source(header.ssrc, expected: expected)
    }
    guard header.ssrc == source, statistics != nil else {
      probe(header, bytes: datagram, at: time, deliver: deliver)
      return
    }
    follow(header, bytes: datagram, at: time, deliver: deliver)
  }

  /// Takes a packet of a source that is not received yet. Two packets in sequence confirm the source.
  private func probe(
    _ header: RTPHeader, bytes: UnsafeRawBufferPointer, at time: Instant,
    deliver: (borrowing ReceivedAccessUnit) -> Void
  ) {
    if let first = candidate, first.header.ssrc == header.ssrc,
      header.sequenceNumber == first.header.sequenceNumber &+ 1
    {
      candidate = nil
      flush(deliver: deliver)
      begin(first.header)
      let held = UnsafeRawBufferPointer(rebasing: candidateMemory[..<first.count])
      follow(first.header, bytes: held, at: first.time, deliver: deliver)
      follow(header, bytes: bytes, at: time, deliver: deliver)
    } else {
      if candidate != nil { counts.packetsDropped &+= 1 }
      candidate = (header, bytes.count, time)
      candidateMemory.copyMemory(from: bytes)
    }
  }

  private func begin(_ header: RTPHeader) {
    source = header.ssrc
    statistics = ReceptionStatistics(
      first: header.sequenceNumber, maximumMisorder: UInt16(clamping: max(window.capacity, 100)),
      clockRate: configuration.contents.clockRate)
    senderReport = nil
    hasEnded = false
    window.restart(at: header.sequenceNumber)
    missing.removeAll()
  }

  private func follow(
    _ header: RTPHeader, bytes: UnsafeRawBufferPointer, at time: Instant,
    deliver: (borrowing ReceivedAccessUnit) -> Void
  ) {
    switch statistics?.update(header, at: time) {
    case .accepted?: break
    case .restarted?:
      flush(deliver: deliver)
      window.restart(at: header.sequenceNumber)
      missing.removeAll()
    case .rejected?, nil:
      counts.packetsDropped &+= 1
      return
    }
    place(header.sequenceNumber, bytes, at: time, deliver: deliver)
  }

  private func takeRetransmission(
    _ packet: RTPPacket, bytes: UnsafeRawBufferPointer, at time: Instant,
    deliver: (borrowing ReceivedAccessUnit) -> Void
  ) {
    counts.retransmissions &+= 1
    // Only missing packets are accepted. RFC 4588 section 5.3 associates the two streams by the requested sequence
    // numbers.
    guard let source,
      let original = RetransmissionStream.unwrap(
        packet, bytes: bytes, payloadType: configuration.payloadType, ssrc: source, into: unwrapMemory),
      let sequenceNumber = original.bigEndian(UInt16.self, at: 2), sequenceNumber &- window.head < window.span,
      missing.isMissing(sequenceNumber)
    else {
      counts.packetsRepeated &+= 1
      return
    }
    place(sequenceNumber, original, at: time, deliver: deliver)
  }

  /// Delivers a packet if it is the next one, otherwise holds it.
  private func place(
    _ sequenceNumber: UInt16, _ bytes: UnsafeRawBufferPointer, at time: Instant,
    deliver: (borrowing ReceivedAccessUnit) -> Void
  ) {
    let ahead = Int(sequenceNumber &- window.head)
    guard ahead < 0x8000 else {
      counts.packetsRepeated &+= 1
      return
    }
    if ahead >= window.span + window.capacity {
      // A gap larger than the window is not repaired: a key frame costs less.
      flush(deliver: deliver)
      counts.packetsLost &+= UInt64(sequenceNumber &- window.head)
      window.restart(at: sequenceNumber)
    } else {
      while Int(sequenceNumber &- window.head) >= window.capacity { step(deliver: deliver) }
    }
    let offset = Int(sequenceNumber &- window.head)
    if offset >= window.span {
      while window.end != sequenceNumber {
        missing.add(window.end, at: time)
        window.extend(to: window.end)
      }
      window.extend(to: sequenceNumber)
    } else if window.holds(sequenceNumber) {
      counts.packetsRepeated &+= 1
      return
    } else if let tries = missing.remove(sequenceNumber, cameAt: time) {
      if tries > 0 { counts.packetsRecovered &+= 1 } else { counts.packetsReordered &+= 1 }
    }
    if offset == 0 {
      _ = window.advance()
      pass(bytes, deliver: deliver)
    } else {
      window.hold(sequenceNumber, bytes)
    }
    drain(deliver: deliver)
  }

  private func drain(deliver: (borrowing ReceivedAccessUnit) -> Void) {
    while window.span > 0, window.holds(window.head) { step(deliver: deliver) }
  }

  /// Advances by one packet: delivers it, or gives it up if it is missing.
  private func step(deliver: (borrowing ReceivedAccessUnit) -> Void) {
    missing.remove(window.head)
    if let bytes = window.advance() {
      pass(bytes, deliver: deliver)
    } else {
      counts.packetsLost &+= 1
    }
  }

  private func flush(deliver: (borrowing ReceivedAccessUnit) -> Void) {
    while window.span > 0 { step(deliver: deliver) }
  }

  private func pass(_ bytes: UnsafeRawBufferPointer, deliver: (borrowing ReceivedAccessUnit) -> Void) {
    do {
      switch configuration.contents {
      case .h264: try depacketizer.receive(bytes) { note($0, deliver: deliver) }
      case .hevc: try hevc.receive(bytes) { note($0, deliver: deliver) }
      case .opus: try sound.receive(bytes) { note($0, deliver: deliver) }
      }
    } catch {
      counts.payloadsRefused &+= 1
    }
  }

  private func note(_ unit: borrowing ReceivedAccessUnit, deliver: (borrowing ReceivedAccessUnit) -> Void) {
    counts.accessUnits &+= 1
    if unit.isDamaged {
      counts.accessUnitsDamaged &+= 1
      needsKeyFrame = true
    } else if unit.isKeyFrame {
      needsKeyFrame = false
    } else if !hasDelivered {
      needsKeyFrame = true
    }
    hasDelivered = true
    deliver(unit)
  }
}

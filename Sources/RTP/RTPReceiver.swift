public import Media

/// Receives one H.264 stream by RTP: puts packets in order, asks for missing ones, gives up what comes too late,
/// asks for a key frame where a picture is lost for good, and reports.
///
/// Bytes and times go in, access units and RTCP datagrams come out; sockets and clocks are the caller's:
///
///     try receiver.receive(datagram, at: now) { unit in … }      // for each datagram
///     receiver.poll(at: now) { unit in … }                       // at `nextDeadline`, at the latest
///     while case let count = receiver.writeFeedback(into: buffer, at: now), count > 0 { send }
///
/// All memory is taken at the start, except for the depacketizer's, which grows up to its limits. Used from one
/// thread; the closures must not call back into the receiver.
public final class RTPReceiver {
  /// The receiver's configuration.
  public let configuration: Configuration
  /// What it did so far.
  public internal(set) var counts = Counts()
  /// Sequence numbers, loss and jitter of the source; nil before there is one.
  public internal(set) var statistics: ReceptionStatistics?
  /// The source that is followed; nil before two packets of one came in sequence (RFC 3550 appendix A.1).
  public internal(set) var source: UInt32?
  /// The last sender report: the mapping of RTP time to wall-clock time.
  public internal(set) var senderReport: SenderReport?
  /// Whether the sender said BYE.
  public internal(set) var hasEnded = false
  /// Whether what is delivered cannot be decoded until an undamaged key frame comes.
  public internal(set) var needsKeyFrame = false

  var depacketizer: H264Depacketizer
  var window: ReorderBuffer
  var missing: NACKScheduler
  var schedule: RTCPSchedule
  var random: SplitMix64
  var lastSenderReportArrival = MediaTime.zero
  var lastPictureLoss: MediaTime?
  /// Whether an access unit was delivered: before, there is nothing to be damaged.
  private var hasDelivered = false
  /// The first packet of a source that is not followed yet, its bytes in `candidateMemory`.
  private var candidate: (header: RTPHeader, count: Int, time: MediaTime)?
  private let candidateMemory: UnsafeMutableRawBufferPointer
  private let unwrapMemory: UnsafeMutableRawBufferPointer
  let nackEntries: UnsafeMutableBufferPointer<NACKEntry>

  /// A receiver that begins at `time`.
  ///
  /// - Throws: ``RTCPWriterError/text(_:limit:)`` for a longer CNAME than RTCP carries.
  public init(_ configuration: Configuration, at time: MediaTime) throws(RTCPWriterError) {
    try RTCPWriter.check(configuration.canonicalName)
    self.configuration = configuration
    depacketizer = H264Depacketizer(payloadType: configuration.payloadType, limits: configuration.limits)
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

  /// The memory that it holds, in bytes; only the depacketizer's part grows.
  public var memoryBytes: Int {
    depacketizer.memoryBytes + window.memoryBytes + missing.memoryBytes + 2 * configuration.maximumPacketSize
      + nackEntries.count * NACKEntry.byteCount
  }

  /// How long retransmissions take; nil before the first.
  public var roundTrip: MediaTime? { missing.roundTrip }

  /// Takes a datagram that came at `time`, and lends each access unit that it completes to `deliver`.
  ///
  /// - Throws: ``RTPReceiverError`` for one that is refused as a whole; the next may be given as usual.
  public func receive(
    _ datagram: UnsafeRawBufferPointer, at time: MediaTime, deliver: (borrowing ReceivedAccessUnit) -> Void
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

  /// Gives up what has been missing for too long at `time`, and lends the access units behind it to `deliver`.
  public func poll(at time: MediaTime, deliver: (borrowing ReceivedAccessUnit) -> Void) {
    while window.span > 0, !window.holds(window.head) {
      if let deadline = missing.deadline(of: window.head), deadline > time { return }
      step(deliver: deliver)
      drain(deliver: deliver)
    }
  }

  /// Lends everything that is held, complete or not, to `deliver`: for the end of a stream.
  public func finish(deliver: (borrowing ReceivedAccessUnit) -> Void) {
    flush(deliver: deliver)
    depacketizer.finish { note($0, deliver: deliver) }
  }

  // MARK: Packets

  private func takeMedia(
    _ datagram: UnsafeRawBufferPointer, at time: MediaTime, deliver: (borrowing ReceivedAccessUnit) -> Void
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

  /// A packet of a source that is not followed yet: two in sequence make it the one that is.
  private func probe(
    _ header: RTPHeader, bytes: UnsafeRawBufferPointer, at time: MediaTime,
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
      first: header.sequenceNumber, maximumMisorder: UInt16(clamping: max(window.capacity, 100)))
    senderReport = nil
    hasEnded = false
    window.restart(at: header.sequenceNumber)
    missing.removeAll()
  }

  private func follow(
    _ header: RTPHeader, bytes: UnsafeRawBufferPointer, at time: MediaTime,
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
    _ packet: RTPPacket, bytes: UnsafeRawBufferPointer, at time: MediaTime,
    deliver: (borrowing ReceivedAccessUnit) -> Void
  ) {
    counts.retransmissions &+= 1
    // Only what is missing is taken: RFC 4588 section 5.3 binds the two streams by the sequence numbers asked for.
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

  /// Puts a packet in its place: delivers it where it is the next, else holds it.
  private func place(
    _ sequenceNumber: UInt16, _ bytes: UnsafeRawBufferPointer, at time: MediaTime,
    deliver: (borrowing ReceivedAccessUnit) -> Void
  ) {
    let ahead = Int(sequenceNumber &- window.head)
    guard ahead < 0x8000 else {
      counts.packetsRepeated &+= 1
      return
    }
    if ahead >= window.span + window.capacity {
      // A gap that no window spans is not repaired: a key frame is cheaper.
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

  /// Moves on by one packet, which is delivered, or given up where it is not there.
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
    do throws(H264DepacketizerError) {
      try depacketizer.receive(bytes) { note($0, deliver: deliver) }
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

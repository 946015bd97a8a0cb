public import Platform

/// The report of one receiver on one source, RFC 3550 section 6.4.1.
public struct ReportBlock: RTCPRecord, Hashable {
  /// The size on the wire in bytes.
  public static let byteCount = 24
  /// The limits that cumulative loss is clamped to: a signed number of 24 bits.
  public static let cumulativeLimits: ClosedRange<Int32> = -0x80_0000...0x7f_ffff

  /// The source that the block reports on.
  public var ssrc: UInt32
  /// The fraction of packets lost since the report before, in 1/256.
  public var fractionLost: UInt8
  /// The number of packets lost since the beginning; negative if duplicates outnumber losses.
  public var cumulativeLost: Int32
  /// The extended highest sequence number received: the cycles are in the upper 16 bits.
  public var highestSequenceNumber: UInt32
  /// The interarrival jitter, a mean deviation in ticks of the RTP clock.
  public var jitter: UInt32
  /// The compact NTP time of the last sender report (LSR); 0 for none.
  public var lastSenderReport: UInt32
  /// The delay since that sender report (DLSR), in 1/65536 s.
  public var delaySinceLastSenderReport: UInt32

  /// Creates a block; see the properties.
  public init(
    ssrc: UInt32, fractionLost: UInt8 = 0, cumulativeLost: Int32 = 0, highestSequenceNumber: UInt32 = 0,
    jitter: UInt32 = 0, lastSenderReport: UInt32 = 0, delaySinceLastSenderReport: UInt32 = 0
  ) {
    self.ssrc = ssrc
    self.fractionLost = fractionLost
    self.cumulativeLost = cumulativeLost
    self.highestSequenceNumber = highestSequenceNumber
    self.jitter = jitter
    self.lastSenderReport = lastSenderReport
    self.delaySinceLastSenderReport = delaySinceLastSenderReport
  }

  /// Reads a block.
  public init(record bytes: UnsafeRawBufferPointer) {
    ssrc = bytes.bigEndian(at: 0)
    let loss: UInt32 = bytes.bigEndian(at: 4)
    fractionLost = UInt8(truncatingIfNeeded: loss >> 24)
    // The shift up and down again extends the sign.
    cumulativeLost = Int32(bitPattern: loss << 8) >> 8
    highestSequenceNumber = bytes.bigEndian(at: 8)
    jitter = bytes.bigEndian(at: 12)
    lastSenderReport = bytes.bigEndian(at: 16)
    delaySinceLastSenderReport = bytes.bigEndian(at: 20)
  }

  /// Writes the block, with the cumulative loss clamped to ``cumulativeLimits``.
  public func write(to memory: UnsafeMutableRawPointer) {
    let cumulative = max(Self.cumulativeLimits.lowerBound, min(cumulativeLost, Self.cumulativeLimits.upperBound))
    memory.storeBigEndian(ssrc, at: 0)
    memory.storeBigEndian(UInt32(fractionLost) << 24 | UInt32(bitPattern: cumulative) & 0xff_ffff, at: 4)
    memory.storeBigEndian(highestSequenceNumber, at: 8)
    memory.storeBigEndian(jitter, at: 12)
    memory.storeBigEndian(lastSenderReport, at: 16)
    memory.storeBigEndian(delaySinceLastSenderReport, at: 20)
  }
}

/// A sender's report on itself, RFC 3550 section 6.4.1: the mapping of RTP time to wall-clock time, and counts.
public struct SenderReport: RTCPRecord, Hashable {
  /// The size on the wire in bytes with the sender's source, without the RTCP header and report blocks.
  public static let byteCount = 24

  /// The SSRC of the sender.
  public var ssrc: UInt32
  /// The wall-clock time at which the report was sent.
  public var ntp: NTPTimestamp
  /// The RTP timestamp of that instant.
  public var rtpTimestamp: UInt32
  /// The number of packets sent so far, modulo 2^32.
  public var packetCount: UInt32
  /// The number of payload bytes sent so far, modulo 2^32.
  public var octetCount: UInt32

  /// Creates a report; see the properties.
  public init(ssrc: UInt32, ntp: NTPTimestamp, rtpTimestamp: UInt32, packetCount: UInt32, octetCount: UInt32) {
    self.ssrc = ssrc
    self.ntp = ntp
    self.rtpTimestamp = rtpTimestamp
    self.packetCount = packetCount
    self.octetCount = octetCount
  }

  /// Creates the report of `stream` at `time` on its timeline, when the wall clock shows `ntp`. Read both clocks
  /// together.
  public init(_ stream: RTPStream, at time: Instant, ntp: NTPTimestamp) {
    self.init(
      ssrc: stream.ssrc, ntp: ntp, rtpTimestamp: stream.rtpTimestamp(of: time),
      packetCount: UInt32(truncatingIfNeeded: stream.packetsSent),
      octetCount: UInt32(truncatingIfNeeded: stream.octetsSent))
  }

  /// Reads a report.
  public init(record bytes: UnsafeRawBufferPointer) {
    ssrc = bytes.bigEndian(at: 0)
    ntp = NTPTimestamp(rawValue: bytes.bigEndian(at: 4))
    rtpTimestamp = bytes.bigEndian(at: 12)
    packetCount = bytes.bigEndian(at: 16)
    octetCount = bytes.bigEndian(at: 20)
  }

  /// Writes the report.
  public func write(to memory: UnsafeMutableRawPointer) {
    memory.storeBigEndian(ssrc, at: 0)
    memory.storeBigEndian(ntp.rawValue, at: 4)
    memory.storeBigEndian(rtpTimestamp, at: 12)
    memory.storeBigEndian(packetCount, at: 16)
    memory.storeBigEndian(octetCount, at: 20)
  }
}

/// The answer to a receiver's reference time, from which the receiver learns its round-trip time: RFC 3611 section 4.5.
public struct ReceiverDelay: RTCPRecord, Hashable {
  /// The size on the wire in bytes.
  public static let byteCount = 12

  /// The receiver.
  public var ssrc: UInt32
  /// The compact form of the receiver's last reference time (LRR).
  public var lastReference: UInt32
  /// The delay since that time arrived (DLRR), in 1/65536 s.
  public var delay: UInt32

  /// Creates an answer; see the properties.
  public init(ssrc: UInt32, lastReference: UInt32, delay: UInt32) {
    self.ssrc = ssrc
    self.lastReference = lastReference
    self.delay = delay
  }

  /// Creates the answer, sent `delay` after the arrival of the time `reference`.
  public init(ssrc: UInt32, reference: NTPTimestamp, delay: Duration) {
    self.init(ssrc: ssrc, lastReference: reference.compact, delay: NTPTimestamp.compactSpan(delay))
  }

  /// Reads an answer.
  public init(record bytes: UnsafeRawBufferPointer) {
    ssrc = bytes.bigEndian(at: 0)
    lastReference = bytes.bigEndian(at: 4)
    delay = bytes.bigEndian(at: 8)
  }

  /// Writes the answer.
  public func write(to memory: UnsafeMutableRawPointer) {
    memory.storeBigEndian(ssrc, at: 0)
    memory.storeBigEndian(lastReference, at: 4)
    memory.storeBigEndian(delay, at: 8)
  }
}

public import Media

/// Sends access units as an MPEG-2 transport stream in RTP, RFC 2250 section 2.
///
/// A packet holds as many whole transport stream packets as fit. Its timestamp is the program clock at the first
/// byte of the access unit, in ticks of 90 kHz (the target transmission time), and the marker is set only where
/// that clock starts or starts anew.
public struct TransportStreamPacketizer: Sendable {
  /// The packet sizes that are taken: at least one transport stream packet must fit.
  public static let packetSizeLimits =
    RTPHeader.byteCount + TransportStreamMuxer.packetBytes...PacketSize.maximum

  /// The stream's numbering and counts.
  public private(set) var stream: RTPStream
  /// The most bytes that a packet has, RTP header included.
  public let maximumPacketSize: Int

  private var muxer = TransportStreamMuxer()
  private let payloadLimit: Int

  /// A packetizer of `stream` that makes packets of at most `maximumPacketSize` bytes.
  ///
  /// - Throws: ``PacketizerError`` for a packet size outside ``packetSizeLimits``.
  public init(
    stream: RTPStream = RTPStream(payloadType: .transportStream), maximumPacketSize: Int = PacketSize.standard
  ) throws(PacketizerError) {
    guard Self.packetSizeLimits.contains(maximumPacketSize) else {
      throw .packetSize(maximumPacketSize, limits: Self.packetSizeLimits)
    }
    self.stream = stream
    self.maximumPacketSize = maximumPacketSize
    let bytes = TransportStreamMuxer.packetBytes
    payloadLimit = (maximumPacketSize - RTPHeader.byteCount) / bytes * bytes
  }

  /// Goes on as another source: see ``RTPStream``.
  package mutating func changeSource(to ssrc: UInt32, firstSequenceNumber: UInt16) {
    stream.changeSource(to: ssrc, firstSequenceNumber: firstSequenceNumber)
  }

  /// Appends the packets of `unit` to `batch`, which then holds copies of the unit's bytes.
  public mutating func packetize(_ unit: borrowing AccessUnit, into batch: PacketBatch) {
    cut(muxer.write(unit, into: &batch.stored), into: batch)
  }

  /// Appends a packet that carries the program clock at `time`; nothing where the clock was already there.
  ///
  /// For streams slower than 10 frames a second: see ``TransportStreamMuxer/clockPacket(at:into:)``.
  public mutating func keepAlive(at time: MediaTime, into batch: PacketBatch) {
    guard let muxed = muxer.writeClock(at: time, into: &batch.stored) else { return }
    cut(muxed, into: batch)
  }

  private mutating func cut(_ muxed: TransportStreamMuxer.Muxed, into batch: PacketBatch) {
    let timestamp =
      UInt32(truncatingIfNeeded: ProgramClock.timestamp(of: muxed.clock)) &+ stream.timestampOffset
    var start = muxed.range.lowerBound
    while start < muxed.range.upperBound {
      let end = min(start + payloadLimit, muxed.range.upperBound)
      let marker = muxed.isDiscontinuous && start == muxed.range.lowerBound
      let memory = batch.append(headerBytes: RTPHeader.byteCount, storedRange: start..<end)
      stream.nextHeader(marker: marker, timestamp: timestamp, payloadBytes: end - start).write(to: memory)
      start = end
    }
  }
}

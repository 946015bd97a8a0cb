public import Media
public import Platform

/// A packetizer that sends access units as an MPEG-2 transport stream in RTP, RFC 2250 section 2.
///
/// A packet holds as many complete transport stream packets as fit. The timestamp is the program clock at the first
/// byte of the access unit in ticks of 90 kHz (the target transmission time). The marker is set only if that clock
/// starts or restarts.
public struct TransportStreamPacketizer: Sendable {
  /// The permitted packet sizes: at least one transport stream packet must fit.
  public static let packetSizeLimits =
    RTPHeader.byteCount + TransportStreamMuxer.packetBytes...PacketSize.maximum

  /// The stream's sequence numbers and counts.
  public private(set) var stream: RTPStream
  /// The maximum size of a packet in bytes, RTP header included.
  public let maximumPacketSize: Int

  private var muxer: TransportStreamMuxer
  private let payloadLimit: Int

  /// Creates a packetizer of `stream` that makes packets of at most `maximumPacketSize` bytes.
  ///
  /// - Parameters:
  ///   - stream: The RTP stream.
  ///   - maximumPacketSize: The maximum size of a packet in bytes, RTP header included.
  ///   - codec: The codec of the video.
  ///   - sound: The channels of an Opus stream beside the video; `nil` without sound.
  /// - Throws: ``PacketizerError`` for a packet size outside ``packetSizeLimits``.
  public init(
    stream: RTPStream = RTPStream(payloadType: .transportStream), maximumPacketSize: Int = PacketSize.standard,
    codec: VideoCodec = .h264, sound: OpusChannels? = nil
  ) throws(PacketizerError) {
    self.stream = stream
    self.maximumPacketSize = try PacketSize.checked(maximumPacketSize, Self.packetSizeLimits)
    muxer = TransportStreamMuxer(codec: codec, sound: sound)
    let bytes = TransportStreamMuxer.packetBytes
    payloadLimit = (maximumPacketSize - RTPHeader.byteCount) / bytes * bytes
  }

  /// Continues as another source; see ``RTPStream``.
  package mutating func changeSource(to ssrc: UInt32, firstSequenceNumber: UInt16) {
    stream.changeSource(to: ssrc, firstSequenceNumber: firstSequenceNumber)
  }

  /// Appends the packets of `unit` to `batch`, which then holds copies of the unit's bytes.
  public mutating func packetize(_ unit: borrowing AccessUnit, into batch: PacketBatch) {
    cut(muxer.write(unit, into: &batch.stored), into: batch)
  }

  /// Appends the packets of `unit`, an Opus packet, to `batch`, which then holds a copy of its bytes; appends nothing
  /// if the stream has no sound. See ``TransportStreamMuxer/mux(sound:into:)``.
  ///
  /// The timestamp is the last program clock, so that the stream's timestamps never run backwards, whichever of
  /// picture and sound takes longer to encode.
  public mutating func packetize(sound unit: borrowing AccessUnit, into batch: PacketBatch) {
    guard let muxed = muxer.write(sound: unit, into: &batch.stored) else { return }
    cut(muxed, into: batch)
  }

  /// Appends a packet that carries the program clock at `time`; appends nothing if the clock has reached `time`
  /// already.
  ///
  /// For streams slower than 10 frames per second; see ``TransportStreamMuxer/clockPacket(at:into:)``.
  public mutating func keepAlive(at time: Instant, into batch: PacketBatch) {
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

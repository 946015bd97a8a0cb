public import Media

/// Packetizes access units as RTP packets by RFC 6184, packetization-mode 1 (non-interleaved).
///
/// - A NAL unit that fits is a packet of its own (section 5.6).
/// - Consecutive parameter sets share one STAP-A (5.7.1) as far as they fit.
/// - A NAL unit that is too large becomes FU-A fragments (5.8), as few as possible. All have one size, no larger than
///   necessary; the last one has the rest.
/// - The last packet of the access unit has the marker bit (5.1).
/// - The packetizer copies parameter sets, because the stream may own their bytes. It lends all other bytes.
/// - The packetizer omits access unit delimiters, because the marker and the timestamp carry the same information. It
///   also omits NAL unit types 0 and 24…31, which H.264 leaves unspecified and RFC 6184 uses for its own structures.
public struct H264Packetizer: Sendable {
  /// The permitted packet sizes.
  public static let packetSizeLimits = PacketSize.minimum...PacketSize.maximum

  /// The stream's sequence numbers and counts.
  public var stream: RTPStream { packetizer.stream }
  /// The maximum size of a packet in bytes, RTP header included.
  public var maximumPacketSize: Int { packetizer.maximumPacketSize }

  private var packetizer: NALUnitPacketizer<H264PayloadHeader>

  /// Creates a packetizer of `stream` that makes packets of at most `maximumPacketSize` bytes.
  ///
  /// - Throws: ``PacketizerError`` for a packet size outside ``packetSizeLimits``.
  public init(
    stream: RTPStream = RTPStream(payloadType: .h264), maximumPacketSize: Int = PacketSize.standard
  ) throws(PacketizerError) {
    packetizer = NALUnitPacketizer(
      stream: stream, maximumPacketSize: try PacketSize.checked(maximumPacketSize, Self.packetSizeLimits))
  }

  /// Continues as another source; see ``RTPStream``.
  package mutating func changeSource(to ssrc: UInt32, firstSequenceNumber: UInt16) {
    packetizer.stream.changeSource(to: ssrc, firstSequenceNumber: firstSequenceNumber)
  }

  /// Appends the packets of `unit` to `batch`, which borrows the unit's bytes. The parts of a picture follow one
  /// another and give the same packets as the whole picture would.
  public mutating func packetize(_ unit: borrowing AccessUnit, into batch: PacketBatch) {
    packetizer.packetize(unit, into: batch)
  }
}

/// The header byte of a NAL unit of H.264: RFC 6184 section 1.3.
struct H264PayloadHeader: PayloadHeader {
  static let byteCount = 1

  /// The forbidden bit and `nal_ref_idc`, which the structures of RFC 6184 have too.
  private let importance: UInt8
  private let type: NALUnitType

  private init(importance: UInt8, type: NALUnitType) {
    (self.importance, self.type) = (importance, type)
  }

  init(_ unit: NALUnit) { self.init(importance: unit.bytes[0] & 0xe0, type: unit.type) }

  var isParameterSet: Bool { type == .sequenceParameterSet || type == .pictureParameterSet }
  var isSent: Bool { (1...23).contains(type.rawValue) && type != .accessUnitDelimiter }
  var typeBits: UInt8 { type.rawValue }
  var fragment: Self { Self(importance: importance, type: .fragmentationUnitA) }
  var aggregation: Self { Self(importance: importance, type: .singleTimeAggregationA) }

  func joined(with other: Self) -> Self {
    // Section 5.7: the F bit is the OR of all F bits, the NRI is the largest.
    let forbidden = (importance | other.importance) & 0x80
    return Self(importance: forbidden | max(importance & 0x60, other.importance & 0x60), type: type)
  }

  func write(to memory: UnsafeMutableRawPointer) { memory.storeBytes(of: importance | type.rawValue, as: UInt8.self) }
}

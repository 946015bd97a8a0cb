public import Media

/// Packetizes access units as RTP packets by RFC 7798, in the order of decoding (`sprop-max-don-diff` 0).
///
/// - A NAL unit that fits is a packet of its own (section 4.4.1).
/// - Consecutive parameter sets share one aggregation packet (4.4.2) as far as they fit.
/// - A NAL unit that is too large becomes fragmentation units (4.4.3), as few as possible. All have one size, no larger than
///   necessary; the last one has the rest.
/// - The last packet of the access unit has the marker bit (4.1).
/// - The packetizer copies parameter sets, because the stream may own their bytes. It lends all other bytes.
/// - The packetizer omits access unit delimiters, because the marker and the timestamp carry the same information. It
///   also omits NAL units with a broken header, and those of the types 48…63, which H.265 leaves unspecified and RFC 7798 uses for
///   its own structures.
public struct HEVCPacketizer: Sendable {
  /// The permitted packet sizes.
  public static let packetSizeLimits = PacketSize.minimum...PacketSize.maximum

  /// The stream's sequence numbers and counts.
  public var stream: RTPStream { packetizer.stream }
  /// The maximum size of a packet in bytes, RTP header included.
  public var maximumPacketSize: Int { packetizer.maximumPacketSize }

  private var packetizer: NALUnitPacketizer<HEVCNALUnitHeader>

  /// Creates a packetizer of `stream` that makes packets of at most `maximumPacketSize` bytes.
  ///
  /// - Throws: ``PacketizerError`` for a packet size outside ``packetSizeLimits``.
  public init(
    stream: RTPStream = RTPStream(payloadType: .hevc), maximumPacketSize: Int = PacketSize.standard
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

extension HEVCNALUnitHeader: PayloadHeader {
  var isParameterSet: Bool {
    type == .videoParameterSet || type == .sequenceParameterSet || type == .pictureParameterSet
  }
  var isSent: Bool {
    type.rawValue < HEVCNALUnitType.aggregationPacket.rawValue && type != .accessUnitDelimiter
  }
  var typeBits: UInt8 { type.rawValue }
  var fragment: Self { Self(type: .fragmentationUnit, layerID: layerID, temporalID: temporalID) }
  var aggregation: Self { Self(type: .aggregationPacket, layerID: layerID, temporalID: temporalID) }

  func joined(with other: Self) -> Self {
    // Section 4.4.2: layer and temporal identifier are the lowest of all.
    Self(type: type, layerID: min(layerID, other.layerID), temporalID: min(temporalID, other.temporalID))
  }

  func write(to memory: UnsafeMutableRawPointer) {
    let (first, second) = bytes
    memory.storeBytes(of: first, as: UInt8.self)
    memory.storeBytes(of: second, toByteOffset: 1, as: UInt8.self)
  }
}

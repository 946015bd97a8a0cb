/// The fixed part of an RTP header, RFC 3550 section 5.1.
public struct RTPHeader: Hashable, Sendable {
  /// The header's length in bytes, without contributing sources and extension.
  public static let byteCount = 12
  /// The only version of RTP.
  public static let version: UInt8 = 2

  /// The marker bit, which the payload format defines: in H.264, the last packet of an access unit.
  public var marker: Bool
  /// The payload type.
  public var payloadType: RTPPayloadType
  /// The sequence number: one more than that of the packet before, modulo 2^16.
  public var sequenceNumber: UInt16
  /// The sampling time of the payload, in ticks of the payload's clock, modulo 2^32.
  public var timestamp: UInt32
  /// The synchronization source, which identifies the sender.
  public var ssrc: UInt32

  /// Creates a header; see the properties.
  public init(
    marker: Bool, payloadType: RTPPayloadType, sequenceNumber: UInt16, timestamp: UInt32, ssrc: UInt32
  ) {
    self.marker = marker
    self.payloadType = payloadType
    self.sequenceNumber = sequenceNumber
    self.timestamp = timestamp
    self.ssrc = ssrc
  }

  /// Writes the ``byteCount`` bytes of a header without padding, extension or contributing sources.
  public func write(to memory: UnsafeMutableRawPointer) {
    memory.storeBytes(of: Self.version << 6, as: UInt8.self)
    memory.storeBytes(of: payloadType.rawValue | (marker ? 0x80 : 0), toByteOffset: 1, as: UInt8.self)
    memory.storeBigEndian(sequenceNumber, at: 2)
    memory.storeBigEndian(timestamp, at: 4)
    memory.storeBigEndian(ssrc, at: 8)
  }
}

/// An RTP payload type, 0…127.
public struct RTPPayloadType: RawRepresentable, Hashable, Sendable, CustomStringConvertible {
  /// The number, 0…127.
  public let rawValue: UInt8

  /// Creates a payload type; `nil` above 127.
  public init?(rawValue: UInt8) {
    guard rawValue < 128 else { return nil }
    self.rawValue = rawValue
  }

  /// Creates a payload type from the low seven bits of a header's second byte.
  init(secondByte: UInt8) {
    rawValue = secondByte & 0x7f
  }

  /// H.264 (RFC 6184), which has no static number: 96, the first dynamic one.
  public static let h264 = RTPPayloadType(secondByte: 96)
  /// Our retransmissions (RFC 4588): the dynamic number after ``h264``.
  public static let retransmission = RTPPayloadType(secondByte: 97)
  /// Opus (RFC 7587), which has no static number: the dynamic number after ``retransmission``.
  public static let opus = RTPPayloadType(secondByte: 98)
  /// HEVC (RFC 7798), which has no static number: the dynamic number after ``opus``, so that no receiver takes it for H.264.
  public static let hevc = RTPPayloadType(secondByte: 99)
  /// An MPEG-2 transport stream (RFC 2250): 33, RFC 3551 table 5.
  public static let transportStream = RTPPayloadType(secondByte: 33)

  /// The number.
  public var description: String { "\(rawValue)" }
}

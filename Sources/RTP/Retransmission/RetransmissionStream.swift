/// The retransmission stream of one viewer, RFC 4588: SSRC-multiplexed, with its own source and sequence numbers.
///
/// Do not copy a stream: a copy would repeat the original's sequence numbers.
public struct RetransmissionStream: Sendable {
  /// The bytes of the original sequence number (OSN) at the start of a payload, section 4.
  public static let originalSequenceNumberBytes = 2
  /// The maximum number of header bytes: the largest RTP header without an extension, and the original sequence
  /// number.
  public static let headerRoom = 128

  /// The sequence numbers and counts; the payload type is the one negotiated with `apt=`.
  public private(set) var stream: RTPStream

  /// Creates a stream of retransmissions.
  public init(_ stream: RTPStream) {
    self.stream = stream
  }

  /// Makes the retransmission of `original`: writes its header and original sequence number into `memory`, and lends
  /// the rest. Contributing sources and extension are the original's; padding is omitted.
  ///
  /// - Returns: The packet in two parts; `nil` if `original` is no RTP packet, or its header is longer than `memory`.
  public mutating func wrap(
    _ original: UnsafeRawBufferPointer, into memory: UnsafeMutableRawBufferPointer
  ) -> (header: UnsafeRawBufferPointer, payload: UnsafeRawBufferPointer)? {
    // The parser's error is of no use to a sender, whose history holds only its own packets.
    guard let packet = try? RTPPacket(parsing: original), let base = memory.baseAddress else { return nil }
    let headerBytes = packet.headerByteCount
    let count = headerBytes + Self.originalSequenceNumberBytes
    guard count <= memory.count else { return nil }
    memory.copyMemory(from: UnsafeRawBufferPointer(rebasing: original[..<headerBytes]))
    let flags = original[0] & ~0x20
    stream.nextHeader(
      marker: packet.header.marker, timestamp: packet.header.timestamp,
      payloadBytes: Self.originalSequenceNumberBytes + packet.payload.count
    ).write(to: base)
    base.storeBytes(of: flags, as: UInt8.self)
    base.storeBigEndian(packet.header.sequenceNumber, at: headerBytes)
    return (UnsafeRawBufferPointer(rebasing: memory[..<count]), packet.payload)
  }

  /// Restores the original packet of a retransmission in `memory`: the inverse of section 4.
  ///
  /// - Parameters:
  ///   - retransmission: The received packet.
  ///   - payloadType: The original's payload type.
  ///   - ssrc: The original's source.
  ///   - memory: The destination, at least as long as the retransmission.
  /// - Returns: The packet. `nil` if the payload has no original sequence number, as in a packet that only probes the
  ///   path, or if `memory` is too short.
  static func unwrap(
    _ retransmission: RTPPacket, bytes: UnsafeRawBufferPointer, payloadType: RTPPayloadType, ssrc: UInt32,
    into memory: UnsafeMutableRawBufferPointer
  ) -> UnsafeRawBufferPointer? {
    guard let sequenceNumber = retransmission.payload.bigEndian(UInt16.self, at: 0),
      let base = memory.baseAddress
    else { return nil }
    let headerBytes = retransmission.headerByteCount
    let rest = UnsafeRawBufferPointer(rebasing: retransmission.payload[Self.originalSequenceNumberBytes...])
    guard headerBytes + rest.count <= memory.count else { return nil }
    memory.copyMemory(from: UnsafeRawBufferPointer(rebasing: bytes[..<headerBytes]))
    var header = retransmission.header
    header.payloadType = payloadType
    header.ssrc = ssrc
    header.sequenceNumber = sequenceNumber
    header.write(to: base)
    base.storeBytes(of: bytes[0] & ~0x20, as: UInt8.self)
    UnsafeMutableRawBufferPointer(rebasing: memory[headerBytes...]).copyMemory(from: rest)
    return UnsafeRawBufferPointer(rebasing: memory[..<(headerBytes + rest.count)])
  }
}

/// The retransmission stream of one viewer, RFC 4588: a source and sequence numbers of its own, SSRC-multiplexed.
///
/// A copy would repeat the original's sequence numbers; keep one.
public struct RetransmissionStream: Sendable {
  /// Bytes of the original sequence number that a payload begins with, section 4.
  public static let originalSequenceNumberBytes = 2
  /// Bytes that a header may have: the largest RTP header without an extension, and the original number.
  public static let headerRoom = 128

  /// Numbers and counts; its payload type is the one negotiated with `apt=`.
  public private(set) var stream: RTPStream

  /// A stream of retransmissions.
  public init(_ stream: RTPStream) {
    self.stream = stream
  }

  /// Makes the retransmission of `original`: writes its header and original sequence number into `memory`, and
  /// lends the rest. Contributing sources and extension are the original's, padding is left away.
  ///
  /// - Returns: The packet in two parts; nil where `original` is no RTP packet, or its header is longer than `memory`.
  public mutating func wrap(
    _ original: UnsafeRawBufferPointer, into memory: UnsafeMutableRawBufferPointer
  ) -> (header: UnsafeRawBufferPointer, payload: UnsafeRawBufferPointer)? {
    // Why it is no RTP packet is of no use to a sender, whose history holds only packets of its own.
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

  /// The original packet in a retransmission, put together in `memory`: section 4 the other way round.
  ///
  /// - Parameters:
  ///   - retransmission: What was received.
  ///   - payloadType: The original's payload type.
  ///   - ssrc: The original's source.
  ///   - memory: At least as long as the retransmission.
  /// - Returns: The packet; nil where the payload has no original sequence number, as in one that only probes the
  ///   path, or `memory` is too short.
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

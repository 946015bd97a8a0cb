public import Platform

/// A received RTP packet, parsed in place in lent bytes: RFC 3550 section 5.1.
public struct RTPPacket {
  /// The fixed header.
  public let header: RTPHeader
  /// The contributing sources, four bytes each; often empty.
  public let contributingSources: UnsafeRawBufferPointer
  /// The header extension's profile-defined number and its bytes, RFC 3550 section 5.3.1.
  public let headerExtension: (profile: UInt16, bytes: UnsafeRawBufferPointer)?
  /// The payload, without padding; may be empty.
  public let payload: UnsafeRawBufferPointer

  /// The number of bytes before the payload.
  var headerByteCount: Int {
    RTPHeader.byteCount + contributingSources.count + (headerExtension.map { 4 + $0.bytes.count } ?? 0)
  }

  /// Parses the packet in `bytes`, which the caller keeps as long as this value is used.
  ///
  /// - Throws: ``RTPPacketError`` for bytes that are no RTP packet.
  public init(parsing bytes: UnsafeRawBufferPointer) throws(RTPPacketError) {
    guard let sequenceNumber = bytes.bigEndian(UInt16.self, at: 2),
      let timestamp = bytes.bigEndian(UInt32.self, at: 4),
      let ssrc = bytes.bigEndian(UInt32.self, at: 8)
    else { throw .short(bytes.count) }
    let (first, second) = (bytes[0], bytes[1])
    guard first >> 6 == RTPHeader.version else { throw .version(first >> 6) }
    header = RTPHeader(
      marker: second & 0x80 != 0, payloadType: RTPPayloadType(secondByte: second), sequenceNumber: sequenceNumber,
      timestamp: timestamp, ssrc: ssrc)

    var start = RTPHeader.byteCount
    let sourcesEnd = start + Int(first & 0x0f) * 4
    guard sourcesEnd <= bytes.count else { throw .contributingSources(Int(first & 0x0f), packet: bytes.count) }
    contributingSources = UnsafeRawBufferPointer(rebasing: bytes[start..<sourcesEnd])
    start = sourcesEnd

    if first & 0x10 != 0 {
      guard let profile = bytes.bigEndian(UInt16.self, at: start),
        let words = bytes.bigEndian(UInt16.self, at: start + 2)
      else { throw .extension(length: 4, packet: bytes.count) }
      let end = start + 4 + Int(words) * 4
      guard end <= bytes.count else { throw .extension(length: 4 + Int(words) * 4, packet: bytes.count) }
      headerExtension = (profile, UnsafeRawBufferPointer(rebasing: bytes[start + 4..<end]))
      start = end
    } else {
      headerExtension = nil
    }

    var end = bytes.count
    if first & 0x20 != 0 {
      // The last byte counts the padding, itself included. A packet that ends here has no such byte.
      let padding = end > start ? Int(bytes[end - 1]) : 0
      guard padding > 0, padding <= end - start else { throw .padding(padding, available: end - start) }
      end -= padding
    }
    payload = UnsafeRawBufferPointer(rebasing: bytes[start..<end])
  }
}

/// The reason why bytes are no RTP packet.
public enum RTPPacketError: Failure, Hashable {
  /// Fewer bytes than the fixed header.
  case short(Int)
  /// A version other than 2.
  case version(UInt8)
  /// The contributing sources end after the packet.
  case contributingSources(Int, packet: Int)
  /// The header extension ends after the packet.
  case `extension`(length: Int, packet: Int)
  /// The header announces padding that is absent or exceeds the bytes.
  case padding(Int, available: Int)

  /// A one-line description for the person at the terminal.
  public var description: String {
    switch self {
    case .short(let count):
      "an RTP packet of \(count) bytes: the header alone has \(RTPHeader.byteCount); is it really RTP?"
    case .version(let version):
      "an RTP packet of version \(version) instead of \(RTPHeader.version); is it really RTP?"
    case .contributingSources(let count, let packet):
      "an RTP packet of \(packet) bytes cannot hold \(count) contributing sources; it was cut short"
    case .extension(let length, let packet):
      "an RTP packet of \(packet) bytes cannot hold a header extension of \(length); it was cut short"
    case .padding(let padding, let available):
      "an RTP packet with \(padding) bytes of padding in \(available): choose 1 to \(available)"
    }
  }

  /// The kind of failure.
  public var kind: FailureKind { .data }
}

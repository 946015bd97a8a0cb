public import RTP

/// Makes SRTP and SRTCP of what one sender sends under one key (RFC 3711, RFC 7714): once for all who have the key.
/// Used by one thread.
///
/// No second one may protect the same source under the same key: both would use the same keystream, and give it away
/// (RFC 3711 section 9.1).
public final class PacketProtector {
  /// The key.
  public let key: SRTPKey
  private let session: SRTPSession

  /// What SRTCP needs behind a datagram, whatever the suite, in bytes.
  public static let controlRoom = 32

  /// A protector for streams that begin; their packets follow in the order of their sequence numbers.
  ///
  /// - Throws: ``SRTPError/library(_:)``.
  public init(_ key: SRTPKey) throws(SRTPError) {
    self.key = key
    session = try SRTPSession(key, .outgoing)
  }

  /// Appends the protected packets of `packets` to `batch`, as whole packets in memory of its own; each is larger by
  /// ``SRTPSuite/packetOverhead``.
  ///
  /// - Throws: ``SRTPError``; then `batch` has the packets before the one that failed, and that one as it may be: it
  ///   must not be sent.
  public func protect(_ packets: PacketBatch, into batch: PacketBatch) throws(SRTPError) {
    for index in 0..<packets.count {
      let packet = packets[index]
      let memory = batch.append(copying: packet, room: key.suite.packetOverhead)
      let count = try session.protect(memory, count: packet.count)
      assert(count == packet.count + key.suite.packetOverhead)
    }
  }

  /// Protects the RTCP datagram in the first `count` bytes of `memory`, behind which there are ``controlRoom`` more at
  /// least; its new length.
  ///
  /// - Throws: ``SRTPError``; then it must not be sent.
  public func protectControl(_ memory: UnsafeMutableRawBufferPointer, count: Int) throws(SRTPError) -> Int {
    precondition(memory.count >= count + Self.controlRoom, "SRTCP needs room behind a datagram")
    guard count >= 8, let base = memory.baseAddress else { throw .tooShort(count) }
    return try session.protectControl(base, count: count)
  }
}

package import RTP

/// A protector of one sender's packets: it makes SRTP and SRTCP of them under one key (RFC 3711, RFC 7714), once for all
/// receivers with that key. Use it from one thread.
///
/// Do not protect the same source under the same key by a second protector. Both would use the same keystream, which
/// would reveal it (RFC 3711 section 9.1).
package final class PacketProtector {
  /// The key.
  package let key: SRTPKey
  private let session: SRTPSession

  /// The number of bytes that SRTCP needs behind a datagram, for any suite.
  package static let controlRoom = 32

  /// Creates a protector for new streams, whose packets must follow in the order of their sequence numbers.
  ///
  /// - Parameters:
  ///   - key: the key, of which each source has only one protector.
  ///   - repeatable: the number of last packets that may be protected again, if they are unchanged; at most 32,767.
  /// - Throws: ``SRTPError/library(_:)``.
  package init(_ key: SRTPKey, repeatable: Int = 0) throws(SRTPError) {
    self.key = key
    session = try SRTPSession(key, .outgoing, repeatable: repeatable)
  }

  /// Appends the protected packets of `packets` to `batch`, as contiguous packets in the batch's own memory. Each is
  /// larger by ``SRTPSuite/packetOverhead``.
  ///
  /// - Throws: ``SRTPError``. `batch` then has the packets before the failed one, and the failed one in an undefined
  ///   state, which must not be sent.
  package func protect(_ packets: PacketBatch, into batch: PacketBatch) throws(SRTPError) {
    for index in 0..<packets.count { try protect(packets[index], into: batch) { _ in } }
  }

  /// Appends the protected `packet` to `batch`, as ``protect(_:into:)`` does.
  ///
  /// - Parameters:
  ///   - growth: the bytes by which `change` makes the packet longer.
  ///   - change: changes the copy of the packet before it is protected. A packet that is protected again must be changed
  ///     in the same way.
  /// - Throws: ``SRTPError``.
  package func protect(
    _ packet: PacketBatch.Packet, into batch: PacketBatch, growth: Int = 0,
    change: (UnsafeMutableRawPointer) -> Void
  ) throws(SRTPError) {
    let memory = batch.append(copying: packet, room: growth + key.suite.packetOverhead)
    change(memory)
    let count = try session.protect(memory, count: packet.count + growth)
    assert(count == packet.count + growth + key.suite.packetOverhead)
  }

  /// Protects the RTCP datagram in the first `count` bytes of `memory`, with at least ``controlRoom`` bytes behind
  /// it. Returns the new length.
  ///
  /// - Throws: ``SRTPError``; the datagram must then not be sent.
  package func protectControl(_ memory: UnsafeMutableRawBufferPointer, count: Int) throws(SRTPError) -> Int {
    precondition(memory.count >= count + Self.controlRoom, "SRTCP needs room behind a datagram")
    guard count >= 8, let base = memory.baseAddress else { throw .tooShort(count) }
    return try session.protectControl(base, count: count)
  }
}

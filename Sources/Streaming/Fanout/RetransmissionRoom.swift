import Platform
import RTP

/// The packets that a stream keeps for retransmission.
enum RetransmissionRoom {
  /// The packets of about a second.
  case second
  /// The packets of about a second of small pictures, or of a part of one of full ones: for a viewer's own stream.
  case smallSecond
  /// Hardly any: for a viewer's own stream by TCP, which repeats packets by itself.
  case nothing

  /// The least number of packets that there is room for, however small they are: in a stream that viewers share, and in one that
  /// they do not.
  private static let least = (shared: 4096, own: 512)

  /// Returns the history of a stream of `bitrate` bits a second, which goes on from that of `shared`.
  func history(
    of kind: RTPOutput.Kind, bitrate: Int, after shared: RTPOutput?, at now: Instant
  ) -> PacketHistory {
    // Many slices make many small packets.
    let usual = min(kind.packetSize, 1000)
    switch self {
    case .second:
      let bytes = min(max(bitrate / 8, 1 << 18), 1 << 22)
      return PacketHistory(packets: max(bytes / usual, Self.least.shared), bytes: bytes)
    case .smallSecond:
      let bytes = min(max(SmallRendition.bitrate(of: bitrate) / 8, 1 << 16), 1 << 20)
      let packets = max(bytes / usual, Self.least.own)
      guard let shared else { return PacketHistory(packets: packets, bytes: bytes) }
      return PacketHistory(
        continuing: shared.history, before: shared.stream.nextSequenceNumber, packets: packets, bytes: bytes, at: now)
    case .nothing: return PacketHistory(packets: 1, bytes: 1)
    }
  }
}

import RTP
import SRTP

/// What destinations have got, in sum.
public struct DeliveryTotals: Hashable, Sendable {
  /// Packets that the kernel took.
  public var packets = 0
  /// Their bytes, RTP headers included, without UDP and IP.
  public var bytes = 0
  /// Packets that it did not take.
  public var lost = 0
  /// Frames that a destination lost, whole or in part.
  public var framesDropped = 0
  /// Packets that were sent once more because a destination asked for them.
  public var retransmitted: UInt64 = 0
  /// RTCP that was not taken: SRTCP that proved nothing, or came too often.
  public var controlRefused: UInt64 = 0

  /// Nothing yet.
  public init() {}

  mutating func add(_ figures: DestinationStatistics) {
    packets += figures.packets
    bytes += figures.bytes
    lost += figures.lost
    framesDropped += figures.framesDropped
    retransmitted += figures.feedback.packetsRetransmitted
    let refused = figures.refused
    controlRefused += refused.forged + refused.replayed + refused.reflected + refused.excess
  }

  /// Both together.
  public static func + (left: DeliveryTotals, right: DeliveryTotals) -> DeliveryTotals {
    var sum = left
    sum.packets += right.packets
    sum.bytes += right.bytes
    sum.lost += right.lost
    sum.framesDropped += right.framesDropped
    sum.retransmitted += right.retransmitted
    sum.controlRefused += right.controlRefused
    return sum
  }
}

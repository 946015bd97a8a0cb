package import RTP
import SRTP

/// The sums of what destinations have got.
package struct DeliveryTotals: Hashable, Sendable {
  /// Packets that the kernel took.
  package var packets = 0
  /// Their bytes, RTP headers included, without UDP and IP.
  package var bytes = 0
  /// Packets that the kernel did not take.
  package var lost = 0
  /// Frames that a destination lost, whole or in part.
  package var framesDropped = 0
  /// Packets that were sent once more because a destination requested them.
  package var retransmitted: UInt64 = 0
  /// RTCP that was not taken: SRTCP that could not be authenticated, or that came too often.
  package var controlRefused: UInt64 = 0
  /// Changes from full pictures to small ones, and back.
  package var renditionChanges = 0
  /// Stops by circuit breakers.
  package var stops = CircuitBreaker.Counts()

  /// Creates totals of zero.
  package init() {}

  mutating func add(_ figures: DestinationStatistics) {
    packets += figures.packets
    bytes += figures.bytes
    lost += figures.lost
    framesDropped += figures.framesDropped
    retransmitted += figures.feedback.packetsRetransmitted
    stops = stops + figures.stops
    renditionChanges += figures.renditionChanges
    let refused = figures.refused
    controlRefused += refused.forged + refused.replayed + refused.reflected + refused.excess
  }

  /// Returns the sum of both.
  package static func + (left: DeliveryTotals, right: DeliveryTotals) -> DeliveryTotals {
    var sum = left
    sum.packets += right.packets
    sum.bytes += right.bytes
    sum.lost += right.lost
    sum.framesDropped += right.framesDropped
    sum.retransmitted += right.retransmitted
    sum.controlRefused += right.controlRefused
    sum.stops = sum.stops + right.stops
    sum.renditionChanges += right.renditionChanges
    return sum
  }
}

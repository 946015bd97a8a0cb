package import Platform

/// A distribution of latencies, as counts in few buckets with exact limits. It is small enough to be copied under a
/// lock, and several can be summed.
package struct LatencyDistribution: Equatable, Sendable {
  /// The buckets' upper limits in nanoseconds, each of which belongs to its bucket; one more bucket is above them all.
  package static let limits: InlineArray<13, Int64> = [
    100_000, 200_000, 500_000, 1_000_000, 2_000_000, 5_000_000, 10_000_000, 20_000_000, 50_000_000, 100_000_000,
    200_000_000, 500_000_000, 1_000_000_000,
  ]

  private var counts = InlineArray<14, UInt64>(repeating: 0)
  /// The sum of all latencies.
  package private(set) var sum = Duration.zero

  /// Creates an empty distribution.
  package init() {}

  /// Adds one latency; does not allocate.
  package mutating func record(_ time: Duration) {
    var bucket = 0
    while bucket < Self.limits.count, time.nanoseconds > Self.limits[bucket] { bucket += 1 }
    counts[bucket] &+= 1
    sum = sum + time
  }

  /// The number of recorded latencies.
  package var count: UInt64 { cumulative(upTo: Self.limits.count) }

  /// Returns the number of latencies up to the limit of `bucket`; the last bucket has none, and all are within it.
  package func cumulative(upTo bucket: Int) -> UInt64 {
    var total: UInt64 = 0
    for index in 0...bucket { total &+= counts[index] }
    return total
  }

  /// Returns the sum of both.
  package static func + (left: LatencyDistribution, right: LatencyDistribution) -> LatencyDistribution {
    var result = left
    for index in result.counts.indices { result.counts[index] &+= right.counts[index] }
    result.sum = left.sum + right.sum
    return result
  }

  /// Returns `true` if both have the same counts and the same sum.
  package static func == (left: LatencyDistribution, right: LatencyDistribution) -> Bool {
    left.sum == right.sum && left.counts.indices.allSatisfy { left.counts[$0] == right.counts[$0] }
  }
}

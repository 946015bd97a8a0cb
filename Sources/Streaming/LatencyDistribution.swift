public import Media

/// How long something took, as counts in few buckets with exact limits: what is small enough to be copied while others
/// wait, and what sums of several can be made of.
public struct LatencyDistribution: Equatable, Sendable {
  /// The buckets' upper limits in nanoseconds, each of which belongs to its bucket; one more bucket is above them all.
  public static let limits: InlineArray<13, Int64> = [
    100_000, 200_000, 500_000, 1_000_000, 2_000_000, 5_000_000, 10_000_000, 20_000_000, 50_000_000, 100_000_000,
    200_000_000, 500_000_000, 1_000_000_000,
  ]

  private var counts = InlineArray<14, UInt64>(repeating: 0)
  /// All of it together.
  public private(set) var sum = MediaTime.zero

  /// None yet.
  public init() {}

  /// Adds one; does not allocate.
  public mutating func record(_ time: MediaTime) {
    var bucket = 0
    while bucket < Self.limits.count, time.nanoseconds > Self.limits[bucket] { bucket += 1 }
    counts[bucket] &+= 1
    sum = sum + time
  }

  /// How many were recorded.
  public var count: UInt64 { cumulative(upTo: Self.limits.count) }

  /// How many were no longer than the limit of `bucket`; the last bucket has none, and all are within it.
  public func cumulative(upTo bucket: Int) -> UInt64 {
    var total: UInt64 = 0
    for index in 0...bucket { total &+= counts[index] }
    return total
  }

  /// Both together.
  public static func + (left: LatencyDistribution, right: LatencyDistribution) -> LatencyDistribution {
    var result = left
    for index in result.counts.indices { result.counts[index] &+= right.counts[index] }
    result.sum = left.sum + right.sum
    return result
  }

  /// Whether they have the same counts and the same sum.
  public static func == (left: LatencyDistribution, right: LatencyDistribution) -> Bool {
    left.sum == right.sum && left.counts.indices.allSatisfy { left.counts[$0] == right.counts[$0] }
  }
}

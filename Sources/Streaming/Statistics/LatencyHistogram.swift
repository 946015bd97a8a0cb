package import Platform

/// A distribution of latencies in fixed memory: 32 buckets to each doubling, so that a percentile is right within about
/// 3 %.
package struct LatencyHistogram: Sendable {
  private static let bucketsPerDoubling = 32
  private static let bucketBits = 5
  /// The number of buckets. Everything above 2^40 ns, some 18 minutes, counts in the last one.
  private static let bucketCount = (40 - bucketBits + 1) * bucketsPerDoubling

  private var buckets: [UInt32]
  /// The number of recorded values.
  package private(set) var count = 0
  /// The largest recorded value.
  package private(set) var maximum = Duration.zero
  /// The recorded values in few buckets, for others to keep.
  package private(set) var distribution = LatencyDistribution()

  /// Creates an empty histogram.
  package init() {
    buckets = Array(repeating: 0, count: Self.bucketCount)
  }

  /// Adds one value; a negative one counts as zero. Does not allocate.
  package mutating func record(_ time: Duration) {
    let value = UInt64(max(0, time.nanoseconds))
    buckets[Self.bucket(of: value)] &+= 1
    count += 1
    if time > maximum { maximum = time }
    distribution.record(Duration(nanoseconds: Int64(value)))
  }

  /// Returns the value below which `fraction` (0…1) of all values lie; zero where there are none.
  package func percentile(_ fraction: Double) -> Duration {
    guard count > 0 else { return .zero }
    let rank = max(1, Int((Double(count) * fraction).rounded(.up)))
    var seen = 0
    for index in buckets.indices {
      seen += Int(buckets[index])
      if seen >= rank { return min(maximum, Self.upperBound(of: index)) }
    }
    return maximum
  }

  /// Adds the values of `other`; does not allocate.
  package mutating func add(_ other: borrowing LatencyHistogram) {
    for index in buckets.indices { buckets[index] &+= other.buckets[index] }
    count += other.count
    maximum = max(maximum, other.maximum)
    distribution = distribution + other.distribution
  }

  /// Removes all values, keeping the memory.
  package mutating func removeAll() {
    for index in buckets.indices { buckets[index] = 0 }
    count = 0
    maximum = .zero
    distribution = LatencyDistribution()
  }

  /// Returns the bucket of `value`. Values below 32 have a bucket each; above, the top five bits after the leading one
  /// choose it.
  private static func bucket(of value: UInt64) -> Int {
    guard value >= UInt64(bucketsPerDoubling) else { return Int(value) }
    let exponent = 63 - value.leadingZeroBitCount - bucketBits
    let fraction = Int(value >> UInt64(exponent)) - bucketsPerDoubling
    return min(bucketCount - 1, (exponent + 1) * bucketsPerDoubling + fraction)
  }

  private static func upperBound(of bucket: Int) -> Duration {
    guard bucket >= bucketsPerDoubling else { return Duration(nanoseconds: Int64(bucket)) }
    let exponent = bucket / bucketsPerDoubling - 1
    let fraction = bucket % bucketsPerDoubling + bucketsPerDoubling
    return Duration(nanoseconds: (Int64(fraction + 1) << Int64(exponent)) - 1)
  }
}

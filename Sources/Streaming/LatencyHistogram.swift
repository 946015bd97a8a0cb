public import Media

/// How long something took, as a distribution in fixed memory: 32 buckets to each doubling, so that a percentile is
/// right within about 3 %.
public struct LatencyHistogram: Sendable {
  private static let bucketsPerDoubling = 32
  private static let bucketBits = 5
  /// Everything above 2^40 ns, some 18 minutes, counts in the last bucket.
  private static let bucketCount = (40 - bucketBits + 1) * bucketsPerDoubling

  private var buckets: [UInt32]
  /// How many values were recorded.
  public private(set) var count = 0
  /// The largest of them.
  public private(set) var maximum = MediaTime.zero
  /// The same in few buckets, for others to keep.
  public private(set) var distribution = LatencyDistribution()

  /// An empty one.
  public init() {
    buckets = Array(repeating: 0, count: Self.bucketCount)
  }

  /// Adds one value; a negative one counts as zero. Does not allocate.
  public mutating func record(_ time: MediaTime) {
    let value = UInt64(max(0, time.nanoseconds))
    buckets[Self.bucket(of: value)] &+= 1
    count += 1
    if time > maximum { maximum = time }
    distribution.record(MediaTime(nanoseconds: Int64(value)))
  }

  /// The value below which `fraction` (0…1) of all lie; zero where there are none.
  public func percentile(_ fraction: Double) -> MediaTime {
    guard count > 0 else { return .zero }
    let rank = max(1, Int((Double(count) * fraction).rounded(.up)))
    var seen = 0
    for index in buckets.indices {
      seen += Int(buckets[index])
      if seen >= rank { return min(maximum, Self.upperBound(of: index)) }
    }
    return maximum
  }

  /// Forgets everything, keeping the memory.
  public mutating func removeAll() {
    for index in buckets.indices { buckets[index] = 0 }
    count = 0
    maximum = .zero
    distribution = LatencyDistribution()
  }

  /// Values below 32 have a bucket each; above, the top five bits after the leading one choose it.
  private static func bucket(of value: UInt64) -> Int {
    guard value >= UInt64(bucketsPerDoubling) else { return Int(value) }
    let exponent = 63 - value.leadingZeroBitCount - bucketBits
    let fraction = Int(value >> UInt64(exponent)) - bucketsPerDoubling
    return min(bucketCount - 1, (exponent + 1) * bucketsPerDoubling + fraction)
  }

  private static func upperBound(of bucket: Int) -> MediaTime {
    guard bucket >= bucketsPerDoubling else { return MediaTime(nanoseconds: Int64(bucket)) }
    let exponent = bucket / bucketsPerDoubling - 1
    let fraction = bucket % bucketsPerDoubling + bucketsPerDoubling
    return MediaTime(nanoseconds: (Int64(fraction + 1) << Int64(exponent)) - 1)
  }
}

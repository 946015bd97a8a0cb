import Media
import Platform
import Streaming
import Testing

@Suite struct LatencyDistributionTests {
  @Test func `counts lie below the limits they are told for, as a sorted list says`() {
    var generator = SystemRandomNumberGenerator()
    var distribution = LatencyDistribution()
    // The limits themselves, their neighbours, and what lies anywhere.
    var values: [Int64] = [0]
    for index in LatencyDistribution.limits.indices {
      let limit = LatencyDistribution.limits[index]
      values += [limit - 1, limit, limit + 1]
    }
    values += (0..<1000).map { _ in Int64.random(in: 0..<3_000_000_000, using: &generator) }
    for value in values { distribution.record(Duration(nanoseconds: value)) }
    for index in LatencyDistribution.limits.indices {
      let limit = LatencyDistribution.limits[index]
      #expect(distribution.cumulative(upTo: index) == UInt64(values.count { $0 <= limit }), "\(limit)")
    }
    #expect(distribution.count == UInt64(values.count))
    #expect(distribution.sum.nanoseconds == values.reduce(0, +))
  }

  @Test func `the sum of two is what one would have counted`() {
    var (left, right, both) = (LatencyDistribution(), LatencyDistribution(), LatencyDistribution())
    for value in stride(from: Int64(1), to: 2_000_000_000, by: 7_777_777) {
      let time = Duration(nanoseconds: value)
      both.record(time)
      if value.isMultiple(of: 3) { left.record(time) } else { right.record(time) }
    }
    #expect(left + right == both)
    #expect(left != both)
  }

  @Test func `a histogram keeps the same in few buckets, and forgets it too`() {
    var histogram = LatencyHistogram()
    histogram.record(Duration.milliseconds(3))
    histogram.record(Duration(nanoseconds: -5))
    #expect(histogram.distribution.count == 2)
    #expect(histogram.distribution.sum == Duration.milliseconds(3))
    histogram.removeAll()
    #expect(histogram.distribution == LatencyDistribution())
  }
}

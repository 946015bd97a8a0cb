package import Platform

/// Notices frames that take longer to encode than a frame interval, two of them in a row: the next ones are dropped.
package struct EncodeLateness {
  private var count = 0

  /// Creates a count of zero.
  package init() {}

  /// Notes the encode time of a frame. Returns `true` with each second late frame in a row.
  package mutating func note(_ duration: Duration, interval: Duration) -> Bool {
    guard duration > interval else {
      count = 0
      return false
    }
    count += 1
    return count.isMultiple(of: 2)
  }
}

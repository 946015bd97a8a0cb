/// Counts the pictures that a driver lost, by gaps in its buffers' sequence numbers.
package struct SequenceCounter {
  /// The place of a dequeued buffer in the sequence.
  package enum Arrival: Equatable {
    /// The buffer follows the last one; `missing` buffers are missing between them.
    case next(missing: Int)
    /// The buffer was counted as missing and arrived after later ones: too late for a stream, which only moves forward.
    case late
  }

  /// The largest gap that counts as a loss. A larger gap means a driver that does not count: even at 240 fps it would
  /// take longer than the time after which a camera counts as stalled.
  static let plausibleGap: UInt32 = 10_000

  private var expected: UInt32?
  /// The arrivals among the last 64 numbers before ``expected``, the last number in the lowest bit. Numbers before the
  /// first buffer count as arrived, because no picture was expected.
  private var come = UInt64.max

  /// Creates a counter that has seen no number.
  package init() {}

  /// Notes a dequeued buffer and returns its place in the sequence.
  package mutating func note(_ sequence: UInt32) -> Arrival {
    let gap = expected.map { sequence &- $0 } ?? 0
    if gap <= Self.plausibleGap {
      // Swift's shift gives 0 beyond the width.
      come = come << (gap + 1) | 1
      expected = sequence &+ 1
      return .next(missing: Int(gap))
    }
    // Counted from the last number, which has arrived.
    let back = ~gap
    if back < 64, come >> back & 1 == 0 {
      come |= 1 << back
      return .late
    }
    // A driver that repeats or rewinds the number is not trusted.
    come = .max
    expected = sequence &+ 1
    return .next(missing: 0)
  }

  /// Clears the state: the numbers restart with the stream.
  package mutating func restart() {
    expected = nil
    come = .max
  }
}

/// Counts the pictures that a driver lost, by the gaps in its buffers' sequence numbers.
struct SequenceCounter {
  /// What a dequeued buffer is among the others.
  enum Arrival: Equatable {
    /// It follows the last one; so many are missing between them.
    case next(missing: Int)
    /// It was counted as missing, and has come after those that follow it: too late for a stream, which goes forward.
    case late
  }

  /// More than this at once is no loss but a driver that does not count: even at 240 fps it would take longer than
  /// the time after which a camera counts as stalled.
  static let plausibleGap: UInt32 = 10_000

  private var expected: UInt32?
  /// Which of the last 64 numbers before ``expected`` have come, the last one in the lowest bit. Those before the first
  /// buffer count as come: nobody has missed them.
  private var come = UInt64.max

  /// Notes a dequeued buffer.
  mutating func note(_ sequence: UInt32) -> Arrival {
    let gap = expected.map { sequence &- $0 } ?? 0
    if gap <= Self.plausibleGap {
      // Swift's shift gives 0 where it goes beyond the width.
      come = come << (gap + 1) | 1
      expected = sequence &+ 1
      return .next(missing: Int(gap))
    }
    // Counted from the last one, which has come.
    let back = ~gap
    if back < 64, come >> back & 1 == 0 {
      come |= 1 << back
      return .late
    }
    // Drivers that repeat or rewind the number are not believed.
    come = .max
    expected = sequence &+ 1
    return .next(missing: 0)
  }

  /// Forgets: the numbers start anew with the stream.
  mutating func restart() {
    expected = nil
    come = .max
  }
}

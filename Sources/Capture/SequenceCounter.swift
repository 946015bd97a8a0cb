/// Counts the pictures that a driver lost, by the gaps in its buffers' sequence numbers.
struct SequenceCounter {
  /// More than this at once is no loss but a driver that does not count: even at 240 fps it would take longer than
  /// the time after which a camera counts as stalled.
  static let plausibleGap: UInt32 = 10_000

  private var expected: UInt32?

  /// Notes a dequeued buffer; how many pictures are missing before it.
  mutating func note(_ sequence: UInt32) -> Int {
    defer { expected = sequence &+ 1 }
    guard let expected else { return 0 }
    // Drivers that repeat or rewind the number come out as huge gaps and are not believed.
    let gap = sequence &- expected
    return gap <= Self.plausibleGap ? Int(gap) : 0
  }

  /// Forgets: the numbers start anew with the stream.
  mutating func restart() {
    expected = nil
  }
}

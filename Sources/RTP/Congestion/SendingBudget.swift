package import Platform

/// The bytes that may leave for one viewer whose path has a limit: spread over time, and no more than the path takes
/// over a while.
package struct SendingBudget: Sendable {
  /// The bytes that may leave now; below zero after a packet that was larger.
  private var pace = 0.0
  /// The bytes that the path could have taken and has not got; below zero if it got more.
  private var credit = 0.0
  private var filled: Instant?
  private var limit = 0.0
  /// `true` if the path got clearly more than it takes, until that is made good.
  package private(set) var isOverdrawn = false

  /// The multiple of the limit at which packets leave, key frames' as well.
  static let paceFactor = 1.5
  /// The bytes that leave at once: two packets, or what leaves within ``burstTime``.
  static let burst = (bytes: 2800.0, seconds: 0.005)
  /// The most that is saved up, as time at the limit: as much as the largest picture takes.
  static let creditTime = 0.5
  /// The most that is overdrawn, as time at the limit.
  static let debtTime = 0.6

  /// Creates a budget that is empty.
  package init() {}

  /// Adds what may leave by `now` on a path of `limit` bits a second.
  package mutating func refill(limit: Double, at now: Instant) {
    self.limit = limit
    guard let filled else { return self.filled = now }
    let bytes = min(1, max(0, (now - filled).seconds)) * limit / 8
    self.filled = max(filled, now)
    let burst = max(Self.burst.bytes, limit / 8 * Self.paceFactor * Self.burst.seconds)
    pace = min(burst, pace + bytes * Self.paceFactor)
    credit = min(limit / 8 * Self.creditTime, credit + bytes)
    if credit >= 0 { isOverdrawn = false }
  }

  /// `true` if a packet may leave.
  package var allowsPacket: Bool { pace >= 0 }

  /// Returns the end of the packets from `first` on that may leave together, as ``noteSent(bytes:)`` would count them.
  package func end(from first: Int, to limit: Int, bytes: (Int) -> Int) -> Int {
    var (left, end) = (pace, first)
    while end < limit, left >= 0 {
      left -= Double(bytes(end))
      end += 1
    }
    return end
  }

  /// Counts bytes that have left.
  package mutating func noteSent(bytes: Int) {
    pace -= Double(bytes)
    credit -= Double(bytes)
    if limit > 0, credit < -limit / 8 * Self.debtTime { isOverdrawn = true }
  }
}

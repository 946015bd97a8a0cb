/// The delay between attempts after failures: twice as long after each failure, within limits.
package struct RetryBackOff: Sendable {
  private let delays: ClosedRange<Duration>
  /// The delay after the next failure.
  private var next: Duration

  /// The delay after a first failure, where the creator sets no other.
  package static let shortest = Duration.seconds(1)
  /// The longest delay, where the creator sets no other.
  package static let longest = Duration.seconds(60)
  /// The time of work after which the delay starts again.
  package static let stable = Duration.seconds(60)

  /// Creates a back-off before the first failure.
  package init(_ delays: ClosedRange<Duration> = RetryBackOff.shortest...RetryBackOff.longest) {
    self.delays = delays
    next = delays.lowerBound
  }

  /// Records a failure and returns the delay.
  package mutating func failed() -> Duration {
    defer { next = min(delays.upperBound, next + next) }
    return next
  }

  /// Records a success: the delay starts at the shortest again.
  package mutating func reset() { next = delays.lowerBound }

  /// Records a failure after `worked` of work and returns the delay.
  package mutating func failed(after worked: Duration) -> Duration {
    if worked >= Self.stable { reset() }
    return failed()
  }
}

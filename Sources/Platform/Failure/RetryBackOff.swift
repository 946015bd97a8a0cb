/// The delay between attempts after failures: 1 s, then twice as long each time, up to a minute. After a minute of work
/// the delay starts at 1 s again.
package struct RetryBackOff: Sendable {
  /// The delay after the next failure.
  private var next = RetryBackOff.shortest

  /// The delay after a first failure.
  package static let shortest = Duration.seconds(1)
  /// The longest delay.
  package static let longest = Duration.seconds(60)
  /// The time of work after which the delay starts again.
  package static let stable = Duration.seconds(60)

  /// Creates a back-off before the first failure.
  package init() {}

  /// Records a failure after `worked` of work and returns the delay.
  package mutating func failed(after worked: Duration) -> Duration {
    if worked >= Self.stable { next = Self.shortest }
    defer { next = min(Self.longest, next + next) }
    return next
  }
}

package import Platform

/// The failures in a row of a rendition's encoder, and the pauses after them: a minute, and twice as long after each one. The value has
/// no clock.
package struct EncoderFailures: Sendable {
  private var backOff: RetryBackOff
  /// The time of the first picture since the last failure or rest; nil before it.
  private var since: Instant?
  private var hasFailed = false

  /// The pause after a first failure, and the longest one.
  package static let pauses = Duration.seconds(60)...Duration.seconds(960)

  /// Creates a value without a failure.
  ///
  /// - Parameter pauses: the pause after a first failure, and the longest one.
  package init(_ pauses: ClosedRange<Duration> = EncoderFailures.pauses) { backOff = RetryBackOff(pauses) }

  /// Notes a picture. Returns `true` if it is the first one after a failure.
  package mutating func works(at now: Instant) -> Bool {
    if since == nil { since = now }
    defer { hasFailed = false }
    return hasFailed
  }

  /// Notes that the encoder is needed no longer.
  package mutating func rests(at now: Instant) {
    if let since, now - since >= RetryBackOff.stable { backOff.reset() }
    since = nil
  }

  /// Notes a failure, and returns the pause.
  package mutating func failed(at now: Instant) -> Duration {
    let worked = since.map { now - $0 } ?? .zero
    (since, hasFailed) = (nil, true)
    return backOff.failed(after: worked)
  }
}

import Platform

/// The delay before Avahi is asked again after a refusal: 5 s, and twice as long each time, up to a minute.
struct RetryPause {
  private static let first = Duration(seconds: 5)
  /// The longest delay.
  static let longest = Duration(seconds: 60)

  private var next = RetryPause.first

  /// Returns the next delay and doubles the one after it.
  mutating func take() -> Duration {
    defer { next = min(next * 2, Self.longest) }
    return next
  }
}

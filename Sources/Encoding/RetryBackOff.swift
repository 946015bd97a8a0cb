import Media

/// How long to wait before something that failed is tried again: 1 s, then twice as long each time, up to a minute.
/// What has worked for a minute starts afresh.
struct RetryBackOff {
  /// The wait after the next failure.
  private var next = RetryBackOff.shortest

  /// The wait after a first failure.
  static let shortest = MediaTime(nanoseconds: 1_000_000_000)
  /// The longest wait.
  static let longest = MediaTime(nanoseconds: 60_000_000_000)
  /// What has worked for this long is stable.
  static let stable = MediaTime(nanoseconds: 60_000_000_000)

  /// Notes a failure after `worked` of work; how long to wait.
  mutating func failed(after worked: MediaTime) -> MediaTime {
    if worked >= Self.stable { next = Self.shortest }
    defer { next = min(Self.longest, next + next) }
    return next
  }
}

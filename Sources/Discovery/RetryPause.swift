import Media

/// After how long Avahi is asked again for what it has refused: 5 s, and twice as long each time, up to a minute.
struct RetryPause {
  private static let first = MediaTime(seconds: 5)
  /// The longest one.
  static let longest = MediaTime(seconds: 60)

  private var next = RetryPause.first

  /// The next pause; the one after it is longer.
  mutating func take() -> MediaTime {
    defer { next = min(next * 2, Self.longest) }
    return next
  }
}

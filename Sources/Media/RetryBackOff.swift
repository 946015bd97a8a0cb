/// How long to wait before something that failed is tried again: 1 s, then twice as long each time, up to a minute.
/// What has worked for a minute starts afresh.
package struct RetryBackOff: Sendable {
  /// The wait after the next failure.
  private var next = RetryBackOff.shortest

  /// The wait after a first failure.
  package static let shortest = MediaTime(nanoseconds: 1_000_000_000)
  /// The longest wait.
  package static let longest = MediaTime(nanoseconds: 60_000_000_000)
  /// What has worked for this long is stable.
  package static let stable = MediaTime(nanoseconds: 60_000_000_000)

  /// A back-off before the first failure.
  package init() {}

  /// Notes a failure after `worked` of work; how long to wait.
  package mutating func failed(after worked: MediaTime) -> MediaTime {
    if worked >= Self.stable { next = Self.shortest }
    defer { next = min(Self.longest, next + next) }
    return next
  }
}

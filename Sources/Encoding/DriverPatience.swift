package import Platform

/// The time that a driver has for a frame before it counts as hung.
package struct DriverPatience {
  /// The limit while frames follow one another.
  let working: Duration
  /// The limit for the first frame after a rest. Hardware that the kernel has suspended wakes up first, which takes up
  /// to some seconds.
  let waking: Duration

  /// Creates limits of time.
  package init(working: Duration, waking: Duration) {
    (self.working, self.waking) = (working, waking)
  }

  /// The time without work that counts as a rest. Drivers let the kernel suspend a GPU after 5 or 10 s without work.
  static let rest = Duration.seconds(1)

  /// Returns the limit for a frame that comes `idle` after the last work.
  package func limit(after idle: Duration) -> Duration { idle < Self.rest ? working : max(working, waking) }
}

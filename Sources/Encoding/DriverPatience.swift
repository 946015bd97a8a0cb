import Media

/// How long a driver may take for a frame before it counts as hung.
struct DriverPatience {
  /// While frames follow one another.
  let working: MediaTime
  /// For the first frame after a rest: hardware that the kernel has suspended meanwhile wakes up first, which takes up to
  /// some seconds.
  let waking: MediaTime

  /// What has not been asked for anything for this long has rested. Drivers let the kernel suspend a GPU after 5 or 10 s
  /// without work.
  static let rest = MediaTime(nanoseconds: 1_000_000_000)

  /// The time for a frame that comes after `idle` without any.
  func limit(after idle: MediaTime) -> MediaTime { idle < Self.rest ? working : max(working, waking) }
}

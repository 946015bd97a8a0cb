import Platform

/// The figures of what a viewer has seen, and what is wrong with them.
struct Verdict: Equatable {
  /// The limits of the command line.
  struct Limits: Equatable {
    /// The expected pictures a second; nil for any.
    var frameRate: Double?
    /// The longest time without a new picture; nil for any.
    var freeze: Duration?
  }

  /// The part of the expected rate that suffices: the clocks of cameras differ, and a second ends between two pictures.
  static let tolerance = 0.95

  let limits: Limits
  /// The time of the beginning.
  let begun: Instant
  private(set) var pictures = 0
  private(set) var first: Instant?
  private(set) var last: Instant?
  private(set) var longestFreeze = Duration.zero
  /// The number of access units that could not be shown.
  var notShown = 0
  /// The time of the end; nil before.
  private(set) var ended: Instant?

  init(_ limits: Limits, at time: Instant) { (self.limits, begun) = (limits, time) }

  /// Notes a picture that is shown at `time`.
  mutating func show(at time: Instant) {
    if let last { longestFreeze = max(longestFreeze, time - last) }
    first = first ?? time
    (last, pictures) = (time, pictures + 1)
  }

  /// Notes the end of the watching. A stream that stands still at the end is frozen too. Only the first call counts.
  mutating func end(at time: Instant) {
    guard ended == nil else { return }
    if let last { longestFreeze = max(longestFreeze, time - last) }
    ended = time
  }

  /// The pictures a second, from the first picture to the end; nil where the time is too short to tell.
  var frameRate: Double? {
    guard let first, let end = ended ?? last, end > first else { return nil }
    // The first picture begins the time.
    return Double(pictures - 1) / (end - first).seconds
  }

  /// The complaints: everything that is worse than the limits, a line each.
  var complaints: [String] {
    guard pictures > 0 else { return ["no picture came"] }
    var complaints: [String] = []
    if let expected = limits.frameRate, let frameRate, frameRate < expected * Self.tolerance {
      complaints.append("\(decimal(frameRate, 2)) pictures a second; \(decimal(expected, 2)) were expected")
    }
    if let freeze = limits.freeze, longestFreeze > freeze {
      complaints.append(
        "a freeze of \(decimal(longestFreeze.seconds, 2)) s; at most \(decimal(freeze.seconds, 2)) s are allowed")
    }
    return complaints
  }

  /// One line for the end.
  var summary: String {
    guard let first else { return "summary    no picture in \(decimal(((ended ?? begun) - begun).seconds, 1)) s" }
    let rate = frameRate.map { ", \(decimal($0, 2)) a second" } ?? ""
    let start = decimal((first - begun).milliseconds, 0)
    return "summary    \(pictures) pictures\(rate), the first after \(start) ms; longest freeze "
      + "\(decimal(longestFreeze.milliseconds, 0)) ms; \(notShown) not shown"
  }
}

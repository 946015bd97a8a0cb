import Platform

/// The alarm for a picture that stands still: a line at once, one every ten seconds until the picture is back, and one then.
///
/// On a terminal the bell sounds with each call, about every second.
struct DeadLineAlarm: Equatable {
  /// The time without a picture from which the alarm sounds.
  let limit: Duration
  private var begun: Instant?
  private var lastLine: Instant?

  /// The time between two lines.
  static let interval = Duration.seconds(10)

  init(after limit: Duration) { self.limit = limit }

  /// `true` while the alarm sounds.
  var sounds: Bool { begun != nil }

  /// Takes the time of the last picture, or of the beginning, and returns the line that is due; nil for none.
  mutating func check(last: Instant, hadPicture: Bool, at time: Instant) -> String? {
    guard time - last > limit else {
      guard let begun else { return nil }
      (self.begun, lastLine) = (nil, nil)
      return "back       the picture is back after \(decimal((last - begun).seconds, 1)) s"
    }
    begun = begun ?? last
    if let lastLine, time - lastLine < Self.interval { return nil }
    lastLine = time
    return "ALARM      no \(hadPicture ? "new " : "")picture for \(decimal((time - last).seconds, 1)) s"
  }
}

import Glibc
package import Platform

/// The condition for night at a camera, and the values of its controls then.
public struct NightProfile: Hashable, Sendable {
  /// The condition for night.
  public enum Condition: Hashable, Sendable {
    /// By the local time, in minutes since midnight: from the first to before the second, over midnight if the second
    /// is smaller.
    case time(from: Int, to: Int)
    /// By the mean luma of the picture, 0…255: night begins below the first, day above the second.
    case darkness(below: Int, above: Int)
  }

  /// The condition for night.
  public let condition: Condition
  /// The values that differ from those by day.
  public let values: [ControlAssignment]

  /// Creates a profile.
  public init(_ condition: Condition, values: [ControlAssignment]) {
    (self.condition, self.values) = (condition, values)
  }
}

/// Distinguishes night from day.
package struct NightDetector {
  private let condition: NightProfile.Condition
  package private(set) var isNight = false
  /// `true` once the first decision was made.
  package private(set) var hasDecided = false
  /// The time since when the picture contradicts the decision.
  private var opposedSince: Instant?

  /// The time for which it must be dark, or light, before the decision changes: headlights and clouds pass.
  static let hold = Duration(seconds: 60)
  /// The hold time for the first decision of a run.
  static let firstHold = Duration(seconds: 3)

  package init(_ condition: NightProfile.Condition) { self.condition = condition }

  /// Updates the decision. Returns `true` if ``isNight`` changed.
  ///
  /// - Parameters:
  ///   - minute: the minute of the local day, 0…1439. The wall clock may jump, so each call passes it again.
  ///   - luma: the mean luma of a picture of the last seconds; nil if none came.
  package mutating func note(minute: Int, luma: Int?, at now: Instant) -> Bool {
    switch condition {
    case .time(let from, let to):
      hasDecided = true
      let isDue = from <= to ? (from..<to).contains(minute) : minute >= from || minute < to
      defer { isNight = isDue }
      return isNight != isDue
    case .darkness(let below, let above):
      guard let luma else {
        // Without a picture the decision stays.
        opposedSince = nil
        return false
      }
      let isOpposed = isNight ? luma > above : luma < below
      guard isOpposed else {
        // A value between the two limits keeps the decision; the first decision is day.
        opposedSince = nil
        if !isNight, luma > below { hasDecided = true }
        return false
      }
      let since = opposedSince ?? now
      opposedSince = since
      guard now - since >= (hasDecided ? Self.hold : Self.firstHold) else { return false }
      isNight.toggle()
      hasDecided = true
      opposedSince = nil
      return true
    }
  }

  /// Returns the minute of the local day; the C library accounts for summer time.
  package static func minuteOfDay() -> Int {
    var now = time(nil)
    var parts = tm()
    // localtime_r need not check whether the time zone has changed.
    tzset()
    localtime_r(&now, &parts)
    return Int(parts.tm_hour) * 60 + Int(parts.tm_min)
  }
}

import Glibc
import Media

/// When it is night for a camera, and what its controls are then.
public struct NightProfile: Hashable, Sendable {
  /// When it is night.
  public enum Condition: Hashable, Sendable {
    /// By the local time, in minutes since midnight: from the first to before the second, over midnight where that is
    /// smaller.
    case time(from: Int, to: Int)
    /// By the mean luma of the picture, 0…255: below the first it becomes night, above the second day.
    case darkness(below: Int, above: Int)
  }

  /// When it is night.
  public let condition: Condition
  /// What is otherwise than by day.
  public let values: [ControlAssignment]

  /// A profile.
  public init(_ condition: Condition, values: [ControlAssignment]) {
    (self.condition, self.values) = (condition, values)
  }
}

/// Tells night from day.
struct NightDetector {
  private let condition: NightProfile.Condition
  private(set) var isNight = false
  /// Whether anything is known yet.
  private(set) var hasDecided = false
  /// Since when the picture says otherwise.
  private var opposedSince: MediaTime?

  /// How long it has to be dark, or light, before it counts: headlights and clouds pass.
  static let hold = MediaTime(seconds: 60)
  /// The same for the first decision of a run.
  static let firstHold = MediaTime(seconds: 3)

  init(_ condition: NightProfile.Condition) { self.condition = condition }

  /// Looks again; whether that has changed ``isNight``.
  ///
  /// - Parameters:
  ///   - minute: of the local day, 0…1439. The wall clock may jump: it is looked at anew each time.
  ///   - luma: of a picture of the last seconds; nil where none has come.
  mutating func note(minute: Int, luma: Int?, at now: MediaTime) -> Bool {
    switch condition {
    case .time(let from, let to):
      hasDecided = true
      let isDue = from <= to ? (from..<to).contains(minute) : minute >= from || minute < to
      defer { isNight = isDue }
      return isNight != isDue
    case .darkness(let below, let above):
      guard let luma else {
        // No picture: it stays as it is.
        opposedSince = nil
        return false
      }
      let isOpposed = isNight ? luma > above : luma < below
      guard isOpposed else {
        // What is between the two keeps what was decided, and begins by day.
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

  /// The minute of the local day; what summer time makes of it is the C library's business.
  static func minuteOfDay() -> Int {
    var now = time(nil)
    var parts = tm()
    // localtime_r need not look whether the time zone is another by now.
    tzset()
    localtime_r(&now, &parts)
    return Int(parts.tm_hour) * 60 + Int(parts.tm_min)
  }
}

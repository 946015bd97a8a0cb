import CLinux
import Glibc
import Media

/// How right the wall clock is.
public struct ClockCondition: Sendable {
  /// Seconds of Unix time.
  public var now: Int64
  /// Whether something synchronizes it, as adjtimex(2) has it; nil where the kernel does not tell.
  public var isSynchronized: Bool?

  /// 2026-01-01: this program is no older.
  static let earliest: Int64 = 1_767_225_600
  /// 2100-01-01.
  static let latest: Int64 = 4_102_444_800

  /// A clock that says so.
  public init(now: Int64, isSynchronized: Bool?) {
    (self.now, self.isSynchronized) = (now, isSynchronized)
  }

  /// This machine's.
  public static var current: ClockCondition {
    let answer = nightjar_clock_synchronized()
    return ClockCondition(now: Int64(time(nil)), isSynchronized: answer < 0 ? nil : answer > 0)
  }

  /// What is to be said of it.
  public var finding: Finding {
    let text = Self.text(now)
    let synchronize = Mend.asRoot("timedatectl set-ntp true")
    guard (Self.earliest..<Self.latest).contains(now) else {
      return Finding(
        .clockWrong, "the clock says \(text)",
        mends: [
          synchronize, .advice("without a network: date -s 'YYYY-MM-DD HH:MM', as root, with the time that it is"),
        ])
    }
    return switch isSynchronized {
    case true: Finding(.clock, "\(text), synchronized")
    case nil: Finding(.clock, "\(text); whether it is synchronized the kernel does not tell")
    case false: Finding(.clockFree, "\(text), and nothing synchronizes the clock", mends: [synchronize])
    }
  }

  /// `2026-11-21`, in UTC.
  public static func day(_ seconds: Int64) -> String { String(text(seconds).prefix { $0 != " " }) }

  /// `2026-11-21 21:24:05 UTC`.
  static func text(_ seconds: Int64) -> String {
    var (seconds, parts) = (time_t(seconds), tm())
    guard gmtime_r(&seconds, &parts) != nil else { return "\(seconds) s after 1970" }
    func two(_ value: CInt) -> String { value < 10 ? "0\(value)" : "\(value)" }
    return "\(Int(parts.tm_year) + 1900)-\(two(parts.tm_mon + 1))-\(two(parts.tm_mday)) \(two(parts.tm_hour)):"
      + "\(two(parts.tm_min)):\(two(parts.tm_sec)) UTC"
  }
}

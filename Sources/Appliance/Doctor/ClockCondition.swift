import CLinux
import Glibc

/// The wall clock's condition.
package struct ClockCondition: Sendable {
  /// The wall clock's time, in seconds of Unix time.
  package var now: Int64
  /// `true` if the clock is synchronized, by adjtimex(2); nil where the kernel does not tell.
  package var isSynchronized: Bool?

  /// 2026-01-01: this program is not older.
  static let earliest: Int64 = 1_767_225_600
  /// 2100-01-01.
  static let latest: Int64 = 4_102_444_800

  /// Creates a condition of these values.
  package init(now: Int64, isSynchronized: Bool?) {
    (self.now, self.isSynchronized) = (now, isSynchronized)
  }

  /// The condition of this machine's clock.
  package static var current: ClockCondition {
    let answer = nightjar_clock_synchronized()
    return ClockCondition(now: Int64(time(nil)), isSynchronized: answer < 0 ? nil : answer > 0)
  }

  /// The finding on the clock.
  package var finding: Finding {
    let text = Self.text(now)
    let synchronize = Mend.asRoot("timedatectl set-ntp true")
    guard (Self.earliest..<Self.latest).contains(now) else {
      return Finding(
        .clockWrong, "the clock says \(text)",
        mends: [
          synchronize, .advice("without a network: date -s 'YYYY-MM-DD HH:MM', as root, with the current time"),
        ])
    }
    return switch isSynchronized {
    case true: Finding(.clock, "\(text), synchronized")
    case nil: Finding(.clock, "\(text); the kernel does not tell whether it is synchronized")
    case false: Finding(.clockFree, "\(text), and nothing synchronizes the clock", mends: [synchronize])
    }
  }

  /// Returns the date in UTC: `2026-11-21`.
  package static func day(_ seconds: Int64) -> String { String(text(seconds).prefix { $0 != " " }) }

  /// Returns date and time: `2026-11-21 21:24:05 UTC`.
  static func text(_ seconds: Int64) -> String {
    var (seconds, parts) = (time_t(seconds), tm())
    guard gmtime_r(&seconds, &parts) != nil else { return "\(seconds) s after 1970" }
    func two(_ value: CInt) -> String { value < 10 ? "0\(value)" : "\(value)" }
    return "\(Int(parts.tm_year) + 1900)-\(two(parts.tm_mon + 1))-\(two(parts.tm_mday)) \(two(parts.tm_hour)):"
      + "\(two(parts.tm_min)):\(two(parts.tm_sec)) UTC"
  }
}

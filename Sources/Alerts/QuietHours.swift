import Glibc
package import Platform

/// Hours of each day, in local time, in which alerts are recorded and wake nobody.
package struct QuietHours: Hashable, Sendable {
  /// The minute of the day at which they begin, and the one at which they end: 0…1439.
  package let (from, to): (Int, Int)

  /// Creates quiet hours from two minutes of the day; nil if they are equal or beyond the day.
  package init?(from: Int, to: Int) {
    guard (0..<1440).contains(from), (0..<1440).contains(to), from != to else { return nil }
    (self.from, self.to) = (from, to)
  }

  /// Creates quiet hours from a text such as `22:00-06:30`; nil for another text.
  package init?(text: String) {
    let parts = text.split(separator: "-", omittingEmptySubsequences: false)
    guard parts.count == 2, let from = Self.minute(parts[0]), let to = Self.minute(parts[1]) else { return nil }
    self.init(from: from, to: to)
  }

  private static func minute(_ text: Substring) -> Int? {
    let parts = text.split(separator: ":", omittingEmptySubsequences: false)
    let isPlain = parts.allSatisfy {
      (1...2).contains($0.utf8.count) && $0.utf8.allSatisfy { (0x30...0x39).contains($0) }
    }
    guard parts.count == 2, isPlain, parts[1].utf8.count == 2, let hour = Int(parts[0]), let minute = Int(parts[1]),
      hour < 24, minute < 60
    else { return nil }
    return hour * 60 + minute
  }

  /// Returns `true` for a minute of the day within the hours.
  package func contains(minute: Int) -> Bool {
    from < to ? (from..<to).contains(minute) : minute >= from || minute < to
  }

  /// Returns `true` if the local time at `seconds` since 1970 is within the hours.
  package func contains(seconds: Int64) -> Bool {
    var time = time_t(seconds)
    var parts = tm()
    localtime_r(&time, &parts)
    return contains(minute: Int(parts.tm_hour) * 60 + Int(parts.tm_min))
  }
}

/// The wall clock, in whole seconds since 1970.
package enum AlertClock {
  /// Returns the seconds since 1970 at which `instant` was or will be.
  package static func seconds(of instant: Instant, at now: Instant = .now()) -> Int64 {
    var wall = timespec()
    clock_gettime(CLOCK_REALTIME, &wall)
    let distance = (now - instant).nanoseconds
    return (Int64(wall.tv_sec) * 1_000_000_000 + Int64(wall.tv_nsec) - distance) / 1_000_000_000
  }

  /// Returns `2026-11-21T12:03:04Z`.
  package static func text(_ seconds: Int64) -> String {
    var time = time_t(seconds)
    var parts = tm()
    gmtime_r(&time, &parts)
    let numbers = [parts.tm_mon + 1, parts.tm_mday, parts.tm_hour, parts.tm_min, parts.tm_sec]
    let two = numbers.map { $0 < 10 ? "0\($0)" : "\($0)" }
    return "\(parts.tm_year + 1900)-\(two[0])-\(two[1])T\(two[2]):\(two[3]):\(two[4])Z"
  }

  /// Returns the seconds since 1970 of a text as ``text(_:)`` writes it; nil for another text.
  package static func seconds(of text: String) -> Int64? {
    let words = text.split { "-T:Z".contains($0) }
    let numbers = words.compactMap { word in
      word.utf8.allSatisfy { (0x30...0x39).contains($0) } ? Int32(word) : nil
    }
    guard numbers.count == 6, words.count == 6, numbers[0] < 10_000 else { return nil }
    var parts = tm()
    (parts.tm_year, parts.tm_mon, parts.tm_mday) = (numbers[0] - 1900, numbers[1] - 1, numbers[2])
    (parts.tm_hour, parts.tm_min, parts.tm_sec) = (numbers[3], numbers[4], numbers[5])
    // A text of the same time is the same text.
    let seconds = Int64(timegm(&parts))
    return self.text(seconds) == text ? seconds : nil
  }
}

public import Media

/// Why a `Range` cannot be played from a camera.
public enum PlayRangeError: Failure, Hashable {
  /// A unit other than npt, smpte and clock.
  case unit(String)
  /// A range that is none of RFC 2326 section 3.5 to 3.7, one that ends before it begins, or one of clock or time code,
  /// by which nothing is recorded.
  case range(String)

  /// The answer to it: section 12.29 asks for 501 where the unit is unknown.
  public var status: ResponseStatus {
    switch self {
    case .unit: .notImplemented
    case .range: .invalidRange
    }
  }

  /// One line for the log.
  public var description: String {
    switch self {
    case .unit(let text): "the range \(excerpt(text)) has an unknown unit; play npt=now-"
    case .range(let text): "the range \(excerpt(text)) is not on a live camera; play npt=now-"
    }
  }

  /// What kind of failure it is.
  public var kind: FailureKind { .data }
}

/// A `Range` that a live camera can play: from any time on (RFC 2326 section 12.29).
///
/// A camera has one time to play from, now. A start in seconds is taken too, because players send `npt=0.000-` for "from
/// the start" and continue after a pause from where they were; and an end, after which a player asks to stop by itself
/// (live555's, told to play for five seconds, sends `npt=0.000-5.000`). The answer's `npt=now-` says what is played.
public struct PlayRange: Hashable, Sendable {
  /// What the answer says is played.
  public static let answer = "npt=now-"

  /// Reads the value of a `Range` header.
  ///
  /// - Throws: ``PlayRangeError`` for a unit that is unknown or not served, and where a live camera has no such range.
  public init(_ text: String) throws(PlayRangeError) {
    let parts = text.split(separator: "=", maxSplits: 1, omittingEmptySubsequences: false)
    let unit = parts[0].trimmed.asciiLowercased
    guard ["npt", "clock", "smpte", "smpte-25", "smpte-30-drop"].contains(unit) else { throw .unit(text) }
    guard unit == "npt", parts.count == 2 else { throw .range(text) }
    let ends = parts[1].split(separator: "-", omittingEmptySubsequences: false)
    guard ends.count == 2, let start = Self.seconds(ends[0].trimmed[...]) else { throw .range(text) }
    let last = ends[1].trimmed
    guard !last.isEmpty else { return }
    guard let end = Self.seconds(last[...]), start == .infinity || start <= end else { throw .range(text) }
  }

  /// A time of section 3.6 in seconds: `npt-sec`, `npt-hhmmss`, or `now`, which is infinite; nil for anything else.
  private static func seconds(_ text: Substring) -> Double? {
    if text == "now" { return .infinity }
    let parts = text.split(separator: ":", omittingEmptySubsequences: false)
    guard parts.count == 1 || parts.count == 3, let last = parts.last else { return nil }
    let seconds = last.split(separator: ".", omittingEmptySubsequences: false)
    guard (1...2).contains(seconds.count), let whole: Int = seconds[0].decimal(digits: 9) else { return nil }
    guard seconds.count == 1 || seconds[1].utf8.allSatisfy(\.isDigit) else { return nil }
    let fraction = seconds.count == 2 ? Double("0.\(seconds[1])0") ?? 0 : 0
    if parts.count == 1 { return Double(whole) + fraction }
    guard let hours: Int = parts[0].decimal(digits: 9), let minutes: Int = parts[1].decimal(digits: 2), minutes < 60,
      whole < 60
    else { return nil }
    return Double(hours * 3600 + minutes * 60 + whole) + fraction
  }
}

public import Platform

/// The reason why a `Range` cannot be played from a camera.
public enum PlayRangeError: Failure, Hashable {
  /// A unit other than npt, smpte and clock.
  case unit(String)
  /// A range that violates RFC 2326 section 3.5 to 3.7, or that ends before it begins. Also a range by clock or time
  /// code, because no recording exists by those.
  case range(String)

  /// The status of the response: section 12.29 requires 501 for an unknown unit.
  public var status: ResponseStatus {
    switch self {
    case .unit: .notImplemented
    case .range: .invalidRange
    }
  }

  /// A one-line description for the log.
  public var description: String {
    switch self {
    case .unit(let text): "the range \(excerpt(text)) has an unknown unit; play npt=now-"
    case .range(let text): "the range \(excerpt(text)) is not on a live camera; play npt=now-"
    }
  }

  /// The kind of failure.
  public var kind: FailureKind { .data }
}

/// A `Range` that a live camera can play: from any time on (RFC 2326 section 12.29).
///
/// A camera can only play from now. A start in seconds is accepted too: players send `npt=0.000-` for "from the
/// start", and continue from their last position after a pause. An end is accepted as well, because a player stops by
/// itself after it: live555's, told to play for five seconds, sends `npt=0.000-5.000`. The response's `npt=now-`
/// states the played range.
public struct PlayRange: Hashable, Sendable {
  /// The played range in the response.
  public static let answer = "npt=now-"

  /// Parses the value of a `Range` header.
  ///
  /// - Throws: ``PlayRangeError`` for a unit that is unknown or not served, and for a range that a live camera does
  ///   not have.
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

  /// Returns a time of section 3.6 in seconds: `npt-sec`, `npt-hhmmss`, or `now`, which is infinite. Returns `nil`
  /// for other text.
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

public import Platform

/// A frame rate as a fraction, such as 30/1 or 30000/1001.
public struct FrameRate: Hashable, Sendable, CustomStringConvertible {
  /// The number of frames in ``denominator`` seconds.
  public let numerator: UInt32
  /// The number of seconds for ``numerator`` frames.
  public let denominator: UInt32

  /// Creates the rate `numerator / denominator`, reduced; nil where either is zero.
  public init?(_ numerator: UInt32, _ denominator: UInt32 = 1) {
    guard numerator > 0, denominator > 0 else { return nil }
    var (a, b) = (numerator, denominator)
    while b != 0 { (a, b) = (b, a % b) }
    self.numerator = numerator / a
    self.denominator = denominator / a
  }

  /// 30 frames a second.
  public static let thirty = FrameRate(known: 30)

  private init(known numerator: UInt32) {
    self.numerator = numerator
    self.denominator = 1
  }

  /// Frames a second.
  public var framesPerSecond: Double { Double(numerator) / Double(denominator) }

  /// The time from one frame to the next.
  public var interval: Duration {
    Duration(nanoseconds: Int64(denominator) * 1_000_000_000 / Int64(numerator))
  }

  /// Returns the time of frame number `index` from the first one, without accumulated rounding.
  public func time(ofFrame index: Int64) -> Duration {
    let (cycles, rest) = index.quotientAndRemainder(dividingBy: Int64(numerator))
    let cycle = Int64(denominator) * 1_000_000_000
    // Both factors may need 32 bits or more: a file's header may give any rate.
    let (high, low) = rest.multipliedFullWidth(by: cycle)
    let part = Int64(numerator).dividingFullWidth((high, low)).quotient
    return Duration(nanoseconds: cycles &* cycle &+ part)
  }

  /// The rate as text: `30`, `29.97`, `7.5`.
  public var description: String {
    if denominator == 1 { return "\(numerator)" }
    let hundredths = (UInt64(numerator) * 100 + UInt64(denominator) / 2) / UInt64(denominator)
    let (whole, rest) = hundredths.quotientAndRemainder(dividingBy: 100)
    if rest == 0 { return "\(whole)" }
    let digits = rest < 10 ? "0\(rest)" : (rest % 10 == 0 ? "\(rest / 10)" : "\(rest)")
    return "\(whole).\(digits)"
  }
}

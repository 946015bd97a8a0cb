package import Platform

/// A count of a camera's pictures, and their rate.
package struct PictureCount: Sendable {
  /// The rate of pictures.
  package struct Rate: Hashable, Sendable {
    /// The rate in pictures a second.
    package let framesPerSecond: Double
    /// The time since the last picture, where it is longer than a picture interval; nil where pictures continue.
    package let silence: Duration?

    /// Creates a rate.
    package init(framesPerSecond: Double, silence: Duration? = nil) {
      (self.framesPerSecond, self.silence) = (framesPerSecond, silence)
    }
  }

  /// The number of pictures.
  private(set) var count = 0
  private var (first, last, arrival) = (Instant.zero, Instant.zero, Instant.zero)

  /// Creates a count of no picture.
  package init() {}

  /// Adds a picture that was captured at `timestamp` and arrived at `now`.
  package mutating func add(_ timestamp: Instant, at now: Instant) {
    if count == 0 { first = timestamp }
    (last, arrival) = (timestamp, now)
    count += 1
  }

  /// Returns the rate; nil where fewer than two pictures came. The pictures' own timestamps count, because arrivals may
  /// be delayed. A camera that has stopped gets a lower rate than before.
  ///
  /// - Parameters:
  ///   - end: the end of the wait for pictures.
  ///   - interval: the negotiated time between two pictures.
  package func rate(until end: Instant, interval: Duration) -> Rate? {
    let span = last - first
    guard count > 1, span > .zero else { return nil }
    let seconds = span.seconds / Double(count - 1)
    let silence = end - arrival
    guard silence.seconds > 2 * max(seconds, interval.seconds) else { return Rate(framesPerSecond: 1 / seconds) }
    return Rate(framesPerSecond: Double(count - 1) / (span + silence).seconds, silence: silence)
  }
}

extension PictureCount.Rate {
  /// Returns the finding on the rate.
  ///
  /// - Parameters:
  ///   - agreed: the negotiated rate, in pictures a second.
  ///   - kind: the kind of pictures; nil where another message names it.
  ///   - first: the remedies for a low rate that come before all others.
  package func finding(agreed: Double, of kind: String? = nil, first: [Mend] = []) -> Finding {
    var text = "\(decimal(framesPerSecond)) of \(decimal(agreed)) pictures a second"
    if let kind { text += ", \(kind)" }
    let figures = ["fps": framesPerSecond, "fps_agreed": agreed]
    // A small clock error is not worth a finding.
    guard framesPerSecond < agreed * 0.9 else { return Finding(.rate, text, figures: figures) }
    if let silence { text += "; none in the last \(decimal(silence.seconds)) s" }
    return Finding(
      .rateLow, text,
      mends: first + [.advice("more light, another format (nightjar devices), or its own USB port")],
      figures: figures)
  }
}

/// Returns a number with one decimal place; no number here is negative.
package func decimal(_ value: Double) -> String {
  let tenths = Int((value * 10).rounded())
  return "\(tenths / 10).\(abs(tenths % 10))"
}

public import Media

/// Pictures of a camera, and how often they come.
public struct PictureCount: Sendable {
  /// How often they come.
  public struct Rate: Hashable, Sendable {
    /// Pictures a second.
    public let framesPerSecond: Double
    /// For how long none has come, where that is longer than from one to the next; nil where they go on.
    public let silence: MediaTime?

    /// A rate.
    public init(framesPerSecond: Double, silence: MediaTime? = nil) {
      (self.framesPerSecond, self.silence) = (framesPerSecond, silence)
    }
  }

  /// How many.
  private(set) var count = 0
  private var (first, last, arrival) = (MediaTime.zero, MediaTime.zero, MediaTime.zero)

  /// One was taken at `timestamp`, and has come `now`.
  mutating func add(_ timestamp: MediaTime, at now: MediaTime) {
    if count == 0 { first = timestamp }
    (last, arrival) = (timestamp, now)
    count += 1
  }

  /// How often they came; nil where fewer than two did. By their own times, whatever delays their arrival; but a camera
  /// that has stopped is not as good as it was before.
  ///
  /// - Parameters:
  ///   - end: until when they were waited for.
  ///   - interval: the time from one to the next, as agreed on.
  func rate(until end: MediaTime, interval: MediaTime) -> Rate? {
    let span = last - first
    guard count > 1, span > .zero else { return nil }
    let seconds = span.seconds / Double(count - 1)
    let silence = end - arrival
    guard silence.seconds > 2 * max(seconds, interval.seconds) else { return Rate(framesPerSecond: 1 / seconds) }
    return Rate(framesPerSecond: Double(count - 1) / (span + silence).seconds, silence: silence)
  }
}

extension PictureCount.Rate {
  /// What is to be said of it.
  ///
  /// - Parameters:
  ///   - agreed: pictures a second that were agreed on.
  ///   - kind: what the pictures are; nil where that is told elsewhere.
  ///   - first: what mends a low rate before anything else.
  public func finding(agreed: Double, of kind: String? = nil, first: [Mend] = []) -> Finding {
    var text = "\(decimal(framesPerSecond)) of \(decimal(agreed)) pictures a second"
    if let kind { text += ", \(kind)" }
    let figures = ["fps": framesPerSecond, "fps_agreed": agreed]
    // A clock that is a little off is no news.
    guard framesPerSecond < agreed * 0.9 else { return Finding(.rate, text, figures: figures) }
    if let silence { text += "; none in the last \(decimal(silence.seconds)) s" }
    return Finding(
      .rateLow, text,
      mends: first + [.advice("more light, another format (nightjar devices), or a USB port of its own")],
      figures: figures)
  }
}

/// A number with one digit behind the point; none of those here is negative.
func decimal(_ value: Double) -> String {
  let tenths = Int((value * 10).rounded())
  return "\(tenths / 10).\(abs(tenths % 10))"
}

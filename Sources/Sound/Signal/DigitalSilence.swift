/// Measures for how long a microphone has recorded nothing but digital silence: at most the lowest bit changes. Every
/// microphone that records has more noise, so one that gives no more than this for a minute is muted or broken.
package struct DigitalSilence: Sendable {
  /// The time after which digital silence is reported, in seconds.
  package static let limit = 60.0

  private let rate: Double
  private var samples: Int64 = 0
  private var isReported = false

  /// Creates a measurement of sound of `rate` samples a second.
  package init(rate: Int) { self.rate = Double(rate) }

  /// The seconds of digital silence up to now; zero while the microphone records.
  package var seconds: Double { Double(samples) / rate }

  /// A change of what is reported.
  package enum Change: Hashable, Sendable {
    /// The digital silence has reached ``limit``.
    case began
    /// A reported silence is over, after so many seconds.
    case ended(seconds: Int)
  }

  /// Notes the next samples, before any gain: `frame` is all channels of `count` instants.
  ///
  /// - Parameter isPresent: `false` if the samples stand for a microphone that is away, which ends the measurement.
  /// - Returns: A change; nil for none.
  package mutating func note(_ frame: UnsafeBufferPointer<Int16>, count: Int, isPresent: Bool) -> Change? {
    guard isPresent, frame.allSatisfy({ -1...1 ~= $0 }) else {
      defer { (samples, isReported) = (0, false) }
      // A loss is reported by itself.
      return isReported && isPresent ? .ended(seconds: Int(seconds)) : nil
    }
    samples += Int64(count)
    guard !isReported, seconds >= Self.limit else { return nil }
    isReported = true
    return .began
  }
}

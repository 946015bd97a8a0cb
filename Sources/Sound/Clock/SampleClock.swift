import Platform

/// The clock of a sound card against `CLOCK_MONOTONIC`: a line through the points (number of the sample, time), fitted
/// by least squares.
///
/// A card's crystal is off by up to some 100 ppm, and the time stamp of one reading by the time that an interrupt takes.
/// The line through the points of a minute knows the rate to a few ppm, and the time of a sample better than any single
/// stamp. During its first ten seconds, the line has the rate of an earlier line, or the nominal rate.
struct SampleClock {
  /// The nominal rate in samples a second.
  let rate: Double

  private struct Point {
    /// Samples since `origin`.
    let sample: Double
    /// Seconds since `start`.
    let time: Double
  }
  private var points: [Point] = []
  private var oldest = 0
  private var origin: Int64 = 0
  private var start = Instant.zero
  private var lastSample: Int64 = 0
  /// The mean of the points, and the seconds of one sample.
  private var line: (sample: Double, time: Double, slope: Double)?
  /// The rate of an earlier line, for the time until this one stands.
  private var knownSlope: Double

  /// The number of points of a line.
  private static let pointLimit = 64
  /// The time between two points, in seconds.
  private static let pointInterval = 1.0
  /// The least points and seconds before the line determines the rate.
  private static let steadyPoints = 3
  private static let steadyTime = 10.0
  /// The largest deviation that is accepted as a crystal's, ±500 ppm. A larger one means lost samples or wrong time
  /// stamps.
  static let deviationLimit = 0.0005

  /// Creates a clock of a card of `rate` samples a second, as the card says.
  init(rate: Int) {
    self.rate = Double(rate)
    knownSlope = 1 / Double(rate)
    points.reserveCapacity(Self.pointLimit)
  }

  /// The card's deviation from its nominal rate, in ppm; positive for a fast card. Zero until it is known.
  var deviation: Double { (1 / (knownSlope * rate) - 1) * 1e6 }

  /// The time of one sample in seconds, within ±500 ppm of the nominal one.
  var slope: Double { knownSlope }

  /// Forgets the points, because samples were lost. The rate stays, because it is the crystal's.
  mutating func restart() {
    points.removeAll(keepingCapacity: true)
    (oldest, line) = (0, nil)
  }

  /// Notes that sample number `sample` was recorded at `time`.
  mutating func note(sample: Int64, at time: Instant) {
    if points.isEmpty { (origin, start) = (sample, time) }
    let point = Point(sample: Double(sample - origin), time: (time - start).seconds)
    if points.isEmpty || Double(sample - lastSample) / rate >= Self.pointInterval {
      lastSample = sample
      if points.count < Self.pointLimit {
        points.append(point)
      } else {
        points[oldest] = point
        oldest = (oldest + 1) % Self.pointLimit
      }
      fit()
    }
    if line == nil { line = (point.sample, point.time, knownSlope) }
  }

  /// Returns the time at which `sample` was recorded by the line; nil before the first point. `sample` may lie between
  /// two samples.
  func time(ofSample sample: Double) -> Instant? {
    guard let line else { return nil }
    let seconds = line.time + (sample - Double(origin) - line.sample) * line.slope
    return start + Duration(seconds: seconds)
  }

  /// Fits the line anew.
  private mutating func fit() {
    let count = Double(points.count)
    var (sample, time) = (0.0, 0.0)
    for point in points {
      sample += point.sample
      time += point.time
    }
    (sample, time) = (sample / count, time / count)
    var (square, product) = (0.0, 0.0)
    for point in points {
      square += (point.sample - sample) * (point.sample - sample)
      product += (point.sample - sample) * (point.time - time)
    }
    let nominal = 1 / rate
    let span = square > 0 ? Double(points.count) * Self.pointInterval : 0
    if points.count >= Self.steadyPoints, span >= Self.steadyTime {
      let limit = nominal * Self.deviationLimit
      knownSlope = min(max(product / square, nominal - limit), nominal + limit)
    }
    line = (sample, time, knownSlope)
  }
}

package import Media
public import Platform
import Synchronization

/// Observes a camera's pictures without asking the camera: their number and their brightness. The camera's thread notes
/// each picture; other threads read.
public final class PictureWatch: Sendable {
  private let count = Atomic<Int>(0)
  private let measures = Atomic<Bool>(false)
  private let nextMeasurement = Atomic<Int64>(0)
  private let luma = Atomic<Int>(-1)
  private let measured = Atomic<Int64>(0)
  /// The time between the last two measurements.
  private let distance = Atomic<Int64>(0)

  /// The time from one measurement to the next.
  private static let interval = Duration.seconds(1)
  /// The age to which a measurement is always valid, and the largest age for pictures that come so seldom that the next
  /// measurement takes longer.
  private static let lifetime = Duration(seconds: 3)
  private static let longestLifetime = Duration(seconds: 60)
  /// The number of samples read in each direction.
  private static let columns = 64
  private static let rows = 36

  /// Creates an observer that does not measure brightness.
  public init() {}

  /// The number of pictures so far.
  package var pictures: Int { count.load(ordering: .relaxed) }

  /// `true` if brightness is measured.
  package var isMeasuring: Bool {
    get { measures.load(ordering: .relaxed) }
    set { measures.store(newValue, ordering: .relaxed) }
  }

  /// Returns the mean luma of a picture of the last seconds, 0…255 for either range; nil if there is none.
  public func brightness(at now: Instant = .now()) -> Int? {
    let value = luma.load(ordering: .acquiring)
    let age = now.nanoseconds - measured.load(ordering: .relaxed)
    let lifetime = min(
      max(Self.lifetime.nanoseconds, 2 * distance.load(ordering: .relaxed)), Self.longestLifetime.nanoseconds)
    return value >= 0 && age <= lifetime ? value : nil
  }

  /// Notes a picture. If brightness is measured, reads some two thousand samples of one picture per second, and no
  /// others.
  ///
  /// - Parameter planes: The picture's samples; nil for a coded picture.
  package func note(_ planes: NV12Planes?, isFullRange: Bool, at now: Instant) {
    count.add(1, ordering: .relaxed)
    guard let planes, measures.load(ordering: .relaxed),
      now.nanoseconds >= nextMeasurement.load(ordering: .relaxed)
    else { return }
    nextMeasurement.store(now.nanoseconds + Self.interval.nanoseconds, ordering: .relaxed)
    let former = measured.load(ordering: .relaxed)
    // A picture before a long gap says nothing about the rate.
    let gap = former == 0 ? 0 : now.nanoseconds - former
    distance.store(gap <= Self.longestLifetime.nanoseconds ? gap : 0, ordering: .relaxed)
    luma.store(Self.meanLuma(of: planes, isFullRange: isFullRange), ordering: .releasing)
    measured.store(now.nanoseconds, ordering: .relaxed)
  }

  /// Returns the mean of a grid of samples, 0…255.
  package static func meanLuma(of planes: NV12Planes, isFullRange: Bool) -> Int {
    let (width, height) = (planes.size.width, planes.size.height)
    let (columns, rows) = (min(columns, width), min(rows, height))
    var sum = 0
    for row in 0..<rows {
      let line = planes.luma + (row * height / rows) * planes.lumaStride
      for column in 0..<columns { sum += Int(line[column * width / columns]) }
    }
    let mean = sum / max(1, columns * rows)
    return isFullRange ? mean : min(255, max(0, (mean - 16) * 255 / 219))
  }
}

public import Media
import Synchronization

/// What is known of a camera's pictures without asking the camera: that they come, and how bright they are. The camera's
/// thread notes each, others read.
public final class PictureWatch: Sendable {
  private let count = Atomic<Int>(0)
  private let measures = Atomic<Bool>(false)
  private let nextMeasurement = Atomic<Int64>(0)
  private let luma = Atomic<Int>(-1)
  private let measured = Atomic<Int64>(0)
  /// Between the last two measurements.
  private let distance = Atomic<Int64>(0)

  /// From one measurement to the next.
  private static let interval = MediaTime(nanoseconds: 1_000_000_000)
  /// How old a measurement may be at least, and at most where pictures come so seldom that it takes longer to the next.
  private static let lifetime = MediaTime(seconds: 3)
  private static let longestLifetime = MediaTime(seconds: 60)
  /// How many samples are looked at in each direction.
  private static let columns = 64
  private static let rows = 36

  /// One that does not measure.
  public init() {}

  /// Pictures so far.
  var pictures: Int { count.load(ordering: .relaxed) }

  /// Whether brightness is wanted.
  var isMeasuring: Bool {
    get { measures.load(ordering: .relaxed) }
    set { measures.store(newValue, ordering: .relaxed) }
  }

  /// The mean luma of a picture of the last seconds, 0…255 whatever its range; nil where there is none.
  public func brightness(at now: MediaTime = .now()) -> Int? {
    let value = luma.load(ordering: .acquiring)
    let age = now.nanoseconds - measured.load(ordering: .relaxed)
    let lifetime = min(
      max(Self.lifetime.nanoseconds, 2 * distance.load(ordering: .relaxed)), Self.longestLifetime.nanoseconds)
    return value >= 0 && age <= lifetime ? value : nil
  }

  /// A picture has come. Of one a second some two thousand samples are read where brightness is wanted; nothing else is.
  func note(_ planes: NV12Planes, isFullRange: Bool, at now: MediaTime) {
    count.add(1, ordering: .relaxed)
    guard measures.load(ordering: .relaxed), now.nanoseconds >= nextMeasurement.load(ordering: .relaxed) else { return }
    nextMeasurement.store(now.nanoseconds + Self.interval.nanoseconds, ordering: .relaxed)
    let former = measured.load(ordering: .relaxed)
    // What came before a long gap is no rate.
    let gap = former == 0 ? 0 : now.nanoseconds - former
    distance.store(gap <= Self.longestLifetime.nanoseconds ? gap : 0, ordering: .relaxed)
    luma.store(Self.meanLuma(of: planes, isFullRange: isFullRange), ordering: .releasing)
    measured.store(now.nanoseconds, ordering: .relaxed)
  }

  /// The mean of a grid of samples, 0…255.
  static func meanLuma(of planes: NV12Planes, isFullRange: Bool) -> Int {
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

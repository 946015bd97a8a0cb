import Glibc
public import Media

/// How fast an encoder is, on pictures that have detail and move.
public struct EncoderTrial: Sendable {
  /// What it is.
  public let name: String
  /// What it encoded.
  public let size: PictureSize
  /// The time that there is for a picture.
  public let interval: MediaTime
  /// The time that one took, on average.
  public let average: MediaTime
  /// The processors' time that one took on average, of all threads together.
  public let processorTime: MediaTime
  /// The time that the slowest took.
  public let longest: MediaTime
  /// How many were encoded.
  public let frames: Int

  /// The part of the time that is left, in percent; negative where there is not enough.
  public var headroom: Double { (1 - average.seconds / interval.seconds) * 100 }

  /// Encodes two seconds' pictures as fast as it goes, for `limit` at most, and stops the encoder.
  ///
  /// - Throws: `EncoderError`, `FramePoolError`.
  public init(_ encoder: any VideoEncoder, limit: MediaTime) throws {
    let configuration = encoder.configuration
    defer { encoder.stop() }
    name = encoder.name
    size = configuration.size
    interval = configuration.frameRate.interval
    let scene = try MovingScene(size: size)
    let wanted = max(2, Int((configuration.frameRate.framesPerSecond * 2).rounded(.up)))
    let end = MediaTime.now() + limit
    var (total, processors, longest, frames) = (MediaTime.zero, MediaTime.zero, MediaTime.zero, 0)
    while frames < wanted, frames < 2 || .now() < end {
      let time = configuration.frameRate.time(ofFrame: Int64(frames))
      guard let frame = scene.frame(number: frames, at: time) else { break }
      let start = (time: MediaTime.now(), processors: Self.processorTimeNow())
      try encoder.encode(frame, keyFrame: frames == 0) { _ in }
      let took = MediaTime.now() - start.time
      processors = processors + (Self.processorTimeNow() - start.processors)
      total = total + took
      longest = max(longest, took)
      frames += 1
    }
    self.longest = longest
    self.frames = frames
    average = MediaTime(nanoseconds: total.nanoseconds / Int64(max(1, frames)))
    processorTime = MediaTime(nanoseconds: processors.nanoseconds / Int64(max(1, frames)))
  }

  /// What all threads of this process have taken so far: an encoder's are among them, and nobody else is busy here.
  private static func processorTimeNow() -> MediaTime {
    var time = timespec()
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &time)
    return MediaTime(nanoseconds: Int64(time.tv_sec) * 1_000_000_000 + Int64(time.tv_nsec))
  }

  /// What is to be said of it.
  public var finding: Finding {
    let left = Int(headroom.rounded())
    let text =
      "\(name): \(size) in \(decimal(average.milliseconds)) of \(decimal(interval.milliseconds)) ms, "
      + "\(left < 0 ? "too slow by" : "headroom") \(abs(left)) %"
    let figures = [
      "encode_ms": average.milliseconds, "encode_longest_ms": longest.milliseconds,
      "encode_cpu_ms": processorTime.milliseconds, "headroom_percent": headroom,
    ]
    return Self.finding(text, headroom: headroom, figures: figures)
  }

  /// Whether so many processors are enough for several of x264 together; nil where there are none.
  public static func total(of trials: [EncoderTrial], processors: Int) -> Finding? {
    let software = trials.filter { $0.name.hasPrefix("x264") }
    guard !software.isEmpty else { return nil }
    let taken = software.map { $0.processorTime.seconds / $0.interval.seconds }.reduce(0, +)
    let headroom = (1 - taken / Double(max(1, processors))) * 100
    let left = "headroom \(Int(headroom.rounded())) % altogether"
    let text = "\(software.count) cameras by x264 on \(processors) processors: \(left)"
    return finding(text, headroom: headroom, figures: ["headroom_percent": headroom])
  }

  /// By how much of the time is left.
  public static func finding(_ text: String, headroom: Double, figures: [String: Double]) -> Finding {
    let mends: [Mend] = [
      .advice("x264-preset = \"ultrafast\""), .advice("or less to do: size = \"1280x720\" or smaller, fps = \"15\""),
    ]
    if headroom <= 0 { return Finding(.encoderSlow, text, mends: mends, figures: figures) }
    if headroom < 20 { return Finding(.encoderTight, text, mends: mends, figures: figures) }
    return Finding(.encoder, text, figures: figures)
  }
}

/// Pictures with detail and noise that move, as a camera that is carried sees them: harder to encode than colour bars. Some
/// rows are drawn, and each frame shows a window on them.
private final class MovingScene {
  /// How far the window moves, and how many rows are drawn; all others are these, shifted.
  private static let (margin, drawn) = (256, 32)
  private let size: PictureSize
  private let pool: FramePool
  private let stride: Int
  private var luma: [UInt8]

  /// - Throws: `FramePoolError`.
  init(size: PictureSize) throws(FramePoolError) {
    self.size = size
    pool = try FramePool(size: size)
    stride = size.width + 2 * Self.margin
    luma = [UInt8](repeating: 0, count: stride * Self.drawn)
    var seed: UInt32 = 1
    for position in luma.indices {
      seed = seed &* 1_664_525 &+ 1_013_904_223
      luma[position] = UInt8(16 + (position % stride / 3) % 200 + Int(seed >> 29))
    }
  }

  /// The frame of that number; nil where an encoder keeps them all.
  func frame(number: Int, at time: MediaTime) -> Frame? {
    guard let frame = pool.checkout(color: .bt709, timestamp: time, captured: time) else { return nil }
    let planes = frame.planes
    let shift = number * 4 % Self.margin
    luma.withUnsafeBufferPointer { luma in
      guard let base = luma.baseAddress else { return }
      for y in 0..<size.height {
        let row = base + y % Self.drawn * stride + shift + y * 7 % Self.margin
        (planes.luma + y * planes.lumaStride).update(from: row, count: size.width)
      }
    }
    for y in 0..<size.height / 2 {
      (planes.chroma + y * planes.chromaStride).update(repeating: 128, count: size.width)
    }
    return frame
  }
}

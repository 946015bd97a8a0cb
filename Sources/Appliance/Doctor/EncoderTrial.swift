import Encoding
import Glibc
package import Media
package import Platform

/// A measurement of an encoder's speed, with detailed and moving pictures.
package struct EncoderTrial: Sendable {
  /// The encoder's name.
  package let name: String
  /// The size of the encoded pictures.
  package let size: PictureSize
  /// The available time for a picture.
  package let interval: Duration
  /// The average time for a picture. Of ten or more, the longest one does not count: another program may have held it
  /// up.
  package let average: Duration
  /// The average processor time for a picture, of all threads together.
  package let processorTime: Duration
  /// The longest time for a picture.
  package let longest: Duration
  /// The number of encoded pictures.
  package let frames: Int

  /// The unused part of the available time, in percent; negative where the time does not suffice.
  package var headroom: Double { (1 - average.seconds / interval.seconds) * 100 }

  /// Encodes two seconds' pictures as fast as possible, for `limit` at most, and stops the encoder.
  ///
  /// - Throws: `EncoderError`, `FramePoolError`.
  package init(_ encoder: any VideoEncoder, limit: Duration) throws {
    let configuration = encoder.configuration
    defer { encoder.stop() }
    name = encoder.name
    size = configuration.size
    interval = configuration.frameRate.interval
    let scene = try MovingScene(size: size)
    let wanted = max(2, Int((configuration.frameRate.framesPerSecond * 2).rounded(.up)))
    let end = Instant.now() + limit
    var (total, processors, longest, frames) = (Duration.zero, Duration.zero, Duration.zero, 0)
    while frames < wanted, frames < 2 || .now() < end {
      let time = Instant.zero + configuration.frameRate.time(ofFrame: Int64(frames))
      guard let frame = scene.frame(number: frames, at: time) else { break }
      let start = (time: Instant.now(), processors: Self.processorTimeNow())
      try encoder.encode(frame, keyFrame: frames == 0) { _ in }
      let took = Instant.now() - start.time
      processors = processors + (Self.processorTimeNow() - start.processors)
      total = total + took
      longest = max(longest, took)
      frames += 1
    }
    self.longest = longest
    self.frames = frames
    let judged = frames < 10 ? (total, frames) : (total - longest, frames - 1)
    average = Duration(nanoseconds: judged.0.nanoseconds / Int64(max(1, judged.1)))
    processorTime = Duration(nanoseconds: processors.nanoseconds / Int64(max(1, frames)))
  }

  /// Returns the processor time of all threads of this process so far. It includes an encoder's threads, and no other
  /// thread is busy here.
  private static func processorTimeNow() -> Duration {
    var time = timespec()
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &time)
    return Duration(nanoseconds: Int64(time.tv_sec) * 1_000_000_000 + Int64(time.tv_nsec))
  }

  /// Returns the finding on the encoder's speed. `couldChooseLevel` is `true` if `vaapi-quality = "auto"` would let a stream choose the
  /// quality level of the hardware.
  package func finding(couldChooseLevel: Bool) -> Finding {
    let left = Int(headroom.rounded())
    let text =
      "\(name): \(size) in \(decimal(average.milliseconds)) of \(decimal(interval.milliseconds)) ms, "
      + "\(left < 0 ? "too slow by" : "headroom") \(abs(left)) %"
    let figures = [
      "encode_ms": average.milliseconds, "encode_longest_ms": longest.milliseconds,
      "encode_cpu_ms": processorTime.milliseconds, "headroom_percent": headroom,
    ]
    return Self.finding(
      text, headroom: headroom, figures: figures, isHEVC: Self.isHEVC(name), isHardware: Self.isHardware(name),
      couldChooseLevel: couldChooseLevel)
  }

  /// Returns the finding on several software encoders that share the processors; nil where there are none.
  package static func total(of trials: [EncoderTrial], processors: Int) -> Finding? {
    let software = trials.filter { EncoderSelector.softwareCodec(ofEncoder: $0.name) != nil }
    guard !software.isEmpty else { return nil }
    let codecs = Set(software.compactMap { EncoderSelector.softwareCodec(ofEncoder: $0.name) })
    let names = codecs.map(\.softwareLibrary).sorted().joined(separator: " and ")
    let taken = software.map { $0.processorTime.seconds / $0.interval.seconds }.reduce(0, +)
    let headroom = (1 - taken / Double(max(1, processors))) * 100
    let left = "headroom \(Int(headroom.rounded())) % altogether"
    let text = "\(software.count) cameras by \(names) on \(processors) processors: \(left)"
    return finding(
      text, headroom: headroom, figures: ["headroom_percent": headroom], isHEVC: codecs.contains(.hevc))
  }

  /// Returns `true` if the encoder with this name makes HEVC.
  static func isHEVC(_ name: String) -> Bool { EncoderSelector.softwareCodec(ofEncoder: name) == .hevc }

  /// Returns `true` if the encoder with this name is hardware.
  package static func isHardware(_ name: String) -> Bool { name.hasPrefix("VA-API") }

  /// Returns the finding for this headroom. For HEVC in software, `isHEVC` is `true`: H.264 takes a part of the processor time.
  /// `couldChooseLevel` is `true` if the hardware has several quality levels, and none is chosen by measurement yet.
  package static func finding(
    _ text: String, headroom: Double, figures: [String: Double], isHEVC: Bool, isHardware: Bool = false,
    couldChooseLevel: Bool = false
  ) -> Finding {
    let less = "reduce the load: size = \"1280x720\" or smaller, fps = \"15\""
    let faster =
      isHardware
      ? "vaapi-quality = \"auto\""
      : isHEVC ? "codec = \"h264\", or x264-preset = \"ultrafast\"" : "x264-preset = \"ultrafast\""
    let mends: [Mend] = isHardware && !couldChooseLevel ? [.advice(less)] : [.advice(faster), .advice("or \(less)")]
    if headroom <= 0 { return Finding(.encoderSlow, text, mends: mends, figures: figures) }
    if headroom < 20 { return Finding(.encoderTight, text, mends: mends, figures: figures) }
    return Finding(.encoder, text, figures: figures)
  }
}

/// Pictures with moving detail and noise, as from a camera that is carried: harder to encode than colour bars. Some
/// rows are drawn, and each frame shows a window on them.
private final class MovingScene {
  /// The range of the window's motion, and the number of drawn rows; all other rows are these, shifted.
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

  /// Returns the frame of that number; nil where an encoder holds all frames.
  func frame(number: Int, at time: Instant) -> Frame? {
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

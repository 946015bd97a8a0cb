import Encoding
import Foundation
import Media
import Platform
import Synchronization
import TestSupport
import Testing

extension VideoEncoder {
  /// The preset of x264 or x265 in the name of the live encoder: `name of the library, preset, threads`.
  var namedPreset: String? { name.components(separatedBy: ", ").dropLast().last }
}

/// Frames of both aspects for an encoder, and what it makes of them.
struct TurningStream {
  static let landscape = PictureSize(width: 320, height: 240)
  static let portrait = PictureSize(width: 240, height: 320)

  let encoder: any VideoEncoder
  private(set) var stream: CodedStream
  /// The sizes of the frames that were taken, in order.
  private(set) var sizes: [PictureSize] = []
  /// The number of the next frame.
  private(set) var next = 0
  private var pools: [PictureSize: FramePool] = [:]

  init(_ encoder: any VideoEncoder) throws {
    self.encoder = encoder
    stream = CodedStream(codec: encoder.configuration.codec)
  }

  /// Encodes `count` frames of `size`, the first of them as a key frame where that is asked for.
  mutating func encode(_ count: Int = 1, _ size: PictureSize, keyFrame: Bool = false) throws {
    for index in 0..<count {
      if pools[size] == nil { pools[size] = try FramePool(size: size) }
      let pool = try #require(pools[size])
      let frame = try pool.frame(at: Instant.zero + FrameRate.thirty.time(ofFrame: Int64(next)))
      (frame.planes.luma + next % 100 * frame.planes.lumaStride).update(repeating: 200, count: size.width)
      var delivered = stream
      try encoder.encode(frame, keyFrame: keyFrame && index == 0) { delivered.append($0) }
      stream = delivered
      sizes.append(size)
      next += 1
    }
  }

  /// Takes what is still held back.
  mutating func flush() throws {
    var delivered = stream
    try encoder.flush { delivered.append($0) }
    stream = delivered
  }

  /// Checks that every frame came out once, in order, and that ffmpeg decodes each in its size.
  func check() throws {
    #expect(stream.timestamps == (0..<next).map { Instant.zero + FrameRate.thirty.time(ofFrame: Int64($0)) })
    #expect(try stream.decodedSizes() == sizes)
    #expect(try stream.decodedCount() == next)
    // HEVC has no such identifiers.
    if encoder.configuration.lookahead == 0, encoder.configuration.codec == .h264 {
      #expect(try stream.repeatedPictureIDs().isEmpty)
    }
  }

  /// The numbers of the pictures that are rotated otherwise than the one before.
  var turns: [Int] { sizes.indices.dropFirst().filter { sizes[$0] != sizes[$0 - 1] } }
}

/// The encoders that were made for either aspect, and a gate at which the making waits.
final class EncoderLog: Sendable {
  struct State {
    var made: [PictureSize] = []
    var threads: Set<String> = []
    /// `/proc` of the thread that was here last.
    var task = ""
    var isClosed = false
    var fails = false
  }
  let state = Mutex(State())

  /// Notes an encoder, waits while the gate is closed, and fails where it is told to.
  func enter(_ configuration: EncoderConfiguration) throws(EncoderError) {
    let comm = (try? KernelFile.text("/proc/thread-self/comm")) ?? ""
    let task = (try? FileManager.default.destinationOfSymbolicLink(atPath: "/proc/thread-self")) ?? ""
    let thread = comm.trimmingCharacters(in: .whitespacesAndNewlines)
    state.withLock { state in
      state.made.append(configuration.size)
      state.threads.insert(thread)
      state.task = task
    }
    while state.withLock({ $0.isClosed }) { usleep(2000) }
    if state.withLock({ $0.fails }) { throw .unavailable("it was told to fail") }
  }
}

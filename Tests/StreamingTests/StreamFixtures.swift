import Capture
import Encoding
import Foundation
import Media
import Platform
import RTP
import Sound
import Streaming
import Synchronization
import TestSupport
import Testing

/// An encoder whose pictures are as large as a test wants them.
final class SizedEncoder: VideoEncoder, @unchecked Sendable {
  // Sendable: what others read is under the mutex.
  let configuration: EncoderConfiguration
  let name = "sized encoder"
  let parameterSets: ParameterSets
  private let keyBytes: Int
  private let bytes: Int
  private let changesEvery: Int?
  /// When each key frame was made.
  private let made = Mutex<[Instant]>([])
  private let times = Mutex<[Int64]>([])
  private var count = 0
  private var version: UInt8 = 1
  private let isChangeDue = Mutex(false)
  /// Made once: an encoder that is slower than the camera would change what is measured.
  private let noise: UnsafeMutableRawBufferPointer

  /// - Parameter changesEvery: The number of pictures after which the stream has other parameter sets again and again.
  init(keyBytes: Int, bytes: Int, bitrate: Int = 1_000_000, changesEvery: Int? = nil) throws {
    configuration = EncoderConfiguration(
      size: PictureSize(width: 64, height: 64), frameRate: .thirty, bitrate: bitrate, color: .bt709)
    parameterSets = try #require(ParameterSets(sequence: [0x67, 66, 0xc0, 30, 1], picture: [0x68, 1]))
    self.keyBytes = keyBytes
    self.bytes = bytes
    self.changesEvery = changesEvery
    noise = .allocate(byteCount: max(keyBytes, bytes) + 257, alignment: 1)
    for index in noise.indices { noise[index] = UInt8(truncatingIfNeeded: index &* 31 ^ index >> 8 | 1) }
  }

  deinit { noise.deallocate() }

  var keyFrames: [Instant] { made.withLock { $0 } }

  /// When each picture was made, by the clock of ``TestSocket/Datagram/arrival``.
  var pictureTimes: [Int64] { times.withLock { $0 } }

  /// Has the stream have other parameter sets from the next picture on, which is a key frame.
  func changeParameterSets() { isChangeDue.withLock { $0 = true } }

  func prepare() throws(EncoderError) {}
  func change(bitrate: Int, frameRate: FrameRate) throws(EncoderError) {}
  func flush(deliver: (borrowing AccessUnit) -> Void) throws(EncoderError) {}
  func stop() {}

  func encode(
    _ frame: borrowing Frame, keyFrame: Bool, to sink: any AccessUnitSink
  ) throws(EncoderError) {
    let isDue = isChangeDue.withLock { isDue in
      defer { isDue = false }
      return isDue
    }
    var time = timespec()
    clock_gettime(CLOCK_REALTIME, &time)
    times.withLock { $0.append(Int64(time.tv_sec) * 1_000_000_000 + Int64(time.tv_nsec)) }
    let isChange = changesEvery.map { count > 0 && count.isMultiple(of: $0) } ?? isDue
    let isKey = keyFrame || isChange
    if isKey { made.withLock { $0.append(.now()) } }
    if isChange { version &+= 1 }
    let number = count
    count += 1
    let sets: [[UInt8]] = isKey ? [[0x67, 66, 0xc0, 30, version], [0x68, 1]] : []
    // From another place each time, so that a packet sent again is told from the others.
    let slice = UnsafeMutableRawBufferPointer(rebasing: noise[(number % 256)...].prefix(1 + (isKey ? keyBytes : bytes)))
    let first = slice[0]
    slice[0] = isKey ? 0x65 : 0x41
    defer { slice[0] = first }
    let memory = UnsafeMutableRawBufferPointer.allocate(byteCount: 64, alignment: 1)
    defer { memory.deallocate() }
    memory.copyBytes(from: sets.joined())
    var start = 0
    var nalUnits = sets.compactMap { unit in
      defer { start += unit.count }
      return NALUnit(UnsafeRawBufferPointer(rebasing: memory[start..<start + unit.count]))
    }
    if let unit = NALUnit(UnsafeRawBufferPointer(slice)) { nalUnits.append(unit) }
    let (timestamp, captured) = (frame.timestamp, frame.captured)
    nalUnits.withUnsafeBufferPointer {
      sink.take(AccessUnit(nalUnits: $0, isKeyFrame: isKey, timestamp: timestamp, captured: captured))
    }
  }
}

/// A camera that has a frame once the encoder is done with the one before, so that a busy machine costs none.
final class UnhurriedCamera: VideoSource, @unchecked Sendable {
  // Sendable: the capture thread alone uses what changes.
  let format = SourceFormat(
    size: PictureSize(width: 64, height: 64), frameRate: .thirty, pixelFormat: .nv12, color: .bt709,
    conversion: "no copy")
  let name = "unhurried camera"
  let isLive = true
  let orientation = Orientation.upright
  let turningFailure: (any Failure)? = nil
  private let pool: FramePool
  private let isEven: Bool
  private var even = Instant.now()

  /// - Parameter isEven: `true` for timestamps that are a frame interval apart, however late the frames are: then no other frame rate is
  ///   measured.
  init(isEven: Bool = false) throws {
    pool = try FramePool(size: PictureSize(width: 64, height: 64), capacity: 1)
    self.isEven = isEven
  }

  func orient(_ orientation: Orientation) {}
  func prepareTurning() throws {}
  func start() throws {}
  func stop() {}

  func next(interrupt: borrowing Interrupt) throws -> CaptureEvent {
    guard interrupt.wait(until: .now() + .milliseconds(isEven ? 33 : 20)) else { return .idle }
    let now = Instant.now()
    guard let frame = pool.checkout(color: .bt709, timestamp: isEven ? even : now, captured: now) else { return .idle }
    even = even + FrameRate.thirty.interval
    return .frame(frame)
  }
}

/// A pipeline at 30 frames a second unless told, which ends with the value.
final class RunningPipeline {
  let pipeline: Pipeline
  let encoder: SizedEncoder

  init(
    _ encoder: SizedEncoder, to destinations: [StreamDestination], pacing: Double = 0, keyFrameInterval: Double = 1000,
    frameRate: FrameRate = .thirty, from source: (any VideoSource)? = nil,
    sound: (source: any SoundSource, settings: SoundSettings)? = nil, restsUnwatched: Bool = false
  ) throws {
    self.encoder = encoder
    pipeline = try Pipeline(
      source: try source ?? SyntheticCamera(size: PictureSize(width: 64, height: 64), frameRate: frameRate),
      encoder: encoder, destinations: destinations, sound: sound,
      keyFrameInterval: Duration(seconds: keyFrameInterval), pacing: pacing, restsUnwatched: restsUnwatched)
    try pipeline.start()
  }

  func end() {
    pipeline.stop()
    _ = pipeline.waitUntilEnd()
  }

  deinit { end() }
}

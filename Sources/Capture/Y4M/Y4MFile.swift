import CTracing
import Glibc
public import Media
import PixelConversion
public import Platform

/// A clip in the YUV4MPEG2 format that serves as a camera: at its own pace or as fast as possible, once or repeatedly.
public final class Y4MFile: VideoSource, @unchecked Sendable {
  // Sendable: one thread at a time calls it, as `VideoSource` says.

  /// The pace of the pictures.
  public enum Pacing: Sendable {
    /// At the clip's rate on `CLOCK_MONOTONIC`. A picture whose time has passed, or for which there is no memory, is
    /// dropped, as a camera's is.
    case realtime
    /// As fast as the caller takes them; none is dropped. Timestamps begin at 0 and follow the clip's rate.
    case maximum
  }

  /// The format of the pictures.
  public let format: SourceFormat
  /// The path of the clip, as given.
  public let name: String
  /// `true` if a clock sets the pace.
  public var isLive: Bool { pacing == .realtime }

  private let header: Y4MHeader
  private let pacing: Pacing
  private let loops: Int?
  private let converter: OrientedConverter
  private let interleaver: ChromaInterleaver
  /// The memory for Cb and Cr as the file has them.
  private let chroma: UnsafeMutablePointer<UInt8>

  private var stream: Y4MStream
  private var schedule: FrameSchedule?
  /// The number of the next picture on the timeline, which continues over all loops.
  private var tick: Int64 = 0
  /// The number of the pass, and the number of its pictures that were read or skipped.
  private var pass = 1
  private var pictures = 0
  /// `true` if the next picture's header has been read, but not its samples.
  private var isAtPicture = false
  private var hasEnded = false

  /// Opens the clip at `path` with `capacity` frames of memory. The clip plays `loops` times, or forever if nil. A pipe
  /// can play only once.
  ///
  /// - Throws: ``Y4MError``.
  public init(
    path: String, pacing: Pacing = .realtime, loops: Int? = nil, capacity: Int = FramePool.defaultCapacity,
    memory: FrameMemory = FrameMemory()
  ) throws(Y4MError) {
    if let loops, loops < 1 { throw .loops(loops) }
    var stream = try Y4MStream(path: path)
    guard stream.isSeekable || loops == 1 else { throw .pipeCannotLoop(path: path) }
    let header = try Y4MHeader(from: &stream)
    stream.enlargePipe(toward: header.frameByteCount)
    let pool: FramePool
    do throws(FramePoolError) {
      pool = try FramePool(size: header.size, capacity: capacity, memory: memory)
    } catch {
      switch error {
      case .size(let size): throw .size(size)
      case .capacity(let count): throw .capacity(count)
      case .memory(let bytes): throw .memory(bytes: bytes)
      }
    }
    do throws(ConversionError) {
      interleaver = try ChromaInterleaver(size: header.size)
      converter = try OrientedConverter(
        from: .nv12, size: header.size, upright: pool, capacity: capacity, memory: memory,
        isStaged: true)
    } catch {
      throw .size(header.size)
    }
    chroma = .allocate(capacity: max(1, 2 * header.chromaSize.pixels))
    format = SourceFormat(
      size: header.size, frameRate: header.frameRate, pixelFormat: header.chroma.pixelFormat,
      color: header.color, conversion: "libyuv", turnsApart: true)
    name = path
    self.header = header
    self.pacing = pacing
    self.loops = loops
    self.stream = stream
    // A file without a complete first picture is refused now; a pipe may take its time.
    if self.stream.isSeekable {
      guard try advance(interrupt: -1) else { throw .empty }
      let rest = try attempt { () throws(SystemFailure) in try self.stream.bytesLeft() }
      if rest < header.frameByteCount {
        throw .truncated(frame: 1, offset: self.stream.offset + rest, missing: header.frameByteCount - Int(rest))
      }
    }
  }

  deinit {
    chroma.deallocate()
  }

  /// Sets the orientation from the next picture on: pictures are read upright, then rotated. Any thread may call it.
  public func orient(_ orientation: Orientation) {
    converter.orient(orientation)
  }

  /// Leaves rotations that `offer` covers to the encoder: those pictures pass as they are in the file.
  public func leaveTurning(to offer: TurnOffer) {
    converter.offer = offer
  }

  /// Allocates what rotated pictures need: a frame to read into.
  ///
  /// - Throws: `FramePoolError` if memory is short.
  public func prepareTurning() throws {
    try converter.prepare()
  }

  /// The orientation of the last picture, as set by ``orient(_:)``.
  public var orientation: Orientation { converter.lastOrientation }

  /// The reason why pictures do not have the requested orientation: memory is short. Nil if they have it.
  public var turningFailure: (any Failure)? { converter.failure }

  /// Starts the timeline: the first picture is due at once. After `stop` a file starts again from the beginning.
  ///
  /// - Throws: ``Y4MError``.
  public func start() throws {
    if stream.isSeekable, tick > 0 {
      try rewind()
      pass = 1
      hasEnded = false
    }
    tick = 0
    schedule = FrameSchedule(start: pacing == .realtime ? .now() : .zero, rate: header.frameRate)
  }

  /// Waits for the next picture's time, or for memory, and reads the picture.
  ///
  /// - Throws: ``Y4MError`` with the frame and the byte at which the clip is broken.
  public func next(interrupt: borrowing Interrupt) throws -> CaptureEvent {
    guard let schedule, !hasEnded else { return .ended }
    guard try advance(interrupt: interrupt.fileDescriptor) else { return hasEnded ? .ended : .idle }
    switch pacing {
    case .realtime: return try nextInTime(schedule, interrupt: interrupt)
    case .maximum: return try nextAtOnce(schedule, interrupt: interrupt)
    }
  }

  /// Ends the timeline; afterwards `next` returns `.ended`.
  public func stop() {
    schedule = nil
  }

  private func nextInTime(_ schedule: FrameSchedule, interrupt: borrowing Interrupt) throws -> CaptureEvent {
    // A slow pipe has lost nothing: its picture is due now.
    if !stream.isSeekable { tick = max(tick, schedule.lastTick(at: .now())) }
    let due = schedule.time(ofTick: tick)
    guard interrupt.wait(until: due) else { return .idle }
    let missed = stream.isSeekable ? schedule.lastTick(at: .now()) - tick : 0
    if missed > 0 {
      var skipped = 0
      while skipped < missed, try advance(interrupt: -1) {
        try skipPicture()
        skipped += 1
      }
      tick += missed
      return .dropped(.driver, count: skipped)
    }
    let (orientation, later) = converter.rotationPlan()
    let checkout = converter.checkout(orientation, then: later, color: format.color, timestamp: due, captured: due)
    guard var frame = checkout else {
      guard try skipPicture(interrupt: interrupt.fileDescriptor) else { return .idle }
      tick += 1
      return .dropped(.poolExhausted, count: 1)
    }
    let now = Instant.now()
    frame.arrived = now
    nightjar_frame_captured(due.nanoseconds, due.nanoseconds, now.nanoseconds)
    let mark = nightjar_convert_begin(due.nanoseconds)
    defer { nightjar_convert_end(due.nanoseconds, mark) }
    guard try readPicture(into: frame.planes, as: orientation, interrupt: interrupt.fileDescriptor) else {
      return .idle
    }
    tick += 1
    return .frame(frame)
  }

  private func nextAtOnce(_ schedule: FrameSchedule, interrupt: borrowing Interrupt) throws -> CaptureEvent {
    guard !interrupt.hasFired() else { return .idle }
    let due = schedule.time(ofTick: tick)
    while true {
      let (orientation, later) = converter.rotationPlan()
      let checkout = converter.checkout(orientation, then: later, color: format.color, timestamp: due, captured: .zero)
      if var frame = checkout {
        let mark = nightjar_convert_begin(due.nanoseconds)
        defer { nightjar_convert_end(due.nanoseconds, mark) }
        guard try readPicture(into: frame.planes, as: orientation, interrupt: interrupt.fileDescriptor) else {
          return .idle
        }
        frame.captured = .now()
        nightjar_frame_captured(due.nanoseconds, frame.captured.nanoseconds, frame.captured.nanoseconds)
        tick += 1
        return .frame(frame)
      }
      // The encoder holds all frames. It does not signal the return of one, and needs milliseconds for each.
      guard interrupt.wait(until: .now() + Self.poolPatience) else { return .idle }
    }
  }

  private static let poolPatience = Duration(nanoseconds: 500_000)
}

// The contents of the file and their places.
extension Y4MFile {
  /// Advances to the next picture's samples, at the end of a pass to the next pass. Returns `false` at the end of the
  /// last pass and if interrupted.
  private func advance(interrupt: CInt) throws(Y4MError) -> Bool {
    while !isAtPicture {
      guard !hasEnded else { return false }
      switch try readFrameHeader(interrupt: interrupt) {
      case .complete: isAtPicture = true
      case .interrupted: return false
      case .end:
        // This also catches a looping file that was emptied: its loop would never end.
        guard pictures > 0 else { throw .empty }
        guard stream.isSeekable, pass < loops ?? Int.max else {
          hasEnded = true
          return false
        }
        pass += 1
        try rewind()
      }
    }
    return true
  }

  /// Returns to the first picture.
  private func rewind() throws(Y4MError) {
    try attempt { () throws(SystemFailure) in try self.stream.seek(to: Int64(self.header.byteCount)) }
    pictures = 0
    isAtPicture = false
  }

  /// Reads `FRAME` with any parameters and its newline.
  private func readFrameHeader(interrupt: CInt) throws(Y4MError) -> Y4MStream.Outcome {
    let start = stream.offset
    var line: InlineArray<6, UInt8> = [0, 0, 0, 0, 0, 0]
    let outcome = try readBytes(into: &line, interrupt: interrupt)
    switch outcome {
    case .end(after: 0): return outcome
    case .end(let count):
      throw .truncated(frame: pictures + 1, offset: stream.offset, missing: 6 - count + header.frameByteCount)
    case .interrupted(let count):
      giveUp(after: count)
      return outcome
    case .complete: break
    }
    let isMarker =
      line[0] == UInt8(ascii: "F") && line[1] == UInt8(ascii: "R") && line[2] == UInt8(ascii: "A")
      && line[3] == UInt8(ascii: "M") && line[4] == UInt8(ascii: "E")
    guard isMarker, line[5] == UInt8(ascii: " ") || line[5] == UInt8(ascii: "\n") else {
      throw .marker(frame: pictures + 1, offset: start)
    }
    // Parameters mean nothing for progressive pictures. They are rare, so reading byte by byte is fast enough.
    var last: InlineArray<1, UInt8> = [line[5]]
    var length = 6
    while last[0] != UInt8(ascii: "\n") {
      guard length < Y4MHeader.byteLimit else {
        throw .frameHeaderTooLong(frame: pictures + 1, offset: start, limit: Y4MHeader.byteLimit)
      }
      switch try readBytes(into: &last, interrupt: interrupt) {
      case .complete: length += 1
      case .end: throw .truncated(frame: pictures + 1, offset: stream.offset, missing: 1 + header.frameByteCount)
      case .interrupted:
        giveUp(after: length)
        return .interrupted(after: length)
      }
    }
    return .complete
  }

  private func readBytes<let count: Int>(
    into bytes: inout InlineArray<count, UInt8>, interrupt: CInt
  ) throws(Y4MError) -> Y4MStream.Outcome {
    try attempt { () throws(SystemFailure) in
      var span = bytes.mutableSpan
      return try span.withUnsafeMutableBytes { buffer throws(SystemFailure) in
        guard let base = buffer.baseAddress else { return .complete }
        return try self.stream.read(count, to: base, interrupt: interrupt)
      }
    }
  }

  /// Reads a picture's samples and rotates them by `orientation`. Returns `false` if interrupted.
  private func readPicture(
    into planes: NV12Planes, as orientation: Orientation, interrupt: CInt
  ) throws(Y4MError) -> Bool {
    guard orientation != .upright else { return try readPicture(into: planes, interrupt: interrupt) }
    return try converter.rotate(into: planes, as: orientation) { (upright) throws(Y4MError) in
      try readPicture(into: upright, interrupt: interrupt)
    }
  }

  /// Reads a picture's samples. Returns `false` if interrupted.
  private func readPicture(into planes: NV12Planes, interrupt: CInt) throws(Y4MError) -> Bool {
    let size = header.size
    guard try readSamples(size.pixels, to: planes.luma, before: 2 * header.chromaSize.pixels, interrupt: interrupt)
    else { return false }
    if planes.lumaStride != size.width {
      // The rows lie packed at the front of the plane. Starting from the last row, each one finds its place free.
      for row in stride(from: size.height - 1, to: 0, by: -1) {
        memmove(planes.luma + row * planes.lumaStride, planes.luma + row * size.width, size.width)
      }
    }
    let count = header.chromaSize.pixels
    if count == 0 {
      for row in 0..<size.height / 2 { memset(planes.chroma + row * planes.chromaStride, 128, size.width) }
    } else {
      guard try readSamples(2 * count, to: chroma, before: 0, interrupt: interrupt) else { return false }
      let stride = header.chromaSize.width
      do throws(ConversionError) {
        try interleaver.interleave(
          cb: SourcePlane(base: chroma, stride: stride, byteCount: count),
          cr: SourcePlane(base: chroma + count, stride: stride, byteCount: count), of: header.chromaSize, into: planes)
      } catch {
        preconditionFailure("the planes are of the sizes that both were made for: \(error)")
      }
    }
    isAtPicture = false
    pictures += 1
    return true
  }

  /// Skips a picture's samples. Returns `false` if interrupted.
  @discardableResult
  private func skipPicture(interrupt: CInt = -1) throws(Y4MError) -> Bool {
    var rest = header.frameByteCount
    if stream.isSeekable {
      let outcome = try attempt { () throws(SystemFailure) in try self.stream.skip(rest) }
      if case .end(let count) = outcome {
        throw .truncated(frame: pictures + 1, offset: stream.offset, missing: rest - count)
      }
    } else {
      let room = max(1, 2 * header.chromaSize.pixels)
      while rest > 0 {
        let count = min(rest, room)
        guard try readSamples(count, to: chroma, before: rest - count, interrupt: interrupt) else { return false }
        rest -= count
      }
    }
    isAtPicture = false
    pictures += 1
    return true
  }

  /// Reads `count` samples; the picture has `more` after them. Returns `false` if interrupted.
  private func readSamples(
    _ count: Int, to target: UnsafeMutablePointer<UInt8>, before more: Int, interrupt: CInt
  ) throws(Y4MError) -> Bool {
    let outcome = try attempt { () throws(SystemFailure) in
      try self.stream.read(count, to: target, interrupt: interrupt)
    }
    switch outcome {
    case .complete: return true
    case .end(let read):
      throw .truncated(frame: pictures + 1, offset: stream.offset, missing: count - read + more)
    case .interrupted:
      giveUp(after: 1)
      return false
    }
  }

  /// Ends the clip if an interrupt came within a picture: the position in a pipe is then unknown. An interrupt is
  /// final, so no further read follows.
  private func giveUp(after count: Int) {
    if count > 0 { hasEnded = true }
  }

  /// Calls `body` and adds the place in the file to its error.
  private func attempt<Result>(_ body: () throws(SystemFailure) -> Result) throws(Y4MError) -> Result {
    do throws(SystemFailure) {
      return try body()
    } catch {
      throw .read(frame: pictures + 1, offset: stream.offset, errorNumber: error.errorNumber)
    }
  }
}

import CTracing
import Glibc
public import Media
import PixelConversion

/// A clip in the YUV4MPEG2 format as a camera: at its own pace or as fast as it is taken, once or again and again.
public final class Y4MFile: VideoSource, @unchecked Sendable {
  // Sendable: one thread at a time calls it, as `VideoSource` has it.

  /// When pictures come.
  public enum Pacing: Sendable {
    /// At the clip's rate on `CLOCK_MONOTONIC`. A picture whose time has passed, or for which there is no memory, is
    /// lost, as a camera's is.
    case realtime
    /// As fast as they are taken; none is lost. Timestamps begin at 0 and follow the clip's rate.
    case maximum
  }

  /// What it delivers.
  public let format: SourceFormat
  /// The path of the clip, as it was given.
  public let name: String
  /// Whether the pace is that of a clock.
  public var isLive: Bool { pacing == .realtime }

  private let header: Y4MHeader
  private let pacing: Pacing
  private let loops: Int?
  private let converter: OrientedConverter
  private let interleaver: ChromaInterleaver
  /// Cb and Cr as the file has them.
  private let chroma: UnsafeMutablePointer<UInt8>

  private var stream: Y4MStream
  private var schedule: FrameSchedule?
  /// The number of the next picture on the timeline, which goes on over all loops.
  private var tick: Int64 = 0
  /// Which pass it is, and how many pictures of it were read or skipped.
  private var pass = 1
  private var pictures = 0
  /// Whether the header of the next picture has been read, but not its samples.
  private var isAtPicture = false
  private var hasEnded = false

  /// Opens the clip at `path` with `capacity` frames of memory, to be played `loops` times, for ever if nil. From a
  /// pipe it can be played once only.
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
    // A file without a whole first picture is refused now; a pipe may take its time.
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

  /// From the next picture on pictures are laid so: read upright, then turned. From any thread.
  public func orient(_ orientation: Orientation) {
    converter.orient(orientation)
  }

  /// Pictures that `offer` covers are handed on as they are in the file.
  public func leaveTurning(to offer: TurnOffer) {
    converter.offer = offer
  }

  /// Readies memory for turned pictures: `capacity` frames on their side and one to read into.
  ///
  /// - Throws: `FramePoolError` where memory is short.
  public func prepareTurning() throws {
    try converter.prepare()
  }

  /// How the last picture was laid, by ``orient(_:)``.
  public var orientation: Orientation { converter.laid }

  /// Why pictures are not laid as is wanted: memory for it is short. Nil where they are.
  public var turningFailure: (any Failure)? { converter.failure }

  /// Starts the timeline: the first picture is due at once. After `stop` a file begins anew.
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

  /// Waits for the next picture's time, or for memory, and reads it.
  ///
  /// - Throws: ``Y4MError`` with the frame and the byte where the clip is broken.
  public func next(interrupt: borrowing Interrupt) throws -> CaptureEvent {
    guard let schedule, !hasEnded else { return .ended }
    guard try advance(interrupt: interrupt.fileDescriptor) else { return hasEnded ? .ended : .idle }
    switch pacing {
    case .realtime: return try nextInTime(schedule, interrupt: interrupt)
    case .maximum: return try nextAtOnce(schedule, interrupt: interrupt)
    }
  }

  /// Ends the timeline; afterwards `next` says `.ended`.
  public func stop() {
    schedule = nil
  }

  private func nextInTime(_ schedule: FrameSchedule, interrupt: borrowing Interrupt) throws -> CaptureEvent {
    // A pipe that is slow has lost nothing: its picture is due now.
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
    let (orientation, later) = converter.laying()
    let checkout = converter.checkout(orientation, then: later, color: format.color, timestamp: due, captured: due)
    guard var frame = checkout else {
      guard try skipPicture(interrupt: interrupt.fileDescriptor) else { return .idle }
      tick += 1
      return .dropped(.poolExhausted, count: 1)
    }
    let now = MediaTime.now()
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
      let (orientation, later) = converter.laying()
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
      // The encoder holds them all. It says nothing when it returns one, and takes milliseconds for each.
      guard interrupt.wait(until: .now() + Self.poolPatience) else { return .idle }
    }
  }

  private static let poolPatience = MediaTime(nanoseconds: 500_000)
}

// What is in the file, and where.
extension Y4MFile {
  /// Makes sure that a picture's samples come next; at the end of a pass that means the next pass. False at the end
  /// of the last one and when interrupted.
  private func advance(interrupt: CInt) throws(Y4MError) -> Bool {
    while !isAtPicture {
      guard !hasEnded else { return false }
      switch try readFrameHeader(interrupt: interrupt) {
      case .complete: isAtPicture = true
      case .interrupted: return false
      case .end:
        // Also where the file has been emptied while it was looped: that would go round for ever.
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

  /// Goes back to the first picture.
  private func rewind() throws(Y4MError) {
    try attempt { () throws(SystemFailure) in try self.stream.seek(to: Int64(self.header.byteCount)) }
    pictures = 0
    isAtPicture = false
  }

  /// `FRAME` with any parameters, and its newline.
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
    // Parameters mean nothing for progressive pictures. They are rare, so that byte by byte is fast enough.
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

  /// Reads a picture's samples and lays them by `orientation`; false if interrupted.
  private func readPicture(
    into planes: NV12Planes, as orientation: Orientation, interrupt: CInt
  ) throws(Y4MError) -> Bool {
    guard orientation != .upright else { return try readPicture(into: planes, interrupt: interrupt) }
    return try converter.turn(into: planes, as: orientation) { (upright) throws(Y4MError) in
      try readPicture(into: upright, interrupt: interrupt)
    }
  }

  /// Reads a picture's samples; false if interrupted.
  private func readPicture(into planes: NV12Planes, interrupt: CInt) throws(Y4MError) -> Bool {
    let size = header.size
    guard try readSamples(size.pixels, to: planes.luma, before: 2 * header.chromaSize.pixels, interrupt: interrupt)
    else { return false }
    if planes.lumaStride != size.width {
      // The rows lie close together at the front of the plane: from the last one on each finds its place free.
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

  /// Leaves a picture's samples out; false if interrupted.
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

  /// Reads `count` samples, after which the picture has `more`; false if interrupted.
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

  /// After an interrupt within a picture a pipe cannot be read on: nobody knows where in it one is. An interrupt is
  /// for good, so that nobody will want to.
  private func giveUp(after count: Int) {
    if count > 0 { hasEnded = true }
  }

  /// `body`, with the place in the file where it failed.
  private func attempt<Result>(_ body: () throws(SystemFailure) -> Result) throws(Y4MError) -> Result {
    do throws(SystemFailure) {
      return try body()
    } catch {
      throw .read(frame: pictures + 1, offset: stream.offset, errorNumber: error.errorNumber)
    }
  }
}

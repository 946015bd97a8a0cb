import CTracing
public import Media
import PixelConversion
public import Platform

/// A camera without a device: colour bars with a moving block, a running clock and the picture's number, at the pace of
/// `CLOCK_MONOTONIC`.
public final class SyntheticCamera: VideoSource, @unchecked Sendable {
  // Sendable: one thread at a time calls it, as `VideoSource` says.

  /// The format of the pictures: NV12 of the requested size and rate.
  public let format: SourceFormat
  /// The camera's name.
  public let name = "synthetic camera"
  /// Always `true`: a clock sets the pace.
  public let isLive = true

  private let converter: OrientedConverter
  private let pattern: TestPattern
  private var schedule: FrameSchedule?
  /// The number of the next picture.
  private var tick: Int64 = 0
  /// The block's last place in each slot of the pool, and then in the picture that is rotated; nil if there are no bars
  /// yet.
  private var painted: [TestPattern.Area?]
  /// `true` if a slot's picture is still there when the slot is used again.
  private let keepsBars: Bool
  /// The length of the flash at the beginning of each second; nil for no flash.
  private let flash: Duration?

  /// Creates a camera of `size` with `capacity` frames of memory.
  ///
  /// - Parameters:
  ///   - size: the size of the pictures.
  ///   - frameRate: the rate of the pictures.
  ///   - capacity: the number of frames in the pool.
  ///   - memory: the memory of the frames.
  ///   - flash: the time for which a field in the upper left corner is white at the beginning of each second of the wall
  ///     clock, while a test tone beeps; nil for no flash.
  /// - Throws: ``/Media/FramePoolError``.
  public init(
    size: PictureSize, frameRate: FrameRate, capacity: Int = FramePool.defaultCapacity,
    memory: FrameMemory = FrameMemory(), flash: Duration? = nil
  ) throws(FramePoolError) {
    self.flash = flash
    let pool = try FramePool(size: size, capacity: capacity, memory: memory)
    do throws(ConversionError) {
      converter = try OrientedConverter(
        from: .nv12, size: size, upright: pool, capacity: capacity, memory: memory, isStaged: true)
    } catch {
      throw .size(size)
    }
    pattern = TestPattern(size: size)
    keepsBars = memory.isKept
    painted = Array(repeating: nil, count: capacity + 1)
    format = SourceFormat(
      size: size, frameRate: frameRate, pixelFormat: .nv12, color: .bt709, conversion: "no copy",
      turnsApart: true)
  }

  /// Sets the orientation from the next picture on: pictures are drawn upright, then rotated. Any thread may call it.
  public func orient(_ orientation: Orientation) {
    converter.orient(orientation)
  }

  /// Leaves rotations that `offer` covers to the encoder: those pictures are drawn upright and not rotated.
  public func leaveTurning(to offer: TurnOffer) {
    converter.offer = offer
  }

  /// Allocates what rotated pictures need: a frame to draw in.
  ///
  /// - Throws: `FramePoolError` if memory is short.
  public func prepareTurning() throws {
    try converter.prepare()
  }

  /// The orientation of the last picture, as set by ``orient(_:)``.
  public var orientation: Orientation { converter.lastOrientation }

  /// The reason why pictures do not have the requested orientation: memory is short. Nil if they have it.
  public var turningFailure: (any Failure)? { converter.failure }

  /// Starts the clock: the first picture is due at once.
  public func start() {
    // Reads the time zone now, which takes long only once.
    _ = WallClock.now()
    tick = 0
    schedule = FrameSchedule(start: .now(), rate: format.frameRate)
  }

  /// Waits until the next picture is due, and paints it. Missed ticks are reported as `.driver` drops, like gaps in a
  /// driver's sequence numbers.
  public func next(interrupt: borrowing Interrupt) -> CaptureEvent {
    guard let schedule else { return .ended }
    let due = schedule.time(ofTick: tick)
    guard interrupt.wait(until: due) else { return .idle }
    let now = Instant.now()
    let missed = schedule.lastTick(at: now) - tick
    if missed > 0 {
      tick += missed
      return .dropped(.driver, count: Int(missed))
    }
    let number = tick
    tick += 1
    let (orientation, later) = converter.rotationPlan()
    guard var frame = converter.checkout(orientation, then: later, color: format.color, timestamp: due, captured: due)
    else {
      return .dropped(.poolExhausted, count: 1)
    }
    frame.arrived = now
    nightjar_frame_captured(due.nanoseconds, due.nanoseconds, now.nanoseconds)
    let mark = nightjar_convert_begin(due.nanoseconds)
    defer { nightjar_convert_end(due.nanoseconds, mark) }
    if orientation == .upright {
      paint(number: number, due: due, into: frame.planes, at: frame.slot)
    } else {
      // Rotated pictures share the memory of upright ones: the bars in it are gone.
      painted[frame.slot] = nil
      _ = converter.rotate(into: frame.planes, as: orientation) { planes in
        paint(number: number, due: due, into: planes, at: painted.count - 1)
        return true
      }
    }
    return .frame(frame)
  }

  /// Stops the clock; afterwards `next` returns `.ended`.
  public func stop() {
    schedule = nil
  }

  private func paint(number: Int64, due: Instant, into planes: NV12Planes, at slot: Int) {
    if keepsBars || slot == painted.count - 1, let last = painted[slot] {
      pattern.paintBars(last, into: planes)
    } else {
      pattern.paintBars(into: planes)
    }
    let block = pattern.block(atTick: number)
    painted[slot] = block
    if let flash { pattern.paintFlash(isOn: WallClockOffset().phase(at: due) < flash, into: planes) }
    pattern.paintForeground(block: block, number: number, clock: .now(), into: planes)
  }
}

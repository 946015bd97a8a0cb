import CTracing
public import Media
import PixelConversion

/// A camera that needs none: colour bars with a moving block, a running clock and the number of the picture, at the
/// pace of `CLOCK_MONOTONIC`.
public final class SyntheticCamera: VideoSource, @unchecked Sendable {
  // Sendable: one thread at a time calls it, as `VideoSource` has it.

  /// What it delivers: NV12 of the size and rate that were asked for.
  public let format: SourceFormat
  /// `synthetic camera`.
  public let name = "synthetic camera"
  /// True: pictures come at the pace of a clock.
  public let isLive = true

  private let converter: OrientedConverter
  private let pattern: TestPattern
  private var schedule: FrameSchedule?
  /// The number of the next picture.
  private var tick: Int64 = 0
  /// Where the block was painted last in each slot of the pool, and behind them in the picture that is turned; nil
  /// where there are no bars yet.
  private var painted: [TestPattern.Area?]
  /// Whether a slot's picture is there when it comes again.
  private let keepsBars: Bool

  /// A camera of `size` with `capacity` frames of memory.
  ///
  /// - Throws: ``/Media/FramePoolError``.
  public init(
    size: PictureSize, frameRate: FrameRate, capacity: Int = FramePool.defaultCapacity,
    memory: FrameMemory = FrameMemory()
  ) throws(FramePoolError) {
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

  /// From the next picture on pictures are laid so: drawn upright, then turned. From any thread.
  public func orient(_ orientation: Orientation) {
    converter.orient(orientation)
  }

  /// Pictures that `offer` covers are drawn upright and handed on as they are.
  public func leaveTurning(to offer: TurnOffer) {
    converter.offer = offer
  }

  /// Readies memory for turned pictures: `capacity` frames on their side and one to draw in.
  ///
  /// - Throws: `FramePoolError` where memory is short.
  public func prepareTurning() throws {
    try converter.prepare()
  }

  /// How the last picture was laid, by ``orient(_:)``.
  public var orientation: Orientation { converter.laid }

  /// Why pictures are not laid as is wanted: memory for it is short. Nil where they are.
  public var turningFailure: (any Failure)? { converter.failure }

  /// Starts the clock: the first picture is due at once.
  public func start() {
    // Reads the time zone, which takes long only once.
    _ = WallClock.now()
    tick = 0
    schedule = FrameSchedule(start: .now(), rate: format.frameRate)
  }

  /// Waits until the next picture is due, and paints it. Ticks that were overslept are told as `.driver` drops, like
  /// the gaps in a driver's sequence numbers.
  public func next(interrupt: borrowing Interrupt) -> CaptureEvent {
    guard let schedule else { return .ended }
    let due = schedule.time(ofTick: tick)
    guard interrupt.wait(until: due) else { return .idle }
    let now = MediaTime.now()
    let missed = schedule.lastTick(at: now) - tick
    if missed > 0 {
      tick += missed
      return .dropped(.driver, count: Int(missed))
    }
    let number = tick
    tick += 1
    let (orientation, later) = converter.laying()
    guard var frame = converter.checkout(orientation, then: later, color: format.color, timestamp: due, captured: due)
    else {
      return .dropped(.poolExhausted, count: 1)
    }
    frame.arrived = now
    nightjar_frame_captured(due.nanoseconds, due.nanoseconds, now.nanoseconds)
    let mark = nightjar_convert_begin(due.nanoseconds)
    defer { nightjar_convert_end(due.nanoseconds, mark) }
    if orientation == .upright {
      paint(number: number, into: frame.planes, at: frame.slot)
    } else {
      // The memory of half turns is that of upright pictures: the bars in it are gone.
      if !orientation.swapsSides { painted[frame.slot] = nil }
      _ = converter.turn(into: frame.planes, as: orientation) { planes in
        paint(number: number, into: planes, at: painted.count - 1)
        return true
      }
    }
    return .frame(frame)
  }

  /// Stops the clock; afterwards `next` says `.ended`.
  public func stop() {
    schedule = nil
  }

  private func paint(number: Int64, into planes: NV12Planes, at slot: Int) {
    if keepsBars || slot == painted.count - 1, let last = painted[slot] {
      pattern.paintBars(last, into: planes)
    } else {
      pattern.paintBars(into: planes)
    }
    let block = pattern.block(atTick: number)
    painted[slot] = block
    pattern.paintForeground(block: block, number: number, clock: .now(), into: planes)
  }
}

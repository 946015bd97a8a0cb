import CLinux
import Glibc
public import Media
import PixelConversion

/// A Video4Linux2 camera.
///
/// Frames of an NV12 camera lie in the driver's own memory and go back to the driver when they end; where it exports
/// that memory, they carry it as a DMA-BUF too. When so many are out that the driver would starve, further ones are
/// copies. Those of other cameras are converted out of it into a frame pool. Either way nothing is allocated for a
/// good frame.
public final class V4L2Camera: VideoSource, @unchecked Sendable {
  // Sendable: a source is used by one thread at a time, as its protocol says; what frames on other threads touch
  // is the buffer queue and the pool, which look after themselves.

  /// A camera that delivers nothing for so many seconds is given up, unless its rate is slower than that.
  public static let stallSeconds = 5
  /// So many times in a row a broken stream is started anew.
  public static let restartLimit = 5
  /// How long `next` waits before it says that nothing happened.
  static let patience = MediaTime(nanoseconds: 200_000_000)
  /// How many copies of an NV12 camera's pictures may be on their way while all buffers that may be lent are out.
  static let reserveCount = 2

  /// What it delivers: what the driver really gave.
  public let format: SourceFormat
  /// `HD Pro Webcam C920 (/dev/video0)`.
  public let name: String
  /// True: pictures come when they come.
  public var isLive: Bool { true }

  private let path: String
  private let device: V4L2Device
  private let request: FormatRequest
  private let choice: FormatChoice
  private let driverFormat: DriverFormat
  private let queue: V4L2BufferQueue
  private let conversion: Conversion
  private let stallLimit: MediaTime

  private let descriptors: UnsafeMutablePointer<pollfd>
  private var buffer = DequeuedBuffer()
  /// Whether `buffer` was dequeued, but a loss had to be told first.
  private var isBufferPending = false
  private var clock = CaptureClock()
  private var counter = SequenceCounter()
  private var lastSign = MediaTime.zero
  private var isBroken = false
  private var restarts = 0

  /// How pictures become NV12.
  private enum Conversion {
    case none(NV12Layout, reserve: PixelConverter, FramePool)
    case converter(PixelConverter, FramePool)
    case legacy(LegacyConverter, FramePool)
  }

  /// Opens the camera at `path`, agrees with its driver on a format and maps its buffers.
  ///
  /// - Parameters:
  ///   - path: a device node or a link to one, such as `/dev/v4l/by-id/…`.
  ///   - request: what is wanted.
  ///   - poolCapacity: how many frames may be on their way at once; of an NV12 camera two of them are copies, because
  ///     so many buffers stay with the driver.
  /// - Throws: ``CaptureError``, `FramePoolError` or `ConversionError`; then the device is closed again.
  public init(path: String, request: FormatRequest, poolCapacity: Int = FramePool.defaultCapacity) throws {
    let device = try V4L2Device(path: path)
    try device.requireCapture()
    // Before the format is asked for: what changes from here on is told.
    let tellsChanges = device.subscribeSourceChange()
    device.adoptTimings()
    let capabilities = device.capabilities(near: request.size) { format in
      request.format == nil ? ConversionPath.of(format) != nil : format == request.format
    }
    let choice = try FormatNegotiation.choose(request, from: capabilities)
    let driverFormat = try device.setFormat(choice, for: request)
    let rate = try device.setRate(choice, for: request)
    self.path = path
    self.device = device
    self.request = request
    self.choice = choice
    self.driverFormat = driverFormat
    name = device.name

    let wanted =
      choice.path == .none
      ? max(V4L2BufferQueue.zeroCopyCount, poolCapacity) : V4L2BufferQueue.leastCount
    queue = try V4L2BufferQueue(
      device: device, format: driverFormat, wanted: wanted, isExported: choice.path == .none)
    let words: String
    if choice.path == .none, let layout = NV12Layout(driverFormat), queue.count >= V4L2BufferQueue.leastCount {
      conversion = .none(
        layout, reserve: try PixelConverter(from: choice.format, size: driverFormat.size),
        try FramePool(size: driverFormat.size, capacity: Self.reserveCount))
      words = "no copy"
    } else {
      let pool = try FramePool(size: driverFormat.size, capacity: poolCapacity)
      if choice.path == .legacy {
        conversion = .legacy(try LegacyConverter(device: device, format: driverFormat), pool)
        words = "libv4l"
      } else {
        conversion = .converter(try PixelConverter(from: choice.format, size: driverFormat.size), pool)
        words = choice.format.isJPEG ? "libjpeg-turbo" : "libyuv"
      }
    }
    format = SourceFormat(
      size: driverFormat.size, frameRate: rate, pixelFormat: driverFormat.pixelFormat,
      color: driverFormat.color.description(of: driverFormat.pixelFormat), conversion: words)
    stallLimit = max(MediaTime(seconds: Double(Self.stallSeconds)), rate.interval * 2)
    descriptors = .allocate(capacity: 2)
    let events = Int16(tellsChanges ? POLLIN | POLLPRI : POLLIN)
    descriptors.initialize(repeating: pollfd(fd: device.descriptor, events: events, revents: 0), count: 2)
  }

  deinit {
    stop()
    descriptors.deallocate()
  }

  /// Starts the flow of pictures.
  ///
  /// - Throws: ``CaptureError``.
  public func start() throws {
    counter.restart()
    isBroken = false
    restarts = 0
    lastSign = .now()
    try queue.start(renew: agreeAgain)
  }

  /// Ends the flow of pictures. Idempotent. Frames that are still held stay valid; with the last of them the driver
  /// gets its memory back, and other programs may set up the camera.
  public func stop() {
    queue.stop()
    if isBufferPending { giveBack() }
    isBufferPending = false
  }

  /// Waits for the next picture, a loss, or `interrupt`.
  ///
  /// - Throws: ``CaptureError`` where the camera is gone, mute or broken for good.
  public func next(interrupt: borrowing Interrupt) throws -> CaptureEvent {
    if isBufferPending {
      isBufferPending = false
      return try deliver()
    }
    if isBroken { return try restart(interrupt: interrupt) }
    descriptors[0].revents = 0
    descriptors[1] = pollfd(fd: interrupt.fileDescriptor, events: Int16(POLLIN), revents: 0)
    guard nightjar_poll(descriptors, 2, Self.patience.nanoseconds) > 0 else { return try idle() }
    if descriptors[1].revents != 0 { return .idle }
    if descriptors[0].revents & Int16(POLLPRI) != 0 {
      // What is filled by now may be of either signal.
      try checkSource()
      // A device that went away has an event for ever, and an error beside it.
      if descriptors[0].revents == Int16(POLLPRI) { return try idle() }
    }
    let errorNumber = queue.dequeue(into: &buffer)
    switch errorNumber {
    case 0:
      lastSign = .now()
      let missing = counter.note(buffer.sequence)
      guard missing == 0 else {
        isBufferPending = true
        return .dropped(.driver, count: missing)
      }
      return try deliver()
    case ENODEV:
      throw CaptureError.disconnected(path: path)
    case EAGAIN:
      // An error without a buffer will not go away by waiting.
      if descriptors[0].revents & Int16(POLLERR | POLLHUP | POLLNVAL) != 0 { return try lose(EIO) }
      return try idle()
    default:
      return try lose(errorNumber)
    }
  }

  private func idle() throws(CaptureError) -> CaptureEvent {
    if MediaTime.now() - lastSign > stallLimit {
      throw .stalled(path: path, seconds: Int(stallLimit.seconds))
    }
    return .idle
  }

  /// Reads the driver's events.
  ///
  /// - Throws: ``CaptureError/sourceChanged(path:agreed:current:)`` where the pictures are no longer those agreed on.
  private func checkSource() throws(CaptureError) {
    guard device.takeSourceChange(), let change = device.sourceChange(from: driverFormat) else { return }
    throw .sourceChanged(path: path, agreed: driverFormat.size, current: change.current)
  }

  /// Sets format and rate once more, after others may have used the device.
  private func agreeAgain() throws(CaptureError) {
    let format = try device.setFormat(choice, for: request)
    guard format == driverFormat else {
      throw .sourceChanged(path: path, agreed: driverFormat.size, current: format.size)
    }
    _ = try device.setRate(choice, for: request)
  }

  /// The stream is broken: the next call starts it anew.
  private func lose(_ errorNumber: CInt) throws(CaptureError) -> CaptureEvent {
    isBroken = true
    restarts += 1
    if restarts > Self.restartLimit {
      throw .broken(path: path, attempts: restarts, errorNumber: errorNumber)
    }
    return .dropped(.driverError, count: 1)
  }

  /// Stops the stream and starts it again, after a pause that grows with each attempt.
  private func restart(interrupt: borrowing Interrupt) throws(CaptureError) -> CaptureEvent {
    let pause = MediaTime(nanoseconds: 10_000_000 << Int64(restarts))
    guard interrupt.wait(until: .now() + pause) else { return .idle }
    queue.pause()
    counter.restart()
    lastSign = .now()
    do throws(CaptureError) {
      try queue.start(renew: agreeAgain)
      isBroken = false
      return .idle
    } catch {
      if case .refused(_, _, let errorNumber) = error { return try lose(errorNumber) }
      throw error
    }
  }

  /// Makes a frame of the dequeued buffer, or says why not.
  private func deliver() throws -> CaptureEvent {
    if buffer.isDamaged {
      giveBack()
      return .dropped(.driverError, count: 1)
    }
    let now = MediaTime.now()
    let timestamp = clock.stamp(driver: buffer.isMonotonic ? buffer.timestamp : nil, now: now)
    let captured = min(timestamp, now)
    switch conversion {
    case .none(let layout, let converter, let pool):
      guard let planes = layout.planes(of: buffer) else {
        giveBack()
        return .dropped(.short, count: 1)
      }
      guard buffer.mayBeLent else { return try convert(converter, pool, timestamp, captured) }
      restarts = 0
      return .frame(
        Frame(
          planes: planes, dmaBuffer: queue.dmaBuffer(index: buffer.index, planes: planes), color: format.color,
          timestamp: timestamp, captured: captured, slot: buffer.index, owner: queue))
    case .converter(let converter, let pool):
      return try convert(converter, pool, timestamp, captured)
    case .legacy(let converter, let pool):
      defer { giveBack() }
      guard let frame = pool.checkout(color: format.color, timestamp: timestamp, captured: captured) else {
        return .dropped(.poolExhausted, count: 1)
      }
      do throws(ConversionError) {
        try converter.convert(buffer.contents.0, into: frame.planes)
      } catch {
        return try dropped(error)
      }
      restarts = 0
      return .frame(frame)
    }
  }

  /// Makes a frame of the pool of the dequeued buffer, which goes back at once.
  private func convert(
    _ converter: PixelConverter, _ pool: FramePool, _ timestamp: MediaTime, _ captured: MediaTime
  ) throws -> CaptureEvent {
    defer { giveBack() }
    guard let frame = pool.checkout(color: format.color, timestamp: timestamp, captured: captured) else {
      return .dropped(.poolExhausted, count: 1)
    }
    do throws(ConversionError) {
      guard let picture = driverFormat.picture(of: buffer) else { return .dropped(.short, count: 1) }
      try converter.convert(picture, into: frame.planes)
    } catch {
      return try dropped(error)
    }
    restarts = 0
    return .frame(frame)
  }

  private func dropped(_ error: ConversionError) throws(ConversionError) -> CaptureEvent {
    switch error {
    case .short: .dropped(.short, count: 1)
    case .corrupt: .dropped(.corrupt, count: 1)
    default: throw error
    }
  }

  private func giveBack() {
    queue.recycle(slot: buffer.index)
  }
}

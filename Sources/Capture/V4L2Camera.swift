import CLinux
import CTracing
import Glibc
public import Media
import PixelConversion
import Synchronization

/// A Video4Linux2 camera.
///
/// Frames of an NV12 camera lie in the driver's own memory and go back to the driver when they end; where it exports
/// that memory, they carry it as a DMA-BUF too. When so many are out that the driver would starve, further ones are
/// copies. Those of other cameras, and all that are turned, are converted out of it into a frame pool. Either way
/// nothing is allocated for a good frame.
///
/// Pictures are laid upright, as the sensor's ``mounting`` wants it, and then as ``orient(_:)`` says. The driver does
/// it where it can and the orientation is fixed for the run; otherwise it is part of the conversion.
public final class V4L2Camera: VideoSource, @unchecked Sendable {
  // Sendable: a source is used by one thread at a time, as its protocol says; what frames on other threads touch
  // is the buffer queue and the pool, which look after themselves.

  /// A camera that delivers nothing for so many seconds is given up, unless its rate is slower than that.
  public static let stallSeconds = 2
  /// One that was just started has so many, for its sensor and its USB link to come up.
  public static let startSeconds = 5
  /// So many times in a row a broken stream is started anew.
  public static let restartLimit = 5
  /// How long `next` waits before it says that nothing happened.
  static let patience = MediaTime(nanoseconds: 200_000_000)
  /// How many copies of an NV12 camera's pictures may be on their way while all buffers that may be lent are out.
  static let reserveCount = 2

  /// What it delivers: what the driver really gave, turned by ``mounting``. Its `conversion` is that of pictures in the
  /// orientation that the camera was opened with.
  public let format: SourceFormat
  /// What every picture is turned by, to stand upright although the sensor does not: the inverse of the driver's
  /// `V4L2_CID_CAMERA_SENSOR_ROTATION`. ``/Media/Orientation/upright`` where it does not say, or is not listened to.
  public let mounting: Orientation
  /// `HD Pro Webcam C920 (/dev/video0)`.
  public let name: String
  /// True: pictures come when they come.
  public var isLive: Bool { true }

  private let path: String
  let device: V4L2Device
  private let request: FormatRequest
  private let choice: FormatChoice
  private let driverFormat: DriverFormat
  private let queue: V4L2BufferQueue
  /// Where frames may lie in the driver's buffers.
  private let layout: NV12Layout?
  /// For formats that need libv4l before anything else.
  private let legacy: LegacyConverter?
  private let converter: OrientedConverter
  private let turn: DriverTurn?
  private let warningList: Mutex<[CaptureError]>
  private let stallLimit: MediaTime
  private let startLimit: MediaTime
  private let events = CameraEvents()

  private let descriptors: UnsafeMutablePointer<pollfd>
  private var buffer = DequeuedBuffer()
  /// Whether `buffer` was dequeued, but a loss had to be told first.
  private var isBufferPending = false
  private var demand: PictureDemand?
  private let compressed = CompressedPictures()
  private var clock = CaptureClock()
  private var counter = SequenceCounter()
  private var lastSign = MediaTime.zero
  /// Whether a buffer came since the stream was started.
  private var hasDelivered = false
  private var isBroken = false
  private var restarts = 0

  /// Opens the camera at `path`, agrees with its driver on a format and maps its buffers.
  ///
  /// - Parameters:
  ///   - path: a device node or a link to one, such as `/dev/v4l/by-id/…`.
  ///   - request: what is wanted.
  ///   - poolCapacity: how many frames may be on their way at once; of an NV12 camera two of them are copies, because
  ///     so many buffers stay with the driver.
  ///   - fixedOrientation: how pictures are laid from the beginning, where that is not going to change: half turns and
  ///     mirrors are left to the driver then, if it offers them (`V4L2_CID_HFLIP`, `V4L2_CID_VFLIP`,
  ///     `V4L2_CID_ROTATE`), so that nothing has to be copied for them. The controls are set relative to what they
  ///     were, and set back with the end of the last frame after ``stop()``. What the driver cannot do is done here,
  ///     and ``orient(_:)`` goes on to work.
  ///   - compensatesMounting: whether to turn pictures upright as the driver says that its sensor is mounted. The size
  ///     of `request` is the sensor's, before that.
  /// - Throws: ``CaptureError``, `FramePoolError` or `ConversionError`; then the device is closed again.
  public init(
    path: String, request: FormatRequest, poolCapacity: Int = FramePool.defaultCapacity,
    fixedOrientation: Orientation? = nil, compensatesMounting: Bool = true
  ) throws {
    let device = try V4L2Device(path: path)
    try device.requireCapture()
    var warnings: [CaptureError] = []
    let mounting = compensatesMounting ? Self.noting(&warnings, else: .upright, device.mounting) : .upright
    self.mounting = mounting
    Self.noting(&warnings, else: (), device.checkTurn)
    // Before anything is agreed on: with a turn the driver's formats may change.
    let turn = fixedOrientation.map { DriverTurn(mounting.then($0), device: device) }
    if let turn { Self.noting(&warnings, else: (), turn.apply) }
    self.turn = turn
    warningList = Mutex(warnings)
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
      device: device, format: driverFormat, wanted: wanted, isExported: choice.path == .none, turn: turn)
    let canLend = request.memory.isLent && choice.path == .none && queue.count >= V4L2BufferQueue.leastCount
    layout = canLend ? NV12Layout(driverFormat) : nil
    legacy = choice.path == .legacy ? try LegacyConverter(device: device, format: driverFormat) : nil
    converter = try OrientedConverter(
      from: legacy == nil ? choice.format : .yu12, size: driverFormat.size,
      upright: try FramePool(
        size: driverFormat.size, capacity: layout == nil ? poolCapacity : Self.reserveCount, memory: request.memory),
      capacity: poolCapacity, memory: request.memory)
    converter.base = (turn?.applied ?? .upright).inverse.then(mounting)
    converter.orient(fixedOrientation ?? .upright)
    let words =
      if legacy != nil { "libv4l" } else if choice.format.isJPEG { "libjpeg-turbo" } else {
        layout != nil && converter.orientation() == .upright ? "no copy" : "libyuv"
      }
    format = SourceFormat(
      size: mounting.size(of: driverFormat.size), frameRate: rate, pixelFormat: driverFormat.pixelFormat,
      color: driverFormat.color.description(of: driverFormat.pixelFormat), conversion: words,
      turnsApart: layout != nil || (legacy == nil && choice.format.isJPEG))
    stallLimit = max(MediaTime(seconds: Double(Self.stallSeconds)), rate.interval * 2)
    startLimit = max(MediaTime(seconds: Double(Self.startSeconds)), stallLimit)
    descriptors = .allocate(capacity: 2)
    let events = Int16(tellsChanges ? POLLIN | POLLPRI : POLLIN)
    descriptors.initialize(repeating: pollfd(fd: device.descriptor, events: events, revents: 0), count: 2)
  }

  deinit {
    stop()
    descriptors.deallocate()
  }

  /// What is odd without ending anything: the driver refused to turn pictures, turns them already, or says nonsense
  /// about its sensor.
  public var warnings: [CaptureError] { warningList.withLock { $0 } }

  /// What broke and was mended.
  public func takeEvents() -> [CameraEvent] { events.take() }

  /// How the last picture was laid, by ``orient(_:)``.
  public var orientation: Orientation { converter.laid }

  /// Why pictures are not laid as is wanted: memory for it is short. Nil where they are.
  public var turningFailure: (any Failure)? { converter.failure }

  /// From the next picture on pictures are laid so, after ``mounting``. From any thread.
  public func orient(_ orientation: Orientation) {
    converter.orient(orientation)
  }

  /// Frames that `offer` covers are handed on unturned where they lie in the driver's own memory, and need not be
  /// copied then, and those of a JPEG camera, which are decoded before they are turned. All others are turned in the
  /// pass that converts them.
  public func leaveTurning(to offer: TurnOffer) {
    guard format.turnsApart else { return }
    converter.offer = offer
  }

  /// Pictures of a JPEG camera that are not turned.
  public func keepCompressed(while demand: PictureDemand) {
    guard legacy == nil, choice.format.isJPEG else { return }
    self.demand = demand
  }

  /// Readies memory for turned pictures: `poolCapacity` frames on their side; for an NV12 camera as many again for
  /// half turns and mirrors; and for each rotation what the conversion needs, which is much only for JPEG: up to
  /// 4.5 bytes for each pixel of the picture.
  ///
  /// - Throws: `FramePoolError` or `ConversionError` where memory is short.
  public func prepareTurning() throws {
    try converter.prepare()
  }

  /// Starts the flow of pictures.
  ///
  /// - Throws: ``CaptureError``.
  public func start() throws {
    counter.restart()
    isBroken = false
    restarts = 0
    lastSign = .now()
    hasDelivered = false
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
      return try deliver(at: .now())
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
      let now = MediaTime.now()
      lastSign = now
      hasDelivered = true
      switch counter.note(buffer.sequence) {
      case .next(missing: 0): return try deliver(at: now)
      case .next(let missing):
        isBufferPending = true
        return .dropped(.driver, count: missing)
      case .late:
        // Counted already. uvcvideo copies large pictures in work items of their own, of which two may end in either order.
        giveBack()
        return .dropped(.driver, count: 0)
      }
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

  /// What was agreed on with the driver, to be asked for again.
  var agreement: FormatRequest {
    FormatRequest(size: driverFormat.size, frameRate: format.frameRate, format: driverFormat.pixelFormat)
  }

  /// Where sysfs describes the camera.
  var systemDirectory: String? { device.systemDirectory }

  /// That there is no signal at its input; nil where there is, or where it needs none.
  public var missingSignal: CaptureError? {
    device.lacksSignal ? .sourceChanged(path: path, agreed: driverFormat.size, current: nil) : nil
  }

  private func idle() throws(CaptureError) -> CaptureEvent {
    let limit = hasDelivered ? stallLimit : startLimit
    if MediaTime.now() - lastSign > limit { throw .stalled(path: path, seconds: Int(limit.seconds)) }
    return .idle
  }

  /// Reads the driver's events.
  ///
  /// - Throws: ``CaptureError/sourceChanged(path:agreed:current:)`` where the pictures are no longer those agreed on.
  private func checkSource() throws(CaptureError) {
    guard device.takeSourceChange(), let change = device.sourceChange(from: driverFormat) else { return }
    throw .sourceChanged(path: path, agreed: driverFormat.size, current: change.current)
  }

  /// What `call` gives, or `fallback` and a warning.
  private static func noting<Result>(
    _ warnings: inout [CaptureError], else fallback: Result, _ call: () throws(CaptureError) -> Result
  ) -> Result {
    do throws(CaptureError) {
      return try call()
    } catch {
      if !warnings.contains(where: { $0.description == error.description }) { warnings.append(error) }
      return fallback
    }
  }

  /// Sets turn, format and rate once more, after others may have used the device.
  private func agreeAgain() throws(CaptureError) {
    if let turn {
      warningList.withLock { Self.noting(&$0, else: (), turn.apply) }
      converter.base = turn.applied.inverse.then(mounting)
    }
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
    events.add(.warning("\(path): the stream broke (\(SystemFailure.text(errorNumber))) and is started again"))
    return .dropped(.driverError, count: 1)
  }

  /// Stops the stream and starts it again, after a pause that grows with each attempt.
  private func restart(interrupt: borrowing Interrupt) throws(CaptureError) -> CaptureEvent {
    let pause = MediaTime(nanoseconds: 10_000_000 << Int64(restarts))
    guard interrupt.wait(until: .now() + pause) else { return .idle }
    queue.pause()
    counter.restart()
    lastSign = .now()
    hasDelivered = false
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
  private func deliver(at now: MediaTime) throws -> CaptureEvent {
    if buffer.isDamaged {
      giveBack()
      return .dropped(.driverError, count: 1)
    }
    let timestamp = clock.stamp(driver: buffer.isMonotonic ? buffer.timestamp : nil, now: now)
    let captured = min(timestamp, now)
    nightjar_frame_captured(timestamp.nanoseconds, captured.nanoseconds, now.nanoseconds)
    let (orientation, later) = converter.laying()
    if let layout, orientation == .upright {
      guard let planes = layout.planes(of: buffer) else {
        giveBack()
        return .dropped(.short, count: 1)
      }
      if buffer.mayBeLent {
        restarts = 0
        var frame = Frame(
          planes: planes, dmaBuffer: queue.dmaBuffer(index: buffer.index, planes: planes), color: format.color,
          timestamp: timestamp, captured: captured, slot: buffer.index, owner: queue)
        frame.orientation = later
        frame.arrived = now
        return .frame(frame)
      }
    }
    return try convert(as: orientation, then: later, timestamp, captured, arrived: now)
  }

  /// Makes a frame of a pool of the dequeued buffer, which goes back at once.
  private func convert(
    as orientation: Orientation, then later: Orientation, _ timestamp: MediaTime, _ captured: MediaTime,
    arrived: MediaTime
  ) throws -> CaptureEvent {
    defer { giveBack() }
    let checkout = converter.checkout(
      orientation, then: later, color: format.color, timestamp: timestamp, captured: captured)
    guard var frame = checkout else { return .dropped(.poolExhausted, count: 1) }
    frame.arrived = arrived
    let mark = nightjar_convert_begin(timestamp.nanoseconds)
    defer { nightjar_convert_end(timestamp.nanoseconds, mark) }
    do throws(ConversionError) {
      let picture = try legacy?.picture(in: buffer.contents.0) ?? driverFormat.picture(of: buffer)
      guard let picture else { return .dropped(.short, count: 1) }
      try converter.convert(picture, into: frame.planes, as: orientation)
    } catch {
      return try dropped(error)
    }
    restarts = 0
    guard let demand else { return .frame(frame) }
    if !demand.isWatched {
      compressed.removeAll()
    } else if orientation == .upright, later == .upright {
      // It was decoded just now, so that it is whole.
      let plane = buffer.contents.0
      frame.compressed = compressed.keep(UnsafeBufferPointer(start: plane.base, count: plane.byteCount))
    }
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

import CLinux
import CTracing
import Glibc
public import Media
import PixelConversion
public import Platform
import Synchronization

/// A Video4Linux2 camera.
///
/// Frames of an NV12 camera lie in the driver's own memory and return to the driver when they end. If the driver
/// exports that memory, the frames carry it as a DMA-BUF too. If so many buffers are out that the driver would starve,
/// further frames are copies. Pictures of other cameras, and all rotated pictures, are converted into a frame pool. A
/// good frame needs no allocation in either case.
///
/// Pictures are rotated upright by ``mounting`` and then by the orientation of ``orient(_:)``. The driver rotates them
/// if it can and if the orientation is fixed for the run. Otherwise the conversion rotates them.
public final class V4L2Camera: VideoSource, @unchecked Sendable {
  // Sendable: one thread at a time uses a source, as its protocol says. Frames on other threads touch only the buffer
  // queue and the pool, which are safe for that.

  /// The time in seconds without a picture after which a camera counts as stalled, unless two frame intervals are
  /// longer.
  public static let stallSeconds = 2
  /// The time in seconds that a camera has after its start, for its sensor and its USB link.
  public static let startSeconds = 5
  /// The number of times in a row that a broken stream is restarted.
  public static let restartLimit = 5
  /// The longest wait of `next` before it returns `.idle`.
  static let patience = Duration.milliseconds(200)
  /// The number of copies of an NV12 camera's pictures that may be in use while all lendable buffers are out.
  package static let reserveCount = 2
  /// The wait for a picture from which on it has just arrived, so that no newer one can be waiting behind it.
  static let freshness = Duration(nanoseconds: 500_000)

  /// The format that the driver granted, rotated by ``mounting``. Its `conversion` describes pictures in the
  /// orientation that the camera was opened with.
  public let format: SourceFormat
  /// The rotation that makes pictures upright: the inverse of the driver's `V4L2_CID_CAMERA_SENSOR_ROTATION`. It is
  /// ``/Media/Orientation/upright`` if the driver reports none, or if the camera was opened without compensation.
  public let mounting: Orientation
  /// The camera's name, such as `HD Pro Webcam C920 (/dev/video0)`.
  public let name: String
  /// Always `true`: the camera sets the pace.
  public var isLive: Bool { true }

  let path: String
  /// The path that the device was opened by.
  public var devicePath: String? { path }
  let device: V4L2Device
  let request: FormatRequest
  let choice: FormatChoice
  let driverFormat: DriverFormat
  let queue: V4L2BufferQueue
  /// The layout of frames in the driver's buffers; nil if frames may not lie there.
  private let layout: NV12Layout?
  /// The converter for formats that libv4l has to open first.
  private let legacy: LegacyConverter?
  let converter: OrientedConverter
  let driverRotation: DriverRotation?
  /// The planes of frames that the camera has coded; nil for a camera that delivers samples.
  private let blank: NV12Planes?
  /// The number of the next coded picture. It begins with the time, so that no two cameras have the same numbers.
  var codedNumber = UInt64(bitPattern: Instant.now().nanoseconds)
  /// `true` if the camera offers a format of samples.
  let offersSamples: Bool
  let warningList: Mutex<[CaptureError]>
  let stallLimit: Duration
  let startLimit: Duration
  let events = EventQueue<CameraEvent>()

  private let descriptors: UnsafeMutablePointer<pollfd>
  private var buffer = DequeuedBuffer()
  /// The losses to report before ``buffer``, and `true` in it if that is to be delivered.
  private var backlog = CaptureBacklog()
  private var demand: PictureDemand?
  private let compressed = CompressedPictures()
  private var clock = CaptureClock()
  var counter = SequenceCounter()
  var lastSign = Instant.zero
  /// `true` if a buffer arrived since the start of the stream.
  var hasDelivered = false
  var isBroken = false
  var restarts = 0

  /// Opens the camera at `path`, negotiates a format with its driver and maps its buffers.
  ///
  /// - Parameters:
  ///   - path: a device node or a link to one, such as `/dev/v4l/by-id/…`.
  ///   - request: the requested format.
  ///   - poolCapacity: the number of frames that may be in use at once. For an NV12 camera two of them are copies,
  ///     because two buffers stay with the driver.
  ///   - fixedOrientation: the initial orientation of pictures, if it will not change. Half rotations and mirrors are then
  ///     left to the driver if it offers them (`V4L2_CID_HFLIP`, `V4L2_CID_VFLIP`, `V4L2_CID_ROTATE`), so they need no
  ///     copy. The controls are set relative to their values, and restored at the end of the last frame after
  ///     ``stop()``. If the driver cannot apply the orientation, the conversion does, and ``orient(_:)`` keeps working.
  ///   - compensatesMounting: `true` rotates pictures upright by the sensor's mounting as the driver reports it. The
  ///     size of `request` is the sensor's, before that rotation.
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
    Self.noting(&warnings, else: (), device.checkRotation)
    // Before the negotiation: a rotation may change the driver's formats.
    let driverRotation = fixedOrientation.map { DriverRotation(mounting.then($0), device: device) }
    if let driverRotation { Self.noting(&warnings, else: (), driverRotation.apply) }
    self.driverRotation = driverRotation
    warningList = Mutex(warnings)
    // Before the format is requested: every change after this point is reported.
    let tellsChanges = device.subscribeSourceChange()
    device.adoptTimings()
    let capabilities = device.capabilities(near: request.size) { format in
      if request.takesH264 { return format == .h264 }
      return request.format == nil ? ConversionPath.of(format) != nil : format == request.format
    }
    offersSamples = capabilities.formats.contains { ConversionPath.of($0.pixelFormat) != nil }
    let choice = try FormatNegotiation.choose(request, from: capabilities)
    let driverFormat = try device.setFormat(choice, for: request)
    let rate = try device.setRate(choice, for: request)
    self.path = path
    self.device = device
    self.request = request
    self.choice = choice
    self.driverFormat = driverFormat
    name = device.name

    let isCoded = choice.path == .passThrough
    let blankPool = isCoded ? try FramePool(size: driverFormat.size, capacity: 1) : nil
    // The pool keeps the memory when this frame ends.
    blank = blankPool?.checkout(color: .unspecified, timestamp: .zero, captured: .zero)?.planes
    let wanted =
      choice.path == .none || isCoded
      ? max(V4L2BufferQueue.zeroCopyCount, poolCapacity) : V4L2BufferQueue.leastCount
    queue = try V4L2BufferQueue(
      device: device, format: driverFormat, wanted: wanted, isExported: choice.path == .none,
      driverRotation: driverRotation, blank: blankPool)
    let canLend = request.memory.isLent && choice.path == .none && queue.count >= V4L2BufferQueue.leastCount
    layout = canLend ? NV12Layout(driverFormat) : nil
    legacy = choice.path == .legacy ? try LegacyConverter(device: device, format: driverFormat) : nil
    converter = try OrientedConverter(
      from: isCoded ? .nv12 : legacy == nil ? choice.format : .yu12, size: driverFormat.size,
      upright: try blankPool
        ?? FramePool(
          size: driverFormat.size, capacity: layout == nil ? poolCapacity : Self.reserveCount, memory: request.memory),
      capacity: poolCapacity, memory: request.memory)
    converter.base = (driverRotation?.applied ?? .upright).inverse.then(mounting)
    converter.orient(fixedOrientation ?? .upright)
    let words =
      if isCoded { "passed on as it is" } else if legacy != nil { "libv4l" } else if choice.format.isJPEG {
        "libjpeg-turbo"
      } else {
        layout != nil && converter.orientation() == .upright ? "no copy" : "libyuv"
      }
    format = SourceFormat(
      size: mounting.size(of: driverFormat.size), frameRate: rate, pixelFormat: driverFormat.pixelFormat,
      color: driverFormat.color.description(of: driverFormat.pixelFormat), conversion: words,
      turnsApart: layout != nil || (legacy == nil && choice.format.isJPEG))
    stallLimit = max(Duration(seconds: Double(Self.stallSeconds)), rate.interval * 2)
    startLimit = max(Duration(seconds: Double(Self.startSeconds)), stallLimit)
    descriptors = .allocate(capacity: 2)
    let events = Int16(tellsChanges ? POLLIN | POLLPRI : POLLIN)
    descriptors.initialize(repeating: pollfd(fd: device.descriptor, events: events, revents: 0), count: 2)
  }

  deinit {
    stop()
    descriptors.deallocate()
  }

  /// The oddities that end nothing: the driver refused to rotate pictures, rotates them already, or reports an invalid
  /// mounting.
  public var warnings: [CaptureError] { warningList.withLock { $0 } }

  /// Returns the failures that were repaired since the last call.
  public func takeEvents() -> [CameraEvent] { events.take() }

  /// Keeps the compressed pictures of a JPEG camera, if they are not rotated.
  public func keepCompressed(while demand: PictureDemand) {
    guard legacy == nil, choice.format.isJPEG else { return }
    self.demand = demand
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

  /// Stops the flow of pictures. Idempotent. Frames in use stay valid. The last of them returns the memory to the
  /// driver, and other programs may then set up the camera.
  public func stop() {
    queue.stop()
    if backlog.takeKept() { giveBack() }
    backlog = CaptureBacklog()
  }

  /// Waits for the next picture, a loss, or `interrupt`. If several pictures wait, the newest one comes, and the others
  /// are counted as ``/Media/DropCause/captureLate``: decoding them would only make the picture older.
  ///
  /// - Throws: ``CaptureError`` if the camera is gone, stalled or broken for good.
  public func next(interrupt: borrowing Interrupt) throws -> CaptureEvent {
    if let event = try pending() { return event }
    if isBroken { return try restart(interrupt: interrupt) }
    descriptors[0].revents = 0
    descriptors[1] = pollfd(fd: interrupt.fileDescriptor, events: Int16(POLLIN), revents: 0)
    let asked = Instant.now()
    guard nightjar_poll(descriptors, 2, Self.patience.nanoseconds) > 0 else { return try idle() }
    if descriptors[1].revents != 0 { return .idle }
    if descriptors[0].revents & Int16(POLLPRI) != 0 {
      // A buffer filled by now may come from either signal.
      try checkSource()
      // A device that was unplugged signals an event forever, together with an error.
      if descriptors[0].revents == Int16(POLLPRI) { return try idle() }
    }
    let errorNumber = queue.dequeue(into: &buffer)
    switch errorNumber {
    case 0:
      let now = Instant.now()
      lastSign = now
      hasDelivered = true
      // A picture that was waited for is the newest. The pictures after a coded one need it.
      backlog.take(
        into: &buffer, limit: blank == nil && now - asked < Self.freshness ? queue.count : 0, counter: &counter,
        dequeue: { queue.dequeue(into: &$0) }, recycle: { queue.recycle(slot: $0) })
      // A buffer that was overtaken is counted already.
      return try pending() ?? .dropped(.driver, count: 0)
    case ENODEV:
      throw CaptureError.disconnected(path: path)
    case EAGAIN:
      // An error without a buffer does not pass with time.
      if descriptors[0].revents & Int16(POLLERR | POLLHUP | POLLNVAL) != 0 { return try lose(EIO) }
      return try idle()
    default:
      return try lose(errorNumber)
    }
  }

  /// Returns the next loss to report, or else the kept buffer's frame; nil if there is neither.
  private func pending() throws -> CaptureEvent? {
    if let loss = backlog.takeLoss() {
      codedNumber &+= UInt64(loss.count)
      return .dropped(loss.cause, count: loss.count)
    }
    guard backlog.takeKept() else { return nil }
    return try deliver(at: .now())
  }

  /// The format that the driver granted, to request it again.
  var agreement: FormatRequest {
    FormatRequest(size: driverFormat.size, frameRate: format.frameRate, format: driverFormat.pixelFormat)
  }

  /// The camera's directory in sysfs.
  var systemDirectory: String? { device.systemDirectory }

  /// Returns the result of `call`, or adds a warning and returns `fallback`.
  static func noting<Result>(
    _ warnings: inout [CaptureError], else fallback: Result, _ call: () throws(CaptureError) -> Result
  ) -> Result {
    do throws(CaptureError) {
      return try call()
    } catch {
      if !warnings.contains(where: { $0.description == error.description }) { warnings.append(error) }
      return fallback
    }
  }

  /// Returns a frame for the dequeued buffer, or the reason why there is none.
  private func deliver(at now: Instant) throws -> CaptureEvent {
    if buffer.isDamaged {
      giveBack()
      codedNumber &+= 1
      return .dropped(.driverError, count: 1)
    }
    let timestamp = clock.stamp(driver: buffer.isMonotonic ? buffer.timestamp : nil, now: now)
    let captured = min(timestamp, now)
    nightjar_frame_captured(timestamp.nanoseconds, captured.nanoseconds, now.nanoseconds)
    if let blank { return pass(timestamp, captured, arrived: now, blank) }
    let (orientation, later) = converter.rotationPlan()
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

  /// Returns a frame with the coded picture in the dequeued buffer.
  private func pass(
    _ timestamp: Instant, _ captured: Instant, arrived: Instant, _ blank: NV12Planes
  ) -> CaptureEvent {
    codedNumber &+= 1
    guard let base = buffer.contents.0.base, buffer.contents.0.byteCount > 0, buffer.mayBeLent else {
      let isEmpty = buffer.contents.0.byteCount == 0
      giveBack()
      return .dropped(isEmpty ? .short : .poolExhausted, count: 1)
    }
    restarts = 0
    var frame = Frame(
      planes: blank, color: format.color, timestamp: timestamp, captured: captured, slot: buffer.index, owner: queue)
    frame.coded = CameraCodedPicture(
      bytes: UnsafeRawBufferPointer(start: base, count: buffer.contents.0.byteCount), number: codedNumber)
    frame.arrived = arrived
    converter.notePassedOn()
    return .frame(frame)
  }

  /// The rotation that makes pictures upright after the driver's own; the requested orientation is applied after it.
  var base: Orientation { converter.base }

  /// Converts the dequeued buffer into a frame of a pool and returns the buffer at once.
  private func convert(
    as orientation: Orientation, then later: Orientation, _ timestamp: Instant, _ captured: Instant,
    arrived: Instant
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
      // The picture was just decoded, so it is complete.
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

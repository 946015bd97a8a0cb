import CTracing
public import Media
import PixelConversion
public import Platform
import Synchronization

/// The time from which a stream survives the failure of its camera.
public enum CameraSurvival: Hashable, Sendable {
  /// Never: an error of the camera ends the stream.
  case none
  /// After the start: a camera that started may fail.
  case onceStarted
  /// From the beginning: a camera that does not start is searched for, too.
  case always
}

/// A camera that may be unplugged, stall or fail while its stream continues.
///
/// While the camera delivers, its frames pass unchanged. When the camera fails, placeholders of the same size and rate
/// replace its pictures, on the same clock and without a gap. A separate thread searches for the camera. If the camera
/// returns with another size, its pictures are scaled.
public final class ReconnectingCamera<Finder: CameraFinding>: VideoSource, @unchecked Sendable {
  // Sendable: the mutable state without a lock belongs to the source's one thread.

  /// The type of the underlying cameras.
  public typealias Camera = Finder.Camera

  /// The format of the stream: that of the camera that was opened first, or of the expected camera.
  public let format: SourceFormat
  /// The name of the camera that was opened first.
  public let name: String
  /// Always `true`: the camera sets the pace.
  public var isLive: Bool { true }

  /// The time without a picture after which the camera counts as late; see ``V4L2Camera/stallSeconds``.
  private let stallLimit: Duration

  private let finder: Finder
  private let pictures: PictureWatch?
  private let survival: CameraSurvival
  private let events = EventQueue<CameraEvent>()
  private let state: Mutex<State>
  private let placeholderFrames = Atomic<Int>(0)
  private let bridge: PlaceholderBridge

  /// The state shared with other threads.
  private struct State {
    /// The camera that delivers; nil if none does.
    var camera: Camera?
    var orientation = Orientation.upright
    var condition: CameraCondition
    var search: CameraSearch<Finder>?
    var link: PassThrough?
    /// The orientation of the last picture, while the camera is opened again for another coding.
    var exchanged: Orientation?
  }

  // Only the source's thread uses the following.
  private var camera: Camera?
  private var scaler: FrameScaler?
  private var thread: NamedThread?
  private var search: CameraSearch<Finder>?
  private var setting: CameraSearch<Finder>.Setting
  private var stillness = StillnessDetector()
  /// `last` is the timestamp of the last frame, a picture or a placeholder. `lastPicture` is the time of the camera's
  /// last picture or of the start.
  private var last = Instant.zero
  private var lastPicture = Instant.zero
  private var hasDelivered = false
  /// `true` if there was a camera before. `false` means that the stream waits for its first camera.
  private var hadCamera: Bool
  /// The changes between the camera's own H.264 and samples; nil if no encoder passes H.264 on.
  private var exchange: CodingExchange?
  private var exchangedPath = ""

  /// Creates a source for a `camera` that is open but not started.
  ///
  /// - Parameters:
  ///   - camera: the first camera of the stream; the stream keeps its format.
  ///   - finder: the finder that opened the camera and opens it again.
  ///   - survival: says from when on placeholders replace a camera that fails.
  ///   - pictures: the observer of the camera's own pictures.
  /// - Throws: ``/Media/FramePoolError`` if memory for placeholders is short.
  public convenience init(
    _ camera: Camera, finder: Finder, survival: CameraSurvival = .onceStarted, pictures: PictureWatch? = nil
  ) throws(FramePoolError) {
    try self.init(
      camera, format: camera.format, name: camera.name, finder: finder, survival: survival, pictures: pictures)
  }

  /// Creates a source that waits for its camera and shows placeholders of `format` until then.
  ///
  /// - Throws: `FramePoolError`.
  public convenience init(
    waitingFor name: String, format: SourceFormat, finder: Finder, pictures: PictureWatch? = nil
  ) throws(FramePoolError) {
    try self.init(nil, format: format, name: name, finder: finder, survival: .always, pictures: pictures)
  }

  package init(
    _ camera: Camera?, format: SourceFormat, name: String, finder: Finder, survival: CameraSurvival,
    pictures: PictureWatch? = nil, wallClock: @escaping @Sendable () -> Int64 = WallTime.now
  ) throws(FramePoolError) {
    self.format = format
    self.name = name
    stallLimit = max(Duration(seconds: Double(V4L2Camera.stallSeconds)), format.frameRate.interval * 2)
    self.finder = finder
    self.pictures = pictures
    self.survival = survival
    self.camera = camera
    hadCamera = camera != nil
    setting = CameraSearch<Finder>.Setting(size: format.size)
    bridge = try PlaceholderBridge(format: format, wallClock: wallClock)
    var condition = CameraCondition(camera == nil ? .waiting : .live, since: .now())
    condition.color = camera?.format.color
    state = Mutex(State(camera: camera, condition: condition))
  }

  deinit { stop() }

  /// The condition of the camera.
  public var condition: CameraCondition? {
    state.withLock { state in
      var condition = state.condition
      condition.devicePath = state.camera?.devicePath
      condition.placeholderFrames = placeholderFrames.load(ordering: .relaxed)
      condition.obstacle = state.search?.obstacle.withLock { $0?.words }
      return condition
    }
  }

  /// Returns the camera's events since the last call.
  public func takeEvents() -> [CameraEvent] {
    (state.withLock { $0.camera }?.takeEvents() ?? []) + events.take()
  }

  /// Sets the orientation from the next picture on. Placeholders follow, but their text stays upright. Any thread may
  /// call it.
  public func orient(_ orientation: Orientation) {
    state.withLock { state in
      state.orientation = orientation
      state.camera?.orient(orientation)
    }
  }

  /// The orientation of the last picture.
  public var orientation: Orientation {
    state.withLock { $0.camera?.orientation ?? $0.exchanged ?? $0.orientation }
  }

  /// The reason why pictures do not have the requested orientation: memory is short. Nil if they have it.
  public var turningFailure: (any Failure)? {
    state.withLock { state in
      guard let camera = state.camera else { return bridge.failure }
      return camera.turningFailure ?? state.link?.obstacle(to: state.orientation, of: camera.devicePath)
    }
  }

  /// Lets an encoder pass the camera's own H.264 on, as long as nothing needs samples: see ``CodingExchange``. Called
  /// before `start`; the finder has the same link.
  package func passOn(by link: PassThrough) {
    exchange = CodingExchange(link)
    state.withLock { $0.link = link }
  }

  /// Leaves rotations that `offer` covers to the encoder, for each camera that is found.
  public func leaveTurning(to offer: TurnOffer) {
    setting.offer = offer
    camera?.leaveTurning(to: offer)
  }

  /// Keeps the compressed pictures of each camera that is found. Placeholders and scaled pictures have none.
  public func keepCompressed(while demand: PictureDemand) {
    setting.demand = demand
    camera?.keepCompressed(while: demand)
  }

  /// Allocates memory for rotated pictures and placeholders, for each camera that is found.
  ///
  /// - Throws: if memory is short.
  public func prepareTurning() throws {
    setting.preparesRotation = true
    try bridge.prepareTurning()
    try camera?.prepareTurning()
  }

  /// Starts the flow of pictures.
  ///
  /// - Throws: the camera's error, unless survival is `.always`; `SystemFailure` if the system has no thread or
  ///   descriptor left.
  public func start() throws {
    let search = try CameraSearch(finder: finder, setting: setting, events: events) { [weak self] in
      self?.state.withLock { $0.orientation } ?? .upright
    }
    var failure: (any Error)?
    do {
      try camera?.start()
    } catch {
      guard survival == .always else { throw error }
      failure = error
    }
    thread = try NamedThread("nj-search") { search.run() }
    self.search = search
    last = .now()
    lastPicture = last
    hasDelivered = false
    stillness.restart()
    state.withLock { state in
      state.search = search
      state.condition.since = last
    }
    if let failure {
      lose(failure, search)
    } else if camera == nil {
      bridge.begin(after: .now())
      search.begin(losing: nil, keeps: false)
    }
  }

  /// Stops the flow of pictures. Idempotent.
  public func stop() {
    camera?.stop()
    state.withLock { $0.search = nil }
    if let thread = thread.take() { search?.end(thread) }
    search = nil
  }

  /// Waits for the next picture, a loss, or `interrupt`.
  ///
  /// - Throws: the camera's error, if the stream does not survive it.
  public func next(interrupt: borrowing Interrupt) throws -> CaptureEvent {
    guard let search else { return .ended }
    if let camera, exchange != nil { exchangeIfNeeded(camera, search) }
    if let camera {
      do {
        switch try camera.next(interrupt: interrupt) {
        case .frame(let frame): return try handOn(frame)
        case .dropped(let cause, let count):
          noteDrop(cause, search)
          return .dropped(cause, count: count)
        case .ended: return .ended
        case .idle:
          // A camera that starts, or restarts after an error, may take longer than the stall limit, but not silently.
          // Running cameras report a stall themselves.
          guard survival != .none, .now() - lastPicture > stallLimit + V4L2Camera.patience, !interrupt.hasFired() else {
            return .idle
          }
          lose(UnusableCamera(seconds: Int(stallLimit.seconds), cause: nil), search, keeps: true)
        }
      } catch {
        guard survival != .none else { throw error }
        lose(error, search)
      }
    }
    guard bridge.wait(for: search.wakeUp.fileDescriptor, interrupt: interrupt) else {
      var found = search.take()
      guard let camera = found.camera else { return .idle }
      adopt(camera, search)
      guard let picture = found.picture.take(), self.camera != nil else { return .idle }
      return try handOn(picture)
    }
    if exchange?.isOverdue() == true {
      if search.isAbsent.load(ordering: .relaxed) {
        noteLoss(CaptureError.disconnected(path: exchangedPath))
      } else {
        note(.waiting, since: lastPicture)
      }
      state.withLock { $0.exchanged = nil }
    }
    let (condition, orientation) = state.withLock { ($0.condition, $0.orientation) }
    guard
      let frame = bridge.frame(
        condition, orientation: orientation, obstacle: search.obstacle.withLock { $0?.remark } ?? "")
    else { return .dropped(.poolExhausted, count: 1) }
    placeholderFrames.add(1, ordering: .relaxed)
    last = frame.timestamp
    nightjar_frame_captured(
      frame.timestamp.nanoseconds, frame.captured.nanoseconds, Instant.now().nanoseconds)
    return .frame(frame)
  }

  /// Notes a dropped picture. A camera without a single usable picture delivers nothing, however busy it is. If the
  /// pool is exhausted, the camera is not at fault.
  private func noteDrop(_ cause: DropCause, _ search: CameraSearch<Finder>) {
    let limit = hasDelivered ? stallLimit : max(Duration(seconds: Double(V4L2Camera.startSeconds)), stallLimit)
    guard survival != .none, cause != .poolExhausted, .now() - lastPicture > limit else { return }
    lose(UnusableCamera(seconds: Int(limit.seconds), cause: cause), search)
  }

  private func handOn(_ frame: consuming Frame) throws -> CaptureEvent {
    // A driver's timestamp may be earlier than the last placeholder's.
    frame.timestamp = max(frame.timestamp, last + CaptureClock.leastStep)
    last = frame.timestamp
    lastPicture = frame.arrived ?? .now()
    hasDelivered = true
    let coded = frame.coded
    let planes = coded == nil ? frame.planes : nil
    pictures?.note(planes, isFullRange: frame.color.isFullRange, at: lastPicture)
    switch coded.map({ stillness.note($0.bytes, at: last) }) ?? stillness.note(frame.planes, at: last) {
    case .none: break
    case .froze(let since):
      note(.frozen, since: since)
      let span = last - since
      events.add(.frozen(since: bridge.wallTime(of: since).clock, for: span))
    case .thawed(let span):
      note(.live, since: last)
      events.add(.thawed(after: span))
    }
    guard coded == nil, let scaler else { return .frame(frame) }
    return try scaler.scale(frame, orientation: camera?.orientation ?? .upright)
  }

  private func note(_ new: CameraState, since: Instant) {
    state.withLock { state in
      state.condition.state = new
      state.condition.since = since
    }
  }

  /// Replaces the camera by placeholders and starts the search.
  ///
  /// - Parameter keeps: `true` if the camera is only slow to start and continues.
  private func lose(_ error: any Error, _ search: CameraSearch<Finder>, keeps: Bool = false) {
    let lost = release()
    noteLoss(error, keeps: keeps)
    bridge.begin(after: last)
    search.begin(losing: lost, keeps: keeps)
  }

  /// Reports that the camera is lost. The search may be under way already, for another coding.
  private func noteLoss(_ error: any Error, keeps: Bool = false) {
    note(keeps ? .waiting : CameraState(after: error), since: lastPicture)
    state.withLock { $0.condition.losses += 1 }
    events.add(.lost(reason: "\(error)"))
    let (orientation, isWatched) = (state.withLock { $0.orientation }, setting.demand?.isWatched == true)
    exchange?.noteLoss(orientation: orientation, isWatched: isWatched, keeps: keeps)
  }

  /// Takes the camera out of the stream, and returns it.
  private func release() -> Camera? {
    defer { camera = nil }
    for event in camera?.takeEvents() ?? [] { events.add(event) }
    scaler = nil
    stillness.restart()
    state.withLock { $0.camera = nil }
    return camera
  }

  /// Has the camera opened again, for samples or for its own H.264, if the present ones do not serve.
  private func exchangeIfNeeded(_ present: Camera, _ search: CameraSearch<Finder>) {
    let orientation = state.withLock { $0.orientation }
    guard
      exchange?.isDue(
        isCoded: present.format.pixelFormat == .h264, orientation: orientation,
        isWatched: setting.demand?.isWatched == true) == true
    else { return }
    state.withLock { $0.exchanged = present.orientation }
    exchangedPath = present.devicePath ?? "the camera"
    _ = release()
    // Placeholders come only if the change takes longer than a viewer's patience.
    bridge.begin(after: .now() + CodingExchange.patience)
    search.begin(losing: present, keeps: false)
  }

  private func adopt(_ found: Camera, _ search: CameraSearch<Finder>) {
    let now = Instant.now()
    camera = found
    if found.format.size != format.size {
      do {
        scaler = try FrameScaler(from: found.format.size, to: format.size)
        events.add(.scaled(from: found.format.size, to: format.size))
      } catch {
        // Memory is short: the stream continues and the search tries again.
        return lose(error, search)
      }
    }
    lastPicture = now
    hasDelivered = true
    let since = state.withLock { state in
      defer {
        state.camera = found
        state.exchanged = nil
        found.orient(state.orientation)
        state.condition.state = .live
        state.condition.since = now
        state.condition.color = found.format.color
        if hadCamera, exchange?.isUnderWay != true { state.condition.reopenings += 1 }
      }
      return state.condition.since
    }
    if let event = exchange?.end(isCoded: found.format.pixelFormat == .h264) {
      events.add(event)
      return
    }
    events.add(.found(name: found.name, isFirst: !hadCamera, after: now - since))
    hadCamera = true
  }
}

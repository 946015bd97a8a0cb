import CTracing
public import Media
import PixelConversion
import Synchronization
import Threading

/// From when on a stream goes on without its camera.
public enum CameraSurvival: Hashable, Sendable {
  /// Never: what the camera throws ends the stream.
  case none
  /// Once it was started.
  case onceStarted
  /// From the beginning: one that does not start is looked for, too.
  case always
}

/// A camera that may be unplugged, stall or fail while its stream goes on.
///
/// As long as it delivers, its frames are handed on as they are. When it does not, pictures of the same size and rate
/// that say so take their place, on the same clock and without a gap, until it was found again, on a thread of its own.
/// Where it comes back with another size, its pictures are scaled.
public final class ReconnectingCamera<Finder: CameraFinding>: VideoSource, @unchecked Sendable {
  // Sendable: what is mutable without a lock belongs to the source's one thread.

  /// The cameras that stand behind it.
  public typealias Camera = Finder.Camera

  /// What the stream is: the format of the camera that was opened first, or of the one that is waited for.
  public let format: SourceFormat
  /// The camera that was opened first.
  public let name: String
  /// True: pictures come when they come.
  public var isLive: Bool { true }

  /// After so long without its first picture the camera is told to be late; as ``V4L2Camera/stallSeconds``.
  private let stallLimit: MediaTime

  private let finder: Finder
  private let pictures: PictureWatch?
  private let survival: CameraSurvival
  private let events = CameraEvents()
  private let state: Mutex<State>
  private let placeholderFrames = Atomic<Int>(0)
  private let bridge: PlaceholderBridge

  /// What other threads ask for.
  private struct State {
    /// The camera that delivers; nil where none does.
    var camera: Camera?
    var orientation = Orientation.upright
    var condition: CameraCondition
    var search: CameraSearch<Finder>?
  }

  // The source's thread alone uses what follows.
  private var camera: Camera?
  private var scaler: FrameScaler?
  private var thread: NamedThread?
  private var search: CameraSearch<Finder>?
  private var setting: CameraSearch<Finder>.Setting
  private var stillness = StillnessDetector()
  /// The timestamp of the last frame of either kind, and when the camera last gave one or was started.
  private var last = MediaTime.zero
  private var lastPicture = MediaTime.zero
  private var hasDelivered = false
  /// Whether a camera was there before: otherwise the first one is waited for.
  private var hadCamera: Bool

  /// One for a `camera` that was opened but not started.
  ///
  /// - Parameters:
  ///   - camera: what is streamed first; its format is the stream's from then on.
  ///   - finder: what opened it, and opens it again.
  ///   - survival: from when on placeholders take the place of a camera that fails.
  ///   - pictures: who wants to know of the camera's own pictures.
  /// - Throws: ``/Media/FramePoolError`` where memory for placeholders is short.
  public convenience init(
    _ camera: Camera, finder: Finder, survival: CameraSurvival = .onceStarted, pictures: PictureWatch? = nil
  ) throws(FramePoolError) {
    try self.init(
      camera, format: camera.format, name: camera.name, finder: finder, survival: survival, pictures: pictures)
  }

  /// One that waits for its camera, with placeholders of `format` until it comes.
  ///
  /// - Throws: `FramePoolError`.
  public convenience init(
    waitingFor name: String, format: SourceFormat, finder: Finder, pictures: PictureWatch? = nil
  ) throws(FramePoolError) {
    try self.init(nil, format: format, name: name, finder: finder, survival: .always, pictures: pictures)
  }

  init(
    _ camera: Camera?, format: SourceFormat, name: String, finder: Finder, survival: CameraSurvival,
    pictures: PictureWatch? = nil, wallClock: @escaping @Sendable () -> Int64 = WallTime.now
  ) throws(FramePoolError) {
    self.format = format
    self.name = name
    stallLimit = max(MediaTime(seconds: Double(V4L2Camera.stallSeconds)), format.frameRate.interval * 2)
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

  deinit {
    stop()
  }

  /// How the camera is.
  public var condition: CameraCondition? {
    state.withLock { state in
      var condition = state.condition
      condition.placeholderFrames = placeholderFrames.load(ordering: .relaxed)
      condition.obstacle = state.search?.obstacle.withLock { $0?.words }
      return condition
    }
  }

  /// What happened to it since the last call.
  public func takeEvents() -> [CameraEvent] {
    (state.withLock { $0.camera }?.takeEvents() ?? []) + events.take()
  }

  /// From the next picture on pictures are laid so, placeholders too, whose text stays upright. From any thread.
  public func orient(_ orientation: Orientation) {
    state.withLock { state in
      state.orientation = orientation
      state.camera?.orient(orientation)
    }
  }

  /// How the last picture was laid.
  public var orientation: Orientation {
    state.withLock { $0.camera?.orientation ?? $0.orientation }
  }

  /// Why pictures are not laid as is wanted: memory for it is short. Nil where they are.
  public var turningFailure: (any Failure)? {
    state.withLock { state in
      guard let camera = state.camera else { return bridge.failure }
      return camera.turningFailure
    }
  }

  /// The same for each camera that comes.
  public func leaveTurning(to offer: TurnOffer) {
    setting.offer = offer
    camera?.leaveTurning(to: offer)
  }

  /// The same for each camera that comes. Placeholders have none, and pictures that are scaled neither.
  public func keepCompressed(while demand: PictureDemand) {
    setting.demand = demand
    camera?.keepCompressed(while: demand)
  }

  /// Readies memory for turned pictures, for placeholders too, and for each camera that comes.
  ///
  /// - Throws: where memory is short.
  public func prepareTurning() throws {
    setting.preparesTurning = true
    try bridge.prepareTurning()
    try camera?.prepareTurning()
  }

  /// Starts the flow of pictures.
  ///
  /// - Throws: what the camera throws, unless survival is `.always`; `SystemFailure` where the system has no thread or
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

  /// Ends the flow of pictures. Idempotent.
  public func stop() {
    camera?.stop()
    state.withLock { $0.search = nil }
    if let thread = thread.take() { search?.end(thread) }
    search = nil
  }

  /// Waits for the next picture, a loss, or `interrupt`.
  ///
  /// - Throws: what the camera throws, where the stream is not to go on without it.
  public func next(interrupt: borrowing Interrupt) throws -> CaptureEvent {
    guard let search else { return .ended }
    if let camera {
      do {
        switch try camera.next(interrupt: interrupt) {
        case .frame(let frame): return try handOn(frame)
        case .dropped(let cause, let count):
          noteDrop(cause, search)
          return .dropped(cause, count: count)
        case .ended: return .ended
        case .idle:
          // One that was just started, or that starts itself again after an error, may take longer than it may stall, but
          // not without a word. The others say so themselves.
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
    guard bridge.wait(for: search.bell.fileDescriptor, interrupt: interrupt) else {
      if let camera = search.take() { adopt(camera, search) }
      return .idle
    }
    let (condition, orientation) = state.withLock { ($0.condition, $0.orientation) }
    guard
      let frame = bridge.frame(
        condition, orientation: orientation, obstacle: search.obstacle.withLock { $0?.remark } ?? "")
    else { return .dropped(.poolExhausted, count: 1) }
    placeholderFrames.add(1, ordering: .relaxed)
    last = frame.timestamp
    nightjar_frame_captured(
      frame.timestamp.nanoseconds, frame.captured.nanoseconds, MediaTime.now().nanoseconds)
    return .frame(frame)
  }

  /// A camera of whose pictures none can be used delivers nothing, however busy it is. Where our own memory is short, it is
  /// not the camera's fault.
  private func noteDrop(_ cause: DropCause, _ search: CameraSearch<Finder>) {
    let limit = hasDelivered ? stallLimit : max(MediaTime(seconds: Double(V4L2Camera.startSeconds)), stallLimit)
    guard survival != .none, cause != .poolExhausted, .now() - lastPicture > limit else { return }
    lose(UnusableCamera(seconds: Int(limit.seconds), cause: cause), search)
  }

  private func handOn(_ frame: consuming Frame) throws -> CaptureEvent {
    // A driver's timestamp may be of before the last placeholder.
    frame.timestamp = max(frame.timestamp, last + CaptureClock.leastStep)
    last = frame.timestamp
    lastPicture = frame.arrived ?? .now()
    hasDelivered = true
    pictures?.note(frame.planes, isFullRange: frame.color.isFullRange, at: lastPicture)
    switch stillness.note(frame.planes, at: last) {
    case .none: break
    case .froze(let since):
      note(.frozen, since: since)
      let span = last - since
      events.add(.frozen(since: bridge.wallTime(of: since).clock, for: span))
    case .thawed(let span):
      note(.live, since: last)
      events.add(.thawed(after: span))
    }
    guard let scaler else { return .frame(frame) }
    return try scaler.scale(frame, orientation: camera?.orientation ?? .upright)
  }

  private func note(_ new: CameraState, since: MediaTime) {
    state.withLock { state in
      state.condition.state = new
      state.condition.since = since
    }
  }

  /// - Parameter keeps: whether it is only slow to begin, and goes on.
  private func lose(_ error: any Error, _ search: CameraSearch<Finder>, keeps: Bool = false) {
    let lost = camera
    for event in lost?.takeEvents() ?? [] { events.add(event) }
    camera = nil
    scaler = nil
    stillness.restart()
    state.withLock { state in
      state.camera = nil
      state.condition.state = keeps ? .waiting : Self.state(after: error)
      state.condition.since = lastPicture
      state.condition.losses += 1
    }
    events.add(.lost(reason: "\(error)"))
    bridge.begin(after: last)
    search.begin(losing: lost, keeps: keeps)
  }

  private func adopt(_ found: Camera, _ search: CameraSearch<Finder>) {
    let now = MediaTime.now()
    camera = found
    if found.format.size != format.size {
      do {
        scaler = try FrameScaler(from: found.format.size, to: format.size)
        events.add(.scaled(from: found.format.size, to: format.size))
      } catch {
        // Memory is short: what streams goes on, and it is tried again.
        return lose(error, search)
      }
    }
    lastPicture = now
    hasDelivered = true
    let since = state.withLock { state in
      defer {
        state.camera = found
        found.orient(state.orientation)
        state.condition.state = .live
        state.condition.since = now
        state.condition.color = found.format.color
        if hadCamera { state.condition.reopenings += 1 }
      }
      return state.condition.since
    }
    events.add(.found(name: found.name, isFirst: !hadCamera, after: now - since))
    hadCamera = true
  }

  private static func state(after error: any Error) -> CameraState {
    switch error as? CaptureError {
    case .disconnected: .disconnected
    case .stalled: .stalled
    default: error is UnusableCamera ? .stalled : .failed
    }
  }
}

/// A camera that is there, but of whose pictures none can be used.
struct UnusableCamera: Failure {
  /// For how long.
  let seconds: Int
  /// What became of its pictures; nil where none came.
  let cause: DropCause?

  /// One line for the person at the terminal.
  var description: String {
    let what =
      switch cause {
      case nil: "no picture since it was started"
      case .corrupt: "only corrupt pictures"
      case .short: "only incomplete pictures"
      case .driverError: "only pictures that the driver marks as broken"
      default: "no picture that can be used"
      }
    return "\(what) for \(seconds) seconds: unplug the camera and plug it in again, or choose another --format"
  }

  /// What kind of failure it is.
  var kind: FailureKind { .unavailable }
}

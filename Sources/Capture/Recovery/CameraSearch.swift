import CLinux
import Glibc
import Media
import Platform
import Synchronization

/// Searches for a lost camera on its own thread, because a driver may block when a camera is opened, started or
/// stopped.
///
/// A camera that the search finds is started and has delivered a picture. The search tries when a video device appears
/// (``DeviceEventSocket``), and otherwise once a second.
final class CameraSearch<Finder: CameraFinding>: @unchecked Sendable {
  // Sendable: `order`, `found` and `condition` are locked; only the thread uses the finder while it runs.

  typealias Camera = Finder.Camera

  /// The settings that a camera gets before it starts.
  struct Setting: Sendable {
    var offer: TurnOffer?
    var demand: PictureDemand?
    var preparesRotation = false
    /// The size of frames that need no scaling. Frames of other sizes are never left for the encoder to rotate.
    var size: PictureSize
  }

  /// The time between two attempts without a device event.
  static var interval: Duration { .seconds(1) }
  /// The pauses after failed openings.
  static var pauses: ClosedRange<Duration> { .milliseconds(50)...Duration.seconds(5) }
  /// The time before a failure to open is reported. Until then the camera's node may not be ready, or viewers may still
  /// wait for frames in the camera's memory.
  static var tellingDelay: Duration { .milliseconds(500) }
  /// The longest wait for the thread's end. After that the thread is detached, because the driver blocks it.
  static var endPatience: Duration { .seconds(2) }

  /// Fires when a camera is found.
  let wakeUp: Interrupt
  /// The reason why the camera is present but not open, and the remark for viewers; nil if there is none.
  let obstacle = Mutex<(words: String, remark: String)?>(nil)
  /// `true` if the last attempt found no camera, not even one that cannot be opened.
  let isAbsent = Atomic(false)
  let events: EventQueue<CameraEvent>
  let setting: Mutex<Setting>

  private let finder: Finder
  /// `true` after the missing device events were reported. Only the thread uses it.
  private var hasToldOfDeafness = false
  private let orders: Interrupt
  private let order = Mutex<Order?>(nil)
  private let found = Mutex(Found())
  private let interrupt: Interrupt
  private let ended: Interrupt
  private let orientation: @Sendable () -> Orientation

  /// A camera that was found, and its first picture if the camera coded it: the pictures after it need it.
  struct Found: ~Copyable, Sendable {
    var camera: Camera?
    var picture: Frame?
  }

  private struct Order: Sendable {
    /// The lost camera; nil if there was none.
    var lost: Camera?
    /// `true` if the lost camera is only slow to start.
    var keeps: Bool
  }

  /// Creates a search; ``run()`` runs it.
  ///
  /// - Parameter orientation: returns the current orientation of pictures.
  /// - Throws: `SystemFailure` if the system has no descriptor left.
  init(
    finder: Finder, setting: Setting, events: EventQueue<CameraEvent>,
    orientation: @escaping @Sendable () -> Orientation
  ) throws(SystemFailure) {
    self.finder = finder
    self.setting = Mutex(setting)
    self.events = events
    self.orientation = orientation
    wakeUp = try Interrupt()
    orders = try Interrupt()
    interrupt = try Interrupt()
    ended = try Interrupt()
  }

  /// Starts to search. The search first stops `lost`. If `keeps` is `true`, the search first waits for `lost` to
  /// deliver.
  func begin(losing lost: Camera?, keeps: Bool) {
    order.withLock { $0 = Order(lost: lost, keeps: keeps) }
    orders.fire()
  }

  /// Returns the camera found since the last call, if there is one.
  func take() -> Found {
    wakeUp.clear()
    return found.withLock { found in
      let taken = Found(camera: found.camera.take(), picture: found.picture.take())
      return taken
    }
  }

  /// Ends the thread that runs ``run()``. If the driver blocks the thread, detaches it.
  func end(_ thread: consuming NamedThread) {
    interrupt.fire()
    if ended.wait(until: .now() + Self.endPatience) { thread.detach() }
  }

  /// Runs the thread's loop.
  func run() {
    while wait(for: orders.fileDescriptor, until: nil) {
      orders.clear()
      guard
        let order = order.withLock({ order -> Order? in
          defer { order = nil }
          return order
        })
      else { continue }
      search(order)
      obstacle.withLock { $0 = nil }
    }
    take().camera?.stop()
    ended.fire()
  }

  private func search(_ order: consuming Order) {
    // Opened before the first attempt, so that no event between the two is missed.
    let devices = openDeviceEvents()
    isAbsent.store(false, ordering: .relaxed)
    // If the slow camera fails here, the loop below opens it again and reports the reason.
    if let camera = order.lost, order.keeps, (try? begins(camera)) == true { return deliver(camera) }
    order.lost?.stop()
    // Closes the camera's descriptor: while a node is open, the returning camera gets another number.
    order.lost = nil
    finder.noteLoss()
    var backOff = RetryBackOff(Self.pauses)
    var refusedSince: Instant?
    while !interrupt.hasFired() {
      var rest = Self.interval
      do {
        if let camera = try start() { return deliver(camera) }
        backOff.reset()
        refusedSince = nil
        obstacle.withLock { $0 = nil }
        isAbsent.store(true, ordering: .relaxed)
      } catch {
        isAbsent.store(false, ordering: .relaxed)
        let since = refusedSince ?? .now()
        refusedSince = since
        if Instant.now() - since >= Self.tellingDelay { tell(error) }
        rest = backOff.failed()
      }
      switch devices {
      case .some(let devices):
        if listen(to: devices, for: rest) { backOff.reset() }
      case .none: _ = wait(for: -1, until: .now() + rest)
      }
    }
  }

  /// Waits until a video device appears or `rest` passes. Returns `true` if a device appeared.
  private func listen(to devices: borrowing DeviceEventSocket, for rest: Duration) -> Bool {
    let end = Instant.now() + rest
    while Instant.now() < end {
      guard wait(for: devices.fileDescriptor, until: end) else { return false }
      if devices.take() { return true }
    }
    return false
  }

  private func openDeviceEvents() -> DeviceEventSocket? {
    do throws(SystemFailure) {
      return try DeviceEventSocket()
    } catch {
      if !hasToldOfDeafness {
        events.add(.warning("\(error): nightjar notices a returning camera up to a second later"))
        hasToldOfDeafness = true
      }
      return nil
    }
  }

  /// Opens the camera and waits for its first picture. Returns nil if the camera is absent or the search ends.
  private func start() throws -> Camera? {
    guard let camera = try finder.find() else { return nil }
    let setting = setting.withLock { $0 }
    camera.orient(orientation())
    if camera.format.size == setting.size, let offer = setting.offer { camera.leaveTurning(to: offer) }
    if let demand = setting.demand { camera.keepCompressed(while: demand) }
    if setting.preparesRotation {
      do {
        try camera.prepareTurning()
      } catch {
        events.add(.warning("the picture may not rotate: \(error)"))
      }
    }
    try camera.start()
    for warning in finder.warnings(of: camera) { events.add(.warning(warning)) }
    return try begins(camera) ? camera : nil
  }

  /// Returns `true` if a started camera delivers a picture; `false` if the search ends.
  private func begins(_ camera: Camera) throws -> Bool {
    let limit = max(Duration(seconds: Double(V4L2Camera.startSeconds)), camera.format.frameRate.interval * 2)
    let deadline = Instant.now() + limit
    var cause: DropCause?
    while !interrupt.hasFired() {
      switch try camera.next(interrupt: interrupt) {
      case .frame(let frame):
        if frame.coded != nil { keep(frame) }
        return true
      case .ended: return false
      case .idle: break
      case .dropped(let reason, _): cause = reason
      }
      if .now() > deadline { throw UnusableCamera(seconds: Int(limit.seconds), cause: cause) }
    }
    camera.stop()
    return false
  }

  private func keep(_ frame: consuming Frame) {
    // A closure cannot consume what it captures, so the frame crosses in an optional.
    var frame: Frame? = consume frame
    found.withLock { $0.picture = frame.take() }
  }

  private func deliver(_ camera: Camera) {
    found.withLock { $0.camera = camera }
    wakeUp.fire()
  }

  private func tell(_ error: any Error) {
    let words = "\(error)"
    let remark =
      (error as? CaptureError)?.remark
      ?? (error is UnusableCamera ? "it delivers no usable picture" : "it cannot be opened")
    let isNew = obstacle.withLock { obstacle in
      defer { obstacle = (words, remark) }
      return obstacle?.words != words
    }
    if isNew { events.add(.refused(reason: words)) }
  }

  /// Waits for `descriptor`, for the end of the search or until `deadline`. Returns `true` if `descriptor` is ready.
  private func wait(for descriptor: CInt, until deadline: Instant?) -> Bool {
    var descriptors = (
      pollfd(fd: interrupt.fileDescriptor, events: Int16(POLLIN), revents: 0),
      pollfd(fd: descriptor, events: Int16(POLLIN), revents: 0)
    )
    withUnsafeMutablePointer(to: &descriptors) {
      $0.withMemoryRebound(to: pollfd.self, capacity: 2) { descriptors in
        _ = uninterrupted { nightjar_poll(descriptors, 2, deadline.map { max(0, ($0 - .now()).nanoseconds) } ?? -1) }
      }
    }
    return descriptors.0.revents == 0 && descriptors.1.revents != 0
  }
}

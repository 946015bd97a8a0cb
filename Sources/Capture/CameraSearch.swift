import CLinux
import Glibc
import Media
import Synchronization
import Threading

/// Looks for a camera that was lost, on a thread of its own: a driver may take its time to open, start or stop one.
///
/// What it finds has been started and has delivered a picture. It looks when video devices come (``DeviceEventSocket``),
/// and without that once a second.
final class CameraSearch<Finder: CameraFinding>: @unchecked Sendable {
  // Sendable: `order`, `found` and `condition` are locked; the thread alone uses the finder once it runs.

  typealias Camera = Finder.Camera

  /// What a camera is given before it is started.
  struct Setting: Sendable {
    var offer: TurnOffer?
    var demand: PictureDemand?
    var preparesTurning = false
    /// Frames of this size need no scaling; others are never left unturned.
    var size: PictureSize
  }

  /// From one look to the next where nothing is heard.
  static var interval: MediaTime { MediaTime(nanoseconds: 1_000_000_000) }
  /// After the first camera that could not be opened; twice that after the next, up to ``longestPause``.
  static var shortestPause: MediaTime { MediaTime(nanoseconds: 50_000_000) }
  static var longestPause: MediaTime { MediaTime(nanoseconds: 5_000_000_000) }
  /// A camera that could not be opened for so long is told of: until then its node may not be ready, or what lies in its
  /// memory still on its way to the viewers.
  static var tellingDelay: MediaTime { MediaTime(nanoseconds: 500_000_000) }
  /// How long its end is waited for; a driver that holds it longer is left alone with it.
  static var endPatience: MediaTime { MediaTime(nanoseconds: 2_000_000_000) }

  /// Rings when a camera was found.
  let bell: Interrupt
  /// The reason why the camera is there but not open, for viewers; nil where there is none.
  let obstacle = Mutex<(words: String, remark: String)?>(nil)
  let events: CameraEvents
  let setting: Mutex<Setting>

  private let finder: Finder
  /// The thread's own.
  private var hasToldOfDeafness = false
  private let orders: Interrupt
  private let order = Mutex<Order?>(nil)
  private let found = Mutex<Camera?>(nil)
  private let interrupt: Interrupt
  private let ended: Interrupt
  private let orientation: @Sendable () -> Orientation

  private struct Order: Sendable {
    /// The camera that was lost; nil where there was none.
    var lost: Camera?
    /// Whether that one is only slow to begin.
    var keeps: Bool
  }

  /// - Parameter orientation: how pictures are to be laid, now.
  init(
    finder: Finder, setting: Setting, events: CameraEvents, orientation: @escaping @Sendable () -> Orientation
  ) throws(SystemFailure) {
    self.finder = finder
    self.setting = Mutex(setting)
    self.events = events
    self.orientation = orientation
    bell = try Interrupt()
    orders = try Interrupt()
    interrupt = try Interrupt()
    ended = try Interrupt()
  }

  /// Begins to look. `lost` is stopped first, or where it `keeps` going, given the chance to deliver after all.
  func begin(losing lost: Camera?, keeps: Bool) {
    order.withLock { $0 = Order(lost: lost, keeps: keeps) }
    orders.fire()
  }

  /// The camera that was found since the last call.
  func take() -> Camera? {
    bell.clear()
    return found.withLock { found in
      defer { found = nil }
      return found
    }
  }

  /// Ends the thread that ``run()`` is on, if the driver lets it.
  func end(_ thread: consuming NamedThread) {
    interrupt.fire()
    if ended.wait(until: .now() + Self.endPatience) { thread.detach() }
  }

  /// The thread's work.
  func run() {
    while wait(for: orders.fileDescriptor, atMost: nil) {
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
    found.withLock { $0 }?.stop()
    ended.fire()
  }

  private func search(_ order: consuming Order) {
    // Before the first look: what comes in between is heard.
    let devices = openDeviceEvents()
    // One that fails here after all is opened anew below, and why that fails is told.
    if let camera = order.lost, order.keeps, (try? begins(camera)) == true { return deliver(camera) }
    order.lost?.stop()
    // Its descriptor is closed with it: a node that is held keeps its number when the camera comes back.
    order.lost = nil
    finder.noteLoss()
    var pause = Self.shortestPause
    var refusedSince: MediaTime?
    while !interrupt.hasFired() {
      var rest = Self.interval
      do {
        if let camera = try start() { return deliver(camera) }
        pause = Self.shortestPause
        refusedSince = nil
        obstacle.withLock { $0 = nil }
      } catch {
        let since = refusedSince ?? .now()
        refusedSince = since
        if MediaTime.now() - since >= Self.tellingDelay { tell(error) }
        rest = pause
        pause = min(pause * 2, Self.longestPause)
      }
      switch devices {
      case .some(let devices):
        if listen(to: devices, for: rest) { pause = Self.shortestPause }
      case .none: _ = wait(for: -1, atMost: rest)
      }
    }
  }

  /// Waits for a video device to come, or for `rest` to pass; whether one came.
  private func listen(to devices: borrowing DeviceEventSocket, for rest: MediaTime) -> Bool {
    let end = MediaTime.now() + rest
    while MediaTime.now() < end {
      guard wait(for: devices.fileDescriptor, atMost: end - .now()) else { return false }
      if devices.take() { return true }
    }
    return false
  }

  private func openDeviceEvents() -> DeviceEventSocket? {
    do throws(SystemFailure) {
      return try DeviceEventSocket()
    } catch {
      if !hasToldOfDeafness {
        events.add(.warning("\(error): a camera that comes back is noticed up to a second later"))
        hasToldOfDeafness = true
      }
      return nil
    }
  }

  /// Opens the camera and has it deliver; nil where it is not there, or where the search is to end.
  private func start() throws -> Camera? {
    guard let camera = try finder.find() else { return nil }
    let setting = setting.withLock { $0 }
    camera.orient(orientation())
    if camera.format.size == setting.size, let offer = setting.offer { camera.leaveTurning(to: offer) }
    if let demand = setting.demand { camera.keepCompressed(while: demand) }
    if setting.preparesTurning {
      do {
        try camera.prepareTurning()
      } catch {
        events.add(.warning("the picture may not turn: \(error)"))
      }
    }
    try camera.start()
    for warning in finder.warnings(of: camera) { events.add(.warning(warning)) }
    return try begins(camera) ? camera : nil
  }

  /// Whether a started camera delivers a picture; false where the search is to end.
  private func begins(_ camera: Camera) throws -> Bool {
    let limit = max(MediaTime(seconds: Double(V4L2Camera.startSeconds)), camera.format.frameRate.interval * 2)
    let deadline = MediaTime.now() + limit
    var cause: DropCause?
    while !interrupt.hasFired() {
      switch try camera.next(interrupt: interrupt) {
      case .frame: return true
      case .ended: return false
      case .idle: break
      case .dropped(let reason, _): cause = reason
      }
      if .now() > deadline { throw UnusableCamera(seconds: Int(limit.seconds), cause: cause) }
    }
    camera.stop()
    return false
  }

  private func deliver(_ camera: Camera) {
    found.withLock { $0 = camera }
    bell.fire()
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

  /// Waits for `descriptor`, for the end of the search or for `rest`; whether it was the descriptor.
  private func wait(for descriptor: CInt, atMost rest: MediaTime?) -> Bool {
    var descriptors = (
      pollfd(fd: interrupt.fileDescriptor, events: Int16(POLLIN), revents: 0),
      pollfd(fd: descriptor, events: Int16(POLLIN), revents: 0)
    )
    withUnsafeMutablePointer(to: &descriptors) {
      $0.withMemoryRebound(to: pollfd.self, capacity: 2) {
        while nightjar_poll($0, 2, rest.map { max(0, $0.nanoseconds) } ?? -1) < 0, errno == EINTR {}
      }
    }
    return descriptors.0.revents == 0 && descriptors.1.revents != 0
  }
}

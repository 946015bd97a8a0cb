import CLinux
import Glibc
public import Media
import Synchronization
import Threading

/// A camera's controls while it is streamed: what is wanted of them is set when the camera is opened, when it comes back,
/// and when something else is wanted. On a thread of its own, `nj-controls`, because a driver may take its time.
///
/// What is wanted is, the later before the earlier: the profile's values, what a sensor lock has fixed, the night's values,
/// and what was set by ``change(_:)``. Nothing is put back at the end.
public final class CameraControls: Sendable {
  /// What has become of the lock, the night and the values that were wanted.
  public struct Status: Hashable, Sendable {
    /// `off`, `settling` or `locked`.
    public var sensorLock = "off"
    /// Whether it is night; nil where there is no night profile, or nothing is known yet.
    public var isNight: Bool?
    /// The mean luma of the picture, 0…255, where that decides.
    public var brightness: Int?
    /// What could not be had, a line each.
    public var complaints: [String] = []
  }

  /// A control, and who has set it.
  public struct Entry: Hashable, Sendable {
    /// The control as it is now.
    public let control: CameraControl
    /// `configuration`, `lock`, `night` or `ctl`; nil where nobody here has.
    public let origin: String?
    /// Why it is inactive; nil where it is not.
    public let inactivity: CameraControlError?
  }

  /// What it notes of the camera's pictures.
  public var pictures: PictureWatch { core.pictures }

  private let core: Core

  /// Begins to look after a camera that is attached once it is open.
  ///
  /// - Throws: `SystemFailure` where the system has no thread or descriptor left.
  public init(_ profile: ControlProfile) throws(SystemFailure) {
    let core = try Core(profile)
    // Nobody waits for it: it may be stuck in a driver.
    try NamedThread("nj-controls") {
      var worker = ControlWorker(core)
      worker.run()
    }.detach()
    self.core = core
  }

  deinit {
    core.ask(.end)
  }

  /// What has become of the lock, the night and the values that were wanted. From any thread.
  public var status: Status {
    var status = core.status.withLock { $0 }
    if core.pictures.isMeasuring { status.brightness = core.pictures.brightness() }
    return status
  }

  /// What there is to tell since the last call.
  public func takeEvents() -> [CameraEvent] { core.events.take() }

  /// The camera is open, perhaps again. It is not kept open by this.
  func attach(_ device: any CameraControlDevice) {
    core.device.withLock { $0 = WeakDevice(device: device) }
    core.ask(.attached)
  }

  /// Something else is wanted from now on. What was set by ``change(_:)`` is forgotten.
  public func follow(_ profile: ControlProfile) { core.ask(.follow(profile)) }

  /// All controls.
  ///
  /// - Throws: ``CameraControlError``; ``CameraControlError/silent`` where the driver does not answer in time.
  public func list() async throws -> [Entry] { try await ask { .list($0) } }

  /// Sets controls, or with nil takes back what was set here. All controls afterwards.
  ///
  /// - Throws: ``CameraControlError``. Where a name or a value is wrong nothing has changed.
  public func change(_ values: [(name: String, value: String?)]) async throws -> [Entry] {
    try await ask { .change(values, $0) }
  }

  /// Locks the sensor once it has settled, or unlocks it. All controls now.
  ///
  /// - Throws: ``CameraControlError``.
  public func lockSensor(_ isLocked: Bool) async throws -> [Entry] { try await ask { .lock(isLocked, $0) } }

  /// A driver that does not answer for so long is not waited for.
  private static let patience = MediaTime(seconds: 8)

  private func ask(_ order: (Reply) -> Core.Order) async throws -> [Entry] {
    let reply = Reply()
    guard core.ask(order(reply)) else { throw CameraControlError.silent }
    let limit = Task {
      try await Task.sleep(nanoseconds: UInt64(Self.patience.nanoseconds))
      reply.give(.failure(CameraControlError.silent))
    }
    defer { limit.cancel() }
    return try await withTaskCancellationHandler {
      try await withCheckedThrowingContinuation { reply.wait($0) }
    } onCancel: {
      reply.give(.failure(CameraControlError.silent))
    }
  }
}

/// The controls of a camera that nobody streams.
public enum CameraControlList {
  /// All controls of the camera at `path`, without changing any.
  ///
  /// - Throws: ``CaptureError`` where it is no camera or cannot be opened.
  public static func controls(of path: String) throws(CaptureError) -> [CameraControls.Entry] {
    let device = try V4L2Device(path: path)
    try device.requireCapture()
    return CameraControls.entries(device.controls()) { _ in nil }
  }
}

extension CameraControls {
  static func entries(_ controls: [CameraControl], origin: (CameraControl) -> String?) -> [Entry] {
    controls.map { control in
      let isInactive = control.flags.contains(.inactive)
      return Entry(
        control: control, origin: origin(control), inactivity: isInactive ? control.inactivity(among: controls) : nil)
    }
  }

  /// A device that may be gone: a node that is held keeps its number when the camera comes back.
  struct WeakDevice: Sendable {
    weak var device: (any CameraControlDevice)?
  }

  /// An answer for one who asks.
  typealias Reply = OneAnswer<[Entry]>

  /// What the thread shares with those who ask.
  final class Core: Sendable {
    /// What it is asked.
    enum Order: Sendable {
      case attached
      case follow(ControlProfile)
      case list(Reply)
      case change([(name: String, value: String?)], Reply)
      case lock(Bool, Reply)
      case end

      /// Whether somebody waits for an answer.
      var isAwaited: Bool {
        switch self {
        case .list, .change, .lock: true
        case .attached, .follow, .end: false
        }
      }
    }

    let profile: ControlProfile
    let device = Mutex(WeakDevice())
    let status = Mutex(Status())
    let events = CameraEvents()
    let pictures = PictureWatch()
    let bell: Interrupt
    private let orders = Mutex<[Order]>([])

    init(_ profile: ControlProfile) throws(SystemFailure) {
      self.profile = profile
      bell = try Interrupt()
    }

    /// So many orders may wait; a driver that hangs does not collect them without end.
    private static let orderLimit = 64

    /// Whether it is taken. What nobody waits for is, in any case.
    @discardableResult func ask(_ order: Order) -> Bool {
      let isTaken = orders.withLock { orders in
        if order.isAwaited, orders.count >= Self.orderLimit { return false }
        orders.append(order)
        return true
      }
      bell.fire()
      return isTaken
    }

    /// What was asked since the last call; waits for it until `deadline`.
    func take(until deadline: MediaTime?) -> [Order] {
      var descriptor = pollfd(fd: bell.fileDescriptor, events: Int16(POLLIN), revents: 0)
      let rest = deadline.map { max(0, ($0 - .now()).nanoseconds) } ?? -1
      if nightjar_poll(&descriptor, 1, rest) > 0 { bell.clear() }
      return orders.withLock { orders in
        defer { orders.removeAll() }
        return orders
      }
    }
  }
}

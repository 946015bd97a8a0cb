import CLinux
import Glibc
public import Media
public import Platform
package import Synchronization

/// Keeps a streaming camera's controls at the requested values. It sets them when the camera is opened, when it returns
/// and when the request changes. It runs on its own thread, `nj-controls`, because a driver may block.
///
/// The requested values come from four sources; a later one takes precedence: the profile's values, the values fixed by
/// a sensor lock, the night's values, and the values of ``change(_:)``. Nothing is restored at the end.
public final class CameraControls: Sendable {
  /// The state of the lock, the night and the requested values.
  public struct Status: Hashable, Sendable {
    /// The state of the lock: `off`, `settling` or `locked`.
    public var sensorLock = "off"
    /// `true` at night; nil if there is no night profile, or if nothing is known yet.
    public var isNight: Bool?
    /// The mean luma of the picture, 0…255, if it decides about the night.
    public var brightness: Int?
    /// The requests that could not be met, one line each.
    public var complaints: [String] = []
  }

  /// A control and the source of its value.
  public struct Entry: Hashable, Sendable {
    /// The control in its present state.
    public let control: CameraControl
    /// The source: `configuration`, `lock`, `night` or `ctl`; nil if the appliance has not set the control.
    public let origin: String?
    /// The reason why the control is inactive; nil if it is active.
    public let inactivity: CameraControlError?
  }

  /// The observer of the camera's pictures.
  public var pictures: PictureWatch { core.pictures }

  private let core: Core

  /// Starts the thread. A camera is attached when it is open.
  ///
  /// - Throws: `SystemFailure` if the system has no thread or descriptor left.
  public init(_ profile: ControlProfile) throws(SystemFailure) {
    let core = try Core(profile)
    // The thread is not joined: it may be blocked in a driver.
    try NamedThread("nj-controls") {
      var worker = ControlWorker(core)
      worker.run()
    }.detach()
    self.core = core
  }

  deinit {
    core.ask(.end)
  }

  /// The state of the lock, the night and the requested values. Any thread may read it.
  public var status: Status {
    var status = core.status.withLock { $0 }
    if core.pictures.isMeasuring { status.brightness = core.pictures.brightness() }
    return status
  }

  /// Returns the events since the last call.
  public func takeEvents() -> [CameraEvent] { core.events.take() }

  /// Attaches a camera that is open, perhaps again. This does not keep the camera open.
  package func attach(_ device: any CameraControlDevice) {
    core.device.withLock { $0 = WeakDevice(device: device) }
    core.ask(.attached)
  }

  /// Replaces the profile. The values of ``change(_:)`` are dropped.
  public func follow(_ profile: ControlProfile) { core.ask(.follow(profile)) }

  /// Returns all controls.
  ///
  /// - Throws: ``CameraControlError``; ``CameraControlError/silent`` if the driver does not answer in time.
  public func list() async throws -> [Entry] { try await ask { .list($0) } }

  /// Sets controls; a nil value withdraws the value that was set here. Returns all controls afterwards.
  ///
  /// - Throws: ``CameraControlError``. If a name or a value is wrong, nothing has changed.
  public func change(_ values: [(name: String, value: String?)]) async throws -> [Entry] {
    try await ask { .change(values, $0) }
  }

  /// Locks the sensor after it has settled, or unlocks it. Returns all controls now.
  ///
  /// - Throws: ``CameraControlError``.
  public func lockSensor(_ isLocked: Bool) async throws -> [Entry] { try await ask { .lock(isLocked, $0) } }

  /// Hands a request to the encoder in the camera, without waiting. The bitrate is set again whenever the camera is
  /// opened.
  package func code(_ request: PassThrough.Request) { core.ask(.code(request)) }

  /// The longest wait for a driver's answer.
  private static let patience = Duration(seconds: 8)

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

/// The controls of a camera that is not streaming.
public enum CameraControlList {
  /// Returns all controls of the camera at `path`, without changing any.
  ///
  /// - Throws: ``CaptureError`` if the path is no camera or cannot be opened.
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

  /// A device that may be gone: while a node is open, the returning camera gets another number.
  package struct WeakDevice: Sendable {
    package weak var device: (any CameraControlDevice)?
  }

  /// An answer to a request.
  package typealias Reply = OneAnswer<[Entry]>

  /// The state shared by the thread and those who send it requests.
  package final class Core: Sendable {
    /// A request to the thread.
    package enum Order: Sendable {
      case attached
      case code(PassThrough.Request)
      case follow(ControlProfile)
      case list(Reply)
      case change([(name: String, value: String?)], Reply)
      case lock(Bool, Reply)
      case end

      /// `true` if the sender waits for an answer.
      var isAwaited: Bool {
        switch self {
        case .list, .change, .lock: true
        case .attached, .code, .follow, .end: false
        }
      }
    }

    let profile: ControlProfile
    package let device = Mutex(WeakDevice())
    package let status = Mutex(Status())
    package let events = EventQueue<CameraEvent>()
    package let pictures = PictureWatch()
    let wakeUp: Interrupt
    private let orders = Mutex<[Order]>([])

    package init(_ profile: ControlProfile) throws(SystemFailure) {
      self.profile = profile
      wakeUp = try Interrupt()
    }

    /// The largest number of waiting requests, so that they do not pile up while a driver blocks.
    private static let orderLimit = 64

    /// Queues a request. Returns `true` if it was accepted; a request without an answer always is.
    @discardableResult package func ask(_ order: Order) -> Bool {
      let isTaken = orders.withLock { orders in
        if order.isAwaited, orders.count >= Self.orderLimit { return false }
        // A bitrate that waits is out of date: a camera may take longer to set one than the network to change.
        if case .code(.bitrate) = order {
          orders.removeAll { if case .code(.bitrate) = $0 { true } else { false } }
        }
        orders.append(order)
        return true
      }
      wakeUp.fire()
      return isTaken
    }

    /// Returns the requests since the last call; waits for one until `deadline`.
    package func take(until deadline: Instant?) -> [Order] {
      var descriptor = pollfd(fd: wakeUp.fileDescriptor, events: Int16(POLLIN), revents: 0)
      let rest = deadline.map { max(0, ($0 - .now()).nanoseconds) } ?? -1
      if nightjar_poll(&descriptor, 1, rest) > 0 { wakeUp.clear() }
      return orders.withLock { orders in
        defer { orders.removeAll() }
        return orders
      }
    }
  }
}

public import Media
import SystemBus

/// `iio-sensor-proxy` over D-Bus: `net.hadess.SensorProxy` on the system bus, by libsystemd's sd-bus.
///
/// It is not started for us: where it does not run there is no sensor that it knows. Its postures are already
/// debounced. Calls wait at most ``patience``.
public final class SensorProxy: PostureSource {
  /// What it is.
  public let name = "iio-sensor-proxy"

  /// How long the proxy may take for an answer.
  public static let patience = MediaTime(seconds: 2)

  private static let service = "net.hadess.SensorProxy"
  private static let path = "/net/hadess/SensorProxy"

  /// Whether something was said since it was asked last.
  private final class News {
    /// The first posture is news.
    var hasCome = true
  }

  private let bus: BusConnection
  private let news = News()
  private var told: DevicePosture?

  /// Connects and claims the accelerometer.
  ///
  /// - Parameter busAddress: A D-Bus address; nil for the system bus.
  /// - Throws: ``SensorError/noProxy``, ``SensorError/proxyWithoutAccelerometer`` or
  ///   ``SensorError/bus(_:reason:)``.
  public init(busAddress: String? = nil) throws(SensorError) {
    do throws(BusError) {
      bus = try BusConnection(address: busAddress, patience: Self.patience)
      try Self.subscribe(bus, news)
    } catch { throw SensorError(error) }
    try requireOwner()
    guard try hasAccelerometer() else { throw .proxyWithoutAccelerometer }
    // A claim ends with the connection.
    do throws(BusError) {
      _ = try bus.call(Self.service, Self.path, Self.service, "ClaimAccelerometer")
    } catch { throw SensorError(error) }
  }

  /// Waits for the first posture, or for another one.
  ///
  /// - Throws: ``SensorError/noProxy`` where it has ended, or ``SensorError/bus(_:reason:)``.
  public func next(interrupt: borrowing Interrupt) throws(SensorError) -> DevicePosture? {
    while !interrupt.hasFired() {
      do throws(BusError) {
        if try bus.process() { continue }
        if !news.hasCome {
          try bus.sleep(until: .now() + Self.patience, or: interrupt.fileDescriptor)
          continue
        }
      } catch { throw SensorError(error) }
      news.hasCome = false
      try requireOwner()
      if let posture = try posture(), posture != told {
        told = posture
        return posture
      }
    }
    return nil
  }

  /// What the proxy says now; nil for `undefined` and for words of later versions.
  private func posture() throws(SensorError) -> DevicePosture? {
    do throws(BusError) {
      let answer = try bus.property("AccelerometerOrientation", of: Self.service, Self.path, Self.service)
      return DevicePosture(rawValue: try answer.variantString(limit: 255))
    } catch { throw SensorError(error) }
  }

  private func hasAccelerometer() throws(SensorError) -> Bool {
    do throws(BusError) {
      return try bus.property("HasAccelerometer", of: Self.service, Self.path, Self.service).variantBoolean()
    } catch { throw SensorError(error) }
  }

  /// What is said is asked for afterwards: who said it does not matter.
  private static func subscribe(_ bus: BusConnection, _ news: News) throws(BusError) {
    try bus.subscribe(
      """
      type='signal',sender='\(service)',path='\(path)',\
      interface='org.freedesktop.DBus.Properties',member='PropertiesChanged'
      """
    ) { _ in news.hasCome = true }
    try bus.subscribe(toOwnerOf: service) { news.hasCome = true }
  }

  private func requireOwner() throws(SensorError) {
    do throws(BusError) {
      if try bus.owner(of: Self.service) != nil { return }
    } catch { throw SensorError(error) }
    throw .noProxy
  }
}

extension SensorError {
  /// What the bus says, in the words of a sensor.
  fileprivate init(_ error: BusError) {
    switch error {
    case .connection(let what, let reason): self = .bus(what, reason: reason)
    case .call(let call, _, let reason): self = .bus(call, reason: reason)
    case .unreadable: self = .bus("reading", reason: error.description)
    }
  }
}

package import Platform

/// `iio-sensor-proxy` over D-Bus: `net.hadess.SensorProxy` on the system bus, by libsystemd's sd-bus.
///
/// No call starts the proxy: where it does not run, it knows no sensor. Its postures are already debounced.
package final class SensorProxy: PostureSource {
  /// The source's name.
  package let name = "iio-sensor-proxy"

  /// The usual limit of a wait for an answer of the proxy.
  package static let patience = Duration(seconds: 2)

  private static let service = "net.hadess.SensorProxy"
  private static let path = "/net/hadess/SensorProxy"

  /// A flag for a signal since the last query.
  private final class News {
    /// Initially `true`, because the first posture is news.
    var hasCome = true
  }

  private let bus: BusConnection
  private let news = News()
  private var told: DevicePosture?

  /// Connects and claims the accelerometer.
  ///
  /// - Parameters:
  ///   - busAddress: A D-Bus address; nil for the system bus.
  ///   - patience: The longest wait for an answer.
  /// - Throws: ``SensorError/noProxy``, ``SensorError/proxyWithoutAccelerometer`` or ``SensorError/bus(_:reason:)``.
  package init(busAddress: String? = nil, patience: Duration = SensorProxy.patience) throws(SensorError) {
    do throws(BusError) {
      bus = try BusConnection(address: busAddress, patience: patience)
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
  /// - Throws: ``SensorError/noProxy`` where the proxy has stopped, or ``SensorError/bus(_:reason:)``.
  package func next(interrupt: borrowing Interrupt) throws(SensorError) -> DevicePosture? {
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

  /// Returns the proxy's current posture; nil for `undefined` and for values of later versions.
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

  /// The signal's sender does not matter, because the posture is queried afterwards.
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
  /// Converts an error of the bus into an error of the sensor.
  fileprivate init(_ error: BusError) {
    switch error {
    case .connection(let what, let reason): self = .bus(what, reason: reason)
    case .call(let call, _, let reason): self = .bus(call, reason: reason)
    case .unreadable: self = .bus("reading", reason: error.description)
    }
  }
}

import CLinux
import CSystemd
import Glibc
public import Media

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

  private let bus: OpaquePointer
  private let news: UnsafeMutablePointer<Bool>
  private var told: DevicePosture?

  /// Connects and claims the accelerometer.
  ///
  /// - Parameter busAddress: A D-Bus address; nil for the system bus.
  /// - Throws: ``SensorError/noProxy``, ``SensorError/proxyWithoutAccelerometer`` or
  ///   ``SensorError/bus(_:reason:)``.
  public init(busAddress: String? = nil) throws(SensorError) {
    bus = try Self.connect(busAddress)
    news = .allocate(capacity: 1)
    // The first posture is news.
    news.initialize(to: true)
    // From here on `deinit` cleans up, whatever is thrown.
    sd_bus_set_method_call_timeout(bus, UInt64(Self.patience.nanoseconds / 1000))
    try awaitReady()
    try subscribe()
    try requireOwner()
    var has: CInt = 0
    try call("HasAccelerometer") { error in
      sd_bus_get_property_trivial(
        bus, Self.service, Self.path, Self.service, "HasAccelerometer", &error, CChar(UInt8(ascii: "b")), &has)
    }
    guard has != 0 else { throw .proxyWithoutAccelerometer }
    try invoke("ClaimAccelerometer")
  }

  deinit {
    // A claim ends with the connection. Nothing is flushed: a mute bus would keep us for 90 s.
    sd_bus_close_unref(bus)
    news.deallocate()
  }

  /// Waits for the first posture, or for another one.
  ///
  /// - Throws: ``SensorError/noProxy`` where it has ended, or ``SensorError/bus(_:reason:)``.
  public func next(interrupt: borrowing Interrupt) throws(SensorError) -> DevicePosture? {
    while !interrupt.hasFired() {
      let result = sd_bus_process(bus, nil)
      guard result >= 0 else { throw .bus("reading", reason: SystemFailure.text(-result)) }
      if result > 0 { continue }
      if news.pointee {
        news.pointee = false
        try requireOwner()
        if let posture = try posture(), posture != told {
          told = posture
          return posture
        }
        // Asking may have read news that nobody would wake us for.
        continue
      }
      // Not without a limit, for the sake of sd-bus's own timers.
      try sleep(interruptDescriptor: interrupt.fileDescriptor, limit: Self.patience)
    }
    return nil
  }

  /// Waits until the bus has let us in: sd-bus itself would wait 90 s for a bus that is mute.
  private func awaitReady() throws(SensorError) {
    let deadline = MediaTime.now() + Self.patience
    while sd_bus_is_ready(bus) <= 0 {
      let result = sd_bus_process(bus, nil)
      guard result >= 0 else { throw .bus("connecting", reason: SystemFailure.text(-result)) }
      if result > 0 { continue }
      let rest = deadline - .now()
      guard rest > .zero else { throw .bus("connecting", reason: SystemFailure.text(ETIMEDOUT)) }
      try sleep(interruptDescriptor: -1, limit: rest)
    }
  }

  /// Sleeps until the bus has something to say, at most for `limit`.
  private func sleep(interruptDescriptor: CInt, limit: MediaTime) throws(SensorError) {
    let (descriptor, events) = (sd_bus_get_fd(bus), sd_bus_get_events(bus))
    guard descriptor >= 0, events >= 0 else {
      throw .bus("waiting", reason: SystemFailure.text(-min(descriptor, events)))
    }
    var descriptors = (
      pollfd(fd: descriptor, events: Int16(truncatingIfNeeded: events), revents: 0),
      pollfd(fd: interruptDescriptor, events: Int16(POLLIN), revents: 0)
    )
    withUnsafeMutablePointer(to: &descriptors) { pair in
      pair.withMemoryRebound(to: pollfd.self, capacity: 2) { pointer in
        _ = nightjar_poll(pointer, 2, limit.nanoseconds)
      }
    }
  }

  /// What the proxy says now; nil for `undefined` and for words of later versions.
  private func posture() throws(SensorError) -> DevicePosture? {
    var text: UnsafeMutablePointer<CChar>?
    try call("AccelerometerOrientation") { error in
      sd_bus_get_property_string(
        bus, Self.service, Self.path, Self.service, "AccelerometerOrientation", &error, &text)
    }
    guard let text else { return nil }
    defer { free(text) }
    return DevicePosture(rawValue: String(cString: text))
  }

  private static func connect(_ address: String?) throws(SensorError) -> OpaquePointer {
    var connection: OpaquePointer?
    let what = address ?? "system bus"
    guard let address else {
      let result = sd_bus_open_system(&connection)
      guard result >= 0, let connection else { throw .bus(what, reason: SystemFailure.text(-result)) }
      return connection
    }
    var result = sd_bus_new(&connection)
    if result >= 0 { result = sd_bus_set_address(connection, address) }
    if result >= 0 { result = sd_bus_set_bus_client(connection, 1) }
    if result >= 0 { result = sd_bus_start(connection) }
    guard result >= 0, let connection else {
      sd_bus_unref(connection)
      throw .bus(what, reason: SystemFailure.text(-result))
    }
    return connection
  }

  private func subscribe() throws(SensorError) {
    let rules = [
      """
      type='signal',sender='\(Self.service)',path='\(Self.path)',\
      interface='org.freedesktop.DBus.Properties',member='PropertiesChanged'
      """,
      """
      type='signal',sender='org.freedesktop.DBus',interface='org.freedesktop.DBus',\
      member='NameOwnerChanged',arg0='\(Self.service)'
      """,
    ]
    for rule in rules {
      let result = sd_bus_add_match(bus, nil, rule, noteNews, news)
      guard result >= 0 else { throw .bus("subscribing", reason: SystemFailure.text(-result)) }
    }
  }

  private func requireOwner() throws(SensorError) {
    let result = sd_bus_get_name_creds(bus, Self.service, 0, nil)
    if result == -ENXIO { throw .noProxy }
    guard result >= 0 else { throw .bus(Self.service, reason: SystemFailure.text(-result)) }
  }

  private func invoke(_ method: String) throws(SensorError) {
    var message: OpaquePointer?
    let result = sd_bus_message_new_method_call(bus, &message, Self.service, Self.path, Self.service, method)
    defer { sd_bus_message_unref(message) }
    guard result >= 0 else { throw .bus(method, reason: SystemFailure.text(-result)) }
    try call(method) { error in sd_bus_call(bus, message, 0, &error, nil) }
  }

  /// Runs a call and turns its failure into the service's own words.
  private func call(_ what: String, _ body: (inout sd_bus_error) -> CInt) throws(SensorError) {
    var error = sd_bus_error()
    let result = body(&error)
    defer { sd_bus_error_free(&error) }
    guard result < 0 else { return }
    let reason = error.message.map { String(cString: $0) } ?? SystemFailure.text(-result)
    throw .bus(what, reason: String(reason.prefix(200)))
  }
}

/// Called by sd-bus for whatever was subscribed to: what it says is asked for afterwards.
private func noteNews(
  _ message: OpaquePointer?, _ news: UnsafeMutableRawPointer?, _ error: UnsafeMutablePointer<sd_bus_error>?
) -> CInt {
  news?.assumingMemoryBound(to: Bool.self).pointee = true
  return 0
}

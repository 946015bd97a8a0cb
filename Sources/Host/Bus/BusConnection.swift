import CLinux
import CSystemd
import Glibc
package import Platform

/// A connection to the message bus (D-Bus), by libsystemd's sd-bus. One thread uses it.
///
/// A call waits for its answer, at most ``patience``. Only ``process()`` passes signals to subscribers. No call starts
/// a service: the machine's administrator decides what runs on it.
package final class BusConnection {
  /// The longest time of a call.
  package let patience: Duration

  private let bus: OpaquePointer
  private var subscribers: [Subscriber] = []

  private final class Subscriber {
    let body: (BusMessage) -> Void
    init(_ body: @escaping (BusMessage) -> Void) { self.body = body }
  }

  /// Connects, and waits until the bus has accepted the connection.
  ///
  /// - Parameter address: A D-Bus address; nil for the system bus, which the environment may name
  ///   (`DBUS_SYSTEM_BUS_ADDRESS`).
  /// - Throws: ``BusError/connection(_:reason:)``.
  package init(address: String? = nil, patience: Duration = Duration(seconds: 2)) throws(BusError) {
    self.patience = patience
    bus = try Self.connect(address)
    // From here on `deinit` cleans up after any error.
    sd_bus_set_method_call_timeout(bus, UInt64(patience.nanoseconds / 1000))
    let deadline = Instant.now() + patience
    // sd-bus itself would wait 90 s for a bus that does not answer.
    while sd_bus_is_ready(bus) <= 0 {
      if try process() { continue }
      guard Instant.now() < deadline else { throw .connection("connecting", reason: SystemFailure.text(ETIMEDOUT)) }
      try sleep(until: deadline)
    }
  }

  deinit {
    // Does not flush: a bus that does not answer would block for 90 s.
    sd_bus_close_unref(bus)
  }

  private static func connect(_ address: String?) throws(BusError) -> OpaquePointer {
    var connection: OpaquePointer?
    let what = address ?? "system bus"
    guard let address else {
      let result = sd_bus_open_system(&connection)
      guard result >= 0, let connection else { throw .connection(what, reason: SystemFailure.text(-result)) }
      return connection
    }
    var result = sd_bus_new(&connection)
    if result >= 0 { result = sd_bus_set_address(connection, address) }
    if result >= 0 { result = sd_bus_set_bus_client(connection, 1) }
    if result >= 0 { result = sd_bus_start(connection) }
    guard result >= 0, let connection else {
      sd_bus_unref(connection)
      throw .connection(what, reason: SystemFailure.text(-result))
    }
    return connection
  }

  /// Handles one received message; returns `false` where there is none.
  ///
  /// - Throws: ``BusError/connection(_:reason:)`` where the bus is gone.
  package func process() throws(BusError) -> Bool {
    let result = sd_bus_process(bus, nil)
    guard result >= 0 else { throw .connection("reading", reason: SystemFailure.text(-result)) }
    return result > 0
  }

  /// Sleeps until the bus has a message or `descriptor` is readable, at most until `deadline` or ``patience``. Before
  /// that, ``process()`` must have returned `false`: a call may have read a message for which no wake-up comes.
  ///
  /// - Throws: ``BusError/connection(_:reason:)``.
  package func sleep(until deadline: Instant, or descriptor: CInt = -1) throws(BusError) {
    let (own, events) = (sd_bus_get_fd(bus), sd_bus_get_events(bus))
    guard own >= 0, events >= 0 else { throw .connection("waiting", reason: SystemFailure.text(-min(own, events))) }
    // The sleep has a limit because of sd-bus's own timers.
    let limit = max(0, min(deadline - .now(), patience).nanoseconds)
    var descriptors = (
      pollfd(fd: own, events: Int16(truncatingIfNeeded: events), revents: 0),
      pollfd(fd: descriptor, events: Int16(POLLIN), revents: 0)
    )
    withUnsafeMutablePointer(to: &descriptors) { pair in
      pair.withMemoryRebound(to: pollfd.self, capacity: 2) { pointer in
        _ = nightjar_poll(pointer, 2, limit)
      }
    }
  }

  /// Passes signals that match `rule` (D-Bus's match rules) to `body`, for as long as the connection lasts. Any program
  /// on this machine can send such a signal; a subscriber that relies on its content must check ``BusMessage/sender``.
  ///
  /// - Throws: ``BusError``.
  package func subscribe(_ rule: String, _ body: @escaping (BusMessage) -> Void) throws(BusError) {
    let subscriber = Subscriber(body)
    // The connection retains the subscriber and ends before it.
    let result = sd_bus_add_match(bus, nil, rule, giveSignal, Unmanaged.passUnretained(subscriber).toOpaque())
    guard result >= 0 else { throw .connection("subscribing", reason: SystemFailure.text(-result)) }
    subscribers.append(subscriber)
  }

  /// Calls `body` when `service` gets, loses or changes its owner.
  ///
  /// - Throws: ``BusError``.
  package func subscribe(toOwnerOf service: String, _ body: @escaping () -> Void) throws(BusError) {
    try subscribe(
      """
      type='signal',sender='org.freedesktop.DBus',interface='org.freedesktop.DBus',\
      member='NameOwnerChanged',arg0='\(service)'
      """
    ) { _ in body() }
  }

  /// Returns the unique name of the current owner of the name `service`; nil where it has none.
  ///
  /// - Throws: ``BusError``.
  package func owner(of service: String) throws(BusError) -> String? {
    var credentials: OpaquePointer?
    let result = sd_bus_get_name_creds(bus, service, UInt64(SD_BUS_CREDS_UNIQUE_NAME), &credentials)
    defer { sd_bus_creds_unref(credentials) }
    if result == -ENXIO { return nil }
    var name: UnsafePointer<CChar>?
    guard result >= 0, sd_bus_creds_get_unique_name(credentials, &name) >= 0, let name else {
      throw .call(service, name: "", reason: SystemFailure.text(-min(result, 0)))
    }
    return String(cString: name)
  }

  /// Calls a method and waits for its answer.
  ///
  /// - Parameter arguments: appends the method's arguments.
  /// - Throws: ``BusError``.
  package func call(
    _ service: String, _ path: String, _ interface: String, _ method: String,
    _ arguments: (BusMessage) throws(BusError) -> Void = { _ throws(BusError) in }
  ) throws(BusError) -> BusMessage {
    var request: OpaquePointer?
    let made = sd_bus_message_new_method_call(bus, &request, service, path, interface, method)
    guard made >= 0, let request else { throw .call(method, name: "", reason: SystemFailure.text(-made)) }
    let message = BusMessage(request)
    sd_bus_message_set_auto_start(request, 0)
    try arguments(message)
    var error = sd_bus_error()
    defer { sd_bus_error_free(&error) }
    var reply: OpaquePointer?
    let result = sd_bus_call(bus, request, 0, &error, &reply)
    guard result >= 0, let reply else {
      let name = error.name.map { String(cString: $0) } ?? ""
      let reason = error.message.map { String(cString: $0) } ?? SystemFailure.text(-result)
      throw .call(method, name: name, reason: String(reason.prefix(200)))
    }
    return BusMessage(reply)
  }
}

extension BusConnection {
  /// Returns a property of an object, which the caller reads as a variant.
  ///
  /// - Throws: ``BusError``.
  package func property(
    _ name: String, of service: String, _ path: String, _ interface: String
  ) throws(BusError) -> BusMessage {
    try call(service, path, "org.freedesktop.DBus.Properties", "Get") { message throws(BusError) in
      try message.append(interface)
      try message.append(name)
    }
  }
}

/// Passes a signal to its subscriber; called by sd-bus.
private func giveSignal(
  _ message: OpaquePointer?, _ subscriber: UnsafeMutableRawPointer?, _ error: UnsafeMutablePointer<sd_bus_error>?
) -> CInt {
  BusConnection.give(message, to: subscriber)
  return 0
}

extension BusConnection {
  fileprivate static func give(_ message: OpaquePointer?, to subscriber: UnsafeMutableRawPointer?) {
    guard let message, let subscriber, let held = sd_bus_message_ref(message) else { return }
    Unmanaged<Subscriber>.fromOpaque(subscriber).takeUnretainedValue().body(BusMessage(held))
  }
}

import Platform

/// A client of Avahi's D-Bus interface, org.freedesktop.Avahi, with the methods and signals in use. One thread uses it,
/// and each call waits for its answer.
final class AvahiClient {
  /// The daemon's state (avahi-common/defs.h, AvahiServerState).
  enum ServerState: Int32 {
    case invalid = 0
    case registering = 1
    case running = 2
    case collision = 3
    case failure = 4
  }

  /// The state of an entry group (AvahiEntryGroupState).
  enum GroupState: Int32 {
    case uncommitted = 0
    case registering = 1
    case established = 2
    case collision = 3
    case failure = 4
  }

  /// The place of an announced or found service: AvahiIfIndex and AvahiProtocol, -1 for all.
  struct Place: Hashable {
    var interface: Int32 = -1
    var family: Int32 = -1

    static let (ipv4, ipv6): (Int32, Int32) = (0, 1)
  }

  static let service = "org.freedesktop.Avahi"
  /// The prefix of Avahi's own error names.
  static let errorPrefix = "org.freedesktop.Avahi."
  /// Another local service already has the name.
  static let collision = "org.freedesktop.Avahi.CollisionError"
  /// Avahi's configuration forbids the call.
  static let notPermitted = "org.freedesktop.Avahi.NotPermittedError"
  /// The group no longer exists.
  static let unknownObject = "org.freedesktop.DBus.Error.UnknownObject"
  private static let server = "org.freedesktop.Avahi.Server"
  private static let group = "org.freedesktop.Avahi.EntryGroup"

  let bus: BusConnection
  /// The bus's unique name of the current daemon.
  private var owner: String?

  /// - Throws: ``BusError`` where there is no bus.
  init(patience: Duration = Duration(seconds: 2)) throws(BusError) {
    bus = try BusConnection(patience: patience)
  }

  /// Passes signals of `interface` to `body`, once ``isRunning()`` has found their sender.
  func subscribe(to interface: String, _ body: @escaping (BusMessage) -> Void) throws(BusError) {
    // The rule names no object, because a signal about an object may come before the answer that names it.
    let rule = "type='signal',sender='\(Self.service)',interface='\(Self.service).\(interface)'"
    try bus.subscribe(rule) { [unowned self] message in
      // On the bus, any program may send a signal to any other.
      guard let owner, message.sender == owner else { return }
      body(message)
    }
  }

  private func ask(
    _ method: String, _ arguments: (BusMessage) throws(BusError) -> Void = { _ throws(BusError) in }
  ) throws(BusError) -> BusMessage {
    try bus.call(Self.service, "/", Self.server, method, arguments)
  }

  /// Returns `true` if the daemon is running.
  func isRunning() throws(BusError) -> Bool {
    owner = try bus.owner(of: Self.service)
    return owner != nil
  }

  func state() throws(BusError) -> ServerState {
    ServerState(rawValue: try ask("GetState").int32()) ?? .invalid
  }

  /// Returns Avahi's host name for this machine, without its domain.
  func hostName() throws(BusError) -> String { try ask("GetHostName").string(limit: 255) }

  /// Returns the name to try where `name` is taken.
  func alternative(to name: String) throws(BusError) -> String {
    try ask("GetAlternativeServiceName") { message throws(BusError) in try message.append(name) }.string(limit: 255)
  }

  // MARK: Announcing

  func newGroup() throws(BusError) -> String { try ask("EntryGroupNew").objectPath() }

  func add(
    _ name: String, _ type: ServiceType, port: UInt16, _ txtRecord: TXTRecord, at place: Place, to group: String
  ) throws(BusError) {
    _ = try bus.call(Self.service, group, Self.group, "AddService") { message throws(BusError) in
      try message.append(place.interface)
      try message.append(place.family)
      try message.append(UInt32(0))
      try message.append(name)
      try message.append(type.rawValue)
      // Domain and host: Avahi's defaults.
      try message.append("")
      try message.append("")
      try message.append(port)
      try message.append(txtRecord.strings)
    }
  }

  func commit(_ group: String) throws(BusError) { _ = try bus.call(Self.service, group, Self.group, "Commit") }

  func free(_ group: String) throws(BusError) { _ = try bus.call(Self.service, group, Self.group, "Free") }

  // MARK: Browsing

  func newServiceBrowser(_ type: ServiceType) throws(BusError) -> String {
    try ask("ServiceBrowserNew") { message throws(BusError) in
      try message.append(Int32(-1))
      try message.append(Int32(-1))
      try message.append(type.rawValue)
      try message.append("")
      try message.append(UInt32(0))
    }.objectPath()
  }

  /// Creates a resolver for a service found at `place`, and for its address of the same family.
  func newResolver(_ name: String, _ type: String, _ domain: String, at place: Place) throws(BusError) -> String {
    try ask("ServiceResolverNew") { message throws(BusError) in
      try message.append(place.interface)
      try message.append(place.family)
      try message.append(name)
      try message.append(type)
      try message.append(domain)
      try message.append(place.family)
      try message.append(UInt32(0))
    }.objectPath()
  }
}

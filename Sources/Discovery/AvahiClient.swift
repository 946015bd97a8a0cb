import Media
import SystemBus

/// Avahi's interface on the message bus, org.freedesktop.Avahi: of its methods and signals those in use. It belongs to one
/// thread, and each call waits for its answer.
final class AvahiClient {
  /// How the daemon is (avahi-common/defs.h, AvahiServerState).
  enum ServerState: Int32 {
    case invalid = 0
    case registering = 1
    case running = 2
    case collision = 3
    case failure = 4
  }

  /// How a group of records is (AvahiEntryGroupState).
  enum GroupState: Int32 {
    case uncommitted = 0
    case registering = 1
    case established = 2
    case collision = 3
    case failure = 4
  }

  /// Where a service is announced, or was found: AvahiIfIndex and AvahiProtocol, -1 for all.
  struct Place: Hashable {
    var interface: Int32 = -1
    var family: Int32 = -1

    static let (ipv4, ipv6): (Int32, Int32) = (0, 1)
  }

  static let service = "org.freedesktop.Avahi"
  /// What the names of its own refusals begin with.
  static let errorPrefix = "org.freedesktop.Avahi."
  /// Another local service has the name already.
  static let collision = "org.freedesktop.Avahi.CollisionError"
  /// Its configuration forbids it.
  static let notPermitted = "org.freedesktop.Avahi.NotPermittedError"
  /// A group that is none any more.
  static let unknownObject = "org.freedesktop.DBus.Error.UnknownObject"
  private static let server = "org.freedesktop.Avahi.Server"
  private static let group = "org.freedesktop.Avahi.EntryGroup"

  let bus: BusConnection
  /// The daemon of now, as the bus calls it.
  private var owner: String?

  /// - Throws: ``BusError`` where there is no bus.
  init(patience: MediaTime = MediaTime(seconds: 2)) throws(BusError) {
    bus = try BusConnection(patience: patience)
  }

  /// Has signals of `interface` given to `body`, once ``isRunning()`` has found who sends them.
  func subscribe(to interface: String, _ body: @escaping (BusMessage) -> Void) throws(BusError) {
    // Of whatever object: what Avahi says of one may come before the answer that names it.
    let rule = "type='signal',sender='\(Self.service)',interface='\(Self.service).\(interface)'"
    try bus.subscribe(rule) { [unowned self] message in
      // The bus lets anybody send a signal to anybody.
      guard let owner, message.sender == owner else { return }
      body(message)
    }
  }

  private func ask(
    _ method: String, _ arguments: (BusMessage) throws(BusError) -> Void = { _ throws(BusError) in }
  ) throws(BusError) -> BusMessage {
    try bus.call(Self.service, "/", Self.server, method, arguments)
  }

  /// Whether it is there now.
  func isRunning() throws(BusError) -> Bool {
    owner = try bus.owner(of: Self.service)
    return owner != nil
  }

  func state() throws(BusError) -> ServerState {
    ServerState(rawValue: try ask("GetState").int32()) ?? .invalid
  }

  /// What it calls this machine, without its domain.
  func hostName() throws(BusError) -> String { try ask("GetHostName").string(limit: 255) }

  /// The name to try where `name` is taken.
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
      // Domain and host: its own.
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

  /// Looks for what was found at `place`, and its address of the same family.
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

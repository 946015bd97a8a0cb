public import Media
import SystemBus

/// Looks for streams that are announced on the network, through Avahi.
public enum ServiceBrowser {
  /// What was found.
  public struct Findings: Sendable {
    /// The services, by name.
    public var services: [DiscoveredService]
    /// How many names were announced of which no address could be had meanwhile.
    public var unresolved: Int
    /// Whether there were more than ``limit``.
    public var isCut: Bool
  }

  /// The most announcements that are looked at, each interface and family counted apart.
  public static let limit = 256
  /// The most strings of a TXT record, and bytes of one (RFC 6763 section 6.1).
  ///
  /// Avahi gives the last string first, and the first ones count (section 6.4): all of them are read.
  static let (textLimit, stringLimit) = (4096, 255)
  /// The most addresses that are asked for. A name that comes and goes is one each time, and Avahi has so many for a client.
  static let resolverLimit = 512
  /// The most bytes of a name in DNS with its signs escaped.
  static let nameLimit = 1024

  /// Listens for `time`. Waits that long.
  ///
  /// - Throws: ``DiscoveryError`` where Avahi does not run, or ends meanwhile.
  public static func browse(for time: MediaTime) throws(DiscoveryError) -> Findings {
    do throws(BusError) {
      let browsing = try Browsing()
      guard try browsing.begin() else { throw DiscoveryError.notRunning.asBusError }
      try browsing.listen(until: .now() + time)
      return browsing.findings
    } catch {
      throw DiscoveryError(error)
    }
  }
}

extension DiscoveryError {
  fileprivate var asBusError: BusError {
    .call("browsing", name: "org.freedesktop.DBus.Error.ServiceUnknown", reason: reason)
  }
}

/// One look at the network. Of one thread.
private final class Browsing {
  /// What was announced, at one place.
  private struct Item: Hashable {
    let place: AvahiClient.Place
    let name: String
    let type: String
    let domain: String
  }

  private let avahi: AvahiClient
  private var announced: Set<Item> = []
  /// Those that a resolver is to be made for.
  private var fresh: [Item] = []
  private var found: [Item: (service: DiscoveredService, address: DiscoveredService.Address)] = [:]
  private var isCut = false
  private var resolverCount = 0
  private var hasOwnerNews = false
  private var failure: String?

  init() throws(BusError) {
    avahi = try AvahiClient()
    try avahi.bus.subscribe(toOwnerOf: AvahiClient.service) { [unowned self] in hasOwnerNews = true }
    try avahi.subscribe(to: "ServiceBrowser") { [unowned self] message in
      // What cannot be read is nothing that was found.
      try? take(message)
    }
    try avahi.subscribe(to: "ServiceResolver") { [unowned self] message in
      guard message.member == "Found" else { return }
      // Nor is an address that cannot be read one.
      try? takeFound(message)
    }
  }

  /// Begins to look for all types; false where Avahi does not run.
  func begin() throws(BusError) -> Bool {
    guard try avahi.isRunning() else { return false }
    for type in ServiceType.allCases { _ = try avahi.newServiceBrowser(type) }
    return true
  }

  func listen(until end: MediaTime) throws(BusError) {
    while MediaTime.now() < end {
      if try avahi.bus.process() { continue }
      if let failure { throw .call("browsing", name: "", reason: failure) }
      if hasOwnerNews {
        hasOwnerNews = false
        guard try avahi.isRunning() else { throw DiscoveryError.notRunning.asBusError }
        throw .call("browsing", name: "", reason: "it was started again meanwhile; look once more")
      }
      if !fresh.isEmpty {
        try resolve(fresh.removeFirst())
        continue
      }
      try avahi.bus.sleep(until: end)
    }
  }

  private func resolve(_ item: Item) throws(BusError) {
    guard resolverCount < ServiceBrowser.resolverLimit else { return isCut = true }
    resolverCount += 1
    do throws(BusError) {
      _ = try avahi.newResolver(item.name, item.type, item.domain, at: item.place)
    } catch .call(_, let error, _) where error.hasPrefix(AvahiClient.errorPrefix) {
      // Anybody can announce what Avahi refuses to look up: that one has no address.
    }
  }

  /// What has come, those of one machine that differ in their address alone taken together.
  var findings: ServiceBrowser.Findings {
    var services: [DiscoveredService: [DiscoveredService.Address]] = [:]
    for (service, address) in found.values { services[service, default: []].append(address) }
    let complete = services.map { service, addresses in
      DiscoveredService(
        name: service.name, type: service.type, host: service.host, port: service.port, text: service.text,
        isLocal: service.isLocal, addresses: Array(Set(addresses)))
    }
    func name(_ item: Item) -> [String] { [item.name, item.type, item.domain] }
    let resolved = Set(found.keys.map(name))
    return ServiceBrowser.Findings(
      services: complete.sorted { ($0.name, $0.type.rawValue, $0.port) < ($1.name, $1.type.rawValue, $1.port) },
      unresolved: Set(announced.map(name)).subtracting(resolved).count, isCut: isCut)
  }

  private func take(_ message: BusMessage) throws(BusError) {
    switch message.member {
    case "ItemNew":
      let item = try item(message)
      // Anybody can name something else below what was asked for.
      guard ServiceType(rawValue: item.type) != nil, !announced.contains(item) else { return }
      guard announced.count < ServiceBrowser.limit else { return isCut = true }
      announced.insert(item)
      fresh.append(item)
    case "ItemRemove":
      let item = try item(message)
      announced.remove(item)
      found[item] = nil
      fresh.removeAll { $0 == item }
    case "Failure": failure = TerminalText.escaped(try message.string(limit: 255))
    default: break
    }
  }

  private func item(_ message: BusMessage) throws(BusError) -> Item {
    let place = AvahiClient.Place(interface: try message.int32(), family: try message.int32())
    return Item(
      place: place, name: try message.string(limit: ServiceBrowser.nameLimit),
      type: try message.string(limit: ServiceBrowser.nameLimit),
      domain: try message.string(limit: ServiceBrowser.nameLimit))
  }

  private func takeFound(_ message: BusMessage) throws(BusError) {
    let item = try item(message)
    let host = try message.string(limit: ServiceBrowser.nameLimit)
    _ = try message.int32()
    let address = try message.string(limit: 64)
    let port = try message.uint16()
    let text = try message.byteArrays(count: ServiceBrowser.textLimit, limit: ServiceBrowser.stringLimit)
    let flags = try message.uint32()
    // An answer of which nothing else is believed: it must be to what was asked, and the address be one.
    guard announced.contains(item), let type = ServiceType(rawValue: item.type), port > 0,
      NetworkInterfaces.bytes(of: address) != nil
    else { return }
    // AVAHI_LOOKUP_RESULT_LOCAL.
    let isLocal = flags & 8 != 0
    let service = DiscoveredService(
      name: item.name, type: type, host: host, port: port,
      // Avahi has the last one first.
      text: text.reversed().map { String(decoding: $0, as: UTF8.self) }, isLocal: isLocal, addresses: [])
    found[item] = (
      service,
      DiscoveredService.Address(text: address, interface: NetworkInterfaces.name(of: item.place.interface))
    )
  }
}

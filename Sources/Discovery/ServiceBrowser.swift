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
  /// The most strings of a TXT record. Avahi gives the last one first, and the first ones count (RFC 6763 section 6.4): as
  /// many as a packet of 9000 bytes, its longest, can have are read.
  static let stringCountLimit = 9000
  /// The most addresses that are asked for. A name that comes and goes is one each time, and Avahi has so many for a client.
  static let resolverLimit = 512
  /// The most bytes of a name in DNS with its signs escaped.
  static let nameLimit = 1024

  /// Listens for `time`. Waits that long.
  ///
  /// - Throws: ``DiscoveryError`` where Avahi does not run, or ends meanwhile.
  public static func browse(for time: MediaTime) throws(DiscoveryError) -> Findings {
    let browsing: Browsing
    do throws(BusError) { browsing = try Browsing() } catch { throw DiscoveryError(error) }
    try browsing.begin()
    try browsing.listen(until: .now() + time)
    return browsing.findings
  }
}

/// One look at the network. Of one thread.
private final class Browsing {
  /// What was announced, at one place.
  private struct Instance: Hashable {
    let place: AvahiClient.Place
    let name: String
    let type: String
    let domain: String
  }

  private let avahi: AvahiClient
  private var announced: Set<Instance> = []
  /// Those that a resolver is to be made for.
  private var fresh: [Instance] = []
  private var found: [Instance: (service: DiscoveredService, address: DiscoveredService.Address)] = [:]
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

  /// Begins to look for all types.
  func begin() throws(DiscoveryError) {
    guard try isRunning() else { throw .notRunning }
    do throws(BusError) {
      for type in ServiceType.allCases { _ = try avahi.newServiceBrowser(type) }
    } catch {
      throw DiscoveryError(error)
    }
  }

  func listen(until end: MediaTime) throws(DiscoveryError) {
    while MediaTime.now() < end {
      do throws(BusError) { try step(until: end) } catch { throw DiscoveryError(error) }
      if let failure { throw .avahi(failure) }
      if hasOwnerNews {
        hasOwnerNews = false
        throw try isRunning() ? DiscoveryError.avahi("it was started again meanwhile; look once more") : .notRunning
      }
    }
  }

  private func isRunning() throws(DiscoveryError) -> Bool {
    do throws(BusError) { return try avahi.isRunning() } catch { throw DiscoveryError(error) }
  }

  /// Sees to one thing: a message, something that was announced, or time that goes by.
  private func step(until end: MediaTime) throws(BusError) {
    if try avahi.bus.process() { return }
    if fresh.isEmpty { try avahi.bus.sleep(until: end) } else { try resolve(fresh.removeFirst()) }
  }

  private func resolve(_ instance: Instance) throws(BusError) {
    guard resolverCount < ServiceBrowser.resolverLimit else { return isCut = true }
    resolverCount += 1
    do throws(BusError) {
      _ = try avahi.newResolver(instance.name, instance.type, instance.domain, at: instance.place)
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
        name: service.name, type: service.type, host: service.host, port: service.port, txtRecord: service.txtRecord,
        isLocal: service.isLocal, addresses: Array(Set(addresses)))
    }
    func name(_ instance: Instance) -> [String] { [instance.name, instance.type, instance.domain] }
    let resolved = Set(found.keys.map(name))
    return ServiceBrowser.Findings(
      services: complete.sorted { ($0.name, $0.type.rawValue, $0.port) < ($1.name, $1.type.rawValue, $1.port) },
      unresolved: Set(announced.map(name)).subtracting(resolved).count, isCut: isCut)
  }

  private func take(_ message: BusMessage) throws(BusError) {
    switch message.member {
    case "ItemNew":
      let instance = try instance(message)
      // Anybody can name something else below what was asked for.
      guard ServiceType(rawValue: instance.type) != nil, !announced.contains(instance) else { return }
      guard announced.count < ServiceBrowser.limit else { return isCut = true }
      announced.insert(instance)
      fresh.append(instance)
    case "ItemRemove":
      let instance = try instance(message)
      announced.remove(instance)
      found[instance] = nil
      fresh.removeAll { $0 == instance }
    case "Failure": failure = TerminalText.escaped(try message.string(limit: 255))
    default: break
    }
  }

  private func instance(_ message: BusMessage) throws(BusError) -> Instance {
    let place = AvahiClient.Place(interface: try message.int32(), family: try message.int32())
    return Instance(
      place: place, name: try message.string(limit: ServiceBrowser.nameLimit),
      type: try message.string(limit: ServiceBrowser.nameLimit),
      domain: try message.string(limit: ServiceBrowser.nameLimit))
  }

  private func takeFound(_ message: BusMessage) throws(BusError) {
    let instance = try instance(message)
    let host = try message.string(limit: ServiceBrowser.nameLimit)
    _ = try message.int32()
    let address = try message.string(limit: 64)
    let port = try message.uint16()
    let strings = try message.byteArrays(count: ServiceBrowser.stringCountLimit, limit: TXTRecord.stringLimit)
    let flags = try message.uint32()
    // An answer of which nothing else is believed: it must be to what was asked, and the address be one.
    guard announced.contains(instance), let type = ServiceType(rawValue: instance.type), port > 0,
      IPAddress(address) != nil
    else { return }
    // AVAHI_LOOKUP_RESULT_LOCAL.
    let isLocal = flags & 8 != 0
    let service = DiscoveredService(
      name: instance.name, type: type, host: host, port: port,
      // Avahi has the last one first.
      txtRecord: TXTRecord(strings: strings.reversed()), isLocal: isLocal, addresses: [])
    found[instance] = (
      service,
      DiscoveredService.Address(text: address, interface: NetworkInterfaces.name(of: instance.place.interface))
    )
  }
}

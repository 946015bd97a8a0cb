package import Platform

/// A browser for streams that are announced on the network, through Avahi.
package enum ServiceBrowser {
  /// The result of browsing.
  package struct Findings: Sendable {
    /// The services, by name.
    package var services: [DiscoveredService]
    /// The number of announced names whose address was not found in time.
    package var unresolved: Int
    /// `true` if there were more than ``limit``.
    package var isCut: Bool
  }

  /// The limit of announcements; each interface and family counts separately.
  package static let limit = 256
  /// The limit of strings in a TXT record. Avahi delivers the last string first, but the first ones count (RFC 6763
  /// section 6.4). So the limit is the number that the longest packet, of 9000 bytes, can have.
  static let stringCountLimit = 9000
  /// The limit of resolvers. A name that appears and disappears needs one each time; Avahi allows so many for a client.
  static let resolverLimit = 512
  /// The size limit of a DNS name with escaped characters, in bytes.
  static let nameLimit = 1024

  /// Listens for `time` and returns the findings. Blocks that long, and until Avahi has answered the last call.
  ///
  /// - Throws: ``DiscoveryError`` where Avahi does not run, or stops meanwhile.
  package static func browse(for time: Duration) throws(DiscoveryError) -> Findings {
    let browsing: Browsing
    do throws(BusError) { browsing = try Browsing() } catch { throw DiscoveryError(error) }
    try browsing.begin()
    try browsing.listen(until: .now() + time)
    return browsing.findings
  }
}

/// A single search of the network. One thread uses it.
private final class Browsing {
  /// A service announced at one place.
  private struct Instance: Hashable {
    let place: AvahiClient.Place
    let name: String
    let type: String
    let domain: String
  }

  private let avahi: AvahiClient
  private var announced: Set<Instance> = []
  /// The instances that still need a resolver.
  private var fresh: [Instance] = []
  private var found: [Instance: (service: DiscoveredService, address: DiscoveredService.Address)] = [:]
  private var isCut = false
  private var resolverCount = 0
  private var hasOwnerNews = false
  private var failure: String?

  init() throws(BusError) {
    // Only the user waits for this. On a busy host, one of hundreds of calls may take seconds.
    avahi = try AvahiClient(patience: Duration(seconds: 10))
    try avahi.bus.subscribe(toOwnerOf: AvahiClient.service) { [unowned self] in hasOwnerNews = true }
    try avahi.subscribe(to: "ServiceBrowser") { [unowned self] message in
      // An unreadable message is not a finding.
      try? take(message)
    }
    try avahi.subscribe(to: "ServiceResolver") { [unowned self] message in
      guard message.member == "Found" else { return }
      // An unreadable address is not one either.
      try? takeFound(message)
    }
  }

  /// Starts browsing for all types.
  func begin() throws(DiscoveryError) {
    guard try isRunning() else { throw .notRunning }
    do throws(BusError) {
      for type in ServiceType.allCases { _ = try avahi.newServiceBrowser(type) }
    } catch {
      throw DiscoveryError(error)
    }
  }

  func listen(until end: Instant) throws(DiscoveryError) {
    while Instant.now() < end {
      do throws(BusError) { try step(until: end) } catch { throw DiscoveryError(error) }
      if let failure { throw .avahi(failure) }
      if hasOwnerNews {
        hasOwnerNews = false
        throw try isRunning() ? DiscoveryError.avahi("it restarted meanwhile; try again") : .notRunning
      }
    }
  }

  private func isRunning() throws(DiscoveryError) -> Bool {
    do throws(BusError) { return try avahi.isRunning() } catch { throw DiscoveryError(error) }
  }

  /// Handles one thing: a message, an announced instance, or a wait.
  private func step(until end: Instant) throws(BusError) {
    if try avahi.bus.process() { return }
    if fresh.isEmpty { try avahi.bus.sleep(until: end) } else { try resolve(fresh.removeFirst()) }
  }

  private func resolve(_ instance: Instance) throws(BusError) {
    guard resolverCount < ServiceBrowser.resolverLimit else { return isCut = true }
    resolverCount += 1
    do throws(BusError) {
      _ = try avahi.newResolver(instance.name, instance.type, instance.domain, at: instance.place)
    } catch .call(_, let error, _) where error.hasPrefix(AvahiClient.errorPrefix) {
      // Any machine can announce a name that Avahi refuses to resolve: such a name has no address.
    }
  }

  /// The findings so far; services of one machine that differ only in their address are merged.
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
      // Any machine can announce another type below the requested one.
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
    // The answer is untrusted: it must match a request, and its address must be valid.
    guard announced.contains(instance), let type = ServiceType(rawValue: instance.type), port > 0,
      IPAddress(address) != nil
    else { return }
    // AVAHI_LOOKUP_RESULT_LOCAL.
    let isLocal = flags & 8 != 0
    let service = DiscoveredService(
      name: instance.name, type: type, host: host, port: port,
      // Avahi delivers the last string first.
      txtRecord: TXTRecord(strings: strings.reversed()), isLocal: isLocal, addresses: [])
    found[instance] = (
      service,
      DiscoveredService.Address(text: address, interface: NetworkInterfaces.name(of: instance.place.interface))
    )
  }
}

import Platform

/// Avahi's entry groups, one for each announcement, so that a name does not affect another announcement. They belong to
/// the announcing thread and last as long as its bus connection.
final class AnnouncementGroups {
  /// An announcement that was passed to Avahi.
  private struct Entry {
    var announcement: ServiceAnnouncement
    var places: Set<AvahiClient.Place>
    /// The path of Avahi's object; nil where the announcement was refused.
    var group: String?
    /// The requested name and the actual one.
    var asked: String
    var name: String
    var attempts = 1
    var state: AvahiClient.GroupState = .uncommitted
    var refusal: String?
    /// For a refused announcement: the time of the next attempt.
    var retry: Instant?
    var backOff = RetryBackOff(AnnouncementWorker.delays)
    /// The last reported refusal since the service was announced.
    var toldRefusal: String?
    var isTold = false
  }

  private let board: AnnouncementBoard
  private let avahi: AvahiClient
  private var entries: [Entry] = []
  /// The announcements that were requested at the last look.
  private var wanted: [ServiceAnnouncement] = []
  /// Avahi's host name for this machine; empty while Avahi is not ready.
  private var host = ""
  private var reported: [(group: String, state: Int32, reason: String)] = []
  /// `true` if Avahi has stopped, started or reported a change of its state.
  private var hasDaemonNews = true
  private var hasOwnerNews = true
  /// The time of the next check for changed addresses, for which there is no signal.
  private var next = Instant.zero

  private static let interval = Duration(seconds: 5)
  /// The limit of names that are tried.
  private static let attemptLimit = 20

  /// - Throws: `BusError` where there is no bus.
  init(_ board: AnnouncementBoard) throws(BusError) {
    self.board = board
    avahi = try AvahiClient()
    try avahi.bus.subscribe(toOwnerOf: AvahiClient.service) { [unowned self] in
      hasOwnerNews = true
    }
    try avahi.subscribe(to: "Server") { [unowned self] _ in hasDaemonNews = true }
    try avahi.subscribe(to: "EntryGroup") { [unowned self] message in
      guard message.member == "StateChanged" else { return }
      let path = message.path
      // The signal is Avahi's own; it is ignored where it cannot be read.
      guard let state = try? message.int32() else { return }
      reported.append((path, state, (try? message.string(limit: 255)) ?? ""))
    }
  }

  /// Keeps Avahi's records as requested until the announcer stops. That withdraws them: when the connection ends, Avahi
  /// removes the records and sends their goodbyes.
  ///
  /// - Throws: `BusError` where the bus is gone.
  func follow() throws(BusError) {
    while !board.isEnded {
      if try avahi.bus.process() { continue }
      if !reported.isEmpty {
        try takeReports()
        continue
      }
      let now = board.wanted
      if hasOwnerNews || hasDaemonNews || wanted != now || Instant.now() >= due {
        wanted = now
        try look()
        continue
      }
      try avahi.bus.sleep(until: due, or: board.wake.fileDescriptor)
      board.wake.clear()
    }
  }

  /// The time of the next look if no message comes.
  private var due: Instant { entries.compactMap(\.retry).reduce(next, min) }

  /// Compares the present records with the requested ones.
  private func look() throws(BusError) {
    next = .now() + Self.interval
    if hasOwnerNews {
      // Avahi's groups have ended with Avahi.
      entries.removeAll()
      reported.removeAll()
    }
    let hasNews = hasOwnerNews || hasDaemonNews
    (hasOwnerNews, hasDaemonNews) = (false, false)
    do throws(BusError) {
      guard try avahi.isRunning() else {
        entries.removeAll()
        let mend = "the announcement follows when it does (sudo \(DiscoveryError.start))"
        return board.wait(for: DiscoveryError.notRunning.reason, mend: mend)
      }
      if hasNews || host.isEmpty, try !followDaemon() { return }
      try register()
    } catch {
      // If Avahi stops in the middle, the bus reports it. Any other error ends the connection, and with it all our
      // records in Avahi.
      guard error.isWithoutOwner else { throw error }
      hasOwnerNews = true
    }
  }

  /// Checks the daemon's state; returns `false` where it is not ready.
  private func followDaemon() throws(BusError) -> Bool {
    switch try avahi.state() {
    case .running:
      let name = try avahi.hostName()
      if name != host {
        // Records with this machine's name must be created again.
        try freeAll()
        host = name
      }
      return true
    case .registering, .collision, .invalid:
      // Avahi is choosing another host name and reports when it has one.
      try freeAll()
      host = ""
      board.wait(for: "Avahi is getting ready", mend: nil)
      return false
    case .failure:
      entries.removeAll()
      host = ""
      board.wait(for: "Avahi does not work", mend: "sudo systemctl restart avahi-daemon")
      return false
    }
  }

  private func freeAll() throws(BusError) {
    for entry in entries { try free(entry) }
    entries.removeAll()
  }

  private func free(_ entry: Entry) throws(BusError) {
    guard let group = entry.group else { return }
    do throws(BusError) {
      try avahi.free(group)
    } catch .call(_, let error, _) where error == AvahiClient.unknownObject {
      // A group that is gone need not be freed.
    }
  }

  /// Frees the records that are no longer requested or are at other places, and requests the missing ones.
  private func register() throws(BusError) {
    guard !host.isEmpty else { return }
    let now = Instant.now()
    let places = wanted.map { ($0, Self.places(of: $0)) }
    var kept: [Entry] = []
    for entry in entries {
      let isWanted = places.contains { $0.0 == entry.announcement && $0.1 == entry.places }
      let isDue = entry.retry.map { $0 <= now } ?? false
      if isWanted, !isDue { kept.append(entry) } else { try free(entry) }
    }
    let former = entries
    entries = kept
    for (announcement, places) in places
    where !places.isEmpty && !entries.contains(where: { $0.announcement == announcement }) {
      let name = announcement.instanceName(host: host)
      var entry = Entry(announcement: announcement, places: places, asked: name, name: name)
      let old = former.first { $0.announcement == announcement }
      // A service that was renamed once keeps the new name, except where no name was free.
      if let old, old.asked == name, old.refusal == nil { entry.name = old.name }
      if let old { (entry.toldRefusal, entry.backOff) = (old.toldRefusal, old.backOff) }
      try register(&entry)
      entries.append(entry)
    }
    publish()
  }

  /// Passes an announcement to Avahi. If this machine already uses the name, the next alternative is tried; Avahi
  /// reports later whether another machine uses it.
  private func register(_ entry: inout Entry) throws(BusError) {
    while true {
      do throws(BusError) {
        let group = try avahi.newGroup()
        entry.group = group
        for place in entry.places {
          try avahi.add(
            entry.name, entry.announcement.type, port: entry.announcement.port, entry.announcement.txtRecord,
            at: place, to: group)
        }
        try avahi.commit(group)
        entry.state = .registering
        return
      } catch .call(_, let error, let reason) where error.hasPrefix(AvahiClient.errorPrefix) {
        try free(entry)
        entry.group = nil
        guard error == AvahiClient.collision, entry.attempts < Self.attemptLimit else {
          let isForbidden = error == AvahiClient.notPermitted
          return refuse(
            &entry, isForbidden ? "\(reason) (disable-user-service-publishing in avahi-daemon.conf)" : reason)
        }
        entry.attempts += 1
        entry.name = try avahi.alternative(to: entry.name)
      } catch {
        throw error
      }
    }
  }

  /// Handles Avahi's reports on groups.
  private func takeReports() throws(BusError) {
    let reports = reported
    reported.removeAll()
    for report in reports {
      guard let index = entries.firstIndex(where: { $0.group == report.group }),
        let state = AvahiClient.GroupState(rawValue: report.state)
      else { continue }
      entries[index].state = state
      switch state {
      case .uncommitted, .registering: break
      case .established:
        // The state is published first, so that a reader of the log's line finds it.
        publish()
        tell(&entries[index])
      case .collision:
        var entry = entries[index]
        try free(entry)
        entry.group = nil
        if entry.attempts < Self.attemptLimit {
          entry.attempts += 1
          entry.isTold = false
          entry.name = try avahi.alternative(to: entry.name)
          try register(&entry)
        } else {
          refuse(&entry, "\(Self.attemptLimit) names are taken")
        }
        entries[index] = entry
      case .failure: refuse(&entries[index], report.reason)
      }
    }
    publish()
  }

  private func refuse(_ entry: inout Entry, _ reason: String) {
    entry.refusal = reason
    entry.retry = .now() + entry.backOff.failed()
    guard reason != entry.toldRefusal else { return }
    entry.toldRefusal = reason
    board.tell(.refused(name: entry.name, reason: reason))
  }

  private func tell(_ entry: inout Entry) {
    entry.toldRefusal = nil
    entry.backOff.reset()
    guard !entry.isTold else { return }
    entry.isTold = true
    let (type, port) = (entry.announcement.type, entry.announcement.port)
    board.tell(
      entry.name == entry.asked
        ? .announced(name: entry.name, type, port: port)
        : .renamed(from: entry.asked, to: entry.name, type, port: port))
  }

  private func publish() {
    board.publish(
      wanted.map { announcement in
        guard let entry = entries.first(where: { $0.announcement == announcement }) else {
          return AnnouncedService(
            announcement: announcement, name: announcement.instanceName(host: host),
            state: .waiting("this host has none of its addresses now"))
        }
        let state: AnnouncedService.State =
          if let refusal = entry.refusal {
            .refused(refusal)
          } else if entry.state == .established { .announced } else {
            .waiting("Avahi checks whether the name is free")
          }
        return AnnouncedService(announcement: announcement, name: entry.name, state: state)
      })
  }

  /// Returns the places where the service is announced now.
  private static func places(of announcement: ServiceAnnouncement) -> Set<AvahiClient.Place> {
    if announcement.reach.isSuperset(of: [.everyIPv4, .everyIPv6]) { return [AvahiClient.Place()] }
    var places: Set<AvahiClient.Place> = []
    for reach in announcement.reach {
      switch reach {
      case .everyIPv4: places.insert(AvahiClient.Place(family: AvahiClient.Place.ipv4))
      case .everyIPv6: places.insert(AvahiClient.Place(family: AvahiClient.Place.ipv6))
      case .address(let address):
        guard let index = NetworkInterfaces.index(of: address) else { continue }
        let family = address.contains(":") ? AvahiClient.Place.ipv6 : AvahiClient.Place.ipv4
        places.insert(AvahiClient.Place(interface: index, family: family))
      }
    }
    return places
  }
}

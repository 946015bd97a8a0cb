import Media
import SystemBus
import Threading

/// Avahi's groups of records, one for each announcement, so that none has to do with another's name. Of the thread that
/// announces, for as long as it has a connection to the bus.
final class AnnouncementGroups {
  /// An announcement that Avahi has.
  private struct Entry {
    var announcement: ServiceAnnouncement
    var places: Set<AvahiClient.Place>
    /// The object of Avahi's; nil where it was refused.
    var group: String?
    /// The name that it was to have, and the one that it has.
    var asked: String
    var name: String
    var attempts = 1
    var state: AvahiClient.GroupState = .uncommitted
    var refusal: String?
    /// Where it is refused: when it is asked for again.
    var retry: MediaTime?
    var pause = RetryPause()
    /// The refusal that was told last, since it was announced.
    var toldRefusal: String?
    var isTold = false
  }

  private let board: AnnouncementBoard
  private let avahi: AvahiClient
  private var entries: [Entry] = []
  /// What was wanted when it was looked last.
  private var wanted: [ServiceAnnouncement] = []
  /// What Avahi calls this machine; empty while it is not ready.
  private var host = ""
  private var reported: [(group: String, state: Int32, reason: String)] = []
  /// Avahi has gone, come, or says that it is another than before.
  private var hasDaemonNews = true
  private var hasOwnerNews = true
  /// When it is looked whether addresses have changed, which nobody tells.
  private var next = MediaTime.zero

  private static let interval = MediaTime(seconds: 5)
  /// How many names are tried.
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
      // Its own words, of no use where they cannot be read.
      guard let state = try? message.int32() else { return }
      reported.append((path, state, (try? message.string(limit: 255)) ?? ""))
    }
  }

  /// Keeps Avahi's records as they are wanted until that is over, which withdraws them: Avahi does that, and says goodbye for
  /// us, where the connection ends.
  ///
  /// - Throws: `BusError` where the bus has gone.
  func follow() throws(BusError) {
    while !board.isEnded {
      if try avahi.bus.process() { continue }
      if !reported.isEmpty {
        try takeReports()
        continue
      }
      let now = board.wanted
      if hasOwnerNews || hasDaemonNews || wanted != now || MediaTime.now() >= due {
        wanted = now
        try look()
        continue
      }
      try avahi.bus.sleep(until: due, or: board.wake.fileDescriptor)
      board.wake.clear()
    }
  }

  /// When it is looked again, if nothing is heard.
  private var due: MediaTime { entries.compactMap(\.retry).reduce(next, min) }

  /// Compares what there is with what is wanted.
  private func look() throws(BusError) {
    next = .now() + Self.interval
    if hasOwnerNews {
      // Its groups have ended with it.
      entries.removeAll()
      reported.removeAll()
    }
    let hasNews = hasOwnerNews || hasDaemonNews
    (hasOwnerNews, hasDaemonNews) = (false, false)
    do throws(BusError) {
      guard try avahi.isRunning() else {
        entries.removeAll()
        let mend = "it is announced as soon as it does (sudo \(DiscoveryError.start))"
        return board.wait(for: DiscoveryError.notRunning.reason, mend: mend)
      }
      if hasNews || host.isEmpty, try !followDaemon() { return }
      try register()
    } catch {
      // One that goes in the middle of it tells so. All else ends the connection, and with it what Avahi may have of ours.
      guard error.isWithoutOwner else { throw error }
      hasOwnerNews = true
    }
  }

  /// Looks how the daemon is; false where it is not ready.
  private func followDaemon() throws(BusError) -> Bool {
    switch try avahi.state() {
    case .running:
      let name = try avahi.hostName()
      if name != host {
        // Records that name this machine have to be made anew.
        try freeAll()
        host = name
      }
      return true
    case .registering, .collision, .invalid:
      // It looks for a name of its own: told when it has one.
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
      // One that is gone needs no freeing.
    }
  }

  /// Frees what is not wanted any more, or elsewhere, and asks for what is.
  private func register() throws(BusError) {
    guard !host.isEmpty else { return }
    let now = MediaTime.now()
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
      // What had to give way once does so again, but for what found no name at all.
      if let old, old.asked == name, old.refusal == nil { entry.name = old.name }
      if let old { (entry.toldRefusal, entry.pause) = (old.toldRefusal, old.pause) }
      try register(&entry)
      entries.append(entry)
    }
    publish()
  }

  /// Asks Avahi for an announcement. A name that this machine has already is taken by the next; whether another has it is
  /// told later.
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

  /// Takes what Avahi has said of groups.
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
      case .established: tell(&entries[index])
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
    entry.retry = .now() + entry.pause.take()
    guard reason != entry.toldRefusal else { return }
    entry.toldRefusal = reason
    board.tell(.refused(name: entry.name, reason: reason))
  }

  private func tell(_ entry: inout Entry) {
    entry.toldRefusal = nil
    entry.pause = RetryPause()
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
            state: .waiting("this machine has none of its addresses now"))
        }
        let state: AnnouncedService.State =
          if let refusal = entry.refusal {
            .refused(refusal)
          } else if entry.state == .established { .announced } else { .waiting("Avahi looks whether the name is free") }
        return AnnouncedService(announcement: announcement, name: entry.name, state: state)
      })
  }

  /// Where it is announced now.
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

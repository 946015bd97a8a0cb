import Host
import Serving

/// The announcement of the appliance's services on the network.
extension StreamSession {
  /// Announces the services that other hosts can reach now, if the configuration requests announcements.
  func announce() {
    guard configuration.announces else {
      // The announcer's end withdraws all announcements.
      announcer = nil
      complaints["announcements"] = nil
      return
    }
    let wanted = announcements
    if rtsp != nil, openListeners.isEmpty {
      complainOnce(
        "nothing is announced: only this host may watch; add a user with \(ServiceAccount.addingUser), and serve an "
          + "address that others reach", about: "announcements")
    } else {
      complaints["announcements"] = nil
    }
    do {
      if announcer == nil, !wanted.isEmpty { announcer = try ServiceAnnouncer() }
      announcer?.announce(wanted)
    } catch {
      complainOnce("nothing is announced: \(error)", about: "announcements")
    }
  }

  /// The RTSP listeners that other hosts can reach.
  private var openListeners: [TCPListener] {
    guard let serving, let rtsp, serving.users != nil, !serving.servesThisMachineAlone else { return [] }
    return rtsp.listeners.filter { !$0.isLoopback && ($0.isEncrypted || !serving.requiresEncryption) }
  }

  private var announcements: [ServiceAnnouncement] {
    // The listeners of one kind at one port are one service.
    struct Way: Hashable {
      let type: ServiceType
      let port: UInt16
    }
    var ways: [(way: Way, reach: Set<ServiceAnnouncement.Reach>)] = []
    for listener in openListeners {
      guard let port = UInt16(exactly: listener.port), port > 0 else { continue }
      let way = Way(type: listener.isEncrypted ? .rtsps : .rtsp, port: port)
      let reach: ServiceAnnouncement.Reach =
        switch listener.address {
        case "0.0.0.0": .everyIPv4
        case "::": .everyIPv6
        default: .address(listener.address)
        }
      if let index = ways.firstIndex(where: { $0.way == way }) {
        ways[index].reach.insert(reach)
      } else {
        ways.append((way, [reach]))
      }
    }
    // A camera that is being opened is there in a moment. An entry that comes and goes with every reload, or with every
    // attempt to open a camera that cannot be opened, is of no use to a list.
    let announced = table.entries.filter {
      !$0.isOver && ($0.isStreaming || $0.work != nil && $0.complaint == nil)
    }
    return announced.flatMap { entry in
      ways.map { way, reach in
        ServiceAnnouncement(
          camera: entry.name, name: entry.configuration.announcedName, type: way.type, port: way.port,
          path: "/\(entry.name)", reach: reach)
      }
    }
  }
}

extension ApplianceStatus.Announcement {
  /// Creates the status of one announced service.
  init(_ service: AnnouncedService) {
    let (state, reason): (State, String?) =
      switch service.state {
      case .announced: (.announced, nil)
      case .waiting(let reason): (.waiting, reason)
      case .refused(let reason): (.refused, reason)
      }
    self.init(
      camera: service.announcement.camera, name: service.name, type: service.announcement.type.rawValue,
      port: Int(service.announcement.port), path: service.announcement.path, state: state,
      reason: reason.map(TerminalText.escaped))
  }
}

/// A stream that is to be announced by DNS-SD (RFC 6763).
public struct ServiceAnnouncement: Hashable, Sendable {
  /// Where a server listens, and so where its service is announced.
  public enum Reach: Hashable, Sendable {
    /// At every address of IPv4.
    case everyIPv4
    /// At every address of IPv6.
    case everyIPv6
    /// At one numeric address, on whichever interface has it.
    case address(String)
  }

  /// The camera.
  public var camera: String
  /// What people read; nil for "CAMERA on HOST", with the name that Avahi has for this machine.
  public var name: String?
  /// How it is served.
  public var type: ServiceType
  /// The server's TCP port.
  public var port: UInt16
  /// The path of its URL, from `/` on.
  public var path: String
  /// Where.
  public var reach: Set<Reach>

  /// An announcement; see the properties.
  public init(
    camera: String, name: String? = nil, type: ServiceType, port: UInt16, path: String, reach: Set<Reach>
  ) {
    (self.camera, self.name, self.type, self.port) = (camera, name, type, port)
    (self.path, self.reach) = (path, reach)
  }

  /// The strings of its TXT record (RFC 6763 section 6): `path` is what players read for RTSP; `auth` says that a player
  /// will have to log in.
  public var text: [String] { ["txtvers=1", "path=\(path)", "name=\(camera)", "auth=digest"] }

  /// Its name on a machine that is called `host`: at most 63 bytes of UTF-8, as DNS allows (RFC 6763 section 4.1.1).
  func instanceName(host: String) -> String {
    let full = name ?? "\(camera) on \(host)"
    var name = ""
    for character in full {
      guard name.utf8.count + String(character).utf8.count <= Self.nameLimit else { break }
      name.append(character)
    }
    return name
  }

  /// The most bytes of a name.
  public static let nameLimit = 63
}

/// What has become of an announcement.
public struct AnnouncedService: Hashable, Sendable {
  /// How it stands.
  public enum State: Hashable, Sendable {
    /// The network knows of it.
    case announced
    /// It will, once this has changed; in a few words.
    case waiting(String)
    /// Avahi refuses it, for this reason. It is tried again.
    case refused(String)
  }

  /// What was asked for.
  public var announcement: ServiceAnnouncement
  /// The name that it has, or is to have; another one than asked for where that is taken.
  public var name: String
  /// How it stands.
  public var state: State

  /// See the properties.
  public init(announcement: ServiceAnnouncement, name: String, state: State) {
    (self.announcement, self.name, self.state) = (announcement, name, state)
  }
}

/// Something of announcements that a person is told.
public enum AnnouncementEvent: Hashable, Sendable {
  /// The network knows of it now.
  case announced(name: String, ServiceType, port: UInt16)
  /// So it does, by another name, because another service has that one.
  case renamed(from: String, to: String, ServiceType, port: UInt16)
  /// Avahi refuses it.
  case refused(name: String, reason: String)
  /// Nothing is announced until something changes.
  case waiting(String)

  /// One line.
  public var description: String {
    switch self {
    case .announced(let name, let type, let port): "announced as '\(name)' (\(type.rawValue), port \(port))"
    case .renamed(let old, let new, let type, let port):
      "announced as '\(new)' (\(type.rawValue), port \(port)): another service on the network is called '\(old)'; "
        + "--announce-name chooses a name"
    case .refused(let name, let reason): "'\(name)' is not announced, Avahi refuses it: \(reason)"
    case .waiting(let reason): "nothing is announced now: \(reason)"
    }
  }

  /// Whether it is worth a warning.
  public var isWarning: Bool {
    if case .announced = self { return false }
    return true
  }
}

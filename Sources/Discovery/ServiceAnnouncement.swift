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

  /// What else it says: `path` is what players read for RTSP; `auth` says that a player will have to log in.
  public var txtRecord: TXTRecord {
    TXTRecord(["txtvers=1", "path=\(path)", "name=\(camera)", "auth=digest"])
  }

  /// What people read of it, on a machine that is called `host`: at most 63 bytes of UTF-8, as DNS allows (RFC 6763 section 4.1.1).
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

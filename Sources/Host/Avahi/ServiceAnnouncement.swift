/// A request to announce a stream by DNS-SD (RFC 6763).
package struct ServiceAnnouncement: Hashable, Sendable {
  /// The addresses where a server listens, and where its service is therefore announced.
  package enum Reach: Hashable, Sendable {
    /// All IPv4 addresses.
    case everyIPv4
    /// All IPv6 addresses.
    case everyIPv6
    /// One numeric address, on whichever interface has it.
    case address(String)
  }

  /// The camera's name.
  package var camera: String
  /// The display name; nil for "CAMERA on HOST", with Avahi's host name for this machine.
  package var name: String?
  /// The service type.
  package var type: ServiceType
  /// The server's TCP port.
  package var port: UInt16
  /// The path of the stream's URL, from `/` on.
  package var path: String
  /// The addresses where the service is announced.
  package var reach: Set<Reach>

  /// Creates an announcement; see the properties.
  package init(
    camera: String, name: String? = nil, type: ServiceType, port: UInt16, path: String, reach: Set<Reach>
  ) {
    (self.camera, self.name, self.type, self.port) = (camera, name, type, port)
    (self.path, self.reach) = (path, reach)
  }

  /// The TXT record: players read `path` for RTSP; `auth` says that a player must log in.
  package var txtRecord: TXTRecord {
    TXTRecord(["txtvers=1", "path=\(path)", "name=\(camera)", "auth=digest"])
  }

  /// Returns the display name on a machine called `host`: at most 63 bytes of UTF-8, the limit of DNS (RFC 6763 section
  /// 4.1.1).
  package func instanceName(host: String) -> String {
    let full = name ?? "\(camera) on \(host)"
    var name = ""
    for character in full {
      guard name.utf8.count + String(character).utf8.count <= Self.nameLimit else { break }
      name.append(character)
    }
    return name
  }

  /// The size limit of a name, in bytes.
  package static let nameLimit = 63
}

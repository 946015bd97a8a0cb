import Glibc

/// The session description (SDP) of a stream, RFC 8866: one or several media, each an RTP stream.
///
/// The description is written for the receivers, hence `a=recvonly` (RFC 8866 section 6.7.1), as in VLC.
public struct SessionDescription: Hashable, Sendable {
  /// The way in which receivers get the stream.
  public enum Announcement: Hashable, Sendable {
    /// The media are sent to ``address`` and their ports in any case.
    case plain
    /// Receivers request the stream by RTSP, RFC 2326 appendix C.1. Control URLs are relative to `Content-Base`.
    /// SETUP determines the destinations, so a unicast address and the ports are written as zero. A group's address
    /// and ports are written unchanged.
    case rtsp
  }

  /// The media, in the order of the tracks.
  public var media: [MediaDescription]
  /// The way in which receivers get the stream.
  public var announcement: Announcement
  /// The destination address: `c=`.
  public var address: ConnectionAddress
  /// The maximum number of routers that a multicast packet may pass; written for IPv4 groups only (RFC 8866 section
  /// 5.7).
  public var timeToLive: UInt8
  /// The address of the description's originator: `o=`.
  public var origin: ConnectionAddress
  /// A number that no other session from this origin has; by convention, the seconds of NTP.
  public var sessionID: UInt64
  /// The version of the description, which increases with every change.
  public var version: UInt64
  /// The session's name, for people. Control characters become spaces, and the name is cut at ``textLimit``.
  public var name: String
  /// More about the session, for people: `i=`. It is treated like ``name``, and omitted if empty.
  public var information = ""
  /// The program's name and version, for people. It is treated like ``name``, and omitted if empty.
  public var tool: String
  /// The only sender in the group that receivers accept: `a=source-filter`, RFC 4570; `nil` if any sender is allowed.
  public var sourceFilter: ConnectionAddress?

  /// The maximum length of a name in bytes of UTF-8.
  public static let textLimit = 128

  /// Creates a description; see the properties.
  public init(
    media: [MediaDescription], announcement: Announcement = .plain, address: ConnectionAddress, timeToLive: UInt8 = 1,
    origin: ConnectionAddress? = nil, sessionID: UInt64, version: UInt64 = 1, name: String = "nightjar",
    tool: String = "nightjar"
  ) {
    self.media = media
    self.announcement = announcement
    self.address = address
    self.timeToLive = timeToLive
    self.origin = origin ?? (address.family == .ip4 ? .loopback : .loopback6)
    self.sessionID = sessionID
    self.version = version
    self.name = name
    self.tool = tool
  }

  /// Creates the description of one medium; see the properties here and there.
  public init(
    payload: PayloadDescription, profile: MediaDescription.Profile = .avp, announcement: Announcement = .plain,
    address: ConnectionAddress, port: UInt16, timeToLive: UInt8 = 1, origin: ConnectionAddress? = nil,
    sessionID: UInt64, version: UInt64 = 1, name: String = "nightjar", tool: String = "nightjar",
    kilobitsPerSecond: Int? = nil
  ) {
    let medium = MediaDescription(payload, profile: profile, port: port, kilobitsPerSecond: kilobitsPerSecond)
    self.init(
      media: [medium], announcement: announcement, address: address, timeToLive: timeToLive, origin: origin,
      sessionID: sessionID, version: version, name: name, tool: tool)
  }

  /// Returns the present NTP seconds, the usual ``sessionID`` (RFC 8866 section 5.2).
  package static func presentSessionID() -> UInt64 { UInt64(time(nil)) &+ UInt64(NTPTimestamp.unixEpoch) }

  /// Returns the control URL of a track, relative to the presentation's: `trackID=0` for the first.
  public static func control(ofTrack track: Int) -> String { "trackID=\(track)" }

  /// The description as text, with CR LF at the end of each line.
  public var text: String {
    let title = Self.printable(name)
    var lines = [
      "v=0",
      "o=- \(sessionID) \(version) IN \(origin.family.rawValue) \(origin)",
      // An empty name is not allowed; "-" means no name (section 5.3).
      "s=\(title.isEmpty ? "-" : title)",
    ]
    let information = Self.printable(information)
    if !information.isEmpty { lines.append("i=\(information)") }
    lines += ["c=IN \(address.family.rawValue) \(connection)", "t=0 0"]
    let program = Self.printable(tool)
    if !program.isEmpty { lines.append("a=tool:\(program)") }
    if let sourceFilter {
      lines.append("a=source-filter: incl IN \(address.family.rawValue) \(address) \(sourceFilter)")
    }
    lines.append("a=recvonly")
    if announcement == .rtsp { lines += ["a=control:*", "a=range:npt=now-"] }
    for (track, medium) in media.enumerated() {
      lines += medium.lines(
        isSettledBySetup: isSettledBySetup, control: announcement == .rtsp ? Self.control(ofTrack: track) : nil)
    }
    return lines.map { $0 + "\r\n" }.joined()
  }

  /// `true` if SETUP determines the destination.
  private var isSettledBySetup: Bool { announcement == .rtsp && !address.isMulticast }

  /// The address in `c=`.
  private var connection: String {
    if isSettledBySetup { return address.family == .ip4 ? "0.0.0.0" : "::" }
    return address.family == .ip4 && address.isMulticast ? "\(address)/\(timeToLive)" : "\(address)"
  }

  /// Returns `text` without control characters and line ends, trimmed, and cut at ``textLimit`` between characters.
  private static func printable(_ text: String) -> String {
    var result = ""
    var length = 0
    for scalar in text.unicodeScalars {
      let isLineOrControl =
        switch scalar.properties.generalCategory {
        case .control, .lineSeparator, .paragraphSeparator: true
        default: false
        }
      let character: Unicode.Scalar = isLineOrControl ? " " : scalar
      if result.isEmpty && character == " " { continue }
      length += UTF8.width(character)
      if length > textLimit { break }
      result.unicodeScalars.append(character)
    }
    while result.unicodeScalars.last == " " { result.unicodeScalars.removeLast() }
    return result
  }
}

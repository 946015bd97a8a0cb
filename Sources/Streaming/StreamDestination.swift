public import Media
import RTP
import SRTP

/// What the RTP packets of a destination carry.
public enum StreamPayload: String, CaseIterable, Sendable, Hashable {
  /// H.264 by RFC 6184.
  case h264
  /// An MPEG transport stream by RFC 2250.
  case mp2t
}

/// Where a stream goes: `rtp://HOST:PORT[?payload=h264|mp2t][&ttl=N][&mtu=N][&rtcp=mux]`, for a multicast group also
/// `[&interface=NAME][&loop=1][&ssm=1][&sap=1]`; or `srtp://…`, protected, with `[&suite=NAME][&key-file=PATH]` too.
public struct StreamDestination: Hashable, Sendable, CustomStringConvertible {
  /// A host name, or an IPv4 or IPv6 address (without brackets).
  public var host: String
  /// The UDP port.
  public var port: UInt16
  /// What the packets carry.
  public var payload: StreamPayload
  /// Multicast TTL or hop limit; nil is the system's: 1 for multicast, 64 for unicast.
  public var timeToLive: UInt8?
  /// The largest RTP packet in bytes, header included.
  public var maximumPacketSize: Int

  /// Whether RTCP shares RTP's port (RFC 5761) instead of having the next.
  public var multiplexesRTCP: Bool

  /// How the packets are protected; nil is not at all.
  public var protection: Protection?

  /// The interface by which packets leave for a group; nil is the route's.
  public var interface: String?
  /// Whether receivers on this machine get a group's packets too.
  public var loopsBack = false
  /// Whether receivers join the group for this sender alone (RFC 4607), in 232.0.0.0/8 and ff3x::/32 in any case.
  public var isSourceSpecific = false
  /// Whether the stream is announced on the network (SAP, RFC 2974): for groups, and without SRTP, whose key everybody
  /// would learn by it.
  public var isAnnounced = false

  /// Whether its host is a name, which a name server is asked for, and no address.
  public var hasName: Bool { !SocketAddress.isAddress(host) }

  /// The packet size used unless told otherwise: passes through every tunnel in use.
  public static let defaultMaximumPacketSize = 1200
  /// RTP's default port.
  public static let defaultPort: UInt16 = 5004
  /// The longest URL that is read.
  static let lengthLimit = 1024

  /// A destination; see the properties.
  public init(
    host: String, port: UInt16, payload: StreamPayload = .h264, timeToLive: UInt8? = nil,
    maximumPacketSize: Int = StreamDestination.defaultMaximumPacketSize, multiplexesRTCP: Bool = false,
    protection: Protection? = nil
  ) {
    self.host = host
    self.port = port
    self.payload = payload
    self.timeToLive = timeToLive
    self.maximumPacketSize = maximumPacketSize
    self.multiplexesRTCP = multiplexesRTCP
    self.protection = protection
  }

  /// Parses a URL.
  ///
  /// - Throws: ``StreamDestinationError`` that names the part that is wrong.
  public init(url: String) throws(StreamDestinationError) {
    guard url.utf8.count <= Self.lengthLimit else { throw .tooLong(url.utf8.count) }
    guard let scheme = ["rtp://", "srtp://"].first(where: { url.hasPrefix($0) }) else { throw .scheme(url) }
    let rest = url.dropFirst(scheme.count)
    let parts = rest.split(separator: "?", maxSplits: 1, omittingEmptySubsequences: false)
    var authority = parts[0]
    if authority.hasSuffix("/") { authority = authority.dropLast() }
    let (host, port) = try Self.hostAndPort(authority, url: url)
    self.init(host: host, port: port, protection: scheme == "srtp://" ? Protection() : nil)
    guard parts.count == 2 else {
      guard port < .max else { throw .noControlPort(description) }
      return
    }
    var seen: Set<Substring> = []
    for item in parts[1].split(separator: "&", omittingEmptySubsequences: false) {
      let pair = item.split(separator: "=", maxSplits: 1, omittingEmptySubsequences: false)
      let value = pair.count == 2 ? pair[1] : ""
      guard seen.insert(pair[0]).inserted else { throw .repeated(String(pair[0])) }
      try apply(name: pair[0], value: value)
    }
    guard multiplexesRTCP || port < .max else { throw .noControlPort(description) }
    if let protection, maximumPacketSize - protection.overhead < Self.packetSizes.lowerBound {
      throw .protectedPacketSize(maximumPacketSize, overhead: protection.overhead)
    }
  }

  private mutating func apply(name: Substring, value: Substring) throws(StreamDestinationError) {
    switch name {
    case "payload":
      guard let payload = StreamPayload(rawValue: String(value)) else { throw .payload(String(value)) }
      self.payload = payload
    case "ttl":
      guard let ttl: UInt8 = Self.number(value), ttl > 0 else { throw .timeToLive(String(value)) }
      timeToLive = ttl
    case "mtu":
      guard let size: Int = Self.number(value), Self.packetSizes.contains(size) else {
        throw .packetSize(String(value))
      }
      maximumPacketSize = size
    case "rtcp":
      guard value == "mux" else { throw .control(String(value)) }
      multiplexesRTCP = true
    case "interface":
      // IFNAMSIZ is 16 with the zero at the end.
      guard (1...15).contains(value.utf8.count), !value.contains("/") else { throw .interface(String(value)) }
      interface = String(value)
    case "loop":
      guard value == "1" else { throw .flag(String(name), String(value)) }
      loopsBack = true
    case "ssm":
      guard value == "1" else { throw .flag(String(name), String(value)) }
      isSourceSpecific = true
    case "sap":
      guard value == "1" else { throw .flag(String(name), String(value)) }
      guard protection == nil else { throw .announcedKey }
      isAnnounced = true
    case "suite" where protection != nil:
      guard let suite = SRTPSuite(rawValue: String(value)) else { throw .suite(String(value)) }
      protection?.suite = suite
    case "key-file" where protection != nil:
      guard !value.isEmpty else { throw .keyFile }
      protection?.keyFile = String(value)
    case "suite", "key-file":
      throw .unprotected(String(name))
    default:
      throw .unknownOption(String(name))
    }
  }

  /// A number in digits alone, as a URL has it: no sign.
  private static func number<Value: FixedWidthInteger>(_ text: Substring) -> Value? {
    text.utf8.allSatisfy { (0x30...0x39).contains($0) } ? Value(text) : nil
  }

  /// The packet sizes that both payloads can live with: one transport-stream packet and an RTP header at least.
  static let packetSizes = 200...65_507

  private static func hostAndPort(
    _ authority: Substring, url: String
  ) throws(StreamDestinationError) -> (String, UInt16) {
    guard !authority.contains("@") else { throw .user(url) }
    let host: Substring
    let port: Substring
    if authority.hasPrefix("[") {
      guard let end = authority.firstIndex(of: "]") else { throw .host(String(authority)) }
      host = authority[authority.index(after: authority.startIndex)..<end]
      let after = authority[authority.index(after: end)...]
      guard after.hasPrefix(":") else { throw .port(String(after)) }
      port = after.dropFirst()
    } else {
      guard let colon = authority.lastIndex(of: ":") else { throw .port("") }
      host = authority[..<colon]
      port = authority[authority.index(after: colon)...]
      guard !host.contains(":") else { throw .brackets(String(authority)) }
    }
    let allowed = host.utf8.allSatisfy { byte in
      (0x30...0x39).contains(byte) || (0x41...0x5a).contains(byte) || (0x61...0x7a).contains(byte)
        || [0x2d, 0x2e, 0x3a, 0x5f, 0x25].contains(byte)
    }
    guard !host.isEmpty, host.utf8.count <= 253, allowed else { throw .host(String(host)) }
    guard let number: UInt16 = number(port), number > 0 else { throw .port(String(port)) }
    return (String(host), number)
  }

  /// The URL, with what differs from the defaults.
  public var description: String {
    var options: [String] = []
    if payload != .h264 { options.append("payload=\(payload.rawValue)") }
    if let timeToLive { options.append("ttl=\(timeToLive)") }
    if maximumPacketSize != Self.defaultMaximumPacketSize { options.append("mtu=\(maximumPacketSize)") }
    if multiplexesRTCP { options.append("rtcp=mux") }
    if let interface { options.append("interface=\(interface)") }
    if loopsBack { options.append("loop=1") }
    if isSourceSpecific { options.append("ssm=1") }
    if isAnnounced { options.append("sap=1") }
    if let suite = protection?.suite { options.append("suite=\(suite.rawValue)") }
    if let keyFile = protection?.keyFile { options.append("key-file=\(keyFile)") }
    let bracketed = host.contains(":") ? "[\(host)]" : host
    let scheme = protection == nil ? "rtp" : "srtp"
    return "\(scheme)://\(bracketed):\(port)" + (options.isEmpty ? "" : "?" + options.joined(separator: "&"))
  }
}

/// What is wrong with a destination.
public enum StreamDestinationError: Failure {
  /// The URL is longer than what is read.
  case tooLong(Int)
  /// It begins with neither `rtp://` nor `srtp://`.
  case scheme(String)
  /// It has a user name.
  case user(String)
  /// The host is empty or has characters that no host has.
  case host(String)
  /// An IPv6 address needs brackets.
  case brackets(String)
  /// The port is missing or not a port.
  case port(String)
  /// The payload is unknown.
  case payload(String)
  /// The TTL is out of range.
  case timeToLive(String)
  /// The packet size is out of range.
  case packetSize(String)
  /// The packet size leaves too little room beside what protects a packet.
  case protectedPacketSize(Int, overhead: Int)
  /// There is no such interface.
  case interface(String)
  /// An option that is 1 or is left out.
  case flag(String, String)
  /// A protected stream that is to be announced.
  case announcedKey
  /// An option for groups, at an address that is none.
  case notAGroup(String, String)
  /// A source-specific group, to which this machine has no route, so that its address is unknown.
  case noSource(String)
  /// The suite is unknown.
  case suite(String)
  /// The key file has no name.
  case keyFile
  /// The key file's suite is another than the one that was asked for.
  case otherSuite(String, String, file: String)
  /// An option of `srtp://` on `rtp://`.
  case unprotected(String)
  /// Neither `rtcp=mux` nor nothing.
  case control(String)
  /// Port 65535 has no next one for RTCP.
  case noControlPort(String)
  /// An option that does not exist.
  case unknownOption(String)
  /// An option that is given twice.
  case repeated(String)
  /// The host name has no address.
  case unknownHost(String, reason: String)
  /// Two destinations are one address.
  case sameAddress(String, String, address: String)
  /// RTCP of one would arrive where the other's packets do.
  case controlInTheWay(String, of: String, port: UInt16)
  /// It is the group that viewers by RTSP share.
  case sharedGroup(String)
  /// There are as many as a pipeline serves.
  case tooMany(limit: Int)
  /// The system gives no socket, or refuses an option of it.
  case socket(String, reason: String)

  /// One line for the person at the terminal.
  public var description: String {
    switch self {
    case .tooLong(let length):
      "a destination of \(length) bytes: at most \(StreamDestination.lengthLimit) are read"
    case .scheme(let url): "'\(url)' is no destination: write rtp://HOST:PORT or srtp://HOST:PORT"
    case .user(let url): "'\(url)': RTP has no user names; write rtp://HOST:PORT"
    case .host(let host): "'\(host)' is no host name or address"
    case .brackets(let text): "'\(text)': an IPv6 address goes in brackets, as in rtp://[::1]:5004"
    case .port(let port):
      port.isEmpty ? "the destination has no port: write rtp://HOST:PORT" : "'\(port)' is no port: choose 1 to 65535"
    case .payload(let payload): "'\(payload)' is no payload: choose h264 or mp2t"
    case .timeToLive(let value): "'\(value)' is no TTL: choose 1 to 255"
    case .packetSize(let value):
      "'\(value)' is no packet size: choose mtu=\(StreamDestination.packetSizes.lowerBound) to "
        + "mtu=\(StreamDestination.packetSizes.upperBound)"
    case .unknownOption(let name):
      "a destination has no option '\(name)': there are payload, ttl, mtu and rtcp, for groups interface, "
        + "loop, ssm and sap, and for srtp:// suite and key-file"
    case .protectedPacketSize(let size, let overhead):
      "packets of \(size) bytes leave too little room beside the \(overhead) that protect them: choose "
        + "mtu=\(StreamDestination.packetSizes.lowerBound + overhead) at least"
    case .interface(let name): "this machine has no interface '\(name)': see ip link"
    case .flag(let name, let value): "'\(name)=\(value)': write \(name)=1, or leave it out"
    case .announcedKey:
      "sap=1 with srtp://: the announcement would tell everybody the key, or be of no use without it; leave it out"
    case .notAGroup(let option, let address):
      "\(option)= is for multicast groups, which \(address) is not: choose 239.0.0.0 to 239.255.255.255, or ff15::…"
    case .noSource(let destination):
      "\(destination): no route to the group, so receivers cannot be told from whom it comes; name an interface="
    case .suite(let name):
      "'\(name)' is no suite: choose " + SRTPSuite.allCases.map(\.rawValue).joined(separator: ", ")
    case .keyFile: "key-file= is followed by the path of a file: write SUITE inline:BASE64 into it, and chmod 600 it"
    case .otherSuite(let wanted, let present, let file):
      "the key in \(file) is for \(present), not for \(wanted): leave suite= out, or choose another file"
    case .unprotected(let name): "the option '\(name)' is for srtp:// only: rtp:// is not encrypted"
    case .control(let value): "'\(value)': write rtcp=mux, or leave it out for RTCP on the next port"
    case .noControlPort(let destination):
      "\(destination): RTCP has no port after 65535; choose another port, or add rtcp=mux"
    case .repeated(let name): "the destination's option '\(name)' is given twice"
    case .unknownHost(let host, let reason): "cannot find the host '\(host)': \(reason)"
    case .sameAddress(let first, let second, let address):
      "\(first) and \(second) are the same address, \(address), and port: leave one of them out"
    case .controlInTheWay(let first, let second, let port):
      "RTCP of \(second) goes to port \(port), as \(first) does: leave a port between them, or add rtcp=mux"
    case .sharedGroup(let destination):
      "\(destination) is the group of --rtsp-multicast, which gets the stream already: choose another group or port"
    case .tooMany(let limit): "there are \(limit) destinations already, which is the limit; remove one first"
    case .socket(let destination, let reason): "cannot send to \(destination): \(reason)"
    }
  }

  /// Whether the same destination may do later, when a name server, a route, an interface or the system has what it lacks.
  public var mayPass: Bool {
    switch self {
    case .unknownHost, .interface, .noSource, .socket: true
    default: false
    }
  }

  /// What kind of failure it is.
  public var kind: FailureKind {
    switch self {
    case .unknownHost: .noHost
    case .socket: .system
    default: .usage
    }
  }
}

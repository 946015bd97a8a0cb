package import Platform
import RTP
import SRTP

/// A destination of a stream: `rtp://HOST:PORT[?payload=h264|hevc|mp2t][&ttl=N][&mtu=N][&rtcp=mux][&audio=none|PORT]`, for a
/// multicast group also `[&interface=NAME][&loop=1][&ssm=1][&sap=1]`; or `srtp://…`, protected, with
/// `[&suite=NAME][&key-file=PATH]` too.
package struct StreamDestination: Hashable, Sendable, CustomStringConvertible {
  /// A host name, or an IPv4 or IPv6 address (without brackets).
  package var host: String
  /// The UDP port.
  package var port: UInt16
  /// The payload of the packets. Where the URL names none, it is H.264 here, and that of the pictures' codec in a pipeline.
  package var payload: StreamPayload
  /// `true` if the URL names the payload. A destination that names H.264 equals one that names none.
  package var namesPayload: Bool { spelling.namesPayload || payload != .h264 }
  private var spelling = Spelling()
  /// Multicast TTL or hop limit; nil is the system's: 1 for multicast, 64 for unicast.
  package var timeToLive: UInt8?
  /// The largest RTP packet in bytes, header included.
  package var maximumPacketSize: Int

  /// `true` if RTCP shares RTP's port (RFC 5761) instead of having the next.
  package var multiplexesRTCP: Bool

  /// The port of the packets of sound.
  package var soundPort = SoundPort.automatic

  /// The protection of the packets; nil for none.
  package var protection: Protection?

  /// The interface by which packets leave for a group; nil is the route's.
  package var interface: String?
  /// `true` if receivers on this host get a group's packets too.
  package var loopsBack = false
  /// `true` if receivers join the group for this sender alone (RFC 4607), in 232.0.0.0/8 and ff3x::/32 in any case.
  package var isSourceSpecific = false
  /// `true` if the stream is announced on the network (SAP, RFC 2974): for groups, and without SRTP, whose key the
  /// announcement would make public.
  package var isAnnounced = false

  /// `true` if its host is a name, which needs a name server, and not an address.
  package var hasName: Bool { !SocketAddress.isAddress(host) }

  /// The part of a URL that changes nothing of what is sent: all spellings are equal.
  private struct Spelling: Hashable, Sendable {
    var namesPayload = false

    static func == (one: Spelling, other: Spelling) -> Bool { true }
    func hash(into hasher: inout Hasher) {}
  }

  /// The packet size used unless another is given: it passes through every tunnel in use.
  package static let defaultMaximumPacketSize = 1200
  /// The longest URL that is read.
  static let lengthLimit = 1024

  /// Creates a destination; see the properties.
  package init(
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
  package init(url: String) throws(StreamDestinationError) {
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
    if case .port(let sound) = soundPort {
      guard !payload.carriesSound else { throw .soundInside(payload.title) }
      guard multiplexesRTCP || sound < .max else { throw .noControlPort(description) }
      let (own, ownSound) = multiplexesRTCP ? ([port], [sound]) : ([port, port + 1], [sound, sound + 1])
      guard !own.contains(where: ownSound.contains) else { throw .soundOnPictures(sound) }
    }
    if let protection, maximumPacketSize - protection.overhead < Self.packetSizes.lowerBound {
      throw .protectedPacketSize(maximumPacketSize, overhead: protection.overhead)
    }
  }

  private mutating func apply(name: Substring, value: Substring) throws(StreamDestinationError) {
    switch name {
    case "payload":
      guard let payload = StreamPayload(name: String(value)) else { throw .payload(String(value)) }
      self.payload = payload
      spelling.namesPayload = true
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
    case "audio":
      guard value != "none" else {
        soundPort = .none
        return
      }
      guard let port: UInt16 = Self.number(value), port > 0 else { throw .sound(String(value)) }
      soundPort = .port(port)
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

  /// Parses a number of digits alone, as in a URL: no sign.
  private static func number<Value: FixedWidthInteger>(_ text: Substring) -> Value? {
    text.utf8.allSatisfy { (0x30...0x39).contains($0) } ? Value(text) : nil
  }

  /// The packet sizes that suit all payloads: one transport-stream packet and an RTP header at least.
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

  /// The URL, with the options that differ from the defaults.
  package var description: String {
    var options: [String] = []
    if namesPayload { options.append("payload=\(payload.name)") }
    if let timeToLive { options.append("ttl=\(timeToLive)") }
    if maximumPacketSize != Self.defaultMaximumPacketSize { options.append("mtu=\(maximumPacketSize)") }
    if multiplexesRTCP { options.append("rtcp=mux") }
    switch soundPort {
    case .automatic, .taken: break
    case .none: options.append("audio=none")
    case .port(let port): options.append("audio=\(port)")
    }
    if let interface { options.append("interface=\(interface)") }
    if loopsBack { options.append("loop=1") }
    if isSourceSpecific { options.append("ssm=1") }
    if isAnnounced { options.append("sap=1") }
    if let suite = protection?.suite { options.append("suite=\(suite.rawValue)") }
    if let keyFile = protection?.keyFile { options.append("key-file=\(keyFile)") }
    let bracketed = IPAddress.bracketed(host)
    let scheme = protection == nil ? "rtp" : "srtp"
    return "\(scheme)://\(bracketed):\(port)" + (options.isEmpty ? "" : "?" + options.joined(separator: "&"))
  }
}

/// An error in a destination.
package enum StreamDestinationError: Failure {
  /// The URL is longer than the longest that is read.
  case tooLong(Int)
  /// The URL begins with neither `rtp://` nor `srtp://`.
  case scheme(String)
  /// The URL has a user name.
  case user(String)
  /// The host is empty or has characters that no host has.
  case host(String)
  /// An IPv6 address needs brackets.
  case brackets(String)
  /// The port is missing or not a port.
  case port(String)
  /// The payload is unknown.
  case payload(String)
  /// The payload is that of another codec than the pictures have.
  case otherCodec(String, payload: String, codec: String)
  /// The TTL is out of range.
  case timeToLive(String)
  /// The packet size is out of range.
  case packetSize(String)
  /// The packet size leaves too little room beside the protection of a packet.
  case protectedPacketSize(Int, overhead: Int)
  /// There is no such interface.
  case interface(String)
  /// An option that may only be 1 or absent has another value.
  case flag(String, String)
  /// A protected stream is to be announced.
  case announcedKey
  /// An option for groups is given for an address that is no group.
  case notAGroup(String, String)
  /// This host has no route to a source-specific group, so that its address is unknown.
  case noSource(String)
  /// The interface to a source-specific group has no address yet.
  case noAddress(String)
  /// The suite is unknown.
  case suite(String)
  /// The key file has no name.
  case keyFile
  /// The key file's suite is another than the requested one.
  case otherSuite(String, String, file: String)
  /// An option of `srtp://` is given for `rtp://`.
  case unprotected(String)
  /// The value of `audio` is neither `none` nor a port.
  case sound(String)
  /// A port of sound is given for a payload that carries the sound beside the pictures.
  case soundInside(String)
  /// The port of a destination's sound is in use by another destination, or by its own pictures.
  case soundPort(String, UInt16)
  /// The port of the sound, or of its RTCP, is one of the pictures.
  case soundOnPictures(UInt16)
  /// The value of `rtcp` is not `mux`.
  case control(String)
  /// Port 65535 has no next one for RTCP.
  case noControlPort(String)
  /// An option does not exist.
  case unknownOption(String)
  /// An option is given twice.
  case repeated(String)
  /// The host name has no address.
  case unknownHost(String, reason: String)
  /// Two destinations have the same address.
  case sameAddress(String, String, address: String)
  /// RTCP of one destination would arrive at the port of the other's packets.
  case controlInTheWay(String, of: String, port: UInt16)
  /// The destination is the group that viewers by RTSP share.
  case sharedGroup(String)
  /// There are as many destinations as a pipeline serves.
  case tooMany(limit: Int)
  /// The system gives no socket, or refuses an option of it.
  case socket(String, reason: String)
  /// A viewer gets no H.264 of a stream of another codec.
  case h264(H264Refusal)

  /// One line for the person at the terminal.
  package var description: String {
    switch self {
    case .tooLong(let length):
      "a destination of \(length) bytes: at most \(StreamDestination.lengthLimit) are read"
    case .scheme(let url): "'\(url)' is not a destination: write rtp://HOST:PORT or srtp://HOST:PORT"
    case .user(let url): "'\(url)': RTP has no user names; write rtp://HOST:PORT"
    case .host(let host): "'\(host)' is not a host name or address"
    case .brackets(let text): "'\(text)': an IPv6 address goes in brackets, as in rtp://[::1]:5004"
    case .port(let port):
      port.isEmpty ? "the destination has no port: write rtp://HOST:PORT" : "'\(port)' is not a port: choose 1 to 65535"
    case .payload(let payload):
      "'\(payload)' is not a payload: choose " + StreamPayload.all.map(\.name).joined(separator: " or ")
    case .timeToLive(let value): "'\(value)' is not a TTL: choose 1 to 255"
    case .packetSize(let value):
      "'\(value)' is not a packet size: choose mtu=\(StreamDestination.packetSizes.lowerBound) to "
        + "mtu=\(StreamDestination.packetSizes.upperBound)"
    case .unknownOption(let name):
      "a destination has no parameter '\(name)': there are payload, ttl, mtu, rtcp and audio, for groups interface, "
        + "loop, ssm and sap, and for srtp:// suite and key-file"
    case .protectedPacketSize(let size, let overhead):
      "packets of \(size) bytes leave too little room for the \(overhead) of SRTP: choose "
        + "mtu=\(StreamDestination.packetSizes.lowerBound + overhead) or more"
    case .interface(let name): "this host has no interface '\(name)': see ip link"
    case .flag(let name, let value): "'\(name)=\(value)': write \(name)=1, or leave it out"
    case .announcedKey:
      "sap=1 and srtp:// exclude each other: the announcement would tell everybody the key"
    case .notAGroup(let option, let address):
      "\(option)= is for multicast groups, and \(address) is none: choose 239.0.0.0 to 239.255.255.255, or ff15::…"
    case .noSource(let destination):
      "\(destination): no route to the group, so receivers cannot know the sender; add interface=NAME"
    case .noAddress(let destination):
      "\(destination): its interface has no address yet, so receivers cannot know the sender; see ip address"
    case .suite(let name):
      "'\(name)' is not a suite: choose " + SRTPSuite.allCases.map(\.rawValue).joined(separator: ", ")
    case .keyFile: "key-file= needs the path of a file: write SUITE inline:BASE64 into it, and chmod 600 it"
    case .otherSuite(let wanted, let present, let file):
      "the key in \(file) is for \(present), not for \(wanted): leave suite= out, or choose another file"
    case .unprotected(let name): "the parameter '\(name)' is for srtp:// only: rtp:// is not encrypted"
    case .control(let value): "'\(value)': write rtcp=mux, or leave it out for RTCP on the next port"
    case .sound(let value): "'audio=\(value)': write audio=none, or the port of the sound, as in audio=5006"
    case .otherCodec(let destination, let payload, let codec):
      "\(destination): its payload is \(payload), and the pictures are \(codec): leave payload= out"
    case .soundInside(let title):
      "\(title) carries the sound beside the pictures and needs no port for it: leave audio= out, or write audio=none"
    case .soundPort(let destination, let port):
      "\(destination): its sound cannot go to port \(port), which is in use: choose another with audio=PORT"
    case .soundOnPictures(let port):
      "the sound at port \(port) would meet the pictures or the RTCP of either: choose another port, as in "
        + "audio=\(port < 65_000 ? port + 4 : port - 4)"
    case .noControlPort(let destination):
      "\(destination): RTCP has no port after 65535; choose another port, or add rtcp=mux"
    case .repeated(let name): "the destination's parameter '\(name)' is given twice"
    case .unknownHost(let host, let reason): "cannot find the host '\(host)': \(reason)"
    case .sameAddress(let first, let second, let address):
      "\(first) and \(second) are the same address, \(address), and port: leave one of them out"
    case .controlInTheWay(let first, let second, let port):
      "RTCP of \(second) goes to port \(port), as \(first) does: leave a port between them, or add rtcp=mux"
    case .sharedGroup(let destination):
      "\(destination) is the group of --rtsp-multicast, which gets the stream already: choose another group or port"
    case .tooMany(let limit): "there are \(limit) destinations already, the limit; remove one first"
    case .socket(let destination, let reason): "cannot send to \(destination): \(reason)"
    case .h264(let refusal): refusal.description
    }
  }

  /// `true` if the same destination may succeed later, when a name server, a route, an interface or the system provides
  /// what is missing now.
  package var mayPass: Bool {
    switch self {
    case .unknownHost, .interface, .noSource, .noAddress, .socket: true
    default: false
    }
  }

  /// The kind of the failure.
  package var kind: FailureKind {
    switch self {
    case .unknownHost: .noHost
    case .socket: .system
    case .h264(let refusal): refusal.kind
    default: .usage
    }
  }
}

public import Platform

/// A pair of ports or channels, for RTP and RTCP.
public struct TransportPair<Number: FixedWidthInteger & Sendable>: Hashable, Sendable, CustomStringConvertible {
  /// The number for RTP.
  public var rtp: Number
  /// The number for RTCP; equal to RTP's if both share one (RFC 5761).
  public var rtcp: Number

  /// Creates a pair.
  public init(rtp: Number, rtcp: Number) {
    self.rtp = rtp
    self.rtcp = rtcp
  }

  /// The text as written in a `Transport` header.
  public var description: String { rtp == rtcp ? "\(rtp)" : "\(rtp)-\(rtcp)" }
}

/// A pair of UDP ports.
public typealias PortPair = TransportPair<UInt16>
/// A pair of channels of interleaved data.
public typealias ChannelPair = TransportPair<UInt8>

/// The RTP profile in a `Transport` header.
public enum TransportProfile: String, Hashable, Sendable, CaseIterable {
  /// RTP/AVP, RFC 3551: reports only.
  case avp = "RTP/AVP"
  /// RTP/AVPF, RFC 4585: with early feedback.
  case avpf = "RTP/AVPF"
  /// RTP/SAVP, RFC 3711: encrypted.
  case savp = "RTP/SAVP"
  /// RTP/SAVPF, RFC 5124: encrypted, with early feedback.
  case savpf = "RTP/SAVPF"

  /// `true` if the packets themselves are encrypted.
  public var isProtected: Bool { self == .savp || self == .savpf }
}

/// The reason why a `Transport` header offers no usable transport.
public enum TransportError: Failure, Hashable {
  /// SETUP without the header.
  case missing
  /// More alternatives than the limit.
  case alternatives(Int, limit: Int)
  /// A parameter that cannot be parsed, if no other alternative is usable.
  case parameter(String)
  /// Valid alternatives, none of which is served.
  case unsupported(String)
  /// Valid alternatives that others on the path could read, while the server requires encryption.
  case unencrypted(String)
  /// SRTP on a connection whose keys others could read.
  case keyInTheClear(String)

  /// The status of the response.
  public var status: ResponseStatus {
    switch self {
    case .unsupported, .unencrypted, .keyInTheClear: .unsupportedTransport
    default: .badRequest
    }
  }

  /// A one-line description for the log.
  public var description: String {
    switch self {
    case .missing: "SETUP without a Transport header; send one, such as RTP/AVP;unicast;client_port=5004-5005"
    case .alternatives(let count, let limit): "a Transport header of \(count) alternatives: at most \(limit) are read"
    case .parameter(let text): "\(excerpt(text)) in a Transport header: not what RFC 2326 section 12.39 allows"
    case .unsupported(let text): "the transport \(excerpt(text)) is not served; offer RTP/AVP over UDP or TCP"
    case .unencrypted(let text):
      "the transport \(excerpt(text)) could be read on the way; connect by rtsps and offer RTP/AVP/TCP or "
        + "RTP/SAVP"
    case .keyInTheClear(let text):
      "the transport \(excerpt(text)) needs a key that could be read on the way; connect by rtsps"
    }
  }

  /// The kind of failure.
  public var kind: FailureKind { .data }
}

/// One alternative of a `Transport` header, RFC 2326 section 12.39. Absent parameters are `nil`.
public struct TransportSpecification: Hashable, Sendable {
  /// The protocol below RTP.
  public enum LowerTransport: Hashable, Sendable {
    /// UDP, to the client or to a group: the default.
    case udp
    /// The RTSP connection itself.
    case tcp
  }

  /// The RTP profile.
  public var profile: TransportProfile
  /// The protocol below RTP.
  public var lower: LowerTransport
  /// `true` if the destination is a multicast group. The RFC's default is multicast. Here the default is unicast for
  /// TCP, and for a client that names its own ports.
  public var isMulticast: Bool
  /// `destination=`: the client's requested destination.
  public var destination: String?
  /// `source=`.
  public var source: String?
  /// `client_port=`.
  public var clientPorts: PortPair?
  /// `server_port=`.
  public var serverPorts: PortPair?
  /// `port=`: the ports of a group.
  public var groupPorts: PortPair?
  /// `interleaved=`.
  public var channels: ChannelPair?
  /// `ttl=`.
  public var timeToLive: UInt8?
  /// `ssrc=`.
  public var ssrc: UInt32?
  /// `true` if `mode=` names PLAY, or is absent.
  public var isPlay: Bool
  /// `true` if RTP and RTCP share a port: `RTCP-mux`, RFC 7826 section 18.54.
  public var isMultiplexed: Bool

  /// The maximum number of alternatives.
  public static let alternativesLimit = 16

  /// One parsed alternative.
  enum Alternative {
    case specification(TransportSpecification)
    /// A protocol other than RTP, whose parameters are unknown.
    case foreign
    case malformed(parameter: String)
  }

  /// Returns the alternatives of a header, in the client's order of preference.
  static func alternatives(_ header: String) throws(TransportError) -> [Alternative] {
    let parts = header.unquotedParts(at: UInt8(ascii: ","))
    guard parts.count <= alternativesLimit else { throw .alternatives(parts.count, limit: alternativesLimit) }
    return parts.map(alternative)
  }

  private static func alternative(_ text: String) -> Alternative {
    let parts = text.unquotedParts(at: UInt8(ascii: ";"))
    let protocols = (parts.first ?? "").split(separator: "/", omittingEmptySubsequences: false)
    guard (2...3).contains(protocols.count),
      let profile = TransportProfile(rawValue: "\(protocols[0])/\(protocols[1])".asciiUppercased)
    else { return .foreign }
    var lower = LowerTransport.udp
    if protocols.count == 3 {
      switch protocols[2].asciiUppercased {
      case "UDP": break
      case "TCP": lower = .tcp
      default: return .foreign
      }
    }
    var result = TransportSpecification(profile: profile, lower: lower, isMulticast: false, isPlay: true)
    var isMulticast: Bool?
    for part in parts.dropFirst() {
      let equals = part.firstIndex(of: "=")
      let name = part[..<(equals ?? part.endIndex)].trimmed.asciiLowercased
      let value = equals.map { part[part.index(after: $0)...].trimmed } ?? ""
      switch name {
      case "unicast": isMulticast = false
      case "multicast": isMulticast = true
      default: guard result.set(name, to: value) else { return .malformed(parameter: part) }
      }
    }
    result.isMulticast = isMulticast ?? (lower == .udp && result.clientPorts == nil)
    return .specification(result)
  }

  private init(profile: TransportProfile, lower: LowerTransport, isMulticast: Bool, isPlay: Bool) {
    self.profile = profile
    self.lower = lower
    self.isMulticast = isMulticast
    self.isPlay = isPlay
    isMultiplexed = false
  }

  /// Sets a parameter. Returns `false` if the value cannot be parsed. Parameters without a meaning here (`append`,
  /// `layers`, extensions) are ignored.
  private mutating func set(_ name: String, to value: String) -> Bool {
    switch name {
    case "destination": destination = value.isEmpty ? nil : value
    case "source": source = value.isEmpty ? nil : value
    case "client_port": return Self.read(value, into: &clientPorts) && clientPorts?.rtp != 0 && clientPorts?.rtcp != 0
    case "server_port": return Self.read(value, into: &serverPorts)
    case "port": return Self.read(value, into: &groupPorts)
    case "interleaved": return Self.read(value, into: &channels)
    case "ttl":
      timeToLive = value.decimal(digits: 3)
      return timeToLive != nil
    case "ssrc":
      // Eight hexadecimal digits; some clients omit leading zeros.
      guard (1...8).contains(value.utf8.count), value.utf8.allSatisfy(\.isLetterOrDigit) else { return false }
      ssrc = UInt32(value, radix: 16)
      return ssrc != nil
    case "mode":
      let modes = value.split { "\", ".contains($0) }
      isPlay = modes.contains { $0.isEqualIgnoringCase(to: "PLAY") }
      return !modes.isEmpty
    case "rtcp-mux": isMultiplexed = true
    default: break
    }
    return true
  }

  private static func read<Number>(_ text: String, into pair: inout TransportPair<Number>?) -> Bool {
    let parts = text.split(separator: "-", omittingEmptySubsequences: false)
    guard (1...2).contains(parts.count), let first: Number = parts[0].trimmed.decimal(digits: 5) else { return false }
    if parts.count == 2 {
      guard let second: Number = parts[1].trimmed.decimal(digits: 5) else { return false }
      pair = TransportPair(rtp: first, rtcp: second)
    } else {
      // A single number: RTCP has the next one, if there is one.
      let (next, isTooLarge) = first.addingReportingOverflow(1)
      guard !isTooLarge else { return false }
      pair = TransportPair(rtp: first, rtcp: next)
    }
    return true
  }
}

extension StringProtocol {
  var asciiLowercased: String { String(decoding: utf8.map(\.lowercased), as: UTF8.self) }
  var asciiUppercased: String {
    String(decoding: utf8.map { (0x61...0x7a).contains($0) ? $0 & ~0x20 : $0 }, as: UTF8.self)
  }
}

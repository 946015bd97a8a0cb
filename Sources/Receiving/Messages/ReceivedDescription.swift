import Media
import RTP

/// A session description of another sender, RFC 8866, as far as pictures and sound need it.
package struct ReceivedDescription: Equatable {
  /// One `m=` line with its attributes.
  package struct Medium: Equatable {
    /// The kind, such as `video`.
    var kind: String
    /// The port; 0 where SETUP determines it.
    package var port: UInt16
    /// The RTP profile, such as `RTP/AVP`.
    var profile: String
    /// The payload types, the preferred one first.
    var payloadTypes: [UInt8]
    /// `c=` of the medium, without a time to live.
    var address: String?
    /// The codec's name in upper case and the clock rate, by payload type.
    var encodings: [UInt8: Encoding] = [:]
    /// The parameters of `a=fmtp`, by payload type.
    var parameters: [UInt8: String] = [:]
    /// `a=control`.
    package var control: String?
    /// `true` if RTCP shares RTP's port.
    package var isMultiplexed = false
    /// `true` if feedback may come without a report before it (`a=rtcp-rsize`, RFC 5506).
    var isReducedSize = false
    /// The most routers that a group's packets may pass; nil where `c=` does not tell.
    var timeToLive: UInt8?
    /// The only sender in a group, `a=source-filter` (RFC 4570); nil for any.
    var sourceFilter: String?
    /// The values of `a=crypto`, RFC 4568.
    var cryptography: [String] = []
    /// The MIKEY messages of `a=key-mgmt`, RFC 4567, in base64.
    var keyManagement: [String] = []
  }

  /// The name and clock rate of `a=rtpmap`.
  struct Encoding: Equatable {
    /// The codec's name in upper case.
    var name: String
    /// The clock rate in Hz.
    var clockRate: Int
  }

  /// The media in their order.
  var media: [Medium] = []
  /// `c=` of the session.
  package var address: String?
  /// The most routers that a group's packets may pass, of the session.
  var timeToLive: UInt8?
  /// The only sender in a group, of the session.
  var sourceFilter: String?
  /// The MIKEY messages of the session.
  var keyManagement: [String] = []
  /// `a=control` of the session.
  var control: String?

  /// The limits of a description.
  static let (byteLimit, mediaLimit) = (65_536, 16)
  /// The limit of keys that one medium offers.
  private static let keyLimit = 8

  /// Parses a description. Lines that are not needed are skipped.
  ///
  /// - Throws: ``ReceiverError/malformed(_:)``.
  package init(_ bytes: [UInt8]) throws(ReceiverError) {
    guard bytes.count <= Self.byteLimit else {
      throw .malformed("a session description of \(bytes.count) bytes: at most \(Self.byteLimit) are read")
    }
    for part in bytes.split(whereSeparator: { $0 == 0x0a || $0 == 0x0d }) where part.count > 2 {
      let line = String(decoding: part, as: UTF8.self)
      guard line.dropFirst().first == "=", let type = line.first else {
        throw .malformed("the session description has a line that is none: \(Text.printable(line))")
      }
      try take(type, line.dropFirst(2))
    }
    guard !media.isEmpty else { throw .malformed("the session description has no media") }
  }

  private mutating func take(_ type: Character, _ value: Substring) throws(ReceiverError) {
    switch type {
    case "m":
      guard media.count < Self.mediaLimit else {
        throw .malformed("the session description has more than \(Self.mediaLimit) media")
      }
      media.append(try Self.medium(value))
    case "c":
      // c=IN IP4 192.0.2.1/127
      let words = value.split(separator: " ")
      guard words.count == 3, let host = words[2].split(separator: "/").first else { return }
      let parts = words[1] == "IP4" ? words[2].split(separator: "/") : []
      let hops = parts.count > 1 ? Text.decimal(parts[1], digits: 3).flatMap { UInt8(exactly: $0) } : nil
      if let last = media.indices.last {
        (media[last].address, media[last].timeToLive) = (String(host), hops)
      } else {
        (address, timeToLive) = (String(host), hops)
      }
    case "a": takeAttribute(value)
    default: break
    }
  }

  /// Parses `video 5004 RTP/AVP 96 97`.
  private static func medium(_ value: Substring) throws(ReceiverError) -> Medium {
    let words = value.split(separator: " ")
    guard words.count >= 4,
      let port = Text.decimal(words[1].prefix { $0 != "/" }, digits: 5).flatMap({ UInt16(exactly: $0) })
    else {
      throw .malformed("the session description has a malformed medium: \(Text.printable(value))")
    }
    let types = words[3...].prefix(128).compactMap { word in
      Text.decimal(word, digits: 3).flatMap { $0 < 128 ? UInt8($0) : nil }
    }
    return Medium(kind: words[0].lowercased(), port: port, profile: words[2].uppercased(), payloadTypes: types)
  }

  private mutating func takeAttribute(_ attribute: Substring) {
    let name = attribute.prefix { $0 != ":" }
    let value = attribute.dropFirst(name.count + 1)
    guard let last = media.indices.last else {
      switch name {
      case "control": control = Text.trimmed(value)
      case "key-mgmt": Self.add(Self.message(value), to: &keyManagement)
      case "source-filter": sourceFilter = Self.filter(value) ?? sourceFilter
      default: break
      }
      return
    }
    switch name {
    case "control": media[last].control = Text.trimmed(value)
    case "rtcp-rsize": media[last].isReducedSize = true
    case "rtcp-mux": media[last].isMultiplexed = true
    case "crypto": Self.add(Text.trimmed(value), to: &media[last].cryptography)
    case "key-mgmt": Self.add(Self.message(value), to: &media[last].keyManagement)
    case "source-filter": media[last].sourceFilter = Self.filter(value) ?? media[last].sourceFilter
    case "rtpmap":
      let words = value.split(separator: " ", maxSplits: 1)
      guard words.count == 2, let type = Text.decimal(words[0], digits: 3), type < 128 else { return }
      let parts = words[1].split(separator: "/")
      guard parts.count >= 2, let rate = Text.decimal(Text.trimmed(parts[1]), digits: 7) else { return }
      media[last].encodings[UInt8(type)] = Encoding(name: parts[0].uppercased(), clockRate: rate)
    case "fmtp":
      let words = value.split(separator: " ", maxSplits: 1)
      guard words.count == 2, let type = Text.decimal(words[0], digits: 3), type < 128 else { return }
      media[last].parameters[UInt8(type)] = String(words[1])
    default: break
    }
  }

  private static func add(_ key: String?, to keys: inout [String]) {
    if let key, keys.count < keyLimit { keys.append(key) }
  }

  /// Returns the message of `mikey BASE64`; nil for another protocol.
  private static func message(_ value: Substring) -> String? {
    let words = value.split(separator: " ", maxSplits: 1)
    return words.count == 2 && words[0].lowercased() == "mikey" ? Text.trimmed(words[1]) : nil
  }

  /// Returns the sender of `incl IN IP4 GROUP SENDER`; nil for an exclusion, and for several senders.
  private static func filter(_ value: Substring) -> String? {
    let words = value.split(separator: " ")
    return words.count == 5 && words[0] == "incl" ? String(words[4]) : nil
  }
}

import Foundation

/// A session description as players with live555 read it (VLC's own builds, MPlayer, openRTSP, many recorders), by the
/// rules of `MediaSession::initializeWithSDP`, live555 2026.06.24. openRTSP says of `m=video 0 RTP/AVPF 96 97`: Bad SDP
/// "m=" line.
package struct Live555Description {
  /// The medium that is received of one `m=` line.
  package struct Media {
    /// `video`.
    package let medium: String
    /// The port, 0 where SETUP settles it.
    package let port: UInt16
    /// `RTP` or `SRTP`.
    package let protocolName: String
    /// The first payload type; others are not looked at.
    package let payloadType: Int
    /// The codec in capitals, by `a=rtpmap` of the payload type or by the type itself.
    package fileprivate(set) var codec = ""
    /// Hertz.
    package fileprivate(set) var frequency = 0
    /// The channels of sound; 1 where `a=rtpmap` names none.
    package fileprivate(set) var channels = 1
    /// `a=control`.
    package fileprivate(set) var control: String?
    /// The parameters of all `a=fmtp`, whichever their payload type, names in small letters.
    package fileprivate(set) var parameters: [String: String] = [:]
    /// `true` if RTCP shares the port.
    package fileprivate(set) var isMultiplexed = false
    /// The messages of MIKEY.
    package fileprivate(set) var keys: [String] = []
  }

  /// A line or medium that live555 refuses.
  package struct Refused: Error, CustomStringConvertible {
    /// Its complaint.
    package let description: String
  }

  /// The received media; a player plays nothing where there are none.
  package private(set) var media: [Media] = []
  /// Its complaints: a bad `m=` line is left out with all that follows up to the next.
  package private(set) var complaints: [String] = []

  /// The codecs for which it has a source (`MediaSubsession::createSourceObjects`), as far as this program and its
  /// tests have them.
  private static let codecs: Set<String> = ["H264", "H265", "MP2T", "OPUS", "L16"]

  /// Reads one.
  ///
  /// - Throws: ``Refused`` where live555 has no session at all.
  package init(_ text: String) throws {
    var isSkipping = false
    var isSession = true
    for line in text.split(whereSeparator: { $0 == "\r\n" || $0 == "\r" || $0 == "\n" }) {
      guard line.utf8.count >= 2, line.dropFirst().first == "=", let type = line.first, ("a"..."z").contains(type)
      else {
        throw Refused(description: "Invalid SDP line: \(line)")
      }
      if type == "m" {
        (isSession, isSkipping) = (false, false)
        guard let new = Self.medium(line) else {
          complaints.append("Bad SDP \"m=\" line: \(line)")
          isSkipping = true
          continue
        }
        media.append(new)
      } else if !isSession, !isSkipping {
        read(line)
      }
    }
    for index in media.indices where media[index].codec.isEmpty {
      // Of the static ones, what this program has.
      guard media[index].payloadType == 33 else {
        throw Refused(description: "Unknown codec name for RTP payload type \(media[index].payloadType)")
      }
      (media[index].codec, media[index].frequency) = ("MP2T", 90_000)
    }
    complaints += media.filter { !Self.codecs.contains($0.codec) }.map { "RTP payload format \($0.codec) unknown" }
  }

  /// `m=%s %hu RTP/AVP %u` or `m=%s %hu RTP/SAVP %u` (or UDP, which is not RTP), with or without `/%u` behind the port.
  private static func medium(_ line: Substring) -> Media? {
    let fields = line.dropFirst(2).split(separator: " ")
    guard fields.count >= 4, let port = UInt16(fields[1].prefix { $0 != "/" }),
      let name = ["RTP/AVP": "RTP", "RTP/SAVP": "SRTP"][String(fields[2])],
      let payloadType = Int(fields[3].prefix(while: \.isNumber)), payloadType <= 127
    else { return nil }
    return Media(medium: String(fields[0]), port: port, protocolName: name, payloadType: payloadType)
  }

  private mutating func read(_ line: Substring) {
    let last = media.count - 1
    func value(_ name: String) -> Substring? { line.hasPrefix("a=\(name):") ? line.dropFirst(name.count + 3) : nil }
    if line.hasPrefix("a=rtcp-mux") {
      media[last].isMultiplexed = true
    } else if let value = value("rtpmap") {
      let fields = value.split(separator: " ")
      let parts = fields.last?.split(separator: "/") ?? []
      guard fields.count == 2, Int(fields[0]) == media[last].payloadType, let codec = parts.first else { return }
      media[last].codec = codec.uppercased()
      media[last].frequency = parts.count > 1 ? Int(parts[1]) ?? 0 : 90_000
      media[last].channels = parts.count > 2 ? Int(parts[2]) ?? 0 : 1
    } else if let value = value("control") {
      media[last].control = value.split(separator: " ").first.map(String.init)
    } else if let value = value("fmtp") {
      for part in value.drop(while: \.isNumber).split(separator: ";") {
        let pair = part.split(separator: "=", maxSplits: 1).map { $0.filter { $0 != " " } }
        if pair.count == 2 { media[last].parameters[pair[0].lowercased()] = String(pair[1]) }
      }
    } else if let value = value("key-mgmt") {
      let fields = value.split(separator: " ")
      if fields.count == 2, fields[0] == "mikey" { media[last].keys.append(String(fields[1])) }
    }
  }
}

/// A session description as Android's Media3 reads it, the former ExoPlayer, by the rules of its
/// `SessionDescriptionParser`, `MediaDescription` and `RtspMediaTrack`.
package struct Media3Description {
  /// A line that ends its attempt.
  package struct Malformed: Error, CustomStringConvertible {
    /// The line, or what is missing.
    package let description: String
  }

  /// The medium that is received of one `m=` line.
  package struct Media {
    /// `video` or `audio`.
    package let medium: String
    /// The one payload type.
    package let payloadType: Int
    /// As `a=rtpmap` writes it.
    package let encoding: String
    /// Hertz.
    package let clockRate: Int
    /// The channels of sound; 1 where `a=rtpmap` names none.
    package let channels: Int
    /// By their names; of two of one name the last.
    package let attributes: [String: String]
    /// The parameters of `a=fmtp`.
    package let parameters: [String: String]
  }

  /// The received media.
  package private(set) var media: [Media] = []

  /// Reads one.
  ///
  /// - Throws: ``Malformed``.
  package init(_ text: String) throws {
    var session: Set<Character> = []
    var open: (medium: String, payloadType: Int, attributes: [String: String])?
    func closed() throws -> [Media] {
      guard let open else { return [] }
      return [try Media(open.medium, payloadType: open.payloadType, open.attributes)]
    }
    for line in text.components(separatedBy: "\r\n") where !line.isEmpty {
      guard let type = line.first, ("a"..."z").contains(type), line.dropFirst().first == "=", line.count > 2 else {
        throw Malformed(description: line)
      }
      let value = line.dropFirst(2)
      session.insert(type)
      switch type {
      case "v" where value != "0": throw Malformed(description: line)
      case "b" where value.split(separator: ":").count != 2 || Int(value.split(separator: ":")[1]) == nil:
        throw Malformed(description: line)
      case "a":
        let pair = value.split(separator: ":", maxSplits: 1, omittingEmptySubsequences: false)
        guard !pair[0].isEmpty, pair[0].allSatisfy(Self.isTokenCharacter) else { throw Malformed(description: line) }
        open?.attributes[String(pair[0])] = pair.count == 2 ? String(pair[1]) : ""
      case "m":
        media += try closed()
        // The whole value, and no more than four fields. A medium whose port or type is no number is left out by newer
        // releases, and ends the attempt of older ones.
        let fields = value.split(separator: " ", omittingEmptySubsequences: false)
        guard fields.count == 4, Int(fields[1]) != nil, let payloadType = Int(fields[3]) else {
          throw Malformed(description: line)
        }
        open = (String(fields[0]), payloadType, [:])
      default: break
      }
    }
    media += try closed()
    guard session.isSuperset(of: "ost") else { throw Malformed(description: "no origin, name or time") }
  }

  /// `token-char` of RFC 8866 section 9.
  private static func isTokenCharacter(_ character: Character) -> Bool {
    character.isASCII && (character.isLetter || character.isNumber || "!#$%&'*+-.^_`{|}~".contains(character))
  }
}

extension Media3Description.Media {
  /// Reads the attributes of a medium.
  fileprivate init(_ medium: String, payloadType: Int, _ attributes: [String: String]) throws {
    func malformed(_ what: String) -> Media3Description.Malformed { .init(description: "\(what) of \(medium)") }
    let map = (attributes["rtpmap"] ?? "").split(separator: " ", maxSplits: 1)
    let parts = map.last?.split(separator: "/") ?? []
    guard map.count == 2, Int(map[0]) != nil, parts.count >= 2, let clockRate = Int(parts[1]), clockRate > 0,
      let channels = parts.count == 3 ? Int(parts[2]) : 1
    else { throw malformed("rtpmap \(attributes["rtpmap"] ?? "is missing")") }
    let encoding = String(parts[0])
    var parameters: [String: String] = [:]
    if let text = attributes["fmtp"] {
      let fields = text.split(separator: " ", maxSplits: 1)
      guard fields.count == 2 else { throw malformed("fmtp \(text)") }
      for parameter in fields[1].split(separator: ";") {
        // Each has a value, and no name comes twice.
        let pair = parameter.drop(while: \.isWhitespace).split(separator: "=", maxSplits: 1)
        guard pair.count == 2, parameters.updateValue(String(pair[1]), forKey: String(pair[0])) == nil else {
          throw malformed("parameter \(parameter)")
        }
      }
    }
    let isComplete =
      switch encoding.uppercased() {
      case "H264": parameters["sprop-parameter-sets"]?.split(separator: ",").count == 2
      case "H265": ["sprop-vps", "sprop-sps", "sprop-pps"].allSatisfy { parameters[$0] != nil }
      case "OPUS": clockRate == 48_000
      default: true
      }
    guard isComplete else { throw malformed("parameters \(parameters)") }
    self.init(
      medium: medium, payloadType: payloadType, encoding: encoding, clockRate: clockRate, channels: channels,
      attributes: attributes, parameters: parameters)
  }
}

/// The media of a session description that live555 and Media3 both play.
package enum PlayableMedia {
  /// Returns the media of `text`, as live555 reads them.
  ///
  /// - Throws: the complaint of the player that receives not all of them, or the difference between both.
  package static func of(_ text: String) throws -> [Live555Description.Media] {
    let (live555, media3) = (try Live555Description(text), try Media3Description(text))
    let read = live555.media.map { medium in
      "\(medium.medium) \(medium.payloadType) \(medium.codec)/\(medium.frequency)/\(medium.channels) "
        + (medium.control ?? "")
    }
    let other = media3.media.map { medium in
      "\(medium.medium) \(medium.payloadType) \(medium.encoding.uppercased())/\(medium.clockRate)/\(medium.channels) "
        + (medium.attributes["control"] ?? "")
    }
    guard live555.complaints.isEmpty, read == other else {
      let complaints = live555.complaints.joined(separator: ", ")
      throw Live555Description.Refused(
        description: "live555 reads \(read), and Media3 \(other). \(complaints)\n\(text)")
    }
    return live555.media
  }
}

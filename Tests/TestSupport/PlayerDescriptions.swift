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
    /// The one payload type.
    package let payloadType: Int
    /// As `a=rtpmap` writes it.
    package let encoding: String
    /// By their names; of two of one name the last.
    package let attributes: [String: String]
  }

  /// The received media.
  package private(set) var media: [Media] = []

  /// Reads one.
  ///
  /// - Throws: ``Malformed``.
  package init(_ text: String) throws {
    var session: Set<Character> = []
    var open: (payloadType: Int, attributes: [String: String])?
    func closed() throws -> [Media] {
      guard let open else { return [] }
      let fields = (open.attributes["rtpmap"] ?? "").split(separator: " ")
      let parts = fields.last?.split(separator: "/") ?? []
      guard fields.count == 2, Int(fields[0]) != nil, parts.count >= 2, Int(parts[1]) != nil else {
        throw Malformed(description: "rtpmap \(open.attributes["rtpmap"] ?? "is missing")")
      }
      return [Media(payloadType: open.payloadType, encoding: String(parts[0]), attributes: open.attributes)]
    }
    for line in text.components(separatedBy: "\r\n") where !line.isEmpty {
      guard let type = line.first, type.isLowercase, line.dropFirst().first == "=", line.count > 2 else {
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
        guard !pair[0].isEmpty, !pair[0].contains(" ") else { throw Malformed(description: line) }
        open?.attributes[String(pair[0])] = pair.count == 2 ? String(pair[1]) : ""
      case "m":
        media += try closed()
        // The whole value, and no more than four fields.
        let fields = value.split(separator: " ", omittingEmptySubsequences: false)
        guard fields.count == 4, Int(fields[1]) != nil, let payloadType = Int(fields[3]) else {
          throw Malformed(description: line)
        }
        open = (payloadType, [:])
      default: break
      }
    }
    media += try closed()
    guard session.isSuperset(of: "ost") else { throw Malformed(description: "no origin, name or time") }
  }
}

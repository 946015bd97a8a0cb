import Media
package import Platform
package import RTP
package import RTSP
package import SRTP

extension ReceivedDescription {
  /// One stream of a description that is received.
  package struct Track: Equatable {
    /// The contents of its packets.
    package var contents: RTPReceiver.Contents
    /// The medium.
    package var medium: Medium
    /// The payload type of the contents.
    package var payloadType: UInt8
    /// The payload type of retransmissions; nil if there are none.
    package var retransmissionPayloadType: UInt8?
    /// The parameter sets of `sprop-parameter-sets`, or of `sprop-vps`, `sprop-sps` and `sprop-pps`, in the order in which a decoder
    /// needs them; empty where there are none.
    package var parameterSets: [[UInt8]] = []
    /// The address of `c=`, of the medium or else of the session.
    package var address: IPAddress?
    /// The only sender in a group; nil for any.
    package var source: IPAddress?
    /// The most routers that a group's packets may pass; nil where the description does not tell.
    package var timeToLive: UInt8?
    /// The MIKEY messages of the medium, or else of the session.
    var keyManagement: [String] = []

    /// The kind, for messages.
    var name: String { contents == .opus ? "sound" : "picture" }
  }

  /// Returns the first stream of H.264, or else of HEVC.
  ///
  /// - Throws: ``ReceiverError/unsupported(_:)``.
  package func picture() throws(ReceiverError) -> Track {
    for (name, contents) in Self.contents {
      for medium in media where medium.kind == "video" {
        for type in medium.payloadTypes where medium.encodings[type]?.name == name {
          return try picture(contents, medium, type)
        }
      }
    }
    let others = media.filter { $0.kind == "video" }.flatMap { medium in
      medium.payloadTypes.compactMap { medium.encodings[$0]?.name }
    }
    let found = others.isEmpty ? "" : "; its codecs are \(Text.printable(others.joined(separator: ", ")))"
    throw .unsupported("the session description has no H.264 or HEVC stream\(found)")
  }

  /// The contents by their encoding names, the preferred one first: where a medium has both, H.264 is cheaper to decode.
  private static let contents: [(name: String, contents: RTPReceiver.Contents)] = [("H264", .h264), ("H265", .hevc)]

  private func picture(
    _ contents: RTPReceiver.Contents, _ medium: Medium, _ type: UInt8
  ) throws(ReceiverError) -> Track {
    guard TransportProfile(rawValue: medium.profile) != nil else {
      throw .unsupported(
        "the stream's profile is \(Text.printable(medium.profile)); RTP/AVP, AVPF, SAVP and SAVPF are received")
    }
    let codec = contents.codec ?? .h264
    let rate = medium.encodings[type]?.clockRate ?? 0
    guard rate == 90_000 else { throw .unsupported("\(codec.title) with a clock of \(rate) Hz") }
    var track = track(contents, medium, type)
    track.parameterSets = try Self.parameterSets(of: codec, Self.formatParameters(medium.parameters[type] ?? ""))
    return track
  }

  /// Returns the parameter sets among the parameters of the format, and checks the mode of the packets.
  ///
  /// - Throws: ``ReceiverError/unsupported(_:)``.
  private static func parameterSets(
    of codec: VideoCodec, _ parameters: [String: String]
  ) throws(ReceiverError) -> [[UInt8]] {
    switch codec {
    case .h264:
      if let mode = parameters["packetization-mode"], mode != "0", mode != "1" {
        throw .unsupported(
          "H.264 in packetization-mode \(Text.printable(String(mode.prefix(8)))): 0 and 1 are received")
      }
      // RFC 6184 section 8.1.
      let sets = decoded(parameters["sprop-parameter-sets"])
      return sets.filter { $0[0] & 0x1f == 7 } + sets.filter { $0[0] & 0x1f == 8 }
    case .hevc:
      if let difference = parameters["sprop-max-don-diff"], difference != "0" {
        throw .unsupported(
          "HEVC with sprop-max-don-diff \(Text.printable(String(difference.prefix(8)))): 0 is received")
      }
      if let mode = parameters["tx-mode"], mode.uppercased() != "SRST" {
        throw .unsupported("HEVC with tx-mode \(Text.printable(String(mode.prefix(8)))): SRST is received")
      }
      // RFC 7798 section 7.1.
      return ["sprop-vps", "sprop-sps", "sprop-pps"].flatMap { decoded(parameters[$0]) }
    }
  }

  /// Returns the first stream of Opus, RFC 7587 section 7; nil if there is none.
  package func sound() -> Track? {
    for medium in media where medium.kind == "audio" && TransportProfile(rawValue: medium.profile) != nil {
      let type = medium.payloadTypes.first { type in
        medium.encodings[type] == Encoding(name: "OPUS", clockRate: Int(OpusPacketizer.clockRate))
      }
      if let type { return track(.opus, medium, type) }
    }
    return nil
  }

  /// The codecs of sound that are not received, for people; nil where there is no sound, or Opus.
  package var otherSound: String? {
    guard sound() == nil else { return nil }
    let sounds = media.filter { $0.kind == "audio" }
    guard !sounds.isEmpty else { return nil }
    let names = sounds.flatMap { medium in medium.payloadTypes.map { medium.encodings[$0]?.name ?? "type \($0)" } }
    return Text.printable(names.joined(separator: ", "))
  }

  private func track(_ contents: RTPReceiver.Contents, _ medium: Medium, _ type: UInt8) -> Track {
    Track(
      contents: contents, medium: medium, payloadType: type,
      retransmissionPayloadType: medium.retransmission(of: type),
      address: (medium.address ?? address).flatMap { IPAddress($0) },
      source: (medium.sourceFilter ?? sourceFilter).flatMap { IPAddress($0) },
      timeToLive: medium.address == nil ? timeToLive : medium.timeToLive,
      keyManagement: medium.keyManagement.isEmpty ? keyManagement : medium.keyManagement)
  }

  /// Parses `name=value;name=value`; names in lower case.
  static func formatParameters(_ text: String) -> [String: String] {
    var values: [String: String] = [:]
    for part in text.split(separator: ";") {
      let words = part.split(separator: "=", maxSplits: 1)
      guard words.count == 2 else { continue }
      values[Text.trimmed(words[0]).lowercased()] = Text.trimmed(words[1])
    }
    return values
  }

  /// Returns the NAL units of base64 texts with commas between them, the empty and the too long ones left out.
  private static func decoded(_ text: String?) -> [[UInt8]] {
    (text?.split(separator: ",").prefix(32) ?? []).compactMap { part in
      guard part.utf8.count <= 2 * ParameterSets.lengthLimit else { return nil }
      return Base64.decode(part.utf8).flatMap { $0.isEmpty ? nil : $0 }
    }
  }
}

extension TransportProfile {
  /// `true` if receivers may ask for packets at once (RFC 4585).
  var hasFeedback: Bool { self == .avpf || self == .savpf }
  /// The profile without encryption.
  package var unprotected: TransportProfile { hasFeedback ? .avpf : .avp }
}

extension ReceivedDescription.Track {
  /// The key of a track's sender, and its sources.
  package struct SenderKey: Equatable {
    /// The key.
    package var key: SRTPKey
    /// The sources that the sender names, with their rollover counters.
    var streams: [MIKEYMessage.Stream] = []
    /// `true` if the key came by MIKEY: each side then has a key of its own.
    package var isOneWay = false

    /// Parses a MIKEY message in base64, RFC 3830.
    ///
    /// - Throws: ``ReceiverError/key(_:)``.
    init(mikey text: String) throws(ReceiverError) {
      do throws(MIKEYError) {
        let message = try MIKEYMessage(text: text)
        (key, streams, isOneWay) = (message.key, message.streams, true)
      } catch {
        throw .key("\(error)")
      }
    }

    /// Parses the value of `a=crypto`, RFC 4568.
    ///
    /// - Throws: ``ReceiverError/key(_:)``.
    init(crypto text: String) throws(ReceiverError) {
      do throws(SRTPKeyError) {
        key = try CryptoAttribute(parsing: text).key
      } catch {
        throw .key("\(error)")
      }
    }
  }

  /// The profile of the medium.
  package var profile: TransportProfile { TransportProfile(rawValue: medium.profile) ?? .avp }

  /// Returns the first key of the description that can be used.
  ///
  /// - Throws: ``ReceiverError/key(_:)`` where there is none. No part of a key is in it.
  package func senderKey() throws(ReceiverError) -> SenderKey {
    var failure: ReceiverError?
    for text in medium.cryptography {
      do throws(ReceiverError) { return try SenderKey(crypto: text) } catch { failure = failure ?? error }
    }
    for text in keyManagement {
      do throws(ReceiverError) { return try SenderKey(mikey: text) } catch { failure = failure ?? error }
    }
    throw failure
      ?? .key("the \(name) is encrypted (\(medium.profile)), and the session description has no key for it")
  }
}

extension ReceivedDescription.Medium {
  /// Returns the payload type of the retransmissions of `type`, RFC 4588 section 8.6.
  fileprivate func retransmission(of type: UInt8) -> UInt8? {
    payloadTypes.first { other in
      guard encodings[other]?.name == "RTX" else { return false }
      return ReceivedDescription.formatParameters(parameters[other] ?? "")["apt"] == "\(type)"
    }
  }
}

package import Media
package import RTP
import SRTP

/// The tracks that the server has to send.
package struct SentTracks: Sendable {
  /// The pictures, as far as a decoder's support of them goes.
  package enum Pictures: Hashable, Sendable {
    /// H.264 with the profile and level of the parameter sets, such as `42c01f`.
    case h264(profileLevelID: String)
    /// HEVC with the profile, tier and level of the parameter sets.
    case hevc(HEVCProfileTierLevel)

    /// The name for people.
    package var name: String {
      switch self {
      case .h264(let profileLevelID): "H.264 with profile-level-id \(profileLevelID)"
      case .hevc(let profile):
        "H265 with profile-id \(profile.profileIDC), tier-flag \(profile.isHighTier ? 1 : 0), level-id \(profile.levelIDC)"
      }
    }
  }

  /// The pictures.
  package var pictures: Pictures
  /// The channels of the sound; `nil` without sound.
  package var sound: OpusChannels?

  /// Creates a value with pictures of H.264.
  package init(profileLevelID: String, sound: OpusChannels? = nil) {
    (pictures, self.sound) = (.h264(profileLevelID: profileLevelID), sound)
  }

  /// Creates a value.
  package init(pictures: Pictures, sound: OpusChannels? = nil) { (self.pictures, self.sound) = (pictures, sound) }

  /// Creates a value for pictures of these parameter sets.
  ///
  /// - Throws: ``ParameterSetError`` for an SPS of HEVC that cannot be read.
  package init(_ sets: ParameterSets, sound: OpusChannels? = nil) throws(ParameterSetError) {
    switch sets.codec {
    case .h264: pictures = .h264(profileLevelID: sets.profileLevelID)
    case .hevc: pictures = .hevc(try HEVCSequenceParameterSet(nalUnit: sets.sequence).profileTierLevel)
    }
    self.sound = sound
  }
}

/// The media that an offer and the tracks of the server have in common (RFC 3264, RFC 8829 section 5.3).
package struct Negotiation: Sendable {
  /// A medium that both sides know, and that is sent if the server has such a track.
  package struct Medium: Sendable {
    /// The index of the `m=` line.
    package let index: Int
    /// Pictures or sound.
    package let type: PayloadDescription.MediaType
    /// The codec of the offer.
    package let codec: OfferedMedium.Codec
    /// The payload type of retransmissions (RFC 4588); `nil` if the peer takes none.
    package let retransmission: UInt8?
    /// The value of `a=fmtp`.
    package let parameters: String
    /// The answered requests, such as `nack pli`.
    package let feedback: [String]
    /// The number of the header extension with the time of sending; `nil` where it is not offered.
    package var sendTimeExtension: UInt8?
    /// `true` if it is sent. Sound that the server does not have is inactive and not refused: aiortc takes no refusal.
    package let isSent: Bool
  }

  /// The offer.
  package let offer: SessionOffer
  /// The media that both sides know, in the order of the offer.
  package let media: [Medium]
  /// The media that are sent.
  package var sent: [Medium] { media.filter(\.isSent) }
  /// The peer's credentials.
  package let credentials: ICECredentials
  /// The SHA-256 hashes of which the peer's certificate has one.
  package let fingerprints: [[UInt8]]

  /// Finds what is in common. At most one medium of pictures and one of sound is sent, in one bundle (RFC 9143).
  ///
  /// - Throws: ``OfferError``.
  package init(_ offer: SessionOffer, sending tracks: SentTracks) throws(OfferError) {
    self.offer = offer
    var media: [Medium] = []
    var missing: OfferError?
    for (index, medium) in offer.media.enumerated() {
      guard !medium.isRefused, medium.direction.receives,
        let type = PayloadDescription.MediaType(rawValue: medium.type), !media.contains(where: { $0.type == type }),
        media.isEmpty || offer.isBundled(index, with: media[0].index)
      else { continue }
      if let chosen = type == .video ? Self.pictures(medium, index, tracks) : Self.sound(medium, index, tracks) {
        media.append(chosen)
      } else if type == .video {
        // Sound alone is not what a viewer of pictures has asked for.
        let names = medium.codecs.map { $0.name.uppercased() }.filter { !["RTX", "RED", "ULPFEC", ""].contains($0) }
        missing = .noCodec(
          stream: tracks.pictures.name,
          offered: names.reduce(into: []) { if !$0.contains($1) { $0.append($1) } })
      }
    }
    if let missing, !media.contains(where: { $0.type == .video }) { throw missing }
    guard media.contains(where: \.isSent), let first = media.first.map({ offer.media[$0.index] }) else {
      throw .nothingToSend
    }
    self.media = media
    // The first of a bundle speaks for all (RFC 9143 section 7.1.3).
    guard first.multiplexesControl else { throw .noMultiplexing }
    guard !first.isLite else { throw .lite }
    guard let credentials = first.credentials else { throw .noCredentials }
    self.credentials = credentials
    guard first.setup == .actpass || first.setup == .active else { throw .setup }
    fingerprints = first.fingerprints.filter { $0.hashFunction == "sha-256" && $0.bytes.count == 32 }.map(\.bytes)
    guard !fingerprints.isEmpty else { throw .noFingerprint }
  }

  private static let videoFeedback = ["goog-remb", "ccm fir", "nack", "nack pli"]

  private static func pictures(_ medium: OfferedMedium, _ index: Int, _ tracks: SentTracks) -> Medium? {
    guard
      let (codec, parameters) =
        switch tracks.pictures {
        case .h264(let profileLevelID): medium.h264(profileLevelID)
        case .hevc(let profile): medium.hevc(profile)
        }
    else { return nil }
    let retransmission = medium.codecs.first {
      $0.name == "rtx" && $0.parameters["apt"] == "\(codec.payloadType)"
    }
    return Medium(
      index: index, type: .video, codec: codec, retransmission: retransmission?.payloadType,
      parameters: parameters,
      feedback: videoFeedback.filter(codec.feedback.contains), sendTimeExtension: medium.sendTimeExtension,
      isSent: true)
  }

  private static func sound(_ medium: OfferedMedium, _ index: Int, _ tracks: SentTracks) -> Medium? {
    guard let codec = medium.codecs.first(where: { $0.name == "opus" && $0.clockRate == 48_000 && $0.channels == 2 })
    else { return nil }
    let stereo = tracks.sound == .stereo ? 1 : 0
    return Medium(
      index: index, type: .audio, codec: codec, retransmission: nil,
      parameters: "minptime=20;useinbandfec=1;stereo=\(stereo);sprop-stereo=\(stereo)", feedback: [],
      isSent: tracks.sound != nil)
  }
}

extension SessionOffer {
  /// Returns `true` if the media share one transport.
  func isBundled(_ one: Int, with other: Int) -> Bool {
    guard let one = media[one].identifier, let other = media[other].identifier else { return false }
    return bundles.contains { $0.contains(one) && $0.contains(other) }
  }
}

extension OfferedMedium {
  /// Returns the offered codec that decodes H.264 of this profile and level, and the parameters of the answer; nil where there
  /// is none.
  fileprivate func h264(_ profileLevelID: String) -> (codec: Codec, parameters: String)? {
    guard let stream = ProfileLevelID(profileLevelID) else { return nil }
    let candidates = codecs.filter {
      $0.name == "h264" && $0.clockRate == Int(RTPStream.videoClockRate) && $0.parameters["packetization-mode"] == "1"
        && $0.profile?.decodes(stream) == true
    }
    guard let codec = candidates.first(where: { $0.profile == stream }) ?? candidates.first else { return nil }
    return (codec, codec.answeredParameters(of: profileLevelID, stream))
  }

  /// Returns the offered codec that decodes HEVC of this profile, tier and level, and the parameters of the answer; nil where
  /// there is none.
  fileprivate func hevc(_ stream: HEVCProfileTierLevel) -> (codec: Codec, parameters: String)? {
    let candidates = codecs.compactMap { codec -> (codec: Codec, configuration: HEVCFormatParameters)? in
      guard codec.name == "h265", codec.clockRate == Int(RTPStream.videoClockRate),
        let configuration = HEVCFormatParameters(codec.parameters), configuration.decodes(stream)
      else { return nil }
      return (codec, configuration)
    }
    let exact = candidates.first { $0.configuration.profileIDC == stream.profileIDC }
    return (exact ?? candidates.first).map { found in
      // The numbers are written anew: no text of the offer goes into the answer.
      (found.codec, found.configuration.answer(for: stream).text + ";tx-mode=SRST")
    }
  }
}

extension OfferedMedium.Codec {
  /// The profile of `profile-level-id`; without that parameter, Baseline (RFC 6184 section 8.1).
  fileprivate var profile: ProfileLevelID? {
    ProfileLevelID(parameters["profile-level-id"] ?? "42000a")
  }

  /// The parameters of the answer. The profile is the offered one, because a browser takes another one for another
  /// codec; the level is the stream's own, where the offer allows that (RFC 6184 section 8.2.2).
  fileprivate func answeredParameters(of stream: String, _ profile: ProfileLevelID) -> String {
    let offered = parameters["profile-level-id"] ?? "42000a"
    guard parameters["level-asymmetry-allowed"] == "1" else {
      return "packetization-mode=1;profile-level-id=\(offered)"
    }
    let own = self.profile == profile ? stream : String(offered.prefix(4) + stream.suffix(2))
    return "level-asymmetry-allowed=1;packetization-mode=1;profile-level-id=\(own)"
  }
}

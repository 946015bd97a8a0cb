import Media
package import RTP
import SRTP

/// The tracks that the server has to send.
package struct SentTracks: Sendable {
  /// The profile and level of the pictures' parameter sets, such as `42c01f`.
  package var profileLevelID: String
  /// The channels of the sound; `nil` without sound.
  package var sound: OpusChannels?

  /// Creates a value.
  package init(profileLevelID: String, sound: OpusChannels? = nil) {
    (self.profileLevelID, self.sound) = (profileLevelID, sound)
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
          stream: "H.264 with profile-level-id \(tracks.profileLevelID)",
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
    guard let stream = ProfileLevelID(tracks.profileLevelID) else { return nil }
    let candidates = medium.codecs.filter {
      $0.name == "h264" && $0.clockRate == Int(RTPStream.videoClockRate) && $0.parameters["packetization-mode"] == "1"
        && $0.profile?.decodes(stream) == true
    }
    guard let codec = candidates.first(where: { $0.profile == stream }) ?? candidates.first else { return nil }
    let retransmission = medium.codecs.first {
      $0.name == "rtx" && $0.parameters["apt"] == "\(codec.payloadType)"
    }
    return Medium(
      index: index, type: .video, codec: codec, retransmission: retransmission?.payloadType,
      parameters: codec.answeredParameters(of: tracks.profileLevelID, stream),
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

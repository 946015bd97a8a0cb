import Media
import Platform
import RTP
import WebRTC

/// Any text as the offer of a browser, to servers with several tracks. An answer has one medium for each medium of the offer,
/// has no line but those that we write, and is read again.
enum FuzzSessionOffer {
  static let tracks = [
    SentTracks(profileLevelID: "42c01f", sound: .stereo), SentTracks(profileLevelID: "640028", sound: .mono),
    SentTracks(profileLevelID: "4d0028"), SentTracks(pictures: .hevc(.main(levelIDC: 120)), sound: .mono),
  ]
  // No offer can know them.
  static let credentials = ICECredentials()
  static let fingerprint = [UInt8](repeating: 0xab, count: 32)
  // A port of one digit: no line of an answer is longer than that of the offer.
  static let candidates = [false, true].map { Candidate(address: .unspecified(isIPv6: $0), port: 9) }
  /// The attributes that stand in every medium, once.
  static let ownAttributes = [
    "a=rtcp-mux", "a=ice-ufrag:\(credentials.fragment)", "a=ice-pwd:\(credentials.password)",
    "a=fingerprint:sha-256 \(fingerprint.map { _ in "AB" }.joined(separator: ":"))", "a=setup:passive",
  ]
  /// The names of all attributes of an answer.
  static let attributeNames: Set<Substring> = [
    "group", "ice-lite", "msid-semantic", "mid", "inactive", "sendonly", "rtcp-mux", "rtcp-rsize", "rtcp-xr",
    "ice-ufrag", "ice-pwd", "fingerprint", "setup", "rtpmap", "fmtp", "rtcp-fb", "msid", "ssrc-group", "ssrc",
    "candidate", "end-of-candidates", "extmap",
  ]

  static func take(_ input: UnsafeRawBufferPointer) {
    guard input.count <= 8192 else { return }
    let text = String(decoding: input, as: UTF8.self)
    let offer: SessionOffer
    do throws(OfferError) { offer = try SessionOffer(parsing: text) } catch { return check(error) }
    precondition((1...SessionOffer.Limits.media).contains(offer.media.count))
    precondition(offer.media.allSatisfy { $0.formats.count <= SessionOffer.Limits.payloadTypes })
    if text.utf8.allSatisfy({ $0 < 0x80 }) {
      let count = text.utf8.split(separator: 10).count { $0.starts(with: "m=".utf8) }
      precondition(count == offer.media.count, "a medium that is made up, or not read")
    }
    for sent in tracks {
      do throws(OfferError) { answer(try Negotiation(offer, sending: sent), sent) } catch { check(error) }
    }
  }

  /// A message is one line.
  static func check(_ error: OfferError) {
    precondition(!error.description.isEmpty && !error.description.utf8.contains { $0 < 0x20 })
  }

  static func answer(_ negotiation: Negotiation, _ sent: SentTracks) {
    let (offer, media) = (negotiation.offer, negotiation.media)
    precondition((1...2).contains(media.count) && Set(media.map(\.type)).count == media.count)
    precondition(sent.sound != nil || !media.contains { $0.type == .audio && $0.isSent }, "sound that nobody sends")
    precondition(
      !negotiation.sent.isEmpty && negotiation.sent.count { $0.type == .video } == media.count { $0.type == .video })
    precondition(media.allSatisfy { offer.media[$0.index].codec($0.codec.payloadType) != nil })
    precondition(!negotiation.fingerprints.isEmpty && negotiation.fingerprints.allSatisfy { $0.count == 32 })
    let sources = negotiation.sent.map {
      SessionAnswer.Source(ssrc: 7, retransmission: $0.retransmission.map { _ in 8 })
    }
    let text = SessionAnswer(
      negotiation, credentials: credentials, fingerprint: fingerprint, candidates: candidates, sources: sources,
      canonicalName: "name", sessionID: 1
    ).text
    checkLines(text, negotiation)
    reread(text, negotiation)
  }

  /// Every line ends with CR LF, has no control character, and is one of ours.
  static func checkLines(_ text: String, _ negotiation: Negotiation) {
    let pieces = Array(text.utf8).split(separator: 10, omittingEmptySubsequences: false)
    precondition(pieces.last?.isEmpty == true)
    var lines: [String] = []
    for piece in pieces.dropLast() {
      precondition(piece.last == 13 && piece.dropLast().allSatisfy { (0x20..<0x7f).contains($0) }, "another line end")
      lines.append(String(decoding: piece.dropLast(), as: UTF8.self))
    }
    func count(_ prefix: String) -> Int { lines.count { $0.hasPrefix(prefix) } }
    let (offered, sent) = (negotiation.offer.media, negotiation.sent)
    precondition(lines.prefix(4) == ["v=0", "o=- 1 1 IN IP4 127.0.0.1", "s=-", "t=0 0"])
    precondition(count("m=") == offered.count && count("c=") == offered.count, "more or fewer media than the offer")
    precondition(4 + 2 * offered.count + count("a=") == lines.count, "a line that is none of ours")
    for attribute in ownAttributes {
      precondition(lines.count { $0 == attribute } == offered.count)
      let name = attribute.prefix { $0 != ":" }
      precondition(count(String(name)) == offered.count, "a line of the offer's")
    }
    precondition(count("a=mid:") == offered.count { $0.identifier != nil })
    precondition(count("a=sendonly") == sent.count)
    precondition(count("a=inactive") == offered.count - sent.count && count("a=candidate:") == candidates.count)
    // Of the offer's extensions we take one, with the offer's number.
    for line in lines where line.hasPrefix("a=extmap:") {
      let words = line.dropFirst(9).split(separator: " ")
      precondition(words.count == 2 && words[1] == "http://www.webrtc.org/experiments/rtp-hdrext/abs-send-time")
      precondition(Int(words[0]).map { (1...14).contains($0) } == true)
    }
    for line in lines where line.hasPrefix("a=") {
      precondition(attributeNames.contains(line.dropFirst(2).prefix { $0 != ":" }), "an attribute that is none of ours")
    }
  }

  /// The answer, read as an offer, has the same media in the same order.
  static func reread(_ text: String, _ negotiation: Negotiation) {
    guard let again = try? SessionOffer(parsing: text) else { fatalError("an answer that is not read: \(text)") }
    let offered = negotiation.offer.media
    precondition(again.media.map(\.type) == offered.map(\.type))
    precondition(again.media.map(\.transport) == offered.map(\.transport))
    precondition(again.media.map(\.identifier) == offered.map(\.identifier))
    for (index, medium) in again.media.enumerated() {
      guard let sent = negotiation.media.first(where: { $0.index == index }) else {
        precondition(medium.isRefused && medium.direction == .inactive)
        continue
      }
      precondition(!medium.isRefused && medium.direction == (sent.isSent ? .sendonly : .inactive))
      precondition(medium.setup == .passive && medium.isLite)
      precondition(medium.codecs.first?.payloadType == sent.codec.payloadType)
      precondition(medium.codecs.count == (sent.retransmission == nil ? 1 : 2))
      precondition(medium.credentials == credentials && medium.fingerprints.map(\.bytes) == [fingerprint])
    }
  }
}

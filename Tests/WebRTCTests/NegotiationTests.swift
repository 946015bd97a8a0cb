import Foundation
import Media
import Platform
import RTP
import Testing
import WebRTC

/// Offers as Chromium and aiortc make them, what is found in them, and the answers.
@Suite struct NegotiationTests {
  static let directory = URL(fileURLWithPath: #filePath).deletingLastPathComponent().appending(path: "Offers")

  static func text(_ name: String) throws -> String {
    try String(contentsOf: directory.appending(path: "\(name).sdp"), encoding: .utf8)
  }

  private static let tracks = SentTracks(profileLevelID: "42c01f", sound: .mono)

  private func negotiate(_ text: String, _ tracks: SentTracks = Self.tracks) throws(OfferError) -> Negotiation {
    try Negotiation(SessionOffer(parsing: text), sending: tracks)
  }

  private func answer(_ negotiation: Negotiation) -> String {
    SessionAnswer(
      negotiation, credentials: ICECredentials(), fingerprint: [UInt8](repeating: 0xab, count: 32),
      candidates: [
        Candidate(address: IPAddressFixture.v4, port: 8189), Candidate(address: IPAddressFixture.v6, port: 8189),
      ],
      sources: negotiation.sent.map {
        .init(ssrc: UInt32($0.index + 1), retransmission: $0.retransmission.map { _ in 77 })
      }, canonicalName: "nightjar-x", sessionID: 7
    ).text
  }

  @Test func `Chromium's offer has the codecs that a stream of Constrained Baseline needs`() throws {
    let negotiation = try negotiate(Self.text("chromium"))
    #expect(negotiation.media.map(\.type) == [.video, .audio])
    let video = negotiation.media[0]
    // 42e01f with packetization-mode 1, and the retransmissions of that payload type.
    #expect(video.codec.payloadType == 108 && video.retransmission == 109)
    #expect(video.parameters == "level-asymmetry-allowed=1;packetization-mode=1;profile-level-id=42c01f")
    #expect(video.feedback == ["goog-remb", "ccm fir", "nack", "nack pli"])
    #expect(negotiation.media[1].codec.name == "opus" && negotiation.media[1].codec.channels == 2)
    #expect(negotiation.fingerprints.count == 1 && negotiation.fingerprints[0].count == 32)
  }

  @Test func `aiortc's offer is understood as well`() throws {
    let negotiation = try negotiate(Self.text("aiortc"))
    #expect(negotiation.media.map(\.type) == [.video, .audio])
    #expect(negotiation.media[0].codec.payloadType == 101 && negotiation.media[0].codec.name == "h264")
  }

  @Test func `the answer has the lines that RFC 8829 asks for`() throws {
    let text = answer(try negotiate(Self.text("chromium")))
    #expect(text.hasSuffix("\r\n") && !text.replacing("\r\n", with: "").contains { $0.isNewline })
    let lines = text.components(separatedBy: "\r\n")
    #expect(lines.first == "v=0")
    for line in [
      "a=group:BUNDLE 0 1", "a=ice-lite", "a=setup:passive", "a=sendonly", "a=rtcp-mux", "a=mid:0", "a=mid:1",
      "m=video 8189 UDP/TLS/RTP/SAVPF 108 109", "a=fmtp:109 apt=108", "a=ssrc-group:FID 1 77",
      "a=candidate:1 1 udp 2122318079 192.0.2.7 8189 typ host",
      "a=candidate:2 1 udp 2122317823 2001:db8::7 8189 typ host", "a=rtcp-xr:rcvr-rtt=all",
    ] {
      #expect(lines.contains(line), "\(line) is not in \(text)")
    }
    // Read as an offer it has the same media: what is written can be read.
    let again = try SessionOffer(parsing: text)
    #expect(
      again.media.map(\.type) == ["video", "audio"] && again.media.allSatisfy { $0.isLite && $0.setup == .passive })
  }

  @Test func `reports for the round trip are agreed on as offered, and only where they are offered`() throws {
    let offer = try Self.text("chromium")
    func reports(_ attribute: String) throws -> [String] {
      answer(try negotiate(offer.replacing("a=rtcp-xr:rcvr-rtt=all\r\n", with: attribute)))
        .components(separatedBy: "\r\n").filter { $0.hasPrefix("a=rtcp-xr") }
    }
    #expect(try reports("") == [])
    #expect(try reports("a=rtcp-xr:voip-metrics\r\n") == [])
    #expect(try reports("a=rtcp-xr:stat-summary=loss rcvr-rtt=sender:1000\r\n").first == "a=rtcp-xr:rcvr-rtt=sender")
  }

  @Test(arguments: ["chromium", "aiortc"])
  func `the time of sending is agreed on as offered, for pictures, and only where it is offered`(
    _ name: String
  ) throws {
    let offer = try Self.text(name)
    let uri = "http://www.webrtc.org/experiments/rtp-hdrext/abs-send-time"
    func extensions(_ offer: String) throws -> [String] {
      answer(try negotiate(offer)).components(separatedBy: "\r\n").filter { $0.hasPrefix("a=extmap") }
    }
    #expect(try extensions(offer) == ["a=extmap:2 \(uri)"])
    let directed = offer.replacing("extmap:2 \(uri)", with: "extmap:14/recvonly \(uri)")
    #expect(try extensions(directed) == ["a=extmap:14/sendonly \(uri)"])
    for direction in ["sendonly", "inactive"] {
      #expect(try extensions(offer.replacing("extmap:2 \(uri)", with: "extmap:14/\(direction) \(uri)")) == [])
    }
    // Numbers that need headers of two bytes, or none at all.
    for number in ["15", "0", "300", "x"] {
      #expect(try extensions(offer.replacing("extmap:2 \(uri)", with: "extmap:\(number) \(uri)")) == [])
    }
    #expect(try extensions(offer.replacing(uri, with: "urn:other")) == [])
  }

  @Test func `sound that there is not is inactive, and what is neither picture nor sound is refused in its place`()
    throws
  {
    let data = "m=application 9 UDP/DTLS/SCTP webrtc-datachannel\r\na=mid:2\r\na=sctp-port:5000\r\n"
    let offer = try Self.text("chromium").replacing("BUNDLE 0 1", with: "BUNDLE 0 1 2") + data
    let lines = answer(try negotiate(offer, SentTracks(profileLevelID: "42c01f"))).components(separatedBy: "\r\n")
    #expect(lines.count { $0.hasPrefix("m=") } == 3 && lines.contains { $0.hasPrefix("m=audio 8189 ") })
    #expect(lines.count { $0 == "m=application 0 UDP/DTLS/SCTP webrtc-datachannel" } == 1)
    #expect(lines.count { $0 == "a=inactive" } == 2 && lines.count { $0 == "a=sendonly" } == 1)
    #expect(lines.filter { $0.hasPrefix("a=group:") } == ["a=group:BUNDLE 0 1"])
  }

  @Test(
    arguments: [
      ("64001f", "the profile of the stream is offered by nobody", nil), ("4d001f", "Main", 116), ("42c01f", "", 108),
      ("42001f", "Baseline, which may have what Constrained Baseline has not", 102),
    ] as [(String, String, Int?)])
  func `the payload type is one whose profile decodes the stream`(
    profile: String, comment: String, payloadType: Int?
  ) throws {
    let offer = try Self.text("chromium")
    let tracks = SentTracks(profileLevelID: profile)
    guard let payloadType else {
      // High 4:4:4 Predictive decodes High (H.264 annex A.2.11), and Chromium offers that.
      #expect(try negotiate(offer, tracks).media[0].codec.payloadType == 41)
      return
    }
    #expect(try Int(negotiate(offer, tracks).media[0].codec.payloadType) == payloadType, "\(comment)")
  }

  /// Chromium's offer with H265 as Chromium offers it where the host decodes it.
  private func offer(h265 parameters: String) throws -> String {
    try Self.text("chromium").replacing("a=rtpmap:108 H264/90000\r\n", with: "a=rtpmap:108 H265/90000\r\n")
      .components(separatedBy: "\r\n")
      .map { $0.hasPrefix("a=fmtp:108 ") ? "a=fmtp:108 \(parameters)" : $0 }.joined(separator: "\r\n")
  }

  @Test(
    arguments: [
      // The level of the answer is the stream's, never above the offered one; all else is as offered (RFC 7798 section 7.2.2).
      ("level-id=156;profile-id=1;tier-flag=0;tx-mode=SRST", "profile-space=0;profile-id=1;tier-flag=0;level-id=93"),
      ("level-id=93", "profile-space=0;profile-id=1;tier-flag=0;level-id=93"),
      ("profile-id=2;tier-flag=1;level-id=120", "profile-space=0;profile-id=2;tier-flag=1;level-id=93"),
      ("level-id=60;max-recv-level-id=120", "profile-space=0;profile-id=1;tier-flag=0;level-id=60"),
      (
        "interop-constraints=B00000000000;profile-compatibility-indicator=6",
        "profile-space=0;profile-id=1;tier-flag=0;level-id=93;interop-constraints=B00000000000;"
          + "profile-compatibility-indicator=60000000"
      ),
      // Below what the stream needs, or not the same kind of stream.
      ("level-id=90", nil), ("level-id=60;max-recv-level-id=90", nil), ("profile-id=3", nil), ("profile-space=1", nil),
      ("tx-mode=MRST", nil), ("profile-id=x", nil), ("level-id=1000000", nil), ("interop-constraints=zz", nil),
    ] as [(String, String?)])
  func `a browser gets HEVC only if it lists H265 that decodes it`(offered: String, answered: String?) throws {
    let tracks = SentTracks(pictures: .hevc(.main(levelIDC: 93)), sound: .mono)
    let text = try offer(h265: offered)
    guard let answered else {
      do throws(OfferError) {
        _ = try negotiate(text, tracks)
        Issue.record("\(offered) is taken")
      } catch {
        guard case .noCodec("H265 with profile-id 1, tier-flag 0, level-id 93", _) = error else {
          Issue.record("\(error)")
          return
        }
      }
      return
    }
    let negotiation = try negotiate(text, tracks)
    #expect(negotiation.media[0].codec.payloadType == 108 && negotiation.media[0].retransmission == 109)
    let lines = answer(negotiation).components(separatedBy: "\r\n")
    #expect(lines.filter { $0.hasPrefix("a=rtpmap:108 ") } == ["a=rtpmap:108 H265/90000"])
    #expect(!lines.contains { $0.contains("H264") })
    #expect(lines.filter { $0.hasPrefix("a=fmtp:108 ") } == ["a=fmtp:108 \(answered);tx-mode=SRST"])
  }

  @Test func `neither codec is sent to a browser that has the other one alone`() throws {
    let tracks = SentTracks(pictures: .hevc(.main(levelIDC: 93)))
    guard case .noCodec? = fault(tracks) else {
      Issue.record("HEVC for a browser without H265")
      return
    }
    // High tier needs a decoder of that tier.
    let high = SentTracks(pictures: .hevc(.main(levelIDC: 120, isHighTier: true)))
    #expect(throws: OfferError.self) { try negotiate(offer(h265: "level-id=156"), high) }
    #expect(try negotiate(offer(h265: "level-id=156;tier-flag=1"), high).media[0].codec.name == "h265")
  }

  private func fault(_ tracks: SentTracks) -> OfferError? {
    do throws(OfferError) {
      _ = try negotiate(Self.chromium, tracks)
      return nil
    } catch { return error }
  }

  /// Returns the fault of Chromium's offer after a change.
  private func fault(_ change: (String) -> String) throws -> OfferError? {
    do throws(OfferError) {
      _ = try negotiate(change(Self.chromium))
      return nil
    } catch { return error }
  }

  private static let chromium = (try? text("chromium")) ?? ""

  private static func without(_ prefix: String) -> (String) -> String {
    { text in text.components(separatedBy: "\r\n").filter { !$0.hasPrefix(prefix) }.joined(separator: "\r\n") }
  }

  @Test func `what an offer lacks is named`() throws {
    #expect(try fault { $0 } == nil)
    #expect(try fault { _ in "" } == .noDescription)
    #expect(try fault { _ in "v=0\r\n" } == .noMedia)
    #expect(try fault(Self.without("a=fingerprint")) == .noFingerprint)
    #expect(try fault(Self.without("a=ice-ufrag")) == .noCredentials)
    #expect(try fault(Self.without("a=rtcp-mux")) == .noMultiplexing)
    #expect(try fault { $0.replacing("a=setup:actpass", with: "a=setup:passive") } == .setup)
    #expect(try fault { $0.replacing("a=mid:1", with: "a=mid:0") } == .repeatedIdentifier)
    #expect(try fault { $0.replacing("a=recvonly", with: "a=sendonly") } == .nothingToSend)
    #expect(try fault { $0.replacing("v=0\r\n", with: "v=0\r\na=ice-lite\r\n") } == .lite)
    let other = try fault { $0.replacing("H264/90000", with: "H263/90000") }
    #expect(other == .noCodec(stream: Self.tracks.pictures.name, offered: ["VP8", "VP9", "H263", "AV1", "FLEXFEC-03"]))
  }

  @Test func `limits hold before anything is kept`() throws {
    let medium = "m=video 9 UDP/TLS/RTP/SAVPF 96\r\n"
    #expect(try fault { _ in "v=0\r\n" + String(repeating: medium, count: 17) } == .media(limit: 16))
    #expect(
      try fault { $0 + String(repeating: "a=x\r\n", count: 20_000) }
        == .length(Self.chromium.utf8.count + 100_000, limit: 65_536))
    #expect(try fault { $0 + "a=" + String(repeating: "x", count: 5000) + "\r\n" } == .line(204, limit: 4096))
    let types = (0..<129).map { " \($0 % 128)" }.joined()
    #expect(
      try fault { _ in "v=0\r\nm=video 9 UDP/TLS/RTP/SAVPF\(types)\r\n" } == .payloadTypes(line: 2, limit: 128))
  }

  @Test func `no line of an offer gets into the answer as it came`() throws {
    // A lone carriage return ends a line for some readers.
    #expect(try fault { $0.replacing("a=mid:0", with: "a=mid:0\ra=ice-pwd:x") } != nil)
    #expect(try fault { $0.replacing("UDP/TLS/RTP/SAVPF", with: "UDP/TLS/RTP/SAVPF\rx") } != nil)
  }
}

import Foundation
import Media
import RTP
import TestSupport
import Testing

/// Descriptions as players read them that refuse what others pass over.
@Suite struct PlayerDescriptionTests {
  /// The parameter sets of a stream of x265, by the names of RFC 7798.
  private static let hevcSets = [
    "sprop-vps": "QAEMAf//AWAAAAMAkAAAAwAAAwA8lZgJ",
    "sprop-sps": "QgEBAWAAAAMAkAAAAwAAAwA8oAoIDxZZWaSTK8BaAgAAAwACAAADADIQ", "sprop-pps": "RAHBcrRiQA==",
  ]

  private static let cryptography = "1 AES_CM_128_HMAC_SHA1_80 inline:PS1uQCVeeCFCanVmcjkpPywjNWhcYD0mXXtxaVBR"

  private static func payload(_ codec: String) throws -> PayloadDescription {
    let frameRate = FrameRate(30_000, 1001)
    switch codec {
    case "MP2T": return .transportStream
    case "H265":
      func set(_ name: String) throws -> [UInt8] { Array(try #require(Data(base64Encoded: hevcSets[name] ?? ""))) }
      let (video, sequence, picture) = (try set("sprop-vps"), try set("sprop-sps"), try set("sprop-pps"))
      let sets = try #require(ParameterSets(video: video, sequence: sequence, picture: picture))
      return .hevc(sets, frameRate: frameRate)
    default: return .h264(try SessionDescriptionTests.parameterSets(), frameRate: frameRate)
    }
  }

  private static func description(
    _ codec: String, _ announcement: SessionDescription.Announcement, _ address: String
  ) throws -> SessionDescription {
    let payload = try Self.payload(codec)
    return SessionDescription(
      payload: payload, announcement: announcement, address: try SessionDescriptionTests.address(address), port: 5004,
      timeToLive: 4, sessionID: 7, name: "Porch 2", tool: "nightjar 0.1", kilobitsPerSecond: 2000)
  }

  /// Expects that both read `description`: one medium with its codec, and its way to SETUP.
  static func expectRead(
    _ text: String, codec: String, isProtected: Bool = false, isRTSP: Bool = false,
    sourceLocation: SourceLocation = #_sourceLocation
  ) throws {
    let live555 = try Live555Description(text)
    #expect(live555.complaints.isEmpty && live555.media.count == 1, "\(text)", sourceLocation: sourceLocation)
    let medium = try #require(live555.media.first, "\(text)", sourceLocation: sourceLocation)
    #expect(medium.medium == "video" && medium.protocolName == (isProtected ? "SRTP" : "RTP"))
    #expect(medium.codec == codec && medium.frequency == 90_000, "\(text)", sourceLocation: sourceLocation)
    #expect(codec != "H264" || medium.parameters["sprop-parameter-sets"]?.split(separator: ",").count == 2)
    #expect(codec != "H264" || medium.parameters["packetization-mode"] == "1")
    #expect(codec != "H265" || medium.parameters.filter { $0.key.hasPrefix("sprop-") } == hevcSets, "\(text)")
    #expect(!isRTSP || medium.control == "trackID=0", "\(text)", sourceLocation: sourceLocation)
    let media3 = try Media3Description(text)
    #expect(media3.media.count == 1, "\(text)", sourceLocation: sourceLocation)
    #expect(media3.media.first?.encoding == codec && media3.media.first?.payloadType == medium.payloadType)
    // A track of HEVC without the three sets throws there, and one without control.
    let parameters = media3.media.first?.attributes["fmtp"] ?? ""
    #expect(codec != "H265" || hevcSets.allSatisfy { parameters.contains("\($0.key)=\($0.value)") }, "\(text)")
    #expect(!isRTSP || media3.media.first?.attributes["control"] == "trackID=0")
  }

  @Test(arguments: ["H264", "H265", "MP2T"], [SessionDescription.Announcement.plain, .rtsp])
  func `live555 and Media3 read what is described by AVP`(
    codec: String, announcement: SessionDescription.Announcement
  ) throws {
    for address in ["192.0.2.7", "2001:db8::7", "239.1.2.3", "ff15::7"] {
      let plain = try Self.description(codec, announcement, address)
      var (multiplexed, filtered, encrypted, keyed) = (plain, plain, plain, plain)
      multiplexed.media[0].multiplexesControl = true
      filtered.sourceFilter = address.contains(":") ? .loopback6 : .loopback
      encrypted.media[0].cryptography = [Self.cryptography]
      encrypted.media[0].source = .init(ssrc: 7, canonicalName: "nightjar@192.0.2.1")
      keyed.media[0].keyManagement = ["AQAFgAAAAAA="]
      for (description, isProtected) in [
        (plain, false), (multiplexed, false), (filtered, false), (encrypted, true), (keyed, true),
      ] {
        try Self.expectRead(
          description.text, codec: codec, isProtected: isProtected, isRTSP: announcement == .rtsp)
      }
    }
  }

  /// As DESCRIBE, `--sdp` and announcements have it of a camera with a microphone.
  @Test(arguments: ["H264", "H265"], [SessionDescription.Announcement.plain, .rtsp])
  func `live555 and Media3 read pictures and sound`(
    codec: String, announcement: SessionDescription.Announcement
  ) throws {
    for address in ["192.0.2.7", "2001:db8::7", "239.1.2.3", "ff15::7"] {
      var description = try Self.description(codec, announcement, address)
      description.media.append(MediaDescription(.opus(.stereo), port: 5008, kilobitsPerSecond: 64))
      if codec == "H265" {
        description.information = "H.264 for players without HEVC: rtsp://192.0.2.1:8554/camera/h264"
      }
      var (multiplexed, filtered, encrypted, keyed) = (description, description, description, description)
      filtered.sourceFilter = address.contains(":") ? .loopback6 : .loopback
      for track in description.media.indices {
        multiplexed.media[track].multiplexesControl = true
        encrypted.media[track].cryptography = [Self.cryptography]
        encrypted.media[track].source = .init(ssrc: 7 + UInt32(track), canonicalName: "nightjar@192.0.2.1")
        keyed.media[track].keyManagement = [track == 0 ? "AQAFgAAAAAA=" : "AQAFgAAAAAE="]
      }
      for (description, isProtected) in [
        (description, false), (multiplexed, false), (filtered, false), (encrypted, true), (keyed, true),
      ] {
        let text = description.text
        let media = try PlayableMedia.of(text)
        #expect(media.map(\.medium) == ["video", "audio"] && media.map(\.codec) == [codec, "OPUS"], "\(text)")
        #expect(media.map(\.frequency) == [90_000, 48_000] && media.map(\.channels) == [1, 2], "\(text)")
        #expect(media.allSatisfy { $0.protocolName == (isProtected ? "SRTP" : "RTP") }, "\(text)")
        // The port is SETUP's matter, but for a group.
        let isSettledBySetup = announcement == .rtsp && !["239.1.2.3", "ff15::7"].contains(address)
        #expect(media.map(\.port) == (isSettledBySetup ? [0, 0] : [5004, 5008]), "\(text)")
        #expect(media.map(\.control) == (announcement == .rtsp ? ["trackID=0", "trackID=1"] : [nil, nil]), "\(text)")
        #expect(media.map(\.keys) == description.media.map(\.keyManagement), "\(text)")
        // The parameters of one medium are not the other's.
        #expect(media.map { $0.parameters["sprop-stereo"] } == [nil, "1"], "\(text)")
      }
    }
  }

  /// Pictures that live555 still plays, and Media3 does not.
  @Test func `neither reads sound by AVPF with retransmissions`() throws {
    var description = try Self.description("H264", .rtsp, "192.0.2.7")
    description.media.append(MediaDescription(.opus(.mono), port: 5008))
    description.media[1].profile = .avpf(retransmission: .init(payloadType: try #require(RTPPayloadType(rawValue: 99))))
    let live555 = try Live555Description(description.text)
    #expect(live555.complaints == ["Bad SDP \"m=\" line: m=audio 0 RTP/AVPF 98 99"])
    #expect(live555.media.map(\.codec) == ["H264"] && live555.media.map(\.control) == ["trackID=0"])
    #expect(throws: Media3Description.Malformed.self) { try Media3Description(description.text) }
    #expect(throws: (any Error).self) { try PlayableMedia.of(description.text) }
  }

  /// As openRTSP says of it, and as Media3 throws: the reason why it is offered to nobody who is not known to read it.
  @Test(arguments: [false, true]) func `neither reads AVPF with retransmissions`(isProtected: Bool) throws {
    var description = try Self.description("H264", .rtsp, "192.0.2.7")
    description.media[0].profile = .avpf(retransmission: .init(payloadType: try #require(RTPPayloadType(rawValue: 97))))
    if isProtected { description.media[0].keyManagement = ["AQAFgAAAAAA="] }
    let profile = isProtected ? "RTP/SAVPF" : "RTP/AVPF"
    let live555 = try Live555Description(description.text)
    #expect(live555.complaints == ["Bad SDP \"m=\" line: m=video 0 \(profile) 96 97"] && live555.media.isEmpty)
    #expect(throws: Media3Description.Malformed.self) { try Media3Description(description.text) }
  }
}

import Capture
import Foundation
import Media
import Platform
import RTP
import SRTP
import Sound
import Streaming
import TestSupport
import Testing

/// The ports of a destination's sound.
@Suite(.serialized) struct DestinationSoundTests {
  private static func pipeline(_ destinations: [StreamDestination]) throws -> Pipeline {
    try Pipeline(
      source: try SyntheticCamera(size: PictureSize(width: 64, height: 64), frameRate: .thirty),
      encoder: try SizedEncoder(keyBytes: 10, bytes: 10), destinations: destinations,
      sound: (try ToneSource(), SoundSettings()), keyFrameInterval: Duration(seconds: 1))
  }

  /// Returns the ports in the description of a destination, as players read it: of its pictures, and of its sound.
  private static func ports(_ pipeline: Pipeline, _ id: ViewerID) throws -> [String] {
    let description = try #require(pipeline.sessionDescription(for: id, sessionID: 1))
    return try PlayableMedia.of(description.text).map { "\($0.medium) \($0.port)" }
  }

  private static func destination(_ options: String, port: UInt16 = 5004) throws -> StreamDestination {
    try StreamDestination(url: "rtp://127.0.0.1:\(port)\(options)")
  }

  @Test func `a description has both media, and only the pictures where they carry the sound or none is wanted`() throws
  {
    let pipeline = try Self.pipeline([])
    for (options, port, expected) in [
      ("", 5004, ["video 5004", "audio 5008"]), ("?audio=7000", 5104, ["video 5104", "audio 7000"]),
      ("?audio=none", 5204, ["video 5204"]), ("?payload=mp2t", 5304, ["video 5304"]),
    ] as [(String, UInt16, [String])] {
      let id = try pipeline.add(Self.destination(options, port: port))
      #expect(try Self.ports(pipeline, id) == expected)
      #expect(pipeline.destinations.last?.viewers.count == expected.count)
      // One destination is one viewer, whatever the number of its ports.
      let media: StreamMedia = options == "?audio=none" ? .picture : [.picture, .sound]
      #expect(pipeline.statistics.viewers.map(\.id) == [id] && pipeline.statistics.viewers.map(\.media) == [media])
      #expect(pipeline.statistics.viewers.map(\.isGuest) == [false])
      #expect(pipeline.remove(id) && pipeline.statistics.destinations.isEmpty)
    }
    // Nobody takes the sound of a destination that wants none.
    try pipeline.add(Self.destination("?audio=none&payload=mp2t"))
    #expect(!pipeline.tracks[1].isWatched)
    try pipeline.add(Self.destination("?payload=mp2t", port: 5006))
    #expect(pipeline.tracks[1].isWatched)
  }

  @Test func `an automatic port gives way to another destination, whichever comes first`() throws {
    for isFirst in [true, false] {
      let other = try Self.destination("?payload=mp2t", port: 5008)
      let pipeline = try Self.pipeline(isFirst ? [other] : [])
      let changes = pipeline.descriptionChanges
      let id = try pipeline.add(Self.destination(""))
      if !isFirst { try pipeline.add(other) }
      #expect(try Self.ports(pipeline, id) == ["video 5004"])
      #expect(pipeline.statistics.destinations.count == 2)
      #expect(pipeline.descriptionChanges == changes + (isFirst ? 0 : 1))
    }
  }

  @Test func `a sound ends and begins with its port, and the pictures go on`() throws {
    let pipeline = try Self.pipeline([])
    let id = try pipeline.add(Self.destination(""))
    let changes = pipeline.descriptionChanges
    try pipeline.setSoundTaken(true, of: id)
    #expect(try Self.ports(pipeline, id) == ["video 5004"])
    #expect(!pipeline.tracks[1].isWatched && pipeline.soundOmissions == 1)
    #expect(pipeline.destinations[0].missedSound?.contains("5008") == true)
    try pipeline.setSoundTaken(true, of: id)
    #expect(pipeline.descriptionChanges == changes + 1)
    // The URL is all that a person knows of it.
    #expect(pipeline.destinations[0].destination == (try Self.destination("")))
    try pipeline.setSoundTaken(false, of: id)
    #expect(try Self.ports(pipeline, id) == ["video 5004", "audio 5008"])
    #expect(pipeline.tracks[1].isWatched && pipeline.descriptionChanges == changes + 2)
    #expect(
      pipeline.statistics.viewers.map(\.id) == [id] && pipeline.statistics.viewers.map(\.media) == [[.picture, .sound]])
    // A requested port is the destination's own.
    let other = try pipeline.add(Self.destination("?audio=7000", port: 5104))
    try pipeline.setSoundTaken(true, of: other)
    #expect(try Self.ports(pipeline, other) == ["video 5104", "audio 7000"])
  }

  @Test func `pictures at the last ports have no port for sound, and say so`() throws {
    let pipeline = try Self.pipeline([])
    try pipeline.add(Self.destination("", port: 65_532))
    #expect(pipeline.soundOmissions == 1)
    #expect(pipeline.destinations[0].missedSound?.contains("65532") == true)
  }

  @Test func `a port that was requested is refused if it is in use, and keeps its place`() throws {
    let pipeline = try Self.pipeline([try Self.destination("?audio=6000")])
    for (options, port) in [
      ("", 6000), ("", 6001), ("?audio=5004", 7000), ("?audio=6001", 7000), ("?audio=7001", 7000),
    ]
      as [(String, UInt16)]
    {
      let error = #expect(throws: StreamDestinationError.self, "\(options) \(port)") {
        try pipeline.add(Self.destination(options, port: port))
      }
      #expect(error?.kind == .usage)
    }
    #expect(pipeline.destinations.count == 1 && pipeline.statistics.destinations.count == 2)
  }

  @Test func `a group of viewers takes its port from an automatic sound, and from no other`() throws {
    let group = try SocketAddress(host: "239.255.77.9", port: 5008)
    for (options, expected) in [("", ["video 5004"]), ("?audio=5008", nil)] as [(String, [String]?)] {
      let destination = try StreamDestination(url: "rtp://239.255.77.9:5004\(options)")
      let pipeline = try Self.pipeline([destination])
      let id = try #require(pipeline.destinations.first?.id)
      let before = try #require(pipeline.sessionDescription(for: id, sessionID: 1)?.version)
      if let expected {
        try pipeline.reserve(groups: [group])
        #expect(try Self.ports(pipeline, id) == expected)
        // A description that says something else has another version (RFC 8866 section 5.2).
        #expect(pipeline.sessionDescription(for: id, sessionID: 1)?.version == before + 1)
      } else {
        #expect(throws: StreamDestinationError.self) { try pipeline.reserve(groups: [group]) }
        #expect(try Self.ports(pipeline, id) == ["video 5004", "audio 5008"])
      }
    }
  }

  @Test func `one key encrypts one stream, whether it carries the sound or not`() throws {
    let directory = try TemporaryDirectory()
    let path = directory.path("key")
    try Data("\(SRTPSuite.aes128GCM.rawValue) inline:\(SRTPKey(random: .aes128GCM).inlineText)".utf8)
      .write(to: URL(fileURLWithPath: path))
    try FileManager.default.setAttributes([.posixPermissions: 0o600], ofItemAtPath: path)
    let pipeline = try Self.pipeline([])
    for (port, options) in [(5004, ""), (5104, "&audio=none"), (5204, ""), (5304, "&audio=none")] as [(Int, String)] {
      try pipeline.add(StreamDestination(url: "srtp://127.0.0.1:\(port)?payload=mp2t&key-file=\(path)\(options)"))
    }
    let sources = pipeline.destinations.compactMap { $0.protection?.ssrc }
    // Equal packets are encrypted once for all; different ones never by the same source.
    #expect(sources.count == 4 && Set(sources).count == 2)
    #expect(sources[0] == sources[2] && sources[1] == sources[3])
  }

  @Test func `the bandwidth of sound counts the headers of fifty packets a second`() throws {
    let pipeline = try Self.pipeline([try Self.destination("")])
    let id = try #require(pipeline.destinations.first?.id)
    let description = try #require(pipeline.sessionDescription(for: id, sessionID: 1))
    // 32 kbit/s, and fifty times 40 bytes.
    #expect(DescriptionLines(description.text)["b"].last == "AS:48")
  }

  @Test(arguments: ["?audio=", "?audio=0", "?audio=65536", "?audio=auto", "?audio=65535", "?payload=mp2t&audio=6000"])
  func `a port that no sound can have is refused`(options: String) {
    #expect(throws: StreamDestinationError.self) { try Self.destination(options) }
  }
}

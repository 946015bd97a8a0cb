import Foundation
import Media
import RTP
import Sound
import Streaming
import TestSupport
import Testing

/// Announcements (RFC 2974) as they leave, on the loopback interface.
@Suite(.serialized) struct AnnouncerTests {
  /// An announcement: the header's first byte and hash, and the description by its lines.
  private struct Heard {
    let flags: UInt8
    let hash: UInt16
    let lines: [String]

    init?(_ bytes: [UInt8], isIPv6: Bool) {
      let start = isIPv6 ? 20 : 8
      guard bytes.count > start + 16, bytes[1] == 0 else { return nil }
      flags = bytes[0]
      hash = UInt16(bytes[2]) << 8 | UInt16(bytes[3])
      guard Array(bytes[start..<start + 16]) == Array("application/sdp\0".utf8) else { return nil }
      lines = String(decoding: bytes[(start + 16)...], as: UTF8.self).components(separatedBy: "\r\n")
    }
  }

  private static let sets = MulticastTests.groups("239.195.7.10", "ff11::7:10")

  private func listener(of group: String) throws -> MulticastTests.Member {
    try MulticastTests.Member(group.contains(":") ? "ff01::2:7ffe" : "239.195.255.255", port: AnnouncementPacket.port)
  }

  private func next(
    _ listener: MulticastTests.Member, of group: String, port: UInt16, within seconds: Double = 30
  ) -> Heard? {
    let end = Date(timeIntervalSinceNow: seconds)
    while Date() < end, let bytes = listener.next(within: max(0, end.timeIntervalSinceNow)) {
      // Somebody else may be announcing too.
      if let heard = Heard(bytes, isIPv6: group.contains(":")),
        heard.lines.contains(where: { $0.hasPrefix("m=video \(port) ") })
      {
        return heard
      }
    }
    return nil
  }

  @Test(arguments: sets)
  func `a group is announced, and taken back with its destination and at the end`(group: String) throws {
    let port = try UDPPort.free()
    let listener = try listener(of: group)
    let destination = try MulticastTests.destination(group, port, "&loop=1&sap=1")
    // A frame rate that is measured is part of the description, and would be announced.
    let running = try RunningPipeline(
      try SizedEncoder(keyBytes: 3000, bytes: 500), to: [destination], from: try UnhurriedCamera(isEven: true))
    let version: UInt8 = group.contains(":") ? 0x30 : 0x20
    let first = try #require(next(listener, of: group, port: port))
    #expect(first.flags == version)
    #expect(first.lines.first == "v=0" && first.lines.contains { $0.hasPrefix("c=IN") && $0.contains(group) })
    #expect(first.lines.contains { $0.hasPrefix("a=fmtp:96 ") && $0.contains("sprop-parameter-sets=") })
    let text = first.lines.joined(separator: "\r\n")
    #expect(try PlayableMedia.of(text).map(\.codec) == ["H264"])
    // Three more in the first seconds, and then not before its time.
    for _ in 0..<3 {
      let again = try #require(next(listener, of: group, port: port))
      #expect(again.hash == first.hash && again.flags == first.flags)
    }
    #expect(next(listener, of: group, port: port, within: 2) == nil)

    #expect(running.pipeline.remove(running.pipeline.destinations[0].id))
    let deletion = try #require(next(listener, of: group, port: port))
    #expect(deletion.flags == version | 4 && deletion.hash == first.hash && deletion.lines == first.lines)

    _ = try running.pipeline.add(destination)
    let second = try #require(next(listener, of: group, port: port))
    #expect(second.flags == version && second.lines != first.lines)
    running.end()
    let last = (0..<5).lazy.compactMap { _ in next(listener, of: group, port: port) }.first { $0.flags == version | 4 }
    #expect(last != nil)
  }

  @Test func `another description is announced anew, as a later version of the same session`() throws {
    let group = "239.195.7.10"
    let port = try UDPPort.free()
    let listener = try listener(of: group)
    let running = try RunningPipeline(
      try SizedEncoder(keyBytes: 3000, bytes: 500),
      to: [try MulticastTests.destination(group, port, "&loop=1&sap=1")], from: try UnhurriedCamera(isEven: true))
    defer { running.end() }
    let first = try #require(next(listener, of: group, port: port))
    running.encoder.changeParameterSets()
    let second = try #require(
      (0..<5).lazy.compactMap { _ in next(listener, of: group, port: port) }.first { $0.hash != first.hash })
    #expect(second.flags == first.flags)
    let origins = [first, second].map { heard in
      heard.lines.first { $0.hasPrefix("o=") }?.split(separator: " ").map(String.init) ?? []
    }
    #expect(origins[0].count == 6 && origins[0][1] == origins[1][1])
    #expect(try #require(UInt64(origins[1][2])) > (try #require(UInt64(origins[0][2]))))
  }

  @Test(arguments: sets) func `sound is announced with the pictures`(group: String) throws {
    let port = try UDPPort.free()
    let listener = try listener(of: group)
    let running = try RunningPipeline(
      try SizedEncoder(keyBytes: 3000, bytes: 500),
      to: [try MulticastTests.destination(group, port, "&loop=1&sap=1")], sound: (try ToneSource(), SoundSettings()))
    defer { running.end() }
    let heard = try #require(next(listener, of: group, port: port))
    let media = try PlayableMedia.of(heard.lines.joined(separator: "\r\n"))
    #expect(media.map(\.codec) == ["H264", "OPUS"] && media.map(\.port) == [port, port + 4], "\(heard.lines)")
  }

  @Test func `without being asked nothing is announced`() throws {
    let group = "239.195.7.10"
    let port = try UDPPort.free()
    let listener = try listener(of: group)
    let running = try RunningPipeline(
      try SizedEncoder(keyBytes: 3000, bytes: 500), to: [try MulticastTests.destination(group, port, "&loop=1")])
    #expect(next(listener, of: group, port: port, within: 3) == nil)
    running.end()
    #expect(next(listener, of: group, port: port, within: 1) == nil)
  }

  @Test(arguments: [
    ("srtp://239.1.2.3:5004?sap=1", "key"), ("rtp://239.1.2.3:5004?sap=0", "sap=1"),
    ("rtp://239.1.2.3:5004?sap", "sap=1"),
  ])
  func `a destination that cannot be announced is refused`(url: String, reason: String) {
    let error = #expect(throws: StreamDestinationError.self) { try StreamDestination(url: url) }
    #expect(error?.description.contains(reason) == true, "\(String(describing: error))")
  }

  @Test func `one receiver is not announced`() throws {
    let destination = try StreamDestination(url: "rtp://127.0.0.1:5004?sap=1")
    #expect(try StreamDestination(url: destination.description) == destination)
    let error = #expect(throws: StreamDestinationError.self) {
      try destination.multicastOptions(for: SocketAddress(host: "127.0.0.1", port: 5004))
    }
    #expect(error?.description.contains("sap=") == true)
  }
}

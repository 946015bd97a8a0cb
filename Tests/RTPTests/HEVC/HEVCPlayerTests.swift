import Foundation
import Media
import Platform
import RTP
import TestSupport
import Testing

/// HEVC by RTP, beside ffmpeg's and GStreamer's packets.
@Suite struct HEVCPlayerTests {
  private static let frames = 40

  private static func clip() throws -> HEVCClip {
    try HEVCClip(
      size: "320x192", frames: frames, "keyint=12:min-keyint=12:bframes=0:slices=3:aud=1:open-gop=0")
  }

  /// Packets of a clip, 40 ms a picture.
  private static func packets(of clip: HEVCClip, size: Int) throws -> [[UInt8]] {
    var packetizer = try HEVCPacketizer(
      stream: RTPStream(
        payloadType: .hevc, ssrc: 0x0102_0304, firstSequenceNumber: 65_500, timestampOffset: 0xffff_f000),
      maximumPacketSize: size)
    let batch = PacketBatch()
    var packets: [[UInt8]] = []
    for (index, unit) in try clip.packets().enumerated() {
      batch.removeAll()
      withAccessUnit(unit, isKeyFrame: true, at: Int64(index) * 40_000_000) {
        packetizer.packetize($0, into: batch)
        packets += batch.packets
      }
    }
    return packets
  }

  private static func send(_ packets: [[UInt8]], to port: UInt16) throws {
    for (index, packet) in packets.enumerated() {
      // A busy machine holds the player up, whose socket has no room for all.
      if index.isMultiple(of: 20) { _ = try eventually { try UDPPort.waitingBytes(port) < 50_000 } }
      try UDPPort.send(packet, to: "127.0.0.1", port: port)
      usleep(1000)
    }
  }

  @Test(arguments: [200, 1200])
  func `ffmpeg decodes every picture of our packets by our description`(size: Int) throws {
    let clip = try Self.clip()
    let sets = try #require(clip.parameterSets)
    let port = try UDPPort.free()
    let directory = try TemporaryDirectory()
    let text = SessionDescription(
      payload: .hevc(sets, frameRate: FrameRate(25)), address: .loopback, port: port, sessionID: 1
    ).text
    let path = try directory.write(text.utf8, as: "stream.sdp")
    let player = try Subprocess(
      [
        "ffmpeg", "-v", "warning", "-xerror", "-protocol_whitelist", "file,udp,rtp", "-i", path, "-fps_mode",
        "passthrough", "-pix_fmt", "nv12", "-f", "framemd5", "-",
      ], in: directory)
    defer { player.send(SIGKILL) }
    #expect(try eventually { try UDPPort.isBound(port) && UDPPort.isBound(port + 1) })
    try Self.send(try Self.packets(of: clip, size: size), to: port)
    #expect(try eventually { try UDPPort.waitingBytes(port) == 0 })
    // BYE, on which ffmpeg ends.
    try UDPPort.send(hex("81 cb 0002 01020304 03 656e64"), to: "127.0.0.1", port: port + 1)
    let result = try player.wait(limit: 60)
    #expect(result.status == 0 && result.error == "", "\(result.error)")
    #expect(HEVCClip.checksums(result.outputText) == (try HEVCClip.checksums(of: clip.stream)))
    #expect(HEVCClip.checksums(result.outputText).count == Self.frames)
  }

  @Test func `GStreamer decodes every picture of our packets`() throws {
    let clip = try Self.clip()
    let port = try UDPPort.free()
    let directory = try TemporaryDirectory()
    let raw = directory.path("pictures")
    let elements = HEVCPayloadFormat().players.gstreamerElements
    let sets = try #require(clip.parameterSets)
    // GStreamer takes the parameters of a=fmtp as fields of the caps.
    let parameters = try #require(PayloadDescription.hevc(sets).parameters).split(separator: ";").map { parameter in
      let pair = parameter.split(separator: "=", maxSplits: 1)
      return "\(pair[0])=(string)\\\"\(pair[1])\\\""
    }
    let caps =
      "application/x-rtp,media=video,clock-rate=90000,encoding-name=H265,payload=\(RTPPayloadType.hevc),"
      + parameters.joined(separator: ",")
    let player = try Subprocess(
      [
        "sh", "-c",
        "exec gst-launch-1.0 -e udpsrc port=\(port) caps=\"\(caps)\" ! \(elements) ! videoconvert ! "
          + "video/x-raw,format=NV12 ! filesink location=\(raw)",
      ], in: directory)
    defer { player.send(SIGKILL) }
    #expect(try eventually { try UDPPort.isBound(port) })
    try Self.send(try Self.packets(of: clip, size: 1000), to: port)
    #expect(try eventually { try UDPPort.waitingBytes(port) == 0 })
    player.send(SIGINT)
    _ = try player.wait(limit: 30)
    let decoded = try Subprocess.run(
      [
        "ffmpeg", "-v", "error", "-f", "rawvideo", "-pix_fmt", "nv12", "-s", "320x192", "-i", raw, "-f", "framemd5",
        "-",
      ], in: directory)
    #expect(HEVCClip.checksums(decoded.outputText) == (try HEVCClip.checksums(of: clip.stream)))
  }

  /// The access units of others' packets.
  private static func units(_ datagrams: [Data], payloadType: RTPPayloadType) throws -> [[[UInt8]]] {
    var depacketizer = HEVCDepacketizer(payloadType: payloadType)
    var units: [[[UInt8]]] = []
    for datagram in datagrams {
      try [UInt8](datagram).withUnsafeBytes { bytes in
        try depacketizer.receive(bytes) { unit in
          if unit.isDamaged { Issue.record("a damaged unit") }
          units.append((0..<unit.count).map { Array(unit[$0]) })
        }
      }
    }
    depacketizer.finish { unit in units.append((0..<unit.count).map { Array(unit[$0]) }) }
    #expect(depacketizer.packetsLost == 0)
    return units
  }

  @Test(arguments: [300, 1472])
  func `ffmpeg's packets become the stream again`(size: Int) throws {
    let clip = try Self.clip()
    let recorder = try DatagramRecorder()
    _ = try PlayerTests.run([
      "ffmpeg", "-v", "error", "-re", "-framerate", "50", "-i", clip.path, "-c", "copy", "-f", "rtp",
      "rtp://127.0.0.1:\(recorder.port)?rtcpport=9&pkt_size=\(size)",
    ])
    let units = try Self.units(recorder.finish(), payloadType: .h264)
    // Of one timestamp is what one marker ends.
    #expect(units.count == Self.frames)
    // ffmpeg leaves a zero of the next start code at the end of some NAL units.
    let found = units.flatMap(\.self).map { unit in Array(unit.reversed().drop { $0 == 0 }.reversed()) }
    #expect((found == clip.nalUnits) as Bool)
  }

  @Test(arguments: ["none", "zero-latency", "max"])
  func `GStreamer's packets become the stream again, however it aggregates`(mode: String) throws {
    let clip = try Self.clip()
    let recorder = try DatagramRecorder()
    _ = try PlayerTests.run([
      "gst-launch-1.0", "-q", "filesrc", "location=\(clip.path)", "!", "h265parse", "!", "rtph265pay",
      "aggregate-mode=\(mode)", "config-interval=-1", "mtu=500", "pt=96", "!", "udpsink", "host=127.0.0.1",
      "port=\(recorder.port)", "sync=false",
    ])
    let units = try Self.units(recorder.finish(), payloadType: .h264)
    func slices(_ units: [[UInt8]]) -> [[UInt8]] { units.filter { HEVCClip.type($0) < 32 } }
    #expect((slices(units.flatMap(\.self)) == slices(clip.nalUnits)) as Bool)
    #expect(units.flatMap(\.self).contains { HEVCClip.type($0) == 32 })
  }

  @Test func `a transport stream has stream type 36, and ffmpeg decodes it without a complaint`() throws {
    let clip = try Self.clip()
    let units = try clip.packets()
    var packetizer = try TransportStreamPacketizer(maximumPacketSize: 1200, codec: .hevc)
    let batch = PacketBatch()
    for (index, unit) in units.enumerated() {
      let isKeyFrame = unit.contains { (16...23).contains(HEVCClip.type($0)) }
      withAccessUnit(unit, isKeyFrame: isKeyFrame, at: 10_000_000_000 + Int64(index) * 40_000_000) {
        packetizer.packetize($0, into: batch)
      }
    }
    let stream = batch.packets.flatMap { $0.dropFirst(12) }
    try PlayerTests.withFile(stream, "ts") { path in
      let decoded = try PlayerTests.run([
        "ffmpeg", "-v", "warning", "-i", path, "-fps_mode", "passthrough", "-pix_fmt", "nv12", "-f", "framemd5", "-",
      ])
      #expect(decoded.errors == "")
      let checksums = HEVCClip.checksums(String(decoding: decoded.output, as: UTF8.self))
      #expect(try checksums == HEVCClip.checksums(of: clip.stream) && checksums.count == Self.frames)
    }
    // The tables are those that ffmpeg writes for the same stream.
    let theirs = [UInt8](
      try PlayerTests.run(["ffmpeg", "-v", "error", "-i", clip.path, "-c", "copy", "-f", "mpegts", "-"]).output)
    func table(_ stream: [UInt8], _ pid: Int) -> [UInt8]? {
      stride(from: 0, to: stream.count - 187, by: 188).map { Array(stream[$0..<$0 + 188]) }
        .first { Int($0[1] & 31) << 8 | Int($0[2]) == pid }
    }
    for pid in [0, 0x1000] {
      let ours = try #require(table(stream, pid))
      #expect(table(theirs, pid) == ours)
    }
    #expect(table(stream, 0x1000)?.contains(0x24) == true)
  }

  @Test func `the description has the sets as ffmpeg writes them`() throws {
    let clip = try Self.clip()
    let sets = try #require(clip.parameterSets)
    let parameters = try #require(PayloadDescription.hevc(sets).parameters)
    let directory = try TemporaryDirectory()
    let file = directory.path("their.sdp")
    _ = try PlayerTests.run([
      "ffmpeg", "-v", "error", "-i", clip.path, "-map", "0", "-c", "copy", "-frames:v", "1", "-f", "rtp", "-sdp_file",
      file, "rtp://127.0.0.1:9",
    ])
    let theirs = try String(contentsOfFile: file, encoding: .utf8)
    #expect(theirs.contains("H265/90000"))
    for name in ["sprop-vps", "sprop-sps", "sprop-pps"] {
      let ours = try #require(parameters.split(separator: ";").first { $0.hasPrefix(name + "=") })
      #expect(theirs.contains(ours), "\(theirs)")
    }
    #expect(
      parameters.hasPrefix("profile-space=0;profile-id=1;tier-flag=0;level-id=60;interop-constraints=900000000000;"))
  }
}

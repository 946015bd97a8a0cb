import Foundation
import Media
import RTP
import TestSupport
import Testing

/// Our Opus by RTP, as ffmpeg and GStreamer receive it.
@Suite struct OpusPlayerTests {
  private static let ssrc: UInt32 = 0x0102_0304

  /// Two seconds of libopus as RTP packets.
  static func packets(of sample: OpusSample) throws -> [[UInt8]] {
    let stream = RTPStream(
      payloadType: .opus, clockRate: OpusPacketizer.clockRate, ssrc: ssrc, firstSequenceNumber: 65_500,
      timestampOffset: 0xffff_f000)
    var packetizer = try OpusPacketizer(stream: stream)
    let batch = PacketBatch()
    var packets: [[UInt8]] = []
    for (index, bytes) in sample.packets.enumerated() {
      batch.removeAll()
      withAccessUnit([bytes], isKeyFrame: true, at: Int64(index) * OpusSample.interval) {
        packetizer.packetize($0, into: batch)
        packets += batch.packets
      }
    }
    #expect(packetizer.packetsOmitted == 0)
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

  @Test(arguments: OpusChannels.allCases)
  func `ffmpeg plays it by its description`(channels: OpusChannels) throws {
    let sample = try OpusSample(channels)
    let packets = try Self.packets(of: sample)
    let port = try UDPPort.free()
    let directory = try TemporaryDirectory()
    let description = SessionDescription(payload: .opus(channels), address: .loopback, port: port, sessionID: 1).text
    let path = try directory.write(description.utf8, as: "stream.sdp")
    let player = try Subprocess(
      [
        "ffmpeg", "-v", "warning", "-xerror", "-protocol_whitelist", "file,udp,rtp", "-i", path, "-f", "s16le", "-ac",
        "2", "-",
      ], in: directory)
    #expect(try eventually { try UDPPort.isBound(port) && UDPPort.isBound(port + 1) })
    try Self.send(packets, to: port)
    #expect(try eventually { try UDPPort.waitingBytes(port) == 0 })
    // BYE, on which ffmpeg ends. Of less than twelve bytes it takes no RTCP packet; hence the reason, "end".
    try UDPPort.send(hex("81 cb 0002 01020304 03 656e64"), to: "127.0.0.1", port: port + 1)
    let result = try player.wait(limit: 60)
    #expect(result.status == 0 && result.error == "", "\(result.error)")
    let sound = DecodedSound(result.output, channels: 2)
    #expect(sound.count == packets.count * OpusSample.samples)
    // RFC 7587 has two channels in any case: of mono both are the same.
    #expect(sound.has(channels == .stereo ? sample.frequencies : [440, 440]), "\(sound.frequencies)")
  }

  @Test(arguments: OpusChannels.allCases)
  func `GStreamer plays it with the channels that it has`(channels: OpusChannels) throws {
    let sample = try OpusSample(channels)
    let packets = try Self.packets(of: sample)
    let port = try UDPPort.free()
    let directory = try TemporaryDirectory()
    let file = directory.path("sound")
    let elements = OpusPayloadFormat(channels: channels).players.gstreamerElements
    let caps =
      "application/x-rtp,media=audio,clock-rate=48000,encoding-name=OPUS,payload=98,"
      + "sprop-stereo=(string)\(channels == .stereo ? 1 : 0)"
    let player = try Subprocess(
      ["gst-launch-1.0", "-q", "udpsrc", "port=\(port)", "num-buffers=\(packets.count)", "caps=\(caps)", "!"]
        + elements.split(separator: " ").map(String.init)
        + ["!", "audioconvert", "!", "audio/x-raw,format=S16LE,rate=48000,channels=\(channels.rawValue)", "!"]
        + ["filesink", "location=\(file)"], in: directory)
    #expect(try eventually { try UDPPort.isBound(port) })
    try Self.send(packets, to: port)
    let result = try player.wait(limit: 60)
    #expect(result.status == 0 && result.error == "", "\(result.error)")
    let sound = DecodedSound(try Data(contentsOf: URL(fileURLWithPath: file)), channels: channels.rawValue)
    #expect(sound.count == packets.count * OpusSample.samples)
    #expect(sound.has(sample.frequencies), "\(sound.frequencies)")
  }
}

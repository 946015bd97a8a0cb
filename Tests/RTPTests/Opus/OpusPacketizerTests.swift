import Media
import Platform
import RTP
import TestSupport
import Testing

@Suite struct OpusPacketizerTests {
  /// Stereo, 20 ms, CELT: TOC byte 0xfc, then what the range coder takes for a frame.
  static func opusPacket(bytes: Int, isStereo: Bool = true) -> [UInt8] {
    [isStereo ? 0xfc : 0xf8] + (1..<max(bytes, 1)).map { UInt8(truncatingIfNeeded: $0 &* 73 &+ bytes) }
  }

  static func stream(sequenceNumber: UInt16 = 0xfffe) -> RTPStream {
    RTPStream(
      payloadType: .opus, clockRate: OpusPacketizer.clockRate, ssrc: 0x9dbb_7812, firstSequenceNumber: sequenceNumber,
      timestampOffset: 0x8877_6655)
  }

  @Test func `each Opus packet becomes exactly this RTP packet`() throws {
    var packetizer = try OpusPacketizer(stream: Self.stream())
    let batch = PacketBatch()
    var packets: [[UInt8]] = []
    for index in Int64(0)..<3 {
      batch.removeAll()
      packets += withAccessUnit([hex("fc 010203")], isKeyFrame: true, at: 1_000_000_000_000 + index * 20_000_000) {
        packetizer.packetize($0, into: batch)
        // The unit's bytes are lent: copy them while they are there.
        return batch.packets
      }
    }
    // 1,000 s are 48,000,000 ticks = 0x02dc6c00; 20 ms are 960 = 0x3c0. The marker bit stays 0.
    #expect(
      packets == [
        hex("80 62 fffe 8b53d255 9dbb7812  fc 010203"), hex("80 62 ffff 8b53d615 9dbb7812  fc 010203"),
        hex("80 62 0000 8b53d9d5 9dbb7812  fc 010203"),
      ])
    #expect(packetizer.stream.packetsSent == 3 && packetizer.stream.octetsSent == 12)
  }

  @Test(arguments: [1, 2, 183, 184, 255, 510, 1188])
  func `an Opus packet that fits goes whole, and its bytes are lent`(bytes: Int) throws {
    var packetizer = try OpusPacketizer(stream: Self.stream())
    let batch = PacketBatch()
    let payload = Self.opusPacket(bytes: bytes)
    let isLent = withAccessUnit([payload], isKeyFrame: true) { unit in
      packetizer.packetize(unit, into: batch)
      #expect(batch.packets.map { Array($0.dropFirst(RTPHeader.byteCount)) } == [payload])
      return batch[0].payload.baseAddress == unit.nalUnits[0].bytes.baseAddress
    }
    #expect(isLent)
  }

  @Test func `an Opus packet that is too long is left out and counted, and the next one goes`() throws {
    var packetizer = try OpusPacketizer(stream: Self.stream(), maximumPacketSize: 128)
    let batch = PacketBatch()
    for bytes in [116, 117, 1275, 116] {
      withAccessUnit([Self.opusPacket(bytes: bytes)], isKeyFrame: true) { packetizer.packetize($0, into: batch) }
    }
    withAccessUnit([]) { packetizer.packetize($0, into: batch) }
    // The lent bytes are gone, their numbers are not.
    #expect((0..<batch.count).map { batch[$0].header.count + batch[$0].payload.count } == [128, 128])
    #expect(packetizer.packetsOmitted == 2)
    // Nothing is missing for a receiver: the numbers go on.
    #expect(packetizer.stream.nextSequenceNumber == 0)
  }

  @Test func `a batch that has seen one packet allocates nothing more`() throws {
    var packetizer = try OpusPacketizer()
    let batch = PacketBatch(packets: 1)
    func send() {
      batch.removeAll()
      withAccessUnit([Self.opusPacket(bytes: 320)], isKeyFrame: true) { packetizer.packetize($0, into: batch) }
    }
    send()
    let before = batch.memoryBytes
    for _ in 0..<50 { send() }
    #expect(batch.memoryBytes == before)
  }

  @Test(arguments: [127, 0, -1, 65_508, Int.max])
  func `an impossible packet size is refused`(size: Int) {
    #expect(throws: PacketizerError.packetSize(size, limits: 128...65_507)) {
      try OpusPacketizer(maximumPacketSize: size)
    }
  }

  static func description(_ channels: OpusChannels, _ announcement: SessionDescription.Announcement) -> String {
    SessionDescription(
      payload: .opus(channels), announcement: announcement, address: .loopback, port: 5006, sessionID: 1,
      kilobitsPerSecond: 64
    ).text
  }

  @Test(arguments: OpusChannels.allCases)
  func `the description has two channels for mono too, and tells what is in the packets`(channels: OpusChannels) {
    let media = Self.description(channels, .plain).split(separator: "\r\n").drop { !$0.hasPrefix("m=") }
    let stereo = channels == .stereo ? 1 : 0
    #expect(
      media == [
        "m=audio 5006 RTP/AVP 98", "b=AS:64", "a=rtpmap:98 opus/48000/2",
        "a=fmtp:98 useinbandfec=1;sprop-stereo=\(stereo);sprop-maxcapturerate=48000", "a=ptime:20", "a=maxptime:20",
      ])
    let format = OpusPayloadFormat(channels: channels)
    #expect(format.description(of: TrackProperties()) == .opus(channels))
    #expect(format.encoding.clockRate == 48_000 && format.encoding.payloadType == .opus)
  }

  @Test(arguments: OpusChannels.allCases, [SessionDescription.Announcement.plain, .rtsp])
  func `live555 and Media3 read the description`(
    channels: OpusChannels, announcement: SessionDescription.Announcement
  ) throws {
    let text = Self.description(channels, announcement)
    let live555 = try Live555Description(text)
    #expect(live555.complaints.isEmpty && live555.media.count == 1)
    let medium = try #require(live555.media.first)
    #expect(medium.medium == "audio" && medium.codec == "OPUS" && medium.frequency == 48_000)
    #expect(medium.parameters["sprop-stereo"] == (channels == .stereo ? "1" : "0"))
    let media3 = try Media3Description(text)
    #expect(media3.media.map(\.encoding) == ["opus"] && media3.media.map(\.payloadType) == [98])
  }
}

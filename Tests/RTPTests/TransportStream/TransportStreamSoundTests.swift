import Media
import Platform
import RTP
import Testing

/// Opus beside the pictures of a transport stream.
@Suite struct TransportStreamSoundTests {
  private static let millisecond: Int64 = 1_000_000

  private static func mux(
    sound packet: [UInt8], at nanoseconds: Int64, _ muxer: inout TransportStreamMuxer, _ arena: inout ByteArena
  ) {
    withAccessUnit([packet], isKeyFrame: true, at: nanoseconds) { muxer.mux(sound: $0, into: &arena) }
  }

  private static func packetize(
    sound packet: [UInt8], at nanoseconds: Int64, _ packetizer: inout TransportStreamPacketizer, _ batch: PacketBatch
  ) {
    withAccessUnit([packet], isKeyFrame: true, at: nanoseconds) { packetizer.packetize(sound: $0, into: batch) }
  }

  @Test(arguments: OpusChannels.allCases)
  func `an Opus packet becomes exactly this transport packet`(channels: OpusChannels) {
    var muxer = TransportStreamMuxer(sound: channels)
    var arena = ByteArena(capacity: 0)
    // 1.02 s, and 100 ms later the PTS: 100,800 = 0x189c0.
    Self.mux(sound: hex("f8 010203"), at: 1_020_000_000, &muxer, &arena)
    let fill = { (count: Int) in [UInt8](repeating: 0xff, count: count) }
    let map =
      channels == .mono
      ? hex("02 b021 0001 c1 00 00 e100 f000 1b e100 f000 06 e101 f00a 05 04 4f707573 7f 02 8001")
      : hex("02 b021 0001 c1 00 00 e100 f000 1b e100 f000 06 e101 f00a 05 04 4f707573 7f 02 8002")
    let sound = hex("000001 bd 000f 84 80 05 21 0007 1381  7fe0 04 f8 010203")
    let bytes = Array(arena.bytes)
    #expect(bytes.count == 3 * 188)
    #expect(bytes[188..<193].elementsEqual(hex("47 5000 10 00")))
    #expect(bytes[193..<193 + map.count].elementsEqual(map))
    #expect(CRC32MPEG.checksum(bytes[193..<193 + map.count + 4]) == 0)
    #expect(Array(bytes[376...]) == hex("47 4101 30 a2 00") + fill(161) + sound)
    #expect(TransportStreamReader(bytes, hasSound: true).faults.isEmpty)
  }

  /// 167 bytes fill a transport packet, 166 leave room for one byte of stuffing, 165 for two.
  @Test(arguments: OpusChannels.allCases)
  func `every size of Opus packet ends with its packet, and every size of picture beside it`(
    channels: OpusChannels
  ) {
    var muxer = TransportStreamMuxer(sound: channels)
    var arena = ByteArena(capacity: 0)
    var (pictures, sounds): ([[UInt8]], [[UInt8]]) = ([], [])
    for size in 1...1600 {
      let packet = OpusPacketizerTests.opusPacket(bytes: size, isStereo: channels == .stereo)
      let nal = [0x41] + H264Case.run(UInt8(size & 0x7f) | 0x80, size % 400)
      let time = Int64(size) * 20 * Self.millisecond
      withAccessUnit([nal], isKeyFrame: size % 50 == 1, at: time) { muxer.mux($0, into: &arena) }
      Self.mux(sound: packet, at: time, &muxer, &arena)
      pictures.append(hex("00000001 09f0 00000001") + nal)
      sounds.append(packet)
    }
    let reader = TransportStreamReader(Array(arena.bytes), hasSound: true)
    #expect(reader.faults.isEmpty, "\(reader.faults.prefix(5))")
    #expect(reader.units.map(\.bytes) == pictures)
    #expect(reader.sounds.map(\.bytes) == sounds)
    // One clock for both.
    #expect(reader.sounds.map(\.pts) == reader.units.map(\.pts))
    #expect(reader.sounds.map(\.place) == Array(1...1600))
    #expect(reader.sections.allSatisfy { CRC32MPEG.checksum($0.bytes) == 0 })
  }

  @Test func `a stream without sound takes none, and its bytes are what they were`() throws {
    var (plain, mute) = (TransportStreamMuxer(), TransportStreamMuxer(sound: nil))
    var expected = ByteArena(capacity: 0)
    var arena = ByteArena(capacity: 0)
    for frame in Int64(0)..<50 {
      withAccessUnit([[0x41] + H264Case.run(5, 500)], isKeyFrame: frame == 0, at: frame * 40 * Self.millisecond) {
        plain.mux($0, into: &expected)
        mute.mux($0, into: &arena)
      }
      Self.mux(sound: [0xf8, 1], at: frame * 40 * Self.millisecond, &mute, &arena)
    }
    #expect(Array(arena.bytes) == Array(expected.bytes))
    #expect(TransportStreamReader(Array(arena.bytes)).faults.isEmpty)
    var packetizer = try TransportStreamPacketizer()
    let batch = PacketBatch()
    Self.packetize(sound: [0xf8, 1], at: 0, &packetizer, batch)
    #expect(batch.count == 0)
  }

  @Test func `sound waits for no picture, and brings the tables where no picture does`() {
    var muxer = TransportStreamMuxer(sound: .mono)
    var arena = ByteArena(capacity: 0)
    for index in Int64(0)..<60 {
      Self.mux(sound: [0xf8, 1], at: index * 20 * Self.millisecond, &muxer, &arena)
    }
    let reader = TransportStreamReader(Array(arena.bytes), hasSound: true)
    #expect(reader.faults.isEmpty && reader.sounds.count == 60)
    // At once, and again each 220 ms.
    #expect(reader.tablePlaces.count == 6)
    #expect(reader.sections.prefix(2).map(\.pid) == [0, 0x1000])
  }

  @Test(arguments: [Int64(-60), 0, 60])
  func `with pictures, sound brings no tables of its own, whether it is early or late`(milliseconds: Int64) {
    var (silent, muxer) = (TransportStreamMuxer(), TransportStreamMuxer(sound: .stereo))
    var expected = ByteArena(capacity: 0)
    var arena = ByteArena(capacity: 0)
    for frame in Int64(0)..<100 {
      let time = 1000 + frame * 40
      withAccessUnit([[0x41, 1]], isKeyFrame: frame == 0, at: time * Self.millisecond) {
        silent.mux($0, into: &expected)
        muxer.mux($0, into: &arena)
      }
      for sound in [time, time + 20] {
        Self.mux(sound: [0xfc, 1], at: (sound + milliseconds) * Self.millisecond, &muxer, &arena)
      }
    }
    let reader = TransportStreamReader(Array(arena.bytes), hasSound: true)
    #expect(reader.faults.isEmpty && reader.sounds.count == 200)
    #expect(reader.tablePlaces == TransportStreamReader(Array(expected.bytes)).tablePlaces)
    #expect(reader.clocks == TransportStreamReader(Array(expected.bytes)).clocks)
  }

  @Test(arguments: [Int64(-60), 0, 60])
  func `both share the numbers of one RTP stream, and its time never runs back`(milliseconds: Int64) throws {
    let stream = RTPStream(payloadType: .transportStream, ssrc: 1, firstSequenceNumber: 65_530, timestampOffset: 7)
    var packetizer = try TransportStreamPacketizer(stream: stream, sound: .mono)
    let batch = PacketBatch()
    Self.packetize(sound: [0xf8, 1], at: 0, &packetizer, batch)
    for frame in Int64(0)..<20 {
      let time = 1000 + frame * 40
      withAccessUnit([[0x41] + H264Case.run(1, 3000)], isKeyFrame: frame == 0, at: time * Self.millisecond) {
        packetizer.packetize($0, into: batch)
      }
      for sound in [time, time + 20] {
        let bytes = OpusPacketizerTests.opusPacket(bytes: 1275, isStereo: false)
        Self.packetize(sound: bytes, at: (sound + milliseconds) * Self.millisecond, &packetizer, batch)
      }
    }
    let packets = batch.packets
    #expect(TransportStreamReader(packets.flatMap { $0.dropFirst(12) }, hasSound: true).faults.isEmpty)
    let numbers = packets.map { UInt16($0[2]) << 8 | UInt16($0[3]) }
    #expect(numbers == packets.indices.map { 65_530 &+ UInt16($0) })
    let timestamps = packets.map { $0[4..<8].reduce(UInt32(0)) { $0 << 8 | UInt32($1) } }
    #expect(timestamps.first == 7 && timestamps.last == 7 + 90_000 + 19 * 3600)
    #expect(zip(timestamps, timestamps.dropFirst()).allSatisfy { $1 >= $0 })
    // The clock starts with the first picture.
    #expect(packets.indices.filter { packets[$0][1] & 0x80 != 0 } == [1])
    #expect(packetizer.stream.packetsSent == UInt64(packets.count))
  }

  @Test func `extreme times and sizes do no harm`() {
    var muxer = TransportStreamMuxer(sound: .stereo)
    var arena = ByteArena(capacity: 0)
    for time in [Int64.max, Int64.min, -1, 0, Int64.max - 1, Int64.min + 1] {
      Self.mux(sound: [0xfc], at: time, &muxer, &arena)
      withAccessUnit([[0x41, 1]], at: time) { muxer.mux($0, into: &arena) }
      Self.mux(sound: [0xfc], at: ~time, &muxer, &arena)
    }
    withAccessUnit([]) { muxer.mux(sound: $0, into: &arena) }
    // A PES packet has at most 65,535 bytes after its length, of which 65,269 are left for Opus.
    for bytes in [65_268, 65_269, 65_270, 65_536, 200_000] {
      Self.mux(sound: H264Case.run(0xfc, bytes), at: 0, &muxer, &arena)
    }
    let reader = TransportStreamReader(Array(arena.bytes), hasSound: true)
    #expect(reader.faults.isEmpty, "\(reader.faults.prefix(3))")
    #expect(reader.units.count == 6)
    #expect(reader.sounds.map(\.bytes.count) == [Int](repeating: 1, count: 12) + [65_268, 65_269])
  }

  @Test func `a batch that has seen the largest of both allocates nothing more`() throws {
    var packetizer = try TransportStreamPacketizer(sound: .stereo)
    let batch = PacketBatch(packets: 1)
    func send() {
      batch.removeAll()
      withAccessUnit([[0x65] + H264Case.run(1, 20_000)], isKeyFrame: true) { packetizer.packetize($0, into: batch) }
      Self.packetize(sound: OpusPacketizerTests.opusPacket(bytes: 1275), at: 0, &packetizer, batch)
    }
    send()
    let before = batch.memoryBytes
    for _ in 0..<50 { send() }
    #expect(batch.memoryBytes == before)
  }
}

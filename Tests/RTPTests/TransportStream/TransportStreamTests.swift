import Media
import Platform
import RTP
import Testing

@Suite struct TransportStreamTests {
  @Test func `the CRC is the one of the catalogue and of a section that ffmpeg writes`() {
    #expect(CRC32MPEG.checksum("123456789".utf8) == 0x0376_e6e7)
    #expect(CRC32MPEG.checksum(hex("00 b00d 0001 c1 00 00 0001 f000")) == 0x2ab1_04b2)
    #expect(CRC32MPEG.checksum(hex("00 b00d 0001 c1 00 00 0001 f000 2ab104b2")) == 0)
  }

  @Test func `a key frame becomes exactly these transport packets`() {
    var muxer = TransportStreamMuxer()
    var arena = ByteArena(capacity: 0)
    // One second: PCR base 90,000 = 0x15f90, extension 0; PTS 50 ms later, 94,500 = 0x17124.
    withAccessUnit([hex("09 10"), hex("67 42"), hex("65 88")], isKeyFrame: true, at: 1_000_000_000) { unit in
      muxer.mux(unit, into: &arena)
    }
    let fill = { (count: Int) in [UInt8](repeating: 0xff, count: count) }
    let association = hex("47 4000 10 00  00 b00d 0001 c1 00 00 0001 f000 2ab104b2")
    let map = hex("47 5000 10 00  02 b012 0001 c1 00 00 e100 f000 1b e100 f000 15bd4d56")
    let video = hex(
      """
      0000 01e0 0000 84 80 05 21 0005 e249
      00000001 09f0  00000001 6742  00000001 6588
      """)
    // The rest of the packet is stuffed in the adaptation field: 184 - 32 bytes, length byte included.
    let start = hex("47 4100 30 97 50 0000afc8 7e 00") + fill(144)
    #expect(video.count == 32)
    let expected = association + fill(188 - association.count) + map + fill(188 - map.count) + start + video
    #expect(Array(arena.bytes) == expected)
  }

  @Test func `every size of access unit ends with its packet`() {
    var muxer = TransportStreamMuxer()
    var arena = ByteArena(capacity: 0)
    var sent: [[UInt8]] = []
    for size in 1...800 {
      let nal = [0x41] + [UInt8](repeating: UInt8(size & 0x7f) | 0x80, count: size - 1)
      withAccessUnit([nal], isKeyFrame: size % 50 == 1, at: Int64(size) * 20_000_000) { unit in
        muxer.mux(unit, into: &arena)
      }
      sent.append(hex("00000001 09f0 00000001") + nal)
    }
    let reader = TransportStreamReader(Array(arena.bytes))
    #expect(reader.faults.isEmpty, "\(reader.faults.prefix(5))")
    #expect(reader.units.map(\.bytes) == sent)
    #expect(reader.units.enumerated().allSatisfy { $0.element.isRandomAccess == ($0.offset % 50 == 0) })
    #expect(reader.units.map(\.pts) == (1...800).map { UInt64($0) * 1800 + 4500 })
    #expect(reader.clocks == (1...800).map { UInt64($0) * 540_000 })
    #expect(reader.sections.allSatisfy { CRC32MPEG.checksum($0.bytes) == 0 })
  }

  @Test(arguments: [(10, 1), (15, 1), (24, 1), (25, 1), (30, 1), (30_000, 1001), (60, 1), (120, 1)])
  func `tables come at least every 100 ms`(numerator: UInt32, denominator: UInt32) throws {
    let rate = try #require(FrameRate(numerator, denominator))
    var muxer = TransportStreamMuxer()
    var arena = ByteArena(capacity: 0)
    for frame in 0..<Int64(240) {
      withAccessUnit([[0x41, 1]], isKeyFrame: frame == 0, at: rate.time(ofFrame: frame).nanoseconds) { unit in
        muxer.mux(unit, into: &arena)
      }
    }
    let reader = TransportStreamReader(Array(arena.bytes))
    #expect(reader.faults.isEmpty)
    let gaps = zip(reader.tablePlaces, reader.tablePlaces.dropFirst()).map { place, next in
      rate.time(ofFrame: Int64(next)) - rate.time(ofFrame: Int64(place))
    }
    #expect(gaps.allSatisfy { $0 <= Duration.milliseconds(100) })
    // Not with every frame either where frames come often.
    if rate.framesPerSecond >= 60 { #expect(gaps.allSatisfy { $0 > Duration.milliseconds(80) }) }
    #expect(zip(reader.clocks, reader.clocks.dropFirst()).allSatisfy { $1 > $0 && $1 - $0 <= 2_700_000 })
  }

  @Test func `clock and PTS wrap at 33 bits`() {
    var muxer = TransportStreamMuxer()
    var arena = ByteArena(capacity: 0)
    // 2^33 ticks of 90 kHz are 95443717688888.8 ns: one frame before, one between clock and PTS, one after.
    for time in [Int64(95_443_617_688_889), 95_443_697_688_889, 95_443_817_688_889] {
      withAccessUnit([[0x41, 1]], at: time) { unit in muxer.mux(unit, into: &arena) }
    }
    let reader = TransportStreamReader(Array(arena.bytes))
    #expect(reader.faults.isEmpty)
    let wrap = UInt64(1) << 33
    #expect(reader.units.map(\.pts) == [wrap - 4500, 2700, 13_500])
    #expect(reader.clocks == [(wrap - 9000) * 300, (wrap - 1800) * 300, 9000 * 300])
    #expect(reader.units.allSatisfy { !$0.isDiscontinuous })
  }

  @Test func `extreme times do no harm`() {
    var muxer = TransportStreamMuxer()
    var arena = ByteArena(capacity: 0)
    for time in [Int64.max, Int64.min, -1, 0, Int64.max - 1, Int64.min + 1] {
      withAccessUnit([[0x41, 1]], at: time) { unit in muxer.mux(unit, into: &arena) }
      muxer.clockPacket(at: Instant(nanoseconds: time), into: &arena)
    }
    let reader = TransportStreamReader(Array(arena.bytes))
    #expect(reader.faults.isEmpty)
    #expect(reader.units.count == 6)
  }

  @Test func `time that runs backwards is a discontinuity, the next picture none`() throws {
    let stream = RTPStream(payloadType: .transportStream, ssrc: 1, firstSequenceNumber: 1, timestampOffset: 0)
    var packetizer = try TransportStreamPacketizer(stream: stream)
    let batch = PacketBatch()
    for seconds in [Int64(100), 101, 5, 6] {
      withAccessUnit([[0x41] + H264Case.run(1, 3000)], at: seconds * 1_000_000_000) { unit in
        packetizer.packetize(unit, into: batch)
      }
    }
    let packets = batch.packets
    let reader = TransportStreamReader(packets.flatMap { $0.dropFirst(12) })
    #expect(reader.faults.isEmpty)
    #expect(reader.units.map(\.isDiscontinuous) == [false, false, true, false])
    #expect(reader.units.allSatisfy { $0.hasClock })
    // The marker: at the start and where the clock starts anew, on the first packet of the unit.
    let marked = packets.filter { $0[1] == 0xa1 }.map { Array($0[4..<8]) }
    #expect(marked == [hex("00895440"), hex("0006ddd0")])
    #expect(packets.allSatisfy { $0[1] & 0x7f == 33 })
  }

  @Test func `a slow stream has its clock between the pictures, and it never runs back`() throws {
    let stream = RTPStream(payloadType: .transportStream, ssrc: 1, firstSequenceNumber: 1, timestampOffset: 7)
    var packetizer = try TransportStreamPacketizer(stream: stream)
    let batch = PacketBatch()
    let millisecond = Int64(1_000_000)
    for frame in Int64(0)..<8 {
      withAccessUnit([[0x41, 1, 2]], isKeyFrame: frame == 0, at: frame * 250 * millisecond) { unit in
        packetizer.packetize(unit, into: batch)
      }
      for step in Int64(1)...3 {
        // The last one comes after the next picture was taken.
        packetizer.keepAlive(at: Instant(nanoseconds: (frame * 250 + step * 90) * millisecond), into: batch)
      }
      let before = batch.count
      packetizer.keepAlive(at: Instant(nanoseconds: (frame * 250 + 90) * millisecond), into: batch)
      #expect(batch.count == before)
    }
    let packets = batch.packets
    let reader = TransportStreamReader(packets.flatMap { $0.dropFirst(12) })
    #expect(reader.faults.isEmpty, "\(reader.faults)")
    #expect(reader.units.map(\.hasClock) == [true] + [Bool](repeating: false, count: 7))
    #expect(reader.units.map(\.pts) == (0..<8).map { UInt64($0) * 22_500 + 4500 })
    #expect(reader.clocks.count == 1 + 8 * 3)
    #expect(zip(reader.clocks, reader.clocks.dropFirst()).allSatisfy { $1 > $0 && $1 - $0 <= 2_700_000 })
    let timestamps = packets.map { $0[4..<8].reduce(UInt32(0)) { $0 << 8 | UInt32($1) } }
    #expect(timestamps.first == 7)
    #expect(zip(timestamps, timestamps.dropFirst()).allSatisfy { $1 >= $0 })
    #expect(packets.filter { $0[1] & 0x80 != 0 }.count == 1)
    #expect(packets.allSatisfy { $0.count <= 12 + 3 * 188 })
  }

  @Test(arguments: [(200, 1), (387, 1), (388, 2), (1200, 6), (1327, 6), (1328, 7), (1500, 7), (65_507, 348)])
  func `a packet holds as many whole transport packets as fit`(packetSize: Int, each: Int) throws {
    var packetizer = try TransportStreamPacketizer(maximumPacketSize: packetSize)
    var muxer = TransportStreamMuxer()
    var arena = ByteArena(capacity: 0)
    let batch = PacketBatch()
    for frame in Int64(0)..<5 {
      withAccessUnit([[0x65] + H264Case.run(5, 100_000)], isKeyFrame: true, at: frame * 33_333_333) { unit in
        packetizer.packetize(unit, into: batch)
        muxer.mux(unit, into: &arena)
      }
    }
    let packets = batch.packets
    #expect(packets.flatMap { $0.dropFirst(12) } == Array(arena.bytes))
    #expect(packets.filter { $0.count == 12 + each * 188 }.count >= packets.count - 5)
    #expect(packets.allSatisfy { $0.count <= packetSize && ($0.count - 12).isMultiple(of: 188) })
    #expect(packetizer.stream.octetsSent == UInt64(arena.count))
    #expect(batch.totalBytes == arena.count + 12 * batch.count)
  }

  @Test(arguments: [199, 128, -5, 65_508])
  func `a packet too small for one transport packet is refused`(size: Int) {
    #expect(throws: PacketizerError.packetSize(size, limits: 200...65_507)) {
      try TransportStreamPacketizer(maximumPacketSize: size)
    }
  }
}

import Media
import Platform
import RTP
import TestSupport
import Testing

@Suite struct H264DepacketizerTests {
  @Test func `a packet lost within a unit damages that unit alone`() {
    var receiver = Receiver()
    receiver.take([
      packet(10, timestamp: 1, hex("41 01")), packet(12, timestamp: 1, marker: true, hex("41 03")),
      packet(13, timestamp: 2, marker: true, hex("41 04")),
    ])
    #expect(
      receiver.units == [
        Delivered([hex("41 01"), hex("41 03")], timestamp: 1, isDamaged: true),
        Delivered([hex("41 04")], timestamp: 2),
      ])
    #expect(receiver.depacketizer.packetsLost == 1)
  }

  @Test func `a gap between units damages both sides where the first had no end yet`() {
    var receiver = Receiver()
    receiver.take([
      packet(10, timestamp: 1, hex("41 01")), packet(12, timestamp: 2, marker: true, hex("41 03")),
      packet(15, timestamp: 3, marker: true, hex("41 04")),
    ])
    #expect(receiver.units.map(\.isDamaged) == [true, true, true])
    #expect(receiver.depacketizer.packetsLost == 3)
  }

  @Test func `a key frame behind a gap is whole if it begins with a delimiter or its SPS`() {
    let (delimiter, sps, pps, idr) = (hex("09 10"), hex("67 01"), hex("68 01"), hex("65 01"))
    // The last two: a picture that refers to a lost one, and a key frame whose SPS may be lost.
    let cases = [
      ([sps, pps, idr], false), ([delimiter, sps, pps, idr], false), ([delimiter, hex("41 01")], true),
      ([pps, idr], true), ([idr], true),
    ]
    for (units, isDamaged) in cases {
      var receiver = Receiver()
      receiver.take([packet(10, timestamp: 1, marker: true, hex("41 01"))])
      for (index, unit) in units.enumerated() {
        receiver.take([packet(20 + UInt16(index), timestamp: 2, marker: index == units.count - 1, unit)])
      }
      #expect(receiver.units.map(\.isDamaged) == [false, isDamaged], "\(units)")
      #expect(receiver.units.last?.nalUnits == units)
    }
    // A slice is missing later.
    var receiver = Receiver()
    receiver.take([
      packet(10, timestamp: 1, marker: true, hex("41 01")), packet(20, timestamp: 2, hex("78 0002 6701 0002 6801")),
      packet(22, timestamp: 2, marker: true, idr),
    ])
    #expect(receiver.units.map(\.isDamaged) == [false, true])
  }

  @Test func `fragments with one missing leave no half NAL unit behind`() {
    var receiver = Receiver()
    receiver.take([
      packet(1, hex("41 aa")), packet(2, hex("7c 85 11")), packet(4, hex("7c 05 33")), packet(5, hex("7c 45 44")),
      packet(6, marker: true, hex("41 bb")),
    ])
    #expect(receiver.errors.isEmpty)
    #expect(receiver.units == [Delivered([hex("41 aa"), hex("41 bb")], timestamp: 0, isDamaged: true)])
  }

  @Test func `a unit of which only fragments without a beginning came is reported empty and damaged`() {
    var receiver = Receiver()
    receiver.take([packet(2, hex("7c 05 33")), packet(3, marker: true, hex("7c 45 44"))])
    #expect(receiver.units == [Delivered([], timestamp: 0, isDamaged: true)])
  }

  @Test func `fragments that never end are dropped by whatever follows`() {
    let followers = [
      packet(2, marker: true, hex("41 22")), packet(2, marker: true, hex("78 0002 4122")),
      packet(2, marker: true, hex("7c 85 22")), packet(2, marker: true, hex("7c 41 22")),
    ]
    for follower in followers {
      var receiver = Receiver()
      receiver.take([packet(1, hex("7c 85 11")), follower])
      #expect(receiver.units.map(\.isDamaged) == [true])
      #expect(receiver.units.first?.nalUnits.contains { $0[0] == 0x65 } == false)
    }
  }

  @Test func `a new timestamp ends a unit whose marker never came`() {
    var receiver = Receiver()
    receiver.take([packet(1, timestamp: 1, hex("41 01")), packet(2, timestamp: 2, hex("41 02"))])
    #expect(receiver.units == [Delivered([hex("41 01")], timestamp: 1)])
    receiver.finish()
    #expect(receiver.units.last == Delivered([hex("41 02")], timestamp: 2))
    receiver.finish()
    #expect(receiver.units.count == 2)
  }

  @Test func `a late or repeated packet is ignored and counted`() {
    var receiver = Receiver()
    receiver.take([
      packet(0xffff, timestamp: 1, hex("41 01")), packet(0xffff, timestamp: 1, hex("41 01")),
      packet(0, timestamp: 1, hex("41 02")), packet(0xfffe, timestamp: 1, marker: true, hex("41 00")),
      packet(1, timestamp: 1, marker: true, hex("41 03")),
    ])
    #expect(receiver.units == [Delivered([hex("41 01"), hex("41 02"), hex("41 03")], timestamp: 1)])
    #expect(receiver.depacketizer.packetsLate == 2)
    #expect(receiver.depacketizer.packetsLost == 0)
  }

  @Test func `a sender that starts anew is followed`() {
    var receiver = Receiver()
    receiver.take([
      packet(50_000, timestamp: 1, hex("41 01")), packet(9, timestamp: 9, ssrc: 2, hex("41 02")),
      packet(10, timestamp: 9, marker: true, ssrc: 2, hex("41 03")),
      packet(60_000, timestamp: 3, marker: true, ssrc: 2, hex("41 04")),
    ])
    #expect(
      receiver.units == [
        Delivered([hex("41 01")], timestamp: 1, isDamaged: true),
        Delivered([hex("41 02"), hex("41 03")], timestamp: 9),
        Delivered([hex("41 04")], timestamp: 3, isDamaged: true),
      ])
    #expect(receiver.depacketizer.packetsLost == 0)
  }

  @Test(arguments: [
    ("", H264DepacketizerError.empty),
    ("79 0000 0002 41aa", .structure(25)), ("7a 0000", .structure(26)), ("7b 0000", .structure(27)),
    ("7d 8500 0011", .structure(29)), ("00 11", .structure(0)), ("7e 11", .structure(30)), ("1f", .structure(31)),
    ("78", .aggregate(offset: 1, payload: 1)), ("78 00", .aggregate(offset: 1, payload: 2)),
    ("78 0000", .aggregate(offset: 1, payload: 3)), ("78 0003 41aa", .aggregate(offset: 1, payload: 5)),
    ("78 0002 41aa 00", .aggregate(offset: 5, payload: 6)),
    ("78 0002 41aa ffff 41", .aggregate(offset: 5, payload: 8)),
    ("78 0002 78aa", .structure(24)), ("78 0002 7c85", .structure(28)),
    ("7c", .fragment(header: 0, payload: 1)), ("7c c5 11", .fragment(header: 0xc5, payload: 3)),
    ("7c 80 11", .fragment(header: 0x80, payload: 3)), ("7c 9c 11", .fragment(header: 0x9c, payload: 3)),
  ])
  func `a broken or foreign payload is refused by name, and its unit damaged`(
    payload: String, error: H264DepacketizerError
  ) {
    var receiver = Receiver()
    receiver.take([packet(1, hex("41 01")), packet(2, hex(payload)), packet(3, marker: true, hex("41 02"))])
    #expect(receiver.errors == [error])
    #expect(receiver.units == [Delivered([hex("41 01"), hex("41 02")], timestamp: 0, isDamaged: true)])
    #expect(!error.description.contains("\n") && error.kind == .data)
    receiver.take([packet(4, timestamp: 5, marker: true, hex(payload))])
    #expect(receiver.units.last == Delivered([], timestamp: 5, isDamaged: true))
  }

  @Test func `another payload type, or no RTP at all, touches nothing`() {
    var receiver = Receiver()
    receiver.take([packet(1, hex("41 01"))])
    receiver.take([hex("80 21 0002 00000000 00000001 47"), hex("8060")])
    receiver.take([packet(2, marker: true, hex("41 02"))])
    #expect(receiver.errors == [.payloadType(.transportStream, expected: .h264), .packet(.short(2))])
    #expect(receiver.units == [Delivered([hex("41 01"), hex("41 02")], timestamp: 0)])
  }

  @Test func `limits hold for a NAL unit, a unit's bytes and their number`() {
    let limits = H264Depacketizer.Limits(nalBytes: 10, nalUnits: 3, unitBytes: 40)
    var receiver = Receiver(limits: limits)
    receiver.take([packet(1, [0x41] + H264Case.run(0, 9)), packet(2, marker: true, [0x41] + H264Case.run(0, 10))])
    #expect(receiver.errors == [.nalUnitSize(limit: 10)])
    receiver.take([
      packet(3, hex("7c 85 112233445566")), packet(4, hex("7c 05 778899")), packet(5, hex("7c 45 aa")),
      packet(6, marker: true, hex("41 01")),
    ])
    #expect(receiver.errors == [.nalUnitSize(limit: 10), .nalUnitSize(limit: 10)])
    receiver.take((7...9).map { packet($0, hex("41")) } + [packet(10, marker: true, hex("41"))])
    #expect(receiver.errors.last == .nalUnits(limit: 3))
    receiver.take((11...13).map { packet($0, [0x41] + H264Case.run(0, 9)) })
    #expect(receiver.errors.last == .accessUnitSize(limit: 40))
    receiver.finish()
    #expect(receiver.units.map(\.isDamaged) == [true, true, true, true])
    #expect(receiver.units.map(\.nalUnits.count) == [1, 1, 3, 2])
  }

  @Test func `any NAL sizes survive any packet size, across wraps of sequence and timestamp`() throws {
    var random = SeededGenerator(seed: 2026)
    let batch = PacketBatch()
    var cases = 0
    for packetSize in 128...1500 {
      let stream = RTPStream(
        payloadType: .h264, ssrc: 3, firstSequenceNumber: 0xffff &- UInt16.random(in: 0...20, using: &random),
        timestampOffset: 0xffff_ffff &- UInt32.random(in: 0...9000, using: &random))
      var packetizer = try H264Packetizer(stream: stream, maximumPacketSize: packetSize)
      var receiver = Receiver()
      var sent: [Delivered] = []
      for frame in 0..<4 {
        let nalUnits = Self.nalUnits(packetSize: packetSize, using: &random)
        let time = Int64(frame) * 33_333_333
        let timestamp = stream.rtpTimestamp(of: Instant(nanoseconds: time))
        batch.removeAll()
        let packets = withAccessUnit(nalUnits, at: time) { unit in
          packetizer.packetize(unit, into: batch)
          return batch.packets
        }
        #expect(packets.allSatisfy { $0.count <= packetSize && $0.count > 12 })
        #expect(packets.dropLast().allSatisfy { $0[1] == 0x60 } && packets.last?[1] == 0xe0)
        receiver.take(packets)
        sent.append(Delivered(nalUnits, timestamp: timestamp))
        cases += 1
      }
      #expect(receiver.units == sent, "packet size \(packetSize)")
      #expect(receiver.errors.isEmpty && receiver.depacketizer.packetsLost == 0)
    }
    #expect(cases == 5492)
  }

  /// NAL units of sizes around the edges of the packet size, and of any size.
  static func nalUnits(packetSize: Int, using random: inout SeededGenerator) -> [[UInt8]] {
    (0..<Int.random(in: 1...4, using: &random)).map { _ in
      let count =
        switch Int.random(in: 0...3, using: &random) {
        case 0: Int.random(in: 1...40, using: &random)
        case 1: packetSize - 12 + Int.random(in: -2...2, using: &random)
        case 2: (packetSize - 14) * Int.random(in: 1...4, using: &random) + Int.random(in: -1...2, using: &random)
        default: Int.random(in: 1...6000, using: &random)
        }
      let type: UInt8 = [1, 5, 6, 7, 8, 12, 23][Int.random(in: 0...6, using: &random)]
      let reference = UInt8.random(in: 0...3, using: &random) << 5
      return [reference | type] + random.bytes(count - 1)
    }
  }
}

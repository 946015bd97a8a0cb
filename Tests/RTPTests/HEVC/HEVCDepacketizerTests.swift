import Media
import Platform
import RTP
import TestSupport
import Testing

@Suite struct HEVCDepacketizerTests {
  @Test func `a packet lost within a unit damages that unit alone`() {
    var receiver = HEVCReceiver()
    receiver.take([
      hevcPacket(10, timestamp: 1, hex("0201 01")), hevcPacket(12, timestamp: 1, marker: true, hex("0201 03")),
      hevcPacket(13, timestamp: 2, marker: true, hex("0201 04")),
    ])
    #expect(
      receiver.units == [
        Delivered([hex("0201 01"), hex("0201 03")], timestamp: 1, isDamaged: true),
        Delivered([hex("0201 04")], timestamp: 2),
      ])
    #expect(receiver.depacketizer.packetsLost == 1)
  }

  @Test func `a key frame behind a gap is whole if it begins with a delimiter or its VPS`() {
    let (delimiter, vps, sps, pps) = (hex("4601 10"), hex("4001 01"), hex("4201 01"), hex("4401 01"))
    let idr = hex("2601 01")
    // The last one: a CRA picture, whose leading pictures may refer to a lost one.
    let cases = [
      ([vps, sps, pps, idr], false), ([delimiter, vps, sps, pps, idr], false), ([delimiter, hex("0201 01")], true),
      ([sps, pps, idr], true), ([idr], true), ([vps, sps, pps, hex("2a01 01")], true),
    ]
    for (units, isDamaged) in cases {
      var receiver = HEVCReceiver()
      receiver.take([hevcPacket(10, timestamp: 1, marker: true, hex("0201 01"))])
      for (index, unit) in units.enumerated() {
        receiver.take([hevcPacket(20 + UInt16(index), timestamp: 2, marker: index == units.count - 1, unit)])
      }
      #expect(receiver.units.map(\.isDamaged) == [false, isDamaged], "\(units)")
      #expect(receiver.units.last?.nalUnits == units)
    }
  }

  @Test func `fragments with one missing leave no half NAL unit behind`() {
    var receiver = HEVCReceiver()
    receiver.take([
      hevcPacket(1, hex("0201 aa")), hevcPacket(2, hex("6201 93 11")), hevcPacket(4, hex("6201 13 33")),
      hevcPacket(5, hex("6201 53 44")), hevcPacket(6, marker: true, hex("0201 bb")),
    ])
    #expect(receiver.errors.isEmpty)
    #expect(receiver.units == [Delivered([hex("0201 aa"), hex("0201 bb")], timestamp: 0, isDamaged: true)])
  }

  @Test func `fragments that never end are dropped by whatever follows`() {
    let followers = [
      hevcPacket(2, marker: true, hex("0201 22")), hevcPacket(2, marker: true, hex("6001 0003 020122")),
      hevcPacket(2, marker: true, hex("6201 93 22")), hevcPacket(2, marker: true, hex("6201 41 22")),
      hevcPacket(2, marker: true, hex("6209 13 22")), hevcPacket(2, marker: true, hex("6200 13 22")),
    ]
    for follower in followers {
      var receiver = HEVCReceiver()
      receiver.take([hevcPacket(1, hex("6201 93 11")), follower])
      #expect(receiver.units.map(\.isDamaged) == [true])
      #expect(receiver.units.first?.nalUnits.contains { $0[0] == 0x26 } == false)
    }
  }

  @Test func `a late or repeated packet is ignored and counted`() {
    var receiver = HEVCReceiver()
    receiver.take([
      hevcPacket(0xffff, timestamp: 1, hex("0201 01")), hevcPacket(0xffff, timestamp: 1, hex("0201 01")),
      hevcPacket(0, timestamp: 1, hex("0201 02")), hevcPacket(0xfffe, timestamp: 1, marker: true, hex("0201 00")),
      hevcPacket(1, timestamp: 1, marker: true, hex("0201 03")),
    ])
    #expect(receiver.units == [Delivered([hex("0201 01"), hex("0201 02"), hex("0201 03")], timestamp: 1)])
    #expect(receiver.depacketizer.packetsLate == 2 && receiver.depacketizer.packetsLost == 0)
  }

  @Test(arguments: [
    ("", HEVCDepacketizerError.empty), ("02", .header(payload: 1)), ("8201 11", .header(payload: 3)),
    ("0200 11", .header(payload: 3)), ("6401 1122", .structure(50)), ("7e01 11", .structure(63)),
    ("6001", .aggregate(offset: 2, payload: 2)), ("6001 00", .aggregate(offset: 2, payload: 3)),
    ("6001 0000", .aggregate(offset: 2, payload: 4)), ("6001 0001 02", .aggregate(offset: 2, payload: 5)),
    ("6001 0004 0201aa", .aggregate(offset: 2, payload: 7)), ("6001 0003 0201aa 00", .aggregate(offset: 7, payload: 8)),
    ("6001 0003 0201aa ffff 02", .aggregate(offset: 7, payload: 10)),
    ("6001 0003 6001aa", .structure(48)), ("6001 0003 6201 93", .structure(49)),
    ("6201", .fragment(header: 0, payload: 2)), ("6201 d3 11", .fragment(header: 0xd3, payload: 4)),
    ("6201 b0 11", .fragment(header: 0xb0, payload: 4)),
  ])
  func `a broken or foreign payload is refused by name, and its unit damaged`(
    payload: String, error: HEVCDepacketizerError
  ) {
    var receiver = HEVCReceiver()
    receiver.take([
      hevcPacket(1, hex("0201 01")), hevcPacket(2, hex(payload)), hevcPacket(3, marker: true, hex("0201 02")),
    ])
    #expect(receiver.errors == [error])
    #expect(receiver.units == [Delivered([hex("0201 01"), hex("0201 02")], timestamp: 0, isDamaged: true)])
    #expect(!error.description.contains("\n") && error.kind == .data)
  }

  @Test func `limits hold for a NAL unit, a unit's bytes and their number`() {
    var receiver = HEVCReceiver(limits: .init(nalBytes: 10, nalUnits: 3, unitBytes: 40))
    receiver.take([
      hevcPacket(1, [2, 1] + HEVCCase.run(0, 8)), hevcPacket(2, marker: true, [2, 1] + HEVCCase.run(0, 9)),
    ])
    #expect(receiver.errors == [.nalUnitSize(limit: 10)])
    receiver.take([
      hevcPacket(3, hex("6201 93 1122334455")), hevcPacket(4, hex("6201 13 667788")), hevcPacket(5, hex("6201 53 99")),
      hevcPacket(6, marker: true, hex("0201 01")),
    ])
    #expect(receiver.errors == [.nalUnitSize(limit: 10), .nalUnitSize(limit: 10)])
    receiver.take((7...9).map { hevcPacket($0, hex("0201")) } + [hevcPacket(10, marker: true, hex("0201"))])
    #expect(receiver.errors.last == .nalUnits(limit: 3))
    receiver.take((11...13).map { hevcPacket($0, [2, 1] + HEVCCase.run(0, 8)) })
    #expect(receiver.errors.last == .accessUnitSize(limit: 40))
    receiver.finish()
    #expect(receiver.units.map(\.isDamaged) == [true, true, true, true])
    #expect(receiver.units.map(\.nalUnits.count) == [1, 1, 3, 2])
  }

  @Test func `any NAL sizes survive any packet size`() throws {
    var random = SeededGenerator(seed: 2027)
    let batch = PacketBatch()
    for packetSize in 128...1500 {
      let stream = RTPStream(
        payloadType: .hevc, ssrc: 3, firstSequenceNumber: 0xffff &- UInt16.random(in: 0...20, using: &random),
        timestampOffset: 0xffff_ffff &- UInt32.random(in: 0...9000, using: &random))
      var packetizer = try HEVCPacketizer(stream: stream, maximumPacketSize: packetSize)
      var receiver = HEVCReceiver()
      var sent: [Delivered] = []
      for frame in 0..<3 {
        let nalUnits = Self.nalUnits(packetSize: packetSize, using: &random)
        let time = Int64(frame) * 33_333_333
        batch.removeAll()
        let packets = withAccessUnit(nalUnits, at: time) { unit in
          packetizer.packetize(unit, into: batch)
          return batch.packets
        }
        #expect(packets.allSatisfy { $0.count <= packetSize && $0.count > 12 })
        receiver.take(packets)
        sent.append(Delivered(nalUnits, timestamp: stream.rtpTimestamp(of: Instant(nanoseconds: time))))
      }
      #expect(receiver.units == sent, "packet size \(packetSize)")
      #expect(receiver.errors.isEmpty && receiver.depacketizer.packetsLost == 0)
    }
  }

  @Test func `good packets that were bent on the way do no harm`() throws {
    var random = SeededGenerator(seed: 3)
    let limits = HEVCDepacketizer.Limits(nalBytes: 3000, nalUnits: 8, unitBytes: 6000)
    var packetizer = try HEVCPacketizer(maximumPacketSize: 300)
    var receiver = HEVCReceiver(limits: limits)
    let batch = PacketBatch()
    for frame in 0..<3000 {
      batch.removeAll()
      var packets = withAccessUnit(
        Self.nalUnits(packetSize: 300, using: &random), at: Int64(frame) * 33_333_333
      ) { unit in
        packetizer.packetize(unit, into: batch)
        return batch.packets
      }
      for index in packets.indices {
        switch Int.random(in: 0...12, using: &random) {
        case 0:
          let place = Int.random(in: 0..<packets[index].count, using: &random)
          packets[index][place] ^= 1 << UInt8.random(in: 0...7, using: &random)
        case 1: packets[index].removeLast(Int.random(in: 0...packets[index].count, using: &random))
        case 2: packets[index] += random.bytes(Int.random(in: 1...20, using: &random))
        case 3: packets.swapAt(index, Int.random(in: packets.indices, using: &random))
        case 4: packets[index] = packets[Int.random(in: packets.indices, using: &random)]
        default: break
        }
      }
      receiver.take(packets)
    }
    #expect(receiver.depacketizer.memoryBytes <= 32_000)
    for unit in receiver.units {
      #expect(unit.nalUnits.count <= limits.nalUnits)
      #expect(unit.nalUnits.allSatisfy { $0.count >= 2 && $0.count <= limits.nalBytes })
    }
    #expect(receiver.units.contains { $0.isDamaged } && receiver.units.contains { !$0.isDamaged })
  }

  /// NAL units of sizes around the edges of the packet size, and of any size.
  static func nalUnits(packetSize: Int, using random: inout SeededGenerator) -> [[UInt8]] {
    (0..<Int.random(in: 1...4, using: &random)).map { _ in
      let count =
        switch Int.random(in: 0...3, using: &random) {
        case 0: Int.random(in: 2...40, using: &random)
        case 1: packetSize - 12 + Int.random(in: -2...2, using: &random)
        case 2: (packetSize - 15) * Int.random(in: 1...4, using: &random) + Int.random(in: -1...2, using: &random)
        default: Int.random(in: 2...6000, using: &random)
        }
      let type: UInt8 = [0, 1, 8, 19, 21, 32, 33, 34, 36, 39, 40, 47][Int.random(in: 0...11, using: &random)]
      return [type << 1, UInt8.random(in: 1...7, using: &random)] + random.bytes(count - 2)
    }
  }
}

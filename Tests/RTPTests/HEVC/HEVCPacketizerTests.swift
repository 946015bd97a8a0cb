import Media
import Platform
import RTP
import TestSupport
import Testing

/// One access unit and the packets that it must become; the same table is read both ways.
struct HEVCCase: CustomTestStringConvertible, Sendable {
  var name: String
  var nalUnits: [[UInt8]]
  var packetSize: Int
  var packets: [[UInt8]]
  /// The NAL units that a receiver has of it, where they are not `nalUnits`.
  var received: [[UInt8]]?
  var testDescription: String { name }

  static let stamp = H264Case.stamp
  static let stream = RTPStream(
    payloadType: .hevc, ssrc: 0x9dbb_7812, firstSequenceNumber: 0xfffe, timestampOffset: 0x8877_6655)

  static let vps = hex("4001 0c01ffff 0160 000003 0090 000003 000003 003c 959809")
  static let sps = hex("4201 0101 60 000003 0090 000003 000003 003c a00a08")
  static let pps = hex("4401 c173c089")
  static func run(_ byte: UInt8, _ count: Int) -> [UInt8] { [UInt8](repeating: byte, count: count) }

  static let all: [HEVCCase] = [
    HEVCCase(
      name: "a NAL unit that fits goes alone, with the marker",
      nalUnits: [hex("0201 d09a")], packetSize: 1200,
      packets: [hex("80 e3 fffe \(stamp) 9dbb7812  0201 d09a")]),
    HEVCCase(
      name: "a NAL unit of just the packet size goes alone",
      nalUnits: [[0x02, 0x01] + run(7, 114)], packetSize: 128,
      packets: [hex("80 e3 fffe \(stamp) 9dbb7812 0201") + run(7, 114)]),
    HEVCCase(
      name: "one byte more makes two fragments; the last one has the rest",
      nalUnits: [[0x02, 0x01] + run(7, 115)], packetSize: 128,
      packets: [
        hex("80 63 fffe \(stamp) 9dbb7812  6201 81") + run(7, 58),
        hex("80 e3 ffff \(stamp) 9dbb7812  6201 41") + run(7, 57),
      ]),
    HEVCCase(
      name: "sequence numbers wrap, fragments keep type and temporal identifier, the middle one has neither edge",
      nalUnits: [[0x26, 0x03] + run(1, 84) + run(2, 84) + run(3, 83)], packetSize: 128,
      packets: [
        hex("80 63 fffe \(stamp) 9dbb7812  6203 93") + run(1, 84),
        hex("80 63 ffff \(stamp) 9dbb7812  6203 13") + run(2, 84),
        hex("80 e3 0000 \(stamp) 9dbb7812  6203 53") + run(3, 83),
      ]),
    HEVCCase(
      name: "parameter sets go together, SEI and slice after them alone",
      nalUnits: [vps, sps, pps, hex("4e01 0501ff80"), hex("2601 af09")], packetSize: 1200,
      packets: [
        hex("80 63 fffe \(stamp) 9dbb7812  6001 0018") + vps + hex("0015") + sps + hex("0006") + pps,
        hex("80 63 ffff \(stamp) 9dbb7812  4e01 0501ff80"),
        hex("80 e3 0000 \(stamp) 9dbb7812  2601 af09"),
      ]),
    HEVCCase(
      name: "an aggregation packet has the lowest temporal identifier of its parts",
      nalUnits: [hex("4003 11"), hex("4402 22")], packetSize: 1200,
      packets: [hex("80 e3 fffe \(stamp) 9dbb7812  6002 0003 400311 0003 440222")]),
    HEVCCase(
      name: "parameter sets that only just fit together",
      nalUnits: [[0x42, 1] + run(1, 98), [0x44, 1] + run(2, 8)], packetSize: 128,
      packets: [
        hex("80 e3 fffe \(stamp) 9dbb7812  6001 0064 4201") + run(1, 98) + hex("000a 4401") + run(2, 8)
      ]),
    HEVCCase(
      name: "parameter sets that do not fit together go alone",
      nalUnits: [[0x42, 1] + run(1, 98), [0x44, 1] + run(2, 9)], packetSize: 128,
      packets: [
        hex("80 63 fffe \(stamp) 9dbb7812  4201") + run(1, 98),
        hex("80 e3 ffff \(stamp) 9dbb7812  4401") + run(2, 9),
      ]),
    HEVCCase(
      name: "delimiters, types that RTP uses itself and broken headers are left out, the marker is on what remains",
      nalUnits: [
        hex("4601 50"), hex("0201 d0"), hex("6001 11"), hex("6201 22"), hex("7e01 33"), hex("02"), hex("8201 44"),
        hex("0200 55"),
      ],
      packetSize: 1200,
      packets: [hex("80 e3 fffe \(stamp) 9dbb7812  0201 d0")], received: [hex("0201 d0")]),
    HEVCCase(
      name: "several slice segments and an end of sequence, the marker on the last alone",
      nalUnits: [hex("0201 81"), hex("0201 02"), hex("4801")], packetSize: 1200,
      packets: [
        hex("80 63 fffe \(stamp) 9dbb7812  0201 81"),
        hex("80 63 ffff \(stamp) 9dbb7812  0201 02"),
        hex("80 e3 0000 \(stamp) 9dbb7812  4801"),
      ]),
    HEVCCase(
      name: "NAL units of further layers are sent, and no receiver of ours takes them",
      nalUnits: [hex("0201 81"), hex("0209 82"), [0x03, 0x09] + run(4, 150)], packetSize: 128,
      packets: [
        hex("80 63 fffe \(stamp) 9dbb7812  0201 81"),
        hex("80 63 ffff \(stamp) 9dbb7812  0209 82"),
        hex("80 63 0000 \(stamp) 9dbb7812  6309 81") + run(4, 75),
        hex("80 e3 0001 \(stamp) 9dbb7812  6309 41") + run(4, 75),
      ], received: [hex("0201 81")]),
  ]
}

@Suite struct HEVCPacketizerTests {
  @Test(arguments: HEVCCase.all)
  func `an access unit becomes exactly these packets`(expected: HEVCCase) throws {
    var packetizer = try HEVCPacketizer(stream: HEVCCase.stream, maximumPacketSize: expected.packetSize)
    let batch = PacketBatch()
    withAccessUnit(expected.nalUnits, at: H264Case.seconds * 1_000_000_000) { unit in
      packetizer.packetize(unit, into: batch)
      // The unit's bytes are lent: compare while they are there.
      #expect(batch.packets == expected.packets)
    }
    #expect(packetizer.stream.packetsSent == UInt64(expected.packets.count))
    #expect(packetizer.stream.octetsSent == UInt64(expected.packets.reduce(0) { $0 + $1.count - 12 }))
  }

  @Test(arguments: HEVCCase.all)
  func `these packets become the access unit again`(expected: HEVCCase) {
    var receiver = HEVCReceiver()
    receiver.take(expected.packets)
    #expect(receiver.errors.isEmpty)
    #expect(receiver.units == [Delivered(expected.received ?? expected.nalUnits, timestamp: 0x8dd4_b0d5)])
    #expect(receiver.keyFrames == [expected.nalUnits.contains { (16...23).contains($0[0] >> 1) && $0.count > 2 }])
    #expect(receiver.depacketizer.packetsLost == 0)
  }

  @Test func `payload bytes are lent, never copied, except for parameter sets`() throws {
    var packetizer = try HEVCPacketizer(maximumPacketSize: 500)
    let batch = PacketBatch()
    let units = [HEVCCase.vps, HEVCCase.sps, [0x26, 1] + HEVCCase.run(9, 300), [0x02, 1] + HEVCCase.run(8, 5000)]
    let copies = withAccessUnit(units) { unit in
      packetizer.packetize(unit, into: batch)
      return (0..<batch.count).count { index in
        !unit.nalUnits.contains { nal in
          guard let whole = nal.bytes.baseAddress, let part = batch[index].payload.baseAddress else { return false }
          return part >= whole && part + batch[index].payload.count <= whole + nal.bytes.count
        }
      }
    }
    #expect(batch.count == 13 && copies == 1)
  }

  @Test func `a batch that has seen its largest unit allocates nothing more`() throws {
    var packetizer = try HEVCPacketizer(maximumPacketSize: 128)
    let batch = PacketBatch(packets: 1)
    func send() {
      batch.removeAll()
      withAccessUnit([HEVCCase.vps, [0x26, 1] + HEVCCase.run(1, 100_000)], isKeyFrame: true) { unit in
        packetizer.packetize(unit, into: batch)
      }
    }
    send()
    let grown = batch.memoryBytes
    for _ in 0..<50 { send() }
    #expect(batch.memoryBytes == grown && batch.count > 800)
  }

  @Test(arguments: [127, 0, 65_508])
  func `an impossible packet size is refused`(size: Int) {
    #expect(throws: PacketizerError.packetSize(size, limits: 128...65_507)) {
      try HEVCPacketizer(maximumPacketSize: size)
    }
  }
}

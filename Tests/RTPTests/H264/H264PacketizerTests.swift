import Media
import Platform
import RTP
import Testing

/// One access unit and the packets that it must become; the same table is read both ways.
struct H264Case: CustomTestStringConvertible, Sendable {
  var name: String
  var nalUnits: [[UInt8]]
  var packetSize: Int
  var packets: [[UInt8]]
  /// The NAL units that a receiver has of it, where they are not `nalUnits`.
  var received: [[UInt8]]?
  var testDescription: String { name }

  /// 1,000 s after the clock's start: 90,000,000 ticks = 0x055d4a80, and the offset 0x88776655.
  static let seconds: Int64 = 1000
  static let stamp = "8dd4b0d5"
  static let stream = RTPStream(
    payloadType: .h264, ssrc: 0x9dbb_7812, firstSequenceNumber: 0xfffe, timestampOffset: 0x8877_6655)

  static let sps = hex("67 42c01f d9005005bb011000000300100000030320f18319 20")
  static let pps = hex("68 cb83cb20")
  static func run(_ byte: UInt8, _ count: Int) -> [UInt8] { [UInt8](repeating: byte, count: count) }

  static let all: [H264Case] = [
    H264Case(
      name: "a NAL unit that fits goes alone, with the marker",
      nalUnits: [hex("41 9a0102")], packetSize: 1200,
      packets: [hex("80 e0 fffe \(stamp) 9dbb7812  41 9a0102")]),
    H264Case(
      name: "a NAL unit of just the packet size goes alone",
      nalUnits: [[0x41] + run(7, 115)], packetSize: 128,
      packets: [hex("80 e0 fffe \(stamp) 9dbb7812 41") + run(7, 115)]),
    H264Case(
      name: "one byte more makes two fragments of equal size",
      nalUnits: [[0x41] + run(7, 116)], packetSize: 128,
      packets: [
        hex("80 60 fffe \(stamp) 9dbb7812  5c 81") + run(7, 58),
        hex("80 e0 ffff \(stamp) 9dbb7812  5c 41") + run(7, 58),
      ]),
    H264Case(
      name: "sequence numbers wrap, fragments keep NRI and type, the middle one has neither edge",
      nalUnits: [[0x65] + run(1, 84) + run(2, 84) + run(3, 83)], packetSize: 128,
      packets: [
        hex("80 60 fffe \(stamp) 9dbb7812  7c 85") + run(1, 84),
        hex("80 60 ffff \(stamp) 9dbb7812  7c 05") + run(2, 84),
        hex("80 e0 0000 \(stamp) 9dbb7812  7c 45") + run(3, 83),
      ]),
    H264Case(
      name: "parameter sets go together, the slice after them alone",
      nalUnits: [sps, pps, hex("06 0501ff80"), hex("65 888400")], packetSize: 1200,
      packets: [
        hex("80 60 fffe \(stamp) 9dbb7812  78 0019") + sps + hex("0005") + pps,
        hex("80 60 ffff \(stamp) 9dbb7812  06 0501ff80"),
        hex("80 e0 0000 \(stamp) 9dbb7812  65 888400"),
      ]),
    H264Case(
      name: "a STAP-A has the largest NRI and every F bit of its parts",
      nalUnits: [hex("27 420001"), hex("c8 ce")], packetSize: 1200,
      packets: [hex("80 e0 fffe \(stamp) 9dbb7812  d8 0004 27420001 0002 c8ce")]),
    H264Case(
      name: "parameter sets that only just fit together",
      nalUnits: [[0x67] + run(1, 99), [0x68] + run(2, 10)], packetSize: 128,
      packets: [
        hex("80 e0 fffe \(stamp) 9dbb7812  78 0064 67") + run(1, 99) + hex("000b 68") + run(2, 10)
      ]),
    H264Case(
      name: "parameter sets that do not fit together go alone",
      nalUnits: [[0x67] + run(1, 99), [0x68] + run(2, 11)], packetSize: 128,
      packets: [
        hex("80 60 fffe \(stamp) 9dbb7812  67") + run(1, 99),
        hex("80 e0 ffff \(stamp) 9dbb7812  68") + run(2, 11),
      ]),
    H264Case(
      name: "a parameter set in fragments, then one alone",
      nalUnits: [[0x67] + run(1, 131), [0x68, 2]], packetSize: 128,
      packets: [
        hex("80 60 fffe \(stamp) 9dbb7812  7c 87") + run(1, 66),
        hex("80 60 ffff \(stamp) 9dbb7812  7c 47") + run(1, 65),
        hex("80 e0 0000 \(stamp) 9dbb7812  68 02"),
      ]),
    H264Case(
      name: "delimiters and types that RTP uses itself are left out, the marker is on what remains",
      nalUnits: [hex("09 f0"), hex("41 9a"), hex("00 11"), hex("18 22"), hex("7c 33"), hex("1f 44")],
      packetSize: 1200,
      packets: [hex("80 e0 fffe \(stamp) 9dbb7812  41 9a")], received: [hex("41 9a")]),
    H264Case(
      name: "several slices, the marker on the last alone",
      nalUnits: [hex("41 01"), hex("41 02"), hex("41 03")], packetSize: 1200,
      packets: [
        hex("80 60 fffe \(stamp) 9dbb7812  41 01"),
        hex("80 60 ffff \(stamp) 9dbb7812  41 02"),
        hex("80 e0 0000 \(stamp) 9dbb7812  41 03"),
      ]),
  ]
}

@Suite struct H264PacketizerTests {
  @Test(arguments: H264Case.all)
  func `an access unit becomes exactly these packets`(expected: H264Case) throws {
    var packetizer = try H264Packetizer(stream: H264Case.stream, maximumPacketSize: expected.packetSize)
    let batch = PacketBatch()
    withAccessUnit(expected.nalUnits, at: H264Case.seconds * 1_000_000_000) { unit in
      packetizer.packetize(unit, into: batch)
      // The unit's bytes are lent: compare while they are there.
      #expect(batch.packets == expected.packets)
    }
    #expect(batch.totalBytes == expected.packets.reduce(0) { $0 + $1.count })
    #expect(packetizer.stream.packetsSent == UInt64(expected.packets.count))
    #expect(packetizer.stream.octetsSent == UInt64(expected.packets.reduce(0) { $0 + $1.count - 12 }))
  }

  @Test(arguments: H264Case.all)
  func `these packets become the access unit again`(expected: H264Case) {
    var receiver = Receiver()
    receiver.take(expected.packets)
    #expect(receiver.errors.isEmpty)
    #expect(receiver.units == [Delivered(expected.received ?? expected.nalUnits, timestamp: 0x8dd4_b0d5)])
    #expect(receiver.depacketizer.packetsLost == 0)
  }

  @Test func `a delivered unit is also a byte stream with start codes`() throws {
    var depacketizer = H264Depacketizer()
    var stream: [UInt8] = []
    var isKeyFrame = false
    for bytes in [packet(1, hex("78 0002 67aa 0002 68bb")), packet(2, marker: true, hex("65 cc"))] {
      try bytes.withUnsafeBytes {
        try depacketizer.receive($0) { unit in
          stream = Array(unit.annexB)
          isKeyFrame = unit.isKeyFrame
        }
      }
    }
    #expect(stream == hex("00000001 67aa 00000001 68bb 00000001 65cc"))
    #expect(isKeyFrame)
  }

  @Test func `payload bytes are lent, never copied`() throws {
    var packetizer = try H264Packetizer(maximumPacketSize: 500)
    let batch = PacketBatch()
    let copies = withAccessUnit([[0x41] + H264Case.run(9, 300), [0x41] + H264Case.run(8, 5000)]) { unit in
      packetizer.packetize(unit, into: batch)
      return (0..<batch.count).count { index in
        !unit.nalUnits.contains { nal in
          guard let whole = nal.bytes.baseAddress, let part = batch[index].payload.baseAddress else { return false }
          return part >= whole && part + batch[index].payload.count <= whole + nal.bytes.count
        }
      }
    }
    #expect(batch.count == 12)
    #expect(copies == 0)
  }

  @Test func `a batch that has seen its largest unit allocates nothing more`() throws {
    var packetizer = try H264Packetizer(maximumPacketSize: 128)
    var transport = try TransportStreamPacketizer()
    let batch = PacketBatch(packets: 1)
    let start = batch.memoryBytes
    func send() {
      batch.removeAll()
      withAccessUnit([[0x65] + H264Case.run(1, 100_000)], isKeyFrame: true) { unit in
        packetizer.packetize(unit, into: batch)
        transport.packetize(unit, into: batch)
      }
    }
    send()
    let grown = batch.memoryBytes
    #expect(grown > start)
    for _ in 0..<50 { send() }
    #expect(batch.memoryBytes == grown)
  }

  @Test func `packets stay what they were while the batch grows around them`() throws {
    var packetizer = try H264Packetizer(stream: H264Case.stream, maximumPacketSize: 128)
    let batch = PacketBatch(packets: 1)
    withAccessUnit([H264Case.sps, H264Case.pps, [0x65] + H264Case.run(3, 20_000)], at: 0) { unit in
      packetizer.packetize(unit, into: batch)
      let first = batch.packets
      withAccessUnit([[0x41] + H264Case.run(4, 90_000)], at: 33_000_000) { next in
        packetizer.packetize(next, into: batch)
        #expect(batch.count > first.count + 700)
        #expect(Array(batch.packets.prefix(first.count)) == first)
        let markers = batch.packets.enumerated().filter { $0.element[1] & 0x80 != 0 }.map(\.offset)
        #expect(markers == [first.count - 1, batch.count - 1])
      }
    }
  }

  @Test func `a unit of nothing that RTP carries makes no packet and moves no marker`() throws {
    var packetizer = try H264Packetizer(stream: H264Case.stream)
    let batch = PacketBatch()
    withAccessUnit([hex("09 f0")]) { packetizer.packetize($0, into: batch) }
    withAccessUnit([]) { packetizer.packetize($0, into: batch) }
    #expect(batch.count == 0)
    #expect(packetizer.stream.nextSequenceNumber == 0xfffe)
  }

  @Test func `timestamps follow the time taken and wrap`() throws {
    let stream = RTPStream(payloadType: .h264, ssrc: 1, firstSequenceNumber: 1, timestampOffset: 0xffff_ffff)
    #expect(stream.rtpTimestamp(of: .zero) == 0xffff_ffff)
    #expect(stream.rtpTimestamp(of: Instant(nanoseconds: 11_111)) == 0)
    #expect(stream.rtpTimestamp(of: Instant(nanoseconds: 1_000_000_000)) == 89_999)
    // 2^32 ticks: some 13 hours and 15 minutes.
    #expect(stream.rtpTimestamp(of: Instant(nanoseconds: 47_721_858_844_444)) == 0xffff_ffff)
    #expect(stream.rtpTimestamp(of: Instant(nanoseconds: -1_000_000_000)) == 0xffff_ffff &- 90_000)
  }

  @Test(arguments: [127, 0, -1, 65_508, Int.max])
  func `an impossible packet size is refused`(size: Int) {
    let error = PacketizerError.packetSize(size, limits: 128...65_507)
    #expect(throws: error) { try H264Packetizer(maximumPacketSize: size) }
    #expect(error.description == "RTP packets of \(size) bytes: choose 128 to 65507")
  }
}

import Media
import RTP
import TestSupport
import Testing

@Suite struct HostileInputTests {
  /// Small limits, so that they are reached.
  static let limits = H264Depacketizer.Limits(nalBytes: 3000, nalUnits: 8, unitBytes: 6000)

  static func check(_ receiver: borrowing Receiver) {
    #expect(receiver.depacketizer.memoryBytes <= 32_000)
    for unit in receiver.units {
      #expect(unit.nalUnits.count <= limits.nalUnits)
      #expect(unit.nalUnits.allSatisfy { !$0.isEmpty && $0.count <= limits.nalBytes })
      #expect(unit.nalUnits.reduce(0) { $0 + $1.count + 4 } <= limits.unitBytes)
    }
  }

  @Test func `random bytes do no harm`() {
    var random = SeededGenerator(seed: 1)
    var receiver = Receiver(limits: Self.limits)
    for _ in 0..<20_000 {
      receiver.take([random.bytes(Int.random(in: 0...200, using: &random))])
    }
    Self.check(receiver)
    #expect(receiver.errors.count > 19_000)
  }

  @Test func `random payloads behind a good header do no harm`() {
    var random = SeededGenerator(seed: 2)
    var receiver = Receiver(limits: Self.limits)
    var sequenceNumber: UInt16 = 0
    var timestamp: UInt32 = 0
    for _ in 0..<40_000 {
      let jump = Int.random(in: 0...30, using: &random)
      sequenceNumber &+= jump == 0 ? .random(in: 0 ... .max, using: &random) : 1
      if jump == 1 { timestamp &+= 3000 }
      var payload = random.bytes(Int.random(in: 0...400, using: &random))
      // Mostly the structures that have an inside.
      if !payload.isEmpty { payload[0] = [0x7c, 0x78, 0x41, payload[0]][Int.random(in: 0...3, using: &random)] }
      if payload.count > 2, payload[0] == 0x7c { payload[1] = [0x85, 0x05, 0x05, 0x45][Int(payload[1] & 3)] }
      if payload.count > 2, payload[0] == 0x78 { payload[1] = 0 }
      receiver.take([packet(sequenceNumber, timestamp: timestamp, marker: jump == 2, payload)])
    }
    Self.check(receiver)
    #expect(receiver.units.count > 1000)
    #expect(receiver.units.contains { !$0.nalUnits.isEmpty })
  }

  @Test func `good packets that were bent on the way do no harm`() throws {
    var random = SeededGenerator(seed: 3)
    var packetizer = try H264Packetizer(maximumPacketSize: 300)
    var receiver = Receiver(limits: Self.limits)
    let batch = PacketBatch()
    for frame in 0..<3000 {
      let nalUnits = H264DepacketizerTests.nalUnits(packetSize: 300, using: &random)
      batch.removeAll()
      var packets = withAccessUnit(nalUnits, at: Int64(frame) * 33_333_333) { unit in
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
    Self.check(receiver)
    #expect(receiver.units.contains { $0.isDamaged })
    #expect(receiver.units.contains { !$0.isDamaged })
  }

  @Test func `fragments without end fill no more than one unit's memory`() {
    var receiver = Receiver(limits: Self.limits)
    receiver.take([packet(0, hex("7c 85 11"))])
    for number in UInt16(1)...20_000 {
      receiver.take([packet(number, hex("7c 05") + H264Case.run(0, 1400))])
    }
    #expect(receiver.errors == [.nalUnitSize(limit: 3000)])
    #expect(receiver.depacketizer.memoryBytes <= 32_000)
  }

  @Test func `units without end fill no more than one unit's memory`() {
    var receiver = Receiver(limits: Self.limits)
    for number in UInt16(0)..<20_000 { receiver.take([packet(number, [0x41])]) }
    #expect(receiver.errors.count == 20_000 - 8)
    #expect(receiver.depacketizer.memoryBytes <= 32_000)
  }
}

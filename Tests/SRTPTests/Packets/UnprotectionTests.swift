import SRTP
import Testing

/// Packets that ``Reference`` protects, as a receiver opens them.
@Suite struct UnprotectionTests {
  private static func opened(_ packet: [UInt8], by unprotector: PacketUnprotector) throws -> [UInt8] {
    var memory = packet
    let count = try memory.withUnsafeMutableBytes { try unprotector.unprotect($0, count: packet.count) }
    return Array(memory[..<count])
  }

  private static func packet(_ number: UInt16, source: UInt32 = 0x5501_a0b2) -> [UInt8] {
    var packet = ProtectionTests.plain
    packet.replaceSubrange(2..<4, with: number.bytes)
    packet.replaceSubrange(8..<12, with: source.bytes)
    return packet
  }

  private static func reference(_ key: SRTPKey) throws -> Reference {
    let length = key.suite.keyLength
    return try Reference(key: Array(key.bytes[..<length]), salt: Array(key.bytes[length...]))
  }

  @Test(arguments: SRTPSuite.allCases)
  func `packets are opened once, late ones too, and forgeries are counted`(suite: SRTPSuite) throws {
    let key = SRTPKey(random: suite)
    let (reference, unprotector) = (try Self.reference(key), try PacketUnprotector(key))
    let first = try reference.protect(Self.packet(1000), rollovers: 0)
    for position in first.indices {
      var forged = first
      forged[position] ^= 0x10
      #expect(throws: SRTPError.self) { try Self.opened(forged, by: unprotector) }
    }
    #expect(throws: SRTPError.forged) { try Self.opened(Self.packet(1000), by: unprotector) }
    for count in 0..<12 + suite.packetOverhead {
      #expect(throws: SRTPError.tooShort(count)) { try Self.opened(Array(first[..<count]), by: unprotector) }
    }
    let forged = unprotector.counts.forged
    #expect(unprotector.accepted == 0 && forged == UInt64(first.count + 1 + 12 + suite.packetOverhead))
    #expect(try Self.opened(first, by: unprotector) == Self.packet(1000))
    #expect(throws: SRTPError.replayed) { try Self.opened(first, by: unprotector) }
    // A packet that a sender repeats on request comes behind thousands of others.
    for number in [1002, 3000, 1001] as [UInt16] {
      let protected = try reference.protect(Self.packet(number), rollovers: 0)
      #expect(try Self.opened(protected, by: unprotector) == Self.packet(number))
    }
    let control = try reference.protectControl(ProtectionTests.controlPlain, index: 1)
    var memory = control
    let count = try memory.withUnsafeMutableBytes { try unprotector.unprotectControl($0, count: control.count) }
    #expect(Array(memory[..<count]) == ProtectionTests.controlPlain)
    #expect(unprotector.accepted == 5 && unprotector.counts.replayed == 1 && unprotector.counts.forged == forged)
  }

  @Test(arguments: SRTPSuite.allCases)
  func `who joins late knows the rollover counter, or hears nothing`(suite: SRTPSuite) throws {
    let key = SRTPKey(random: suite)
    let reference = try Self.reference(key)
    let streams = [
      MIKEYMessage.Stream(ssrc: 7, rolloverCounter: 3), .init(ssrc: 8), .init(ssrc: 9, rolloverCounter: 1),
    ]
    let unprotector = try PacketUnprotector(key, streams: streams)
    for (source, rollovers) in [(7, 3), (8, 0), (9, 1), (10, 0)] as [(UInt32, UInt32)] {
      let packet = Self.packet(20_000, source: source)
      let protected = try reference.protect(packet, rollovers: rollovers)
      #expect(try Self.opened(protected, by: unprotector) == packet, "\(source)")
    }
    let late = try reference.protect(Self.packet(20_000, source: 7), rollovers: 3)
    #expect(throws: SRTPError.forged) { try Self.opened(late, by: PacketUnprotector(key)) }
  }

  @Test func `a key's holder who makes up sources is heard by so many`() throws {
    let key = SRTPKey(random: .aes128GCM)
    let (protector, unprotector) = (try PacketProtector(key), try PacketUnprotector(key))
    for source in 0..<PacketUnprotector.sourceLimit + 5 {
      let plain = Self.packet(1, source: UInt32(source))
      let protected = try ProtectionTests.protected(plain, by: protector)
      if source < PacketUnprotector.sourceLimit {
        #expect(try Self.opened(protected, by: unprotector) == plain)
      } else {
        #expect(throws: SRTPError.tooManySources(limit: 1024)) { try Self.opened(protected, by: unprotector) }
      }
    }
    #expect(unprotector.counts.excess == 5 && unprotector.counts.forged == 0)
  }
}

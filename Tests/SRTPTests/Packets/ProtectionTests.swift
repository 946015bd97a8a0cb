import Foundation
import RTP
import SRTP
import TestSupport
import Testing

/// The output of a protector, held against ``Reference`` and, through that, against the RFCs' examples.
@Suite struct ProtectionTests {
  static let plain = [UInt8](
    hex:
      "8040f17b 8041f8d3 5501a0b2 47616c6c 69612065 7374206f 6d6e6973 20646976 69736120 696e2070 61727465 73207472 6573"
  )
  static let controlPlain = [UInt8](
    hex: """
      81c8000d 4d617273 4e545031 4e545032 52545020 0000042a 0000e930 4c756e61 deadbeef deadbeef deadbeef deadbeef
      deadbeef
      """)

  static func protected(_ packet: [UInt8], by protector: PacketProtector) throws -> [UInt8] {
    let (plain, batch) = (PacketBatch(), PacketBatch())
    packet.withUnsafeBytes { bytes in
      let parts = PacketBatch.Packet(
        header: UnsafeRawBufferPointer(rebasing: bytes[..<12]), payload: UnsafeRawBufferPointer(rebasing: bytes[12...]))
      _ = plain.append(copying: parts)
    }
    try protector.protect(plain, into: batch)
    return Array(batch[0].header) + Array(batch[0].payload)
  }

  static func protectedControl(_ datagram: [UInt8], by protector: PacketProtector) throws -> [UInt8] {
    var memory = datagram + [UInt8](repeating: 0, count: PacketProtector.controlRoom)
    let count = try memory.withUnsafeMutableBytes { try protector.protectControl($0, count: datagram.count) }
    return Array(memory[..<count])
  }

  static func unprotected(_ datagram: [UInt8], by unprotector: ControlUnprotector) throws -> [UInt8] {
    var memory = datagram
    let count = try memory.withUnsafeMutableBytes { try unprotector.unprotect($0, count: datagram.count) }
    return Array(memory[..<count])
  }

  @Test func `the reference derives keys as RFC 3711 appendix B.3 does, and encrypts as B.2 does`() throws {
    let reference = try Reference(
      key: [UInt8](hex: "E1F97A0D3E018BE0D64FA32C06DE4139"), salt: [UInt8](hex: "0EC675AD498AFEEBB6960B3AABE6"))
    #expect(reference.media.cipher == [UInt8](hex: "C61E7A93744F39EE10734AFE3FF7A087"))
    #expect(reference.media.salt == [UInt8](hex: "30CBBC08863D8C85D49DB34A9AE1"))
    #expect(reference.media.authentication == [UInt8](hex: "CEBE321F6FF7716B6FD4AB49AF256A156D38BAA4"))
    let stream = try Reference.counterMode(
      [UInt8](repeating: 0, count: 0xff02 * 16), key: [UInt8](hex: "2B7E151628AED2A6ABF7158809CF4F3C"),
      counter: [UInt8](hex: "F0F1F2F3F4F5F6F7F8F9FAFBFCFD0000"))
    #expect(
      Array(stream[..<48])
        == [UInt8](
          hex: """
            E03EAD0935C95E80E166B16DD92B4EB4 D23513162B02D0F72A43A2FE4A5F97AB 41E95B3BB0A2E8DD477901E4FCA894C0
            """))
    #expect(
      Array(stream.suffix(48))
        == [UInt8](
          hex: "EC8CDF7398607CB0F2D21675EA9EA1E4 362B7C3C6773516318A077D7FC5073AE 6A2CC3787889374FBEB4C81B17BA6C44"))
  }

  @Test func `the reference encrypts RTP as RFC 7714 section 16 does`() throws {
    let salt = [UInt8](hex: "51756964 2070726f 2071756f")
    let (key128, key256) = ((0..<16).map { UInt8($0) }, (0..<32).map { UInt8($0) })
    let header = Array(Self.plain[..<12])
    let nonce = Reference.mediaNonce(
      ssrc: Array(header[8...]), rollovers: 0, sequence: Array(header[2..<4]), salt: salt)
    #expect(nonce == [UInt8](hex: "51753c6580c2726f20718414"))
    let sealed = try Reference.seal(Array(Self.plain[12...]), header, key: key128, nonce: nonce)
    #expect(
      sealed
        == [UInt8](
          hex: """
            f24de3a3 fb34de6c acba861c 9d7e4bca be633bd5 0d294e6f 42a5f47a 51c7d19b 36de3adf 8833899d 7f27beb1 6a9152cf
            765ee439 0cce
            """))
    let larger = try Reference.seal(Array(Self.plain[12...]), header, key: key256, nonce: nonce)
    #expect(
      larger
        == [UInt8](
          hex: """
            32b1de78 a822fe12 ef9f78fa 332e33aa b1801238 9a58e2f3 b50b2a02 76ffae0f 1ba63799 b87b7aa3 db36dfff d6b0f9bb
            7878d7a7 6c13
            """))
  }

  @Test(arguments: [
    (
      16,
      """
      63e94885 dcdab67c a727d766 2f6b7e99 7ff5c0f7 6c06f32d c676a5f1 730d6fda 4ce09b46 86303ded 0bb9275b c84aa458
      96cf4d2f c5abf872 45d9eade 800005d4
      """
    ),
    (
      32,
      """
      d50ae4d1 f5ce5d30 4ba297e4 7d470c28 2c3ece5d bffe0a50 a2eaa5c1 110555be 8415f658 c61de047 6f1b6fad 1d1eb30c
      4446839f 57ff6f6c b26ac3be 800005d4
      """
    ),
  ])
  func `the reference encrypts RTCP as RFC 7714 section 17 does`(keyLength: Int, protected: String) throws {
    let salt = [UInt8](hex: "51756964 2070726f 2071756f")
    let ssrc = Array(Self.controlPlain[4..<8])
    let trailer = UInt32(0x8000_05d4).bytes
    let nonce = Reference.controlNonce(ssrc: ssrc, index: 0x5d4, salt: salt)
    #expect(nonce == [UInt8](hex: "517524055203726f207170bb"))
    let sealed = try Reference.seal(
      Array(Self.controlPlain[8...]), Array(Self.controlPlain[..<8]) + trailer,
      key: (0..<keyLength).map { UInt8($0) }, nonce: nonce)
    #expect(sealed + trailer == [UInt8](hex: protected))
  }

  @Test(arguments: SRTPSuite.allCases)
  func `a packet is what the reference makes of it`(suite: SRTPSuite) throws {
    // Counter mode by the master key of RFC 3711 appendix B.3.
    let bytes =
      suite == .aes128CounterHMAC80
      ? [UInt8](hex: "E1F97A0D3E018BE0D64FA32C06DE4139 0EC675AD498AFEEBB6960B3AABE6")
      : (0..<suite.keyLength).map { UInt8($0) } + [UInt8](hex: "517569642070726f2071756f")
    let protector = try PacketProtector(SRTPKey(suite: suite, bytes: bytes))
    let reference = try Reference(key: Array(bytes[..<suite.keyLength]), salt: Array(bytes[suite.keyLength...]))
    var packet = Self.plain
    // The example's own number, and what follows until the counter rolls over.
    for (number, rollovers) in [(0xf17b, 0), (0xffff, 0), (0, 1), (1, 1)] {
      packet.replaceSubrange(2..<4, with: UInt16(number).bytes)
      let protected = try Self.protected(packet, by: protector)
      #expect(try protected == reference.protect(packet, rollovers: UInt32(rollovers)), "\(number)")
      #expect(protected.count == packet.count + suite.packetOverhead)
    }
    for index in 1...3 {
      let protected = try Self.protectedControl(Self.controlPlain, by: protector)
      #expect(try protected == reference.protectControl(Self.controlPlain, index: UInt32(index)), "\(index)")
      #expect(protected.count == Self.controlPlain.count + suite.controlOverhead)
    }
  }

  @Test(arguments: SRTPSuite.allCases)
  func `hours of packets roll over rightly, without a byte more memory`(suite: SRTPSuite) throws {
    let key = SRTPKey(random: suite)
    let protector = try PacketProtector(key)
    let reference = try Reference(key: Array(key.bytes[..<suite.keyLength]), salt: Array(key.bytes[suite.keyLength...]))
    let (plain, batch) = (PacketBatch(), PacketBatch())
    var memory: Int?
    let payload = (0..<40).map { UInt8($0) }
    var header: [UInt8] = [0x80, 96] + UInt16(0).bytes + UInt32(0).bytes + UInt32(77).bytes
    // At 3 Mbit/s it is 312 packets a second: 400,000 are 21 minutes, with six rollovers, and 120,000 have two.
    let packets = runsLong ? 400_000 : 120_000
    for first in stride(from: 0x7ff0, to: 0x7ff0 + packets, by: 10) {
      plain.removeAll()
      batch.removeAll()
      for index in first..<first + 10 {
        header.withUnsafeMutableBytes { bytes in
          bytes.storeBytes(of: UInt16(truncatingIfNeeded: index).bigEndian, toByteOffset: 2, as: UInt16.self)
          bytes.storeBytes(of: UInt32(index / 7).bigEndian, toByteOffset: 4, as: UInt32.self)
          let header = UnsafeRawBufferPointer(bytes)
          payload.withUnsafeBytes { _ = plain.append(copying: PacketBatch.Packet(header: header, payload: $0)) }
        }
      }
      try protector.protect(plain, into: batch)
      #expect(batch.count == 10)
      let grown = batch.memoryBytes
      if let memory { try #require(grown == memory) }
      memory = grown
      for index in first..<first + 10 where (index + 1) & 0xffff <= 1 || index == packets {
        let packet = Array(plain[index - first].header)
        let expected = try reference.protect(packet, rollovers: UInt32(index >> 16))
        #expect(Array(batch[index - first].header) == expected, "packet \(index)")
      }
    }
  }

  @Test(arguments: SRTPSuite.allCases)
  func `SRTCP is taken once, and forgeries, repetitions and our own are counted`(suite: SRTPSuite) throws {
    let key = SRTPKey(random: suite)
    let reference = try Reference(key: Array(key.bytes[..<suite.keyLength]), salt: Array(key.bytes[suite.keyLength...]))
    let unprotector = try ControlUnprotector(key, media: 0x1234_5678)
    let genuine = try reference.protectControl(Self.controlPlain, index: 7)
    // A flipped bit anywhere, first: what is refused leaves no trace.
    for position in genuine.indices {
      var forged = genuine
      forged[position] ^= 0x10
      #expect(throws: SRTPError.self) { try Self.unprotected(forged, by: unprotector) }
    }
    #expect(unprotector.counts.forged == UInt64(genuine.count))
    #expect(throws: SRTPError.forged) { try Self.unprotected(Self.controlPlain, by: unprotector) }
    let other = try Reference(
      key: (0..<suite.keyLength).map { _ in 1 }, salt: Array(key.bytes[suite.keyLength...]))
    let strange = try other.protectControl(Self.controlPlain, index: 7)
    #expect(throws: SRTPError.forged) { try Self.unprotected(strange, by: unprotector) }
    for count in 0..<8 + suite.controlOverhead {
      #expect(throws: SRTPError.tooShort(count)) { try Self.unprotected(Array(genuine[..<count]), by: unprotector) }
    }
    let refused = unprotector.counts.forged

    #expect(try Self.unprotected(genuine, by: unprotector) == Self.controlPlain)
    #expect(throws: SRTPError.replayed) { try Self.unprotected(genuine, by: unprotector) }
    // Later ones, out of order within the window; then one that is too old to tell.
    for index in [300, 290] {
      let next = try reference.protectControl(Self.controlPlain, index: UInt32(index))
      #expect(try Self.unprotected(next, by: unprotector) == Self.controlPlain)
    }
    let old = try reference.protectControl(Self.controlPlain, index: 8)
    #expect(throws: SRTPError.replayed) { try Self.unprotected(old, by: unprotector) }
    #expect(unprotector.counts.replayed == 2 && unprotector.counts.forged == refused)

    var ours = Self.controlPlain
    ours.replaceSubrange(4..<8, with: UInt32(0x1234_5678).bytes)
    let reflected = try Self.protectedControl(ours, by: PacketProtector(key))
    #expect(throws: SRTPError.reflected) { try Self.unprotected(reflected, by: unprotector) }
    #expect(unprotector.counts.reflected == 1)
  }

  @Test func `a key's holder who makes up sources is heard by so many`() throws {
    let key = SRTPKey(random: .aes128CounterHMAC80)
    let unprotector = try ControlUnprotector(key, media: 1)
    for source in 0..<ControlUnprotector.sourceLimit + 50 {
      var plain = Self.controlPlain
      plain.replaceSubrange(4..<8, with: UInt32(source + 2).bytes)
      let datagram = try Self.protectedControl(plain, by: PacketProtector(key))
      if source < ControlUnprotector.sourceLimit {
        #expect(try Self.unprotected(datagram, by: unprotector) == plain)
      } else {
        #expect(throws: SRTPError.tooManySources(limit: 256)) { try Self.unprotected(datagram, by: unprotector) }
      }
    }
    #expect(unprotector.counts.excess == 50 && unprotector.counts.forged == 0)
  }

  @Test func `garbage of any length is refused and nothing else happens`() throws {
    let unprotector = try ControlUnprotector(SRTPKey(random: .aes128GCM), media: 1)
    for count in 0..<1500 {
      let garbage = (0..<count).map { _ in UInt8.random(in: 0...255) }
      #expect(throws: SRTPError.self) { try Self.unprotected(garbage, by: unprotector) }
    }
    #expect(unprotector.counts.forged == 1500)
  }
}

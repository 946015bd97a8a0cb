import RTP
import SRTP
import TestSupport
import Testing

/// Keys by MIKEY (RFC 3830).
@Suite struct MIKEYTests {
  static let time = NTPTimestamp(unixSeconds: 1_700_000_000, nanoseconds: 0)

  private static func written(_ message: MIKEYMessage) -> [UInt8] {
    var generator = SeededGenerator(seed: 1)
    return message.bytes(at: time, using: &generator)
  }

  /// Returns the bytes of a message, by hand: RFC 3830 sections 6.1, 6.6, 6.11, 6.10, 6.2 and 6.13.
  private static func message(
    policy: String, key: [UInt8], keyKind: UInt8 = 0x20,
    header: String = "01 00 05 00 12345678 01 00 00 0000abcd 00000000", salt: [UInt8] = []
  ) -> [UInt8] {
    let policy = [UInt8](hex: policy)
    var data = [0, keyKind] + UInt16(key.count).bytes + key
    if !salt.isEmpty { data += UInt16(salt.count).bytes + salt }
    return [UInt8](hex: header) + [UInt8](hex: "0b 00 e8fc5c0000000000 0a 04 01020304 01 00 00")
      + UInt16(policy.count).bytes + policy + [0, 0] + UInt16(data.count).bytes + data + [0]
  }

  @Test(arguments: SRTPSuite.allCases)
  func `a message is read as it was written`(suite: SRTPSuite) throws {
    let message = MIKEYMessage(
      key: SRTPKey(random: suite), streams: [.init(ssrc: 0xfedc_ba98, rolloverCounter: 3), .init(ssrc: 7)])
    #expect(try MIKEYMessage(parsing: Self.written(message)) == message)
    var generator = SeededGenerator(seed: 2)
    #expect(try MIKEYMessage(text: message.text(at: Self.time, using: &generator)) == message)
  }

  @Test func `a message is written as RFC 3830 has it`() throws {
    let key = try SRTPKey(suite: .aes128CounterHMAC80, bytes: (0..<30).map { UInt8($0) })
    let bytes = Self.written(MIKEYMessage(key: key, streams: [.init(ssrc: 0x1122_3344, rolloverCounter: 5)]))
    #expect(bytes[..<4] == [1, 0, 5, 0])
    #expect(bytes[8..<19] == [1, 0, 0, 0x11, 0x22, 0x33, 0x44, 0, 0, 0, 5])
    #expect(bytes[19..<21] == [11, 0])
    #expect(bytes[29..<31] == [10, 16])
    #expect(Array(bytes[47...].prefix(5)) == [1, 0, 0, 0, 27])
    #expect(Array(bytes.suffix(39)) == [0, 0, 0, 34, 0, 0x20, 0, 30] + key.bytes + [0])
  }

  @Test func `the message of GStreamer's rtspsrc is read`() throws {
    // gst_mikey_message_new_from_caps: the length of the tag stands where that of the authentication's key belongs.
    let key = (0..<30).map { UInt8($0) }
    let bytes = Self.message(policy: "00 01 01 01 01 10 02 01 01 03 01 0a 07 01 01 08 01 01 0a 01 01", key: key)
    let message = try MIKEYMessage(parsing: bytes)
    #expect(message.key == (try SRTPKey(suite: .aes128CounterHMAC80, bytes: key)))
    #expect(message.streams == [.init(ssrc: 0xabcd)])
  }

  @Test func `key and salt may be apart, and the usual policy left out`() throws {
    let key = (0..<30).map { UInt8($0) }
    let bytes = Self.message(policy: "", key: Array(key[..<16]), keyKind: 0x30, salt: Array(key[16...]))
    #expect(try MIKEYMessage(parsing: bytes).key.bytes == key)
  }

  @Test(arguments: [
    ("00 01 00", "cipher"), ("00 01 02", "cipher"), ("01 01 20", "cipher"), ("03 01 04", "authentication"),
    ("0b 01 04", "authentication"), ("07 01 00", "protected"), ("08 01 00", "protected"), ("0a 01 00", "protected"),
    ("06 01 18", "derivation"), ("63 01 00", "parameter 99"), ("00 01 01 00 01 01", "twice"), ("00 05 01", "early"),
    ("01 02 01 10", "large"), ("00", "early"), ("00 01 06 01 01 10 14 01 08", "tag"),
  ])
  func `a policy that is not kept is refused with the reason`(policy: String, reason: String) {
    let error = #expect(throws: MIKEYError.self) {
      try MIKEYMessage(parsing: Self.message(policy: policy, key: (0..<30).map { UInt8($0) }))
    }
    #expect(error?.description.contains(reason) == true, "\(String(describing: error))")
  }

  @Test(arguments: [
    ("02 00 05 00 12345678 00 00", "version"), ("01 02 05 00 12345678 00 00", "certificate"),
    ("01 00 05 01 12345678 00 00", "pseudorandom"), ("01 00 05 00 12345678 00 01", "SRTP"),
    ("01 00 00 00 12345678 00 00", "no key"), ("01 00 63 00 12345678 00 00", "type 99"),
    ("01 00 05 00 12345678 ff 00", "early"),
  ])
  func `another kind of message is refused with the reason`(header: String, reason: String) {
    let error = #expect(throws: MIKEYError.self) {
      try MIKEYMessage(parsing: Self.message(policy: "", key: (0..<30).map { UInt8($0) }, header: header))
    }
    #expect(error?.description.contains(reason) == true, "\(String(describing: error))")
  }

  @Test func `a short key, a half message and garbage are refused, and nothing else happens`() throws {
    #expect(throws: MIKEYError.key(.length(3, suite: .aes128CounterHMAC80))) {
      try MIKEYMessage(parsing: Self.message(policy: "", key: [1, 2, 3]))
    }
    let whole = Self.written(MIKEYMessage(key: SRTPKey(random: .aes256GCM), streams: [.init(ssrc: 1)]))
    for count in 0..<whole.count {
      #expect(throws: MIKEYError.self) { try MIKEYMessage(parsing: Array(whole[..<count])) }
    }
    for text in ["", "!", "AQAF", String(repeating: "A", count: MIKEYMessage.lengthLimit * 3)] {
      #expect(throws: MIKEYError.self) { try MIKEYMessage(text: text) }
    }
    var generator = SeededGenerator(seed: 3)
    for _ in 0..<20_000 {
      var broken = whole
      broken[Int.random(in: broken.indices, using: &generator)] ^= 1 << UInt8.random(in: 0..<8, using: &generator)
      // Taken or refused: a flipped bit of the key is a key.
      _ = try? MIKEYMessage(parsing: broken)
    }
  }
}

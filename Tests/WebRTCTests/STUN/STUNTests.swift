import Foundation
import Platform
import TLS
import Testing
import WebRTC

/// STUN messages, by the test vectors of RFC 5769 and by what must not pass.
@Suite struct STUNTests {
  /// RFC 5769 section 2.1.
  static let sampleRequest = bytes(
    """
    000100582112a442b7e7a701bc34d686fa87dfae8022001053 54554e207465737420636c69656e74002400046e0001ff80290008932ff9b1
    51263b36000600096576746a3a68367659202020 000800149aeaa70cbfd8cb56781ef2b5b2d3f249c1b571a280280004e57a3bcf
    """)
  static let samplePassword = Array("VOkJxbRl1RmTxUk/WvJxBt".utf8)

  static func bytes(_ digits: String) -> [UInt8] {
    let digits = digits.filter { $0.isHexDigit }
    return stride(from: 0, to: digits.count, by: 2).map { offset in
      let start = digits.index(digits.startIndex, offsetBy: offset)
      return UInt8(digits[start..<digits.index(start, offsetBy: 2)], radix: 16) ?? 0
    }
  }

  static func message(_ bytes: [UInt8]) throws -> STUNMessage { try bytes.withUnsafeBytes { try STUNMessage($0) } }

  @Test func `the sample request is read and proved`() throws {
    let message = try Self.message(Self.sampleRequest)
    #expect(message.method == STUNMessage.binding && message.messageClass == .request)
    #expect(message.username == "evtj:h6vY" && message.priority == 0x6e00_01ff && !message.nominates)
    #expect(message.role == .controlled(tieBreaker: 0x932f_f9b1_5126_3b36))
    #expect(message.unknownAttributes.isEmpty)
    #expect(message.hasIntegrity(key: Self.samplePassword))
    #expect(!message.hasIntegrity(key: Array("VOkJxbRl1RmTxUk/WvJxBu".utf8)))
  }

  @Test func `each changed bit is found`() throws {
    // The fingerprint finds each; without it, what the integrity protects is found by that.
    // Of another type, the last attribute is none that must be understood.
    for bit in 0..<(Self.sampleRequest.count * 8) where ![100, 101].contains(bit / 8) {
      var changed = Self.sampleRequest
      changed[bit / 8] ^= 1 << (bit % 8)
      let message = try? Self.message(changed)
      #expect(message == nil, "bit \(bit)")
    }
    var bare = Array(Self.sampleRequest.dropLast(8))
    bare[3] -= 8
    #expect(try Self.message(bare).hasIntegrity(key: Self.samplePassword))
    for bit in 0..<((bare.count - 24) * 8) where bit / 8 != 2 && bit / 8 != 3 {
      var changed = bare
      changed[bit / 8] ^= 1 << (bit % 8)
      guard let message = try? Self.message(changed) else { continue }
      #expect(!message.hasIntegrity(key: Self.samplePassword), "bit \(bit)")
    }
  }

  @Test func `a truncated message and one of a wrong length are refused`() throws {
    for count in 0..<Self.sampleRequest.count {
      #expect(throws: STUNError.self) { _ = try Self.message(Array(Self.sampleRequest.prefix(count))) }
    }
    #expect(throws: STUNError.self) { _ = try Self.message(Self.sampleRequest + [0]) }
    let long = Self.sampleRequest + [UInt8](repeating: 0, count: STUNMessage.byteLimit)
    #expect(throws: STUNError.length(long.count, limit: STUNMessage.byteLimit)) { _ = try Self.message(long) }
    // An attribute that claims more than there is.
    var claims = Array(Self.sampleRequest.prefix(24))
    (claims[2], claims[3]) = (0, 4)
    (claims[22], claims[23]) = (0xff, 0xff)
    #expect(throws: STUNError.attribute(offset: 20)) { _ = try Self.message(claims) }
    // Attributes without end.
    let many =
      [UInt8](bigEndian: UInt16(1)) + [UInt8](bigEndian: UInt16(33 * 4)) + Self.sampleRequest[4..<20]
      + (0..<33).flatMap { _ in [0x80, 0x30, 0, 0] as [UInt8] }
    #expect(throws: STUNError.attributes(limit: 32)) { _ = try Self.message(many) }
  }

  /// RFC 5769 sections 2.2 and 2.3: 192.0.2.1 and 2001:db8:1234:5678:11:2233:4455:6677, port 32853.
  @Test(arguments: [
    ("192.0.2.1", "002000080001a147e112a643"),
    ("2001:db8:1234:5678:11:2233:4455:6677", "002000140002a1470113a9faa5d3f179bc25f4b5bed2b9d9"),
  ])
  func `a response has the sample's address, and proves itself`(address: String, attribute: String) throws {
    let request = try Self.message(Self.sampleRequest)
    let path = PeerPath(address: try #require(IPAddress(address)), port: 32_853)
    let bytes = STUNResponse.success(to: request, from: path, key: Self.samplePassword)
    let expected = Self.bytes(attribute)
    #expect(Array(bytes[20..<20 + expected.count]) == expected)
    #expect(Array(bytes[..<2]) == [1, 1] && Array(bytes[4..<20]) == Array(Self.sampleRequest[4..<20]))
    let response = try Self.message(bytes)
    #expect(response.messageClass == .success && response.hasIntegrity(key: Self.samplePassword))
    #expect(bytes.count <= Self.sampleRequest.count, "nothing is amplified")
  }

  @Test func `the checksum is that of the standard's example`() {
    #expect(CRC32.checksum(of: Array("The quick brown fox jumps over the lazy dog".utf8)) == 0x414f_a339)
  }
}

import Foundation
import Platform
import Testing

@Suite struct IPAddressTests {
  @Test(arguments: [
    ("192.0.2.7", "c0000207"), ("0.0.0.0", "00000000"), ("::", "00000000000000000000000000000000"),
    ("2001:db8::7", "20010db8000000000000000000000007"), ("::ffff:192.0.2.7", "00000000000000000000ffffc0000207"),
    ("FE80::1:2", "fe800000000000000000000000010002"),
    ("0000:0000:0000:0000:0000:ffff:255.255.255.255", "00000000000000000000ffffffffffff"),
  ])
  func `what is written in digits is read`(text: String, bytes: String) {
    #expect(IPAddress(text)?.bytes.map { String(format: "%02x", $0) }.joined() == bytes)
  }

  @Test(arguments: [
    "", "localhost", "192.0.2", "192.0.2.007", "192.0.2.7 ", "192.0.2.7\u{0}", "192.0.2.7\u{0}.example",
    "::1\u{0}%eth0",
    "fe80::1%eth0", "[::1]", "192.0.2.7:80", String(repeating: "0", count: 100_000),
  ])
  func `all else is no address`(text: String) {
    #expect(IPAddress(text) == nil)
  }

  @Test(arguments: [
    ("127.0.0.1", "loopback"), ("127.255.0.9", "loopback"), ("::1", "loopback"), ("128.0.0.1", ""), ("::2", ""),
    ("1::1", ""), ("fe80::1", "link"), ("febf::1", "link"), ("fec0::1", ""), ("169.254.0.1", ""),
    ("224.0.0.1", "group"),
    ("239.255.255.255", "group"), ("240.0.0.1", ""), ("223.255.255.255", ""), ("ff02::1", "group"), ("fe00::1", ""),
  ])
  func `the kind of an address follows the RFCs`(text: String, kind: String) throws {
    let address = try #require(IPAddress(text))
    #expect(address.isLoopback == (kind == "loopback"))
    #expect(address.isIPv6LinkLocal == (kind == "link"))
    #expect(address.isMulticast == (kind == "group"))
  }
}

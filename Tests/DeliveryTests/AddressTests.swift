import Foundation
import Platform
import TestSupport
import Testing

/// The addresses that count as those of the internet.
@Suite struct AddressTests {
  @Test(arguments: [
    "0.0.0.0", "10.1.2.3", "100.64.0.1", "100.127.255.255", "127.0.0.1", "127.255.255.255", "169.254.169.254",
    "172.16.0.1", "172.31.255.255", "192.0.0.8", "192.0.2.1", "192.168.178.1", "198.18.0.1", "198.19.255.255",
    "198.51.100.7", "203.0.113.7", "224.0.0.1", "239.255.255.250", "240.0.0.1", "255.255.255.255", "::", "::1",
    "::127.0.0.1", "::ffff:127.0.0.1", "::ffff:10.0.0.1", "64:ff9b::10.0.0.1", "64:ff9b::7f00:1", "64:ff9b:1::1",
    "100::1", "2001::1", "2001:db8::1", "2002:7f00:1::", "3fff::1", "fc00::1", "fd12:3456::1", "fe80::1", "fec0::1",
    "ff02::1", "5f00::1",
  ])
  func `an address of no host of the internet is private`(text: String) throws {
    #expect(try !#require(IPAddress(text)).isPublic)
  }

  @Test(arguments: [
    "1.1.1.1", "9.255.255.255", "11.0.0.0", "100.63.255.255", "100.128.0.0", "126.255.255.255", "128.0.0.1",
    "169.253.255.255", "172.15.255.255", "172.32.0.0", "192.0.1.0", "192.167.255.255", "192.169.0.0", "198.17.255.255",
    "198.20.0.0", "223.255.255.255", "::ffff:1.1.1.1", "64:ff9b::1.1.1.1", "2001:200::1", "2606:4700::1111",
    "2a00:1450::1", "2003::1",
  ])
  func `an address of a host of the internet is public`(text: String) throws {
    #expect(try #require(IPAddress(text)).isPublic)
  }

  @Test func `Python's ipaddress says the same of thousands of addresses`() throws {
    let directory = try TemporaryDirectory()
    // Every first pair of bytes below the groups of IPv4, where Python's versions agree with each other and with RFC 6890.
    var texts: [String] = []
    for first in 0..<224 {
      for second in stride(from: 0, to: 256, by: 3) where (first, second) != (192, 0) {
        texts.append("\(first).\(second).\((first * 7 + second) % 256).9")
      }
    }
    // Global unicast, and the private networks of IPv6.
    for first in Array(0x20..<0x40) + [0xfc, 0xfd] { texts.append("\(String(first, radix: 16))42:6::9") }
    let file = try directory.write(texts.joined(separator: "\n").utf8, as: "addresses")
    let script =
      "import ipaddress,sys\nfor l in open(sys.argv[1]): print(int(ipaddress.ip_address(l.strip()).is_global))"
    let judged = try Subprocess.run(["python3", "-c", script, file], in: directory)
    let verdicts = judged.outputText.split(separator: "\n").map { $0 == "1" }
    try #require(verdicts.count == texts.count, "\(judged.error)")
    var wrong: [String] = []
    for (text, isGlobal) in zip(texts, verdicts) where try #require(IPAddress(text)).isPublic != isGlobal {
      wrong.append("\(text) \(isGlobal)")
    }
    #expect(wrong.isEmpty, "\(wrong)")
  }
}

import Appliance
import Testing

@Suite struct ListenAddressTests {
  @Test(
    arguments: [
      ("127.0.0.1:8554", "127.0.0.1", 8554), (":8554", nil, 8554), ("8554", nil, 8554), ("10.1.2.3", "10.1.2.3", nil),
      ("[::1]:554", "::1", 554), ("[::]", "::", nil), ("fe80::1", "fe80::1", nil),
    ] as [(String, String?, Int?)])
  func `an address, a port, or both`(text: String, address: String?, port: Int?) throws {
    let parsed = try ListenAddress(parsing: text)
    #expect(parsed.address == address)
    #expect(parsed.port == port)
  }

  @Test(arguments: ["", ":", "0", ":0", ":65536", "host:8554", "[::1", "[::1]8554", "1.2.3.4:+5", "1.2.3:80"])
  func `a text that is neither an address nor a port is refused`(text: String) {
    #expect(throws: ValueError.self) { try ListenAddress(parsing: text) }
  }
}

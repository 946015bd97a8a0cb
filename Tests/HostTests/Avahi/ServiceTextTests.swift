import Foundation
import Host
import Testing

@Suite struct ServiceTextTests {
  private func announced(_ text: [String], address: String = "192.0.2.7") -> DiscoveredService {
    DiscoveredService(
      name: "x", type: .rtsp, host: "box.local", port: 8554, txtRecord: TXTRecord(text), isLocal: false,
      addresses: [.init(text: address, interface: "eth0")])
  }

  @Test(arguments: [
    (["path=/camera"], "/camera"), ([], "/"), (["path=live/ch 1"], "/live/ch%201"), (["Path=/a?b=c&d"], "/a?b=c&d"),
    (["path=/a%20b%zz"], "/a%20b%25zz"), (["path=/\u{1B}[2J\n"], "/%1B%5B2J%0A"), (["path=/ü'\"`"], "/%C3%BC%27%22%60"),
    (["path"], "/"), (["path=", "path=/second"], "/"), (["path", "path=/second"], "/"),
    (["=/x", "PATH=/y", "path=/z"], "/y"),
    (["pathe=/x", "pat=/y"], "/"),
  ])
  func `a path is what a URL may have, whatever was announced`(text: [String], path: String) {
    #expect(announced(text).path == path)
    // The judge is Foundation's own reader.
    let url = announced(text).url(login: "anna:secret@")
    #expect(URL(string: url)?.host == "192.0.2.7" && URL(string: url)?.port == 8554, "\(url)")
  }

  @Test func `a path of any encoding is kept byte by byte`() {
    let record = TXTRecord(strings: [Array("path=/".utf8) + [0xE9, 0xFF, 0x00]])
    let service = DiscoveredService(
      name: "x", type: .rtsp, host: "box.local", port: 1, txtRecord: record, isLocal: false, addresses: [])
    #expect(service.path == "/%E9%FF%00")
    #expect(record.texts == ["path=/\u{FFFD}\u{FFFD}\u{0}"])
  }

  @Test(arguments: [
    ("192.0.2.7", "192.0.2.7"), ("2001:db8::7", "[2001:db8::7]"), ("fe80::1", "[fe80::1%eth0]"),
    ("febf::1", "[febf::1%eth0]"), ("fec0::1", "[fec0::1]"),
  ])
  func `an address that means something on its link alone has the link with it`(address: String, host: String) {
    #expect(announced([], address: address).addresses[0].urlHost == host)
  }

  @Test func `the address that most players reach comes first`() {
    let service = DiscoveredService(
      name: "x", type: .rtsps, host: "box.local", port: 1, txtRecord: TXTRecord([]), isLocal: true,
      addresses: ["127.0.0.1", "fe80::2", "2001:db8::2", "::1", "192.0.2.2"].map {
        .init(text: $0, interface: "eth0")
      })
    #expect(service.addresses.map(\.text) == ["192.0.2.2", "2001:db8::2", "fe80::2", "127.0.0.1", "::1"])
    #expect(service.url() == "rtsps://192.0.2.2:1/")
  }

  @Test func `what steers a terminal is spelled out, and names of people stay`() {
    #expect(TerminalText.escaped("Küche 3 日本 👶") == "Küche 3 日本 👶")
    #expect(
      TerminalText.escaped("a\u{1B}]0;x\u{7}\u{9B}\u{202E}b\r\n") == #"a\u{1B}]0;x\u{7}\u{9B}\u{202E}b\u{D}\u{A}"#)
  }

  @Test func `a name is cut between signs, at 63 bytes`() {
    func name(_ name: String?, camera: String = "camera", host: String = "box") -> String {
      ServiceAnnouncement(camera: camera, name: name, type: .rtsp, port: 1, path: "/camera", reach: []).instanceName(
        host: host)
    }
    #expect(name(nil) == "camera on box")
    #expect(name("Front door") == "Front door")
    let long = name(nil, camera: String(repeating: "c", count: 64), host: "box")
    #expect(long == String(repeating: "c", count: 63))
    let family = String(repeating: "👨‍👩‍👧", count: 4)
    #expect(name(family) == String(repeating: "👨‍👩‍👧", count: 3))
  }
}

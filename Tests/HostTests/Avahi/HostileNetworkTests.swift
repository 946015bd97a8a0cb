import Foundation
import TestSupport
import Testing

/// `nightjar discover` on a network where somebody sends what no Avahi would, through a real Avahi.
@Suite(.serialized, .enabled(if: AvahiHosts.arePossible, "needs user namespaces and Avahi"))
struct HostileNetworkTests {
  private typealias Service = MulticastDNSResponder.Service

  private let hosts: AvahiHosts

  init() throws {
    hosts = try AvahiHosts()
    try hosts.startAvahi(on: .boxa)
  }

  /// The list, as JSON and as text, asked for once: when Avahi tells another program all of `names`.
  private func discover(_ names: Set<String>) throws -> (streams: [[String: Any]], text: String) {
    var seen: Set<String> = []
    let areThere = try eventually(within: 100) {
      seen = Set(try Seen.services(from: .boxa, hosts).map(\.name))
      return seen.isSuperset(of: names)
    }
    try #require(areThere, "\(seen)")
    // Side by side, since each listens for the whole time; Avahi needs a tenth of that for its answers.
    let programs = try [["--json"], []].map { options in
      try hosts.start([nightjarPath, "discover", "--seconds", "8"] + options, on: .boxa)
    }
    let results = try programs.map { try $0.wait() }
    for result in results { try #require(result.status == 0, "\(result.error)") }
    let object = try JSONSerialization.jsonObject(with: results[0].output) as? [String: Any]
    let streams = object?["streams"] as? [[String: Any]] ?? []
    let found = Set(streams.compactMap { $0["name"] as? String })
    #expect(found.isSuperset(of: names), "\(found)")
    let text = results[1].outputText
    #expect(text.split(separator: "\n").count { $0.hasPrefix("  rtsp://") } == streams.count, "\(text)")
    return (streams, text)
  }

  @Test func `a TXT record is read as RFC 6763 has it, and no more of it`() throws {
    let records: [(name: String, txt: [[UInt8]], path: String)] = [
      ("forty strings", (0..<40).map { Array("k\($0)=v".utf8) } + [Array("path=/last".utf8)], "/last"),
      ("1300 bytes", (0..<5).map { Array("l\($0)=".utf8) + [UInt8](repeating: 0x78, count: 252) }, "/"),
      (
        "a path of 250", [Array("path=".utf8) + [UInt8](repeating: 0x78, count: 250)],
        "/" + String(repeating: "x", count: 250)
      ),
      ("no UTF-8", [Array("path=/".utf8) + [0xFF, 0xC3, 0x28], [0xC3, 0x28, 0x3D, 0xA0]], "/%FF%C3("),
      ("no value", [Array("path".utf8), Array("auth".utf8)], "/"),
      ("twice", [Array("path=/one".utf8), Array("path=/two".utf8), Array("PATH=/three".utf8)], "/one"),
      ("first without a value", [Array("path".utf8), Array("path=/two".utf8)], "/"),
      ("no key", [[], Array("=".utf8), Array("=x".utf8), Array("path=/e".utf8)], "/e"),
      ("nothing", [], "/"),
      ("4300 strings", [Array("path=/first".utf8)] + [[UInt8]](repeating: [0x78], count: 4300), "/first"),
    ]
    let responder = try MulticastDNSResponder(records.map { Service($0.name, bytes: $0.txt) }, on: hosts)
    let (streams, text) = try discover(Set(records.map(\.name)))
    for record in records {
      let stream = streams.first { $0["name"] as? String == record.name }
      #expect(stream?["path"] as? String == record.path, "\(record.name): \(responder.process.errorSoFar)")
      let lines = text.split(separator: "\n")
      #expect(lines.contains { $0 == "  rtsp://10.77.0.2:554\(record.path)" }, "\(record.name): \(text)")
    }
    let forty = streams.first { $0["name"] as? String == "forty strings" }
    #expect((forty?["txt"] as? [String])?.prefix(2) == ["k0=v", "k1=v"] && (forty?["txt"] as? [String])?.count == 41)
  }

  @Test func `a name of any bytes is one line, and fit for a terminal`() throws {
    let names = [
      "a.b\\c.d\\046e\\.f\\\\g", "\u{1B}]0;owned\u{7}\u{1B}[2J\r\nfake line", String(repeating: "x", count: 63),
      String(repeating: "\\", count: 63), String(repeating: ".", count: 63), String(repeating: "\u{1}", count: 63),
      String(repeating: "\u{202E}", count: 21), String(repeating: "龍", count: 21), "\"';`$(touch pwned)", " ",
      "\u{7F}\u{9B}",
    ]
    let noText: [UInt8] = [0x62, 0xFF, 0xFE]
    let responder = try MulticastDNSResponder(
      names.map { Service($0) } + [
        Service(noText), Service(Array("a\u{0}b".utf8)), Service(Array("shut".utf8), port: 0),
      ],
      on: hosts)
    let (streams, text) = try discover(Set(names))
    #expect(streams.count == names.count, "\(streams.map { $0["name"] ?? "" }) \(responder.process.errorSoFar)")
    let lines = text.split(separator: "\n")
    // Name, URL, three players; and that one is not to be reached.
    #expect(lines.count == 5 * names.count + 1, "\(text)")
    #expect(lines.allSatisfy { $0.utf8.count < 63 * "\\u{1}".utf8.count + 100 })
    #expect(
      text.unicodeScalars.allSatisfy { $0 == "\n" || ![.control, .format].contains($0.properties.generalCategory) })
    #expect(text.contains(#"\u{1B}]0;owned\u{7}\u{1B}[2J\u{D}\u{A}fake line  (other.local)"#))
  }

  @Test func `what is of another type is not in the list`() throws {
    let strange = [
      Service(labels: ["just"], type: "_tcp"), Service(labels: [], type: "_tcp"),
      Service(labels: [], type: "_rtsp._tcp"),
      Service(labels: ["web"], type: "_http._tcp"), Service(labels: ["sub"], type: "_x._sub._rtsp._tcp"),
      Service(labels: ["two", "labels"], type: "_rtsp._tcp"), Service(labels: ["bare"], type: "rtsp._tcp"),
      Service(labels: [], type: "local"),
    ]
    let responder = try MulticastDNSResponder(strange + [Service("good")], on: hosts)
    let (streams, text) = try discover(["good"])
    #expect(streams.map { $0["name"] as? String } == ["good"], "\(responder.process.errorSoFar)")
    #expect(text.split(separator: "\n").count == 5, "\(text)")
  }

  @Test func `names that come and go without an end are looked up no more than so often`() throws {
    let flood = (0..<3000).map { Service("flood \($0)") }
    let responder = try MulticastDNSResponder(flood, generation: 100, on: hosts)
    let calls = try hosts.start(
      ["dbus-monitor", "--system", "--profile", "type='method_call',member='ServiceResolverNew'"], on: .boxa)
    let began = ContinuousClock.now
    let list = try hosts.run([nightjarPath, "discover", "--seconds", "20", "--json"], on: .boxa)
    let cut = list.log.count(of: "more than 256 announcements: the others are not shown")
    #expect(list.status == 0 && cut == 1, "\(list.error)")
    #expect(ContinuousClock.now - began < .seconds(200))
    let object = try JSONSerialization.jsonObject(with: list.output) as? [String: Any]
    #expect(object?["is_cut"] as? Bool == true)
    #expect((object?["streams"] as? [Any])?.count ?? .max <= 256, "\(responder.process.errorSoFar)")
    let count = calls.outputSoFar.split(separator: "\n").count { $0.contains("ServiceResolverNew") }
    #expect((1...512).contains(count), "\(count)")
  }
}

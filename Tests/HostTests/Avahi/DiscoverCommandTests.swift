import Foundation
import TestSupport
import Testing

/// `nightjar discover`, with whatever others announce.
@Suite(.serialized, .enabled(if: AvahiHosts.arePossible, "needs user namespaces and Avahi"))
struct DiscoverCommandTests {
  private let hosts: AvahiHosts

  init() throws { hosts = try AvahiHosts() }

  private func discover(_ options: [String] = [], on host: AvahiHosts.Host = .boxa) throws -> Subprocess.Result {
    try hosts.run([nightjarPath, "discover"] + options, on: host)
  }

  /// Announces something on `boxb`, and waits until that is done.
  private func publish(_ arguments: [String]) throws {
    let other = try hosts.start(["avahi-publish", "-s"] + arguments, on: .boxb)
    try #require(
      eventually(within: 60) { (other.errorSoFar + other.outputSoFar).contains("Established") }, "\(other.errorSoFar)")
  }

  @Test func `without Avahi, or without a bus, it says what starts it`() throws {
    let without = try discover()
    #expect(without.status == 69 && without.output.isEmpty)
    #expect(
      without.error == "nightjar: Avahi does not run (package avahi-daemon): sudo systemctl start avahi-daemon\n",
      "\(without.error)")
    try hosts.stopBus(on: .boxa)
    let alone = try discover()
    let problem = "nightjar: the message bus (D-Bus), which Avahi needs, does not run ("
    let mend =
      "); sudo apt install avahi-daemon, or if it is installed: sudo systemctl start dbus avahi-daemon\n"
    #expect(alone.status == 69 && alone.error.hasPrefix(problem) && alone.error.hasSuffix(mend), "\(alone.error)")
    #expect(alone.error.split(separator: "\n").count == 1)
    try hosts.startBus(on: .boxa)
    try hosts.startAvahi(on: .boxa)
    let none = try discover(["--seconds", "1"])
    #expect(none.status == 0 && none.outputText == "no stream is announced on this network\n", "\(none.outputText)")
    #expect(none.error.contains("--announce"))
    #expect(try discover(["--seconds", "0"]).status == 64)
    #expect(try discover(["--seconds", "61"]).status == 64)
  }

  @Test func `names and texts of others neither steer the terminal nor the shell`() throws {
    for host in AvahiHosts.Host.allCases { try hosts.startAvahi(on: host) }
    let name = "\u{1B}]0;owned\u{7}\u{202E}'\"; `touch pwned`"
    try publish([
      name, "_rtsp._tcp", "554", "path=/x'; touch pwned; echo '$(touch pwned)\u{1B}[2J", "auth=digest", "\u{9B}31m",
      "=",
      String(repeating: "k", count: 200) + "=v",
    ])
    var found: Subprocess.Result?
    _ = try eventually(within: 100) {
      found = try discover(["--seconds", "2"])
      // Its addresses are found one by one, and the one of IPv6 may be alone at first.
      return found?.listing.commands(for: "ffplay").contains { $0.contains("@10.77.0.2:") } == true
    }
    let list = try #require(found)
    #expect(list.status == 0)
    let harmless = list.outputText.unicodeScalars.allSatisfy {
      $0 == "\n" || ![.control, .format].contains($0.properties.generalCategory)
    }
    #expect(harmless, "\(list.outputText.debugDescription)")
    #expect(list.outputText.contains(#"\u{1B}]0;owned\u{7}\u{202E}'"; `touch pwned`"#), "\(list.outputText)")
    for player in ["ffplay", "VLC, but not Debian's or Ubuntu's"] {
      let line = try #require(list.outputText.split(separator: "\n").first { $0.hasPrefix("  \(player): ") })
      let command = line.dropFirst("  \(player): ".count)
      // A shell reads one word more, the URL, and does nothing.
      let read = try Subprocess.run(
        [
          "sh", "-c",
          "cd '\(hosts.directory.url.path)'; set -- \(command); for word; do last=$word; done; echo \"$last\"",
        ], in: hosts.directory)
      #expect(
        read.outputText
          == "rtsp://NAME:PASSWORD@10.77.0.2:554/x%27;%20touch%20pwned;%20echo%20%27$(touch%20pwned)%1B%5B2J\n",
        "\(read.outputText)")
    }
    #expect(!FileManager.default.fileExists(atPath: hosts.directory.path("pwned")))
    _ = try eventually(within: 100) {
      found = try discover(["--seconds", "2", "--json"])
      return found?.outputText.contains("10.77.0.2") == true
    }
    let json = try #require(found)
    #expect(json.output.allSatisfy { $0 == 10 || (32..<127).contains($0) || $0 >= 0xC3 || (0x80..<0xC0).contains($0) })
    #expect(!json.outputText.unicodeScalars.contains("\u{9B}") && !json.outputText.unicodeScalars.contains("\u{202E}"))
    let object = try #require(try JSONSerialization.jsonObject(with: json.output) as? [String: Any])
    let stream = try #require((object["streams"] as? [[String: Any]])?.first)
    #expect(stream["name"] as? String == name)
    #expect((stream["txt"] as? [String])?.contains("\u{9B}31m") == true)
    #expect(stream["host"] as? String == "boxb.local" && stream["port"] as? Int == 554)
    #expect(stream["asks_for_user"] as? Bool == true && stream["is_local"] as? Bool == false)
    let addresses = try #require(stream["addresses"] as? [[String: Any]])
    #expect(addresses.contains { $0["address"] as? String == "10.77.0.2" && $0["interface"] as? String == "veth-a" })
  }

  @Test func `an address of the link alone comes with its interface, and a player takes it so`() throws {
    for host in AvahiHosts.Host.allCases { try hosts.startAvahi(on: host) }
    // No other address is left to boxb.
    for address in ["10.77.0.2/24", "fd77::2/64"] {
      #expect(try hosts.run(["ip", "addr", "del", address, "dev", "veth-b"], on: .boxb).status == 0)
    }
    let program = try AnnouncedProgram(AnnouncedProgram.small + ["--rtsp", "--announce"], on: hosts)
    let announced = "announced as 'camera on boxa' (_rtsp._tcp, port 8554)"
    #expect(eventually(within: 100) { program.process.log.count(of: announced) > 0 }, "\(program.log)")
    for address in ["10.77.0.1/24", "fd77::1/64"] {
      #expect(try hosts.run(["ip", "addr", "del", address, "dev", "veth-a"], on: .boxa).status == 0)
    }
    var url = ""
    #expect(
      try eventually(within: 100) {
        let list = try discover(["--seconds", "2", "--json"], on: .boxb)
        let object = try JSONSerialization.jsonObject(with: list.output) as? [String: Any]
        url = (object?["streams"] as? [[String: Any]])?.first?["url"] as? String ?? ""
        return url.contains("fe80")
      }, "\(url)")
    #expect(url.hasPrefix("rtsp://[fe80::") && url.hasSuffix("%veth-b]:8554/camera"), "\(url)")
    let own = url.replacingOccurrences(of: "rtsp://", with: "rtsp://anna:correct%20horse@")
    let played = try hosts.run(
      AnnouncedProgram.player(of: own, frames: 3),
      on: .boxb)
    #expect(played.outputText.split(separator: "\n").count { $0.hasPrefix("0,") } == 3, "\(played.error)")
    _ = try program.end()
  }

  @Test func `more announcements than it looks at are told, and do no harm`() throws {
    // Avahi's own services, each heard by IPv4 and by IPv6.
    let folder = hosts.directory.url.appendingPathComponent("services")
    try FileManager.default.createDirectory(at: folder, withIntermediateDirectories: false)
    for number in 1...150 {
      let group = """
        <?xml version="1.0"?><!DOCTYPE service-group SYSTEM "avahi-service.dtd">
        <service-group><name>flood \(number)</name><service><type>_rtsp._tcp</type><port>554</port></service></service-group>
        """
      try Data(group.utf8).write(to: folder.appendingPathComponent("flood-\(number).service"))
    }
    #expect(try hosts.run(["mount", "--bind", folder.path, "/etc/avahi/services"], on: .boxb).status == 0)
    for host in AvahiHosts.Host.allCases { try hosts.startAvahi(on: host) }
    var list: Subprocess.Result?
    #expect(
      try eventually(within: 200) {
        list = try discover(["--seconds", "8"])
        return list?.log.count(of: "more than 256 announcements: the others are not shown") == 1
      }, "\(list?.error ?? "")")
    #expect(list?.status == 0)
  }

  @Test func `the doctor says whether streams can be announced, and what starts Avahi`() throws {
    try AnnouncedProgram.addUser(on: hosts)
    let socket = hosts.directory.path("control.sock")
    let options =
      AnnouncedProgram.small + ["--rtsp", "--announce", "--users", hosts.directory.path("users"), "--encoder", "auto"]
    func doctor() throws -> DoctorReport {
      try DoctorReport(options, own: ["--socket", socket], before: hosts.words(on: .boxa), in: hosts.directory)
    }
    let without = try doctor()
    let finding = try #require(without["announcement-waiting"], "\(without.findings)")
    #expect(finding.status == "warning" && finding.text == "Avahi does not run: nightjar can announce nothing")
    #expect(finding.commands.contains { $0.hasSuffix("systemctl start avahi-daemon") })
    // A stream that waits says so itself.
    let program = try AnnouncedProgram(AnnouncedProgram.small + ["--rtsp", "--announce"], on: hosts, users: true)
    let waiting =
      "nothing is announced now: Avahi does not run; the announcement follows when it does "
      + "(sudo systemctl start avahi-daemon)"
    #expect(eventually(within: 100) { program.process.log.count(of: waiting) > 0 })
    let service = "'camera on boxa' (_rtsp._tcp, port 8554)"
    #expect(try doctor()["announcement-waiting"]?.text.hasPrefix("'camera") == true)
    try hosts.startAvahi(on: .boxa)
    #expect(eventually(within: 100) { program.process.log.count(of: "announced as \(service)") > 0 })
    #expect(try doctor()["announcement"]?.text == service)
    _ = try program.end()
    #expect(try doctor()["announcement"]?.text.contains("boxa") == true)
  }
}

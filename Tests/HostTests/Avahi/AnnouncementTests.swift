import Foundation
import TestSupport
import Testing

/// Announcements of `nightjar stream --announce`, as another machine's Avahi hears them.
@Suite(.serialized, .enabled(if: AvahiHosts.arePossible, "needs user namespaces and Avahi"))
struct AnnouncementTests {
  private let hosts: AvahiHosts

  init() throws { hosts = try AvahiHosts() }

  private func seen(_ type: String = "_rtsp._tcp") throws -> [Seen] { try Seen.services(type, from: .boxb, hosts) }

  @Test func `a stream is there for others with port and path, until it ends`() throws {
    for host in AvahiHosts.Host.allCases { try hosts.startAvahi(on: host) }
    let listening = try hosts.start(["avahi-browse", "-p", "_rtsp._tcp"], on: .boxb)
    let program = try AnnouncedProgram(
      AnnouncedProgram.small + ["--name", "nursery", "--rtsp", ":8555", "--rtsps", "--announce"], on: hosts)
    var services: [Seen] = []
    let isSeen = try eventually(within: 100) {
      services = try seen()
      return services.contains { $0.address == "10.77.0.1" } && services.contains { $0.address.contains(":") }
    }
    #expect(isSeen, "\(services) \(program.log)")
    #expect(Set(services.map(\.name)) == ["nursery on boxa"])
    #expect(services.allSatisfy { $0.port == "8555" })
    #expect(services.allSatisfy { $0.text == ["txtvers=1", "path=/nursery", "name=nursery", "auth=digest"] })
    var encrypted: [Seen] = []
    _ = try eventually(within: 100) {
      encrypted = try seen("_rtsps._tcp")
      return !encrypted.isEmpty
    }
    #expect(!encrypted.isEmpty && encrypted.allSatisfy { $0.port == "8322" && $0.name == "nursery on boxa" })
    var states = try program.announcements()
    _ = try eventually(within: 100) {
      states = try program.announcements()
      return states.count == 2 && states.allSatisfy { $0["state"] as? String == "announced" }
    }
    #expect(states.compactMap { $0["type"] as? String }.sorted() == ["_rtsp._tcp", "_rtsps._tcp"])
    #expect(states.allSatisfy { $0["state"] as? String == "announced" && $0["path"] as? String == "/nursery" })
    let announced: Set = ["'nursery on boxa' (_rtsp._tcp, port 8555)", "'nursery on boxa' (_rtsps._tcp, port 8322)"]
    for service in announced {
      #expect(eventually { program.process.log.count(of: "announced as \(service)") > 0 }, "\(program.log)")
    }
    #expect(try Set(program.ctl(["status"]).listing.values(of: "announced")) == announced)
    let end = try program.end()
    #expect(end.status == 0, "\(end.error)")
    // Records live for over an hour without a goodbye.
    #expect(try eventually(within: 50) { try seen().isEmpty })
    #expect(eventually(within: 50) { listening.outputSoFar.contains("\n-;") })
  }

  @Test func `others find it by nightjar discover, and play it from there`() throws {
    for host in AvahiHosts.Host.allCases { try hosts.startAvahi(on: host) }
    let program = try AnnouncedProgram(AnnouncedProgram.small + ["--rtsp", "--announce"], on: hosts)
    #expect(try eventually(within: 100) { try seen().count >= 2 }, "\(program.log)")
    func discover(on host: AvahiHosts.Host, at place: String = "rtsp://") throws -> Subprocess.Result {
      var list: Subprocess.Result?
      _ = try eventually(within: 100) {
        list = try hosts.run([nightjarPath, "discover", "--seconds", "2"], on: host)
        return list?.listing.commands(for: "ffplay").contains { $0.contains(place) } == true
      }
      return try #require(list)
    }
    // Its addresses are found one by one, and the one of IPv6 may be alone at first.
    let list = try discover(on: .boxb, at: "@10.77.0.1:")
    #expect(list.status == 0, "\(list.error)")
    let line = try #require(
      list.outputText.split(separator: "\n").first { $0.hasPrefix("  ffplay: ") }, "\(list.outputText)")
    #expect(list.listing.count(of: "camera on boxa  (boxa.local)") > 0, "\(list.outputText)")
    let url = try #require(line.split(separator: " ").last)
    #expect(url == "'rtsp://NAME:PASSWORD@10.77.0.1:8554/camera'")
    let own = String(url.dropFirst().dropLast()).replacing("NAME:PASSWORD", with: "anna:correct%20horse")
    let played = try hosts.run(
      AnnouncedProgram.player(of: own, frames: 5),
      on: .boxb)
    #expect(played.outputText.split(separator: "\n").count { $0.hasPrefix("0,") } == 5, "\(played.error)")
    let here = try discover(on: .boxa)
    #expect(here.listing.count(of: "camera on boxa  (this host)") > 0, "\(here.outputText)")
    _ = try program.end()
  }

  @Test func `a reload changes what is announced, and not the stream`() throws {
    for host in AvahiHosts.Host.allCases { try hosts.startAvahi(on: host) }
    let file = hosts.directory.path("nightjar.toml")
    func configure(_ box: String, _ cameras: [(name: String, more: String)]) throws {
      let tables = cameras.map { "[[camera]]\nname = \"\($0.name)\"\nsource = \"test\"\n\($0.more)\n" }
      let text = "size = \"320x240\"\nfps = 10\n\(box)\n" + tables.joined()
      try Data(text.utf8).write(to: URL(fileURLWithPath: file))
    }
    func names() throws -> Set<String> { try Set(seen().map(\.name)) }
    try configure("rtsp = true", [("one", ""), ("two", "")])
    let program = try AnnouncedProgram(["--config", file], on: hosts)
    #expect(eventually(within: 100) { program.log.contains(":8554/two") }, "\(program.log)")
    #expect(try program.announcements().isEmpty && names().isEmpty, "nobody has asked for it")
    try configure("rtsp = true\nannounce = true", [("one", ""), ("two", "")])
    #expect(try program.ctl(["reload"]).status == 0)
    #expect(try eventually(within: 100) { try names() == ["one on boxa", "two on boxa"] }, "\(program.log)")
    try configure("rtsp = true\nannounce = true", [("one", "announce-name = \"Küche\""), ("three", "")])
    let renamed = try program.ctl(["reload", "--json"])
    let answer = try JSONSerialization.jsonObject(with: renamed.output) as? [String: Any]
    let outcomes = (answer?["cameras"] as? [[String: Any]])?.filter { $0["name"] as? String == "one" }
    let outcome = outcomes?.first?["outcome"] as? String
    #expect(outcome == "changed" || outcome == "unchanged", "the picture goes on: \(renamed.outputText)")
    #expect(!program.log.contains("one: restarts"), "\(program.log)")
    #expect(try eventually(within: 100) { try names() == ["Küche", "three on boxa"] }, "\(program.log)")
    try configure("rtsp = \":8666\"\nannounce = true", [("one", ""), ("three", "")])
    #expect(try program.ctl(["reload"]).status == 0)
    #expect(
      try eventually(within: 100) {
        let now = try seen()
        return try names() == ["one on boxa", "three on boxa"] && now.allSatisfy { $0.port == "8666" }
      }, "\(program.log)")
    try configure("rtsp = \":8666\"\nannounce = false", [("one", ""), ("three", "")])
    #expect(try program.ctl(["reload"]).status == 0)
    #expect(try eventually(within: 100) { try names().isEmpty }, "\(program.log)")
    #expect(try program.announcements().isEmpty)
    _ = try program.end()
  }

  @Test func `without users there is nothing to announce, and once there are there is`() throws {
    for host in AvahiHosts.Host.allCases { try hosts.startAvahi(on: host) }
    try Data().write(to: URL(fileURLWithPath: hosts.directory.path("none")))
    let file = hosts.directory.path("nightjar.toml")
    let text = "source = \"test\"\nsize = \"320x240\"\nfps = 10\nrtsp = true\nannounce = true\n"
    try Data(text.utf8).write(to: URL(fileURLWithPath: file))
    let program = try AnnouncedProgram(["--config", file], on: hosts, users: false)
    let warning =
      "nothing is announced: only this host may watch; add a user with nightjar user add NAME, and serve an address "
      + "that others reach"
    #expect(eventually(within: 100) { program.process.log.warnings.count { $0 == warning } > 0 }, "\(program.log)")
    #expect(try program.announcements().isEmpty && seen().isEmpty)
    try AnnouncedProgram.addUser(on: hosts)
    try Data((text + "users = \"\(hosts.directory.path("users"))\"\n").utf8).write(to: URL(fileURLWithPath: file))
    #expect(try program.ctl(["reload"]).status == 0)
    #expect(try eventually(within: 100) { try seen().count >= 2 }, "\(program.log)")
    _ = try program.end()
  }

  @Test func `it is announced where it listens, and nowhere else`() throws {
    for host in AvahiHosts.Host.allCases { try hosts.startAvahi(on: host) }
    let program = try AnnouncedProgram(
      AnnouncedProgram.small + ["--rtsp", "10.77.0.1:8554", "--rtsps", "[fd77::1]:8322", "--announce"], on: hosts)
    var (plain, encrypted): ([Seen], [Seen]) = ([], [])
    let areSeen = try eventually(within: 100) {
      plain = try seen()
      encrypted = try seen("_rtsps._tcp")
      return !plain.isEmpty && !encrypted.isEmpty
    }
    #expect(areSeen, "\(program.log)")
    #expect(plain.map(\.address) == ["10.77.0.1"])
    #expect(encrypted.allSatisfy { $0.address.contains(":") })
    // An address that goes takes its announcement with it. No goodbye leaves without one: others keep it until they ask.
    #expect(try hosts.run(["ip", "addr", "del", "10.77.0.1/24", "dev", "veth-a"], on: .boxa).status == 0)
    #expect(
      try eventually(within: 100) {
        try program.announcements().contains {
          $0["type"] as? String == "_rtsp._tcp" && ($0["reason"] as? String)?.contains("addresses") == true
        }
      })
    #expect(try hosts.run(["ip", "addr", "add", "10.77.0.1/24", "dev", "veth-a"], on: .boxa).status == 0)
    #expect(try eventually(within: 100) { try seen().map(\.address) == ["10.77.0.1"] }, "\(program.log)")
    _ = try program.end()
  }

  @Test func `with required encryption, only the encrypted URL is announced`() throws {
    for host in AvahiHosts.Host.allCases { try hosts.startAvahi(on: host) }
    let program = try AnnouncedProgram(
      AnnouncedProgram.small + ["--rtsp", "--rtsps", "--require-encryption", "--announce"], on: hosts)
    #expect(try eventually(within: 100) { try !seen("_rtsps._tcp").isEmpty }, "\(program.log)")
    #expect(try seen().isEmpty)
    _ = try program.end()
  }
}

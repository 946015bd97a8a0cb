import Foundation
import TestSupport
import Testing

/// Announcements while Avahi, the bus, another machine's name or the camera gives trouble.
@Suite(.serialized, .enabled(if: AvahiHosts.arePossible, "needs user namespaces and Avahi"))
struct AnnouncementTroubleTests {
  private let hosts: AvahiHosts

  init() throws { hosts = try AvahiHosts() }

  private func seen(_ type: String = "_rtsp._tcp") throws -> [Seen] { try Seen.services(type, from: .boxb, hosts) }

  @Test func `Avahi may come later, go and come again, and so may the bus`() throws {
    try hosts.startAvahi(on: .boxb)
    try hosts.stopBus(on: .boxa)
    let program = try AnnouncedProgram(AnnouncedProgram.small + ["--rtsp", "--announce"], on: hosts)
    let noBus = "nothing is announced now: the message bus (D-Bus), which Avahi needs, does not run ("
    #expect(eventually(within: 100) { program.process.log.lines.contains { $0.hasPrefix(noBus) } })
    try hosts.startBus(on: .boxa)
    let noAvahi =
      "nothing is announced now: Avahi does not run; the announcement follows when it does "
      + "(sudo systemctl start avahi-daemon)"
    #expect(eventually(within: 100) { program.process.log.count(of: noAvahi) > 0 })
    let waiting = try program.announcements()
    #expect(waiting.count == 1 && waiting[0]["state"] as? String == "waiting", "\(waiting)")
    #expect(waiting[0]["reason"] as? String == "Avahi does not run")
    try hosts.startAvahi(on: .boxa)
    #expect(try eventually(within: 100) { try seen().count >= 2 }, "\(program.log)")
    for signal in [SIGKILL, SIGTERM] {
      try hosts.stopAvahi(on: .boxa, by: signal)
      #expect(try eventually(within: 100) { try program.announcements().first?["state"] as? String == "waiting" })
      try hosts.startAvahi(on: .boxa)
      #expect(try eventually(within: 100) { try program.announcements().first?["state"] as? String == "announced" })
      #expect(try eventually(within: 100) { try seen().count >= 2 })
    }
    // With the bus goes Avahi.
    try hosts.stopBus(on: .boxa)
    try hosts.stopAvahi(on: .boxa)
    try hosts.startBus(on: .boxa)
    try hosts.startAvahi(on: .boxa)
    #expect(try eventually(within: 100) { try program.announcements().first?["state"] as? String == "announced" })
    #expect(program.process.isRunning)
    // Each change a line, and no more.
    #expect(program.log.components(separatedBy: "Avahi does not run").count <= 6, "\(program.log)")
    let end = try program.end()
    #expect(end.status == 0 && end.error.contains("frames"), "\(end.error)")
  }

  @Test func `an Avahi that hangs holds up neither the stream nor its end`() throws {
    for host in AvahiHosts.Host.allCases { try hosts.startAvahi(on: host) }
    hosts.signalAvahi(on: .boxa, SIGSTOP)
    let program = try AnnouncedProgram(AnnouncedProgram.small + ["--rtsp", "--announce"], on: hosts)
    let waiting = "nothing is announced now: Avahi does not work: Connection timed out"
    #expect(eventually(within: 100) { program.process.log.lines.contains { $0.hasPrefix(waiting) } })
    #expect(try program.announcements().first?["state"] as? String == "waiting")
    hosts.signalAvahi(on: .boxa, SIGCONT)
    #expect(try eventually(within: 100) { try Set(seen().map(\.name)) == ["camera on boxa"] }, "\(program.log)")
    hosts.signalAvahi(on: .boxa, SIGSTOP)
    #expect(try program.end().status == 0)
    hosts.signalAvahi(on: .boxa, SIGCONT)
    #expect(try eventually(within: 100) { try seen().isEmpty })
  }

  @Test func `a name that another machine has is left to it, in one line`() throws {
    for host in AvahiHosts.Host.allCases { try hosts.startAvahi(on: host) }
    let other = try hosts.start(["avahi-publish", "-s", "Front door", "_rtsp._tcp", "9999", "path=/other"], on: .boxb)
    #expect(eventually(within: 60) { (other.errorSoFar + other.outputSoFar).contains("Established") })
    let options = AnnouncedProgram.small + ["--rtsp", "--announce", "--announce-name", "Front door"]
    let program = try AnnouncedProgram(options, on: hosts)
    let line =
      "announced as 'Front door #2' (_rtsp._tcp, port 8554): another service on the network has the name 'Front door'"
    #expect(eventually(within: 100) { program.log.contains(line) }, "\(program.log)")
    #expect(program.log.components(separatedBy: "announced as").count == 2)
    #expect(try eventually(within: 50) { try Set(seen().map(\.name)) == ["Front door", "Front door #2"] })
    #expect(try seen().filter { $0.name == "Front door" }.allSatisfy { $0.port == "9999" })
    #expect(try program.announcements().first?["name"] as? String == "Front door #2")
    _ = try program.end()
  }

  @Test func `a name that this machine has already gives way too, and so do two cameras of one name`() throws {
    for host in AvahiHosts.Host.allCases { try hosts.startAvahi(on: host) }
    let other = try hosts.start(["avahi-publish", "-s", "Door", "_rtsp._tcp", "9999"], on: .boxa)
    #expect(eventually(within: 60) { (other.errorSoFar + other.outputSoFar).contains("Established") })
    let file = hosts.directory.path("nightjar.toml")
    let text = """
      size = "320x240"
      fps = 10
      rtsp = true
      announce = true
      [[camera]]
      name = "one"
      source = "test"
      announce-name = "Door"
      [[camera]]
      name = "two"
      source = "test"
      announce-name = "Door"
      """
    try Data(text.utf8).write(to: URL(fileURLWithPath: file))
    let program = try AnnouncedProgram(["--config", file], on: hosts)
    #expect(
      try eventually(within: 100) { try Set(seen().map(\.name)) == ["Door", "Door #2", "Door #3"] }, "\(program.log)")
    // Others may see a name before the program has noted it.
    #expect(
      try eventually {
        try Set(program.announcements().compactMap { $0["name"] as? String }) == ["Door #2", "Door #3"]
      }, "\(program.log)")
    _ = try program.end()
  }

  @Test func `another name of the machine is another name of its streams`() throws {
    for host in AvahiHosts.Host.allCases { try hosts.startAvahi(on: host) }
    let program = try AnnouncedProgram(AnnouncedProgram.small + ["--rtsp", "--announce"], on: hosts)
    #expect(try eventually(within: 100) { try !seen().isEmpty }, "\(program.log)")
    #expect(try hosts.run(["avahi-set-host-name", "attic"], on: .boxa).status == 0)
    #expect(try eventually(within: 100) { try Set(seen().map(\.name)) == ["camera on attic"] }, "\(program.log)")
    _ = try program.end()
  }

  @Test func `a refusal by Avahi is reported once, with the reason, and tried again less and less often`() throws {
    let path = hosts.directory.path("boxa.conf")
    let configuration = try String(contentsOfFile: path, encoding: .utf8)
    let forbidding = configuration.replacing("[publish]\n", with: "[publish]\ndisable-user-service-publishing=yes\n")
    try Data(forbidding.utf8).write(to: URL(fileURLWithPath: path))
    try hosts.startAvahi(on: .boxa)
    let calls = try hosts.start(
      ["dbus-monitor", "--system", "--profile", "type='method_call',member='EntryGroupNew'"], on: .boxa)
    #expect(eventually(within: 60) { !calls.outputSoFar.isEmpty })
    let program = try AnnouncedProgram(AnnouncedProgram.small + ["--rtsp", "--announce"], on: hosts)
    // mc, the time in seconds, …
    func times() -> [Double] {
      calls.outputSoFar.split(separator: "\n").filter { $0.hasPrefix("mc") && $0.contains("EntryGroupNew") }
        .compactMap { Double($0.split(separator: "\t")[1]) }
    }
    #expect(eventually(within: 200) { times().count >= 3 }, "\(program.log) \(calls.outputSoFar)")
    let first = times()
    // After 5 s and after 10 s; a machine that is held up tells of one call later than of another.
    #expect(first[2] - first[1] > first[1] - first[0] && first[2] - first[0] > 12, "\(first)")
    let line = "is not announced, Avahi refuses it: "
    #expect(program.log.components(separatedBy: line).count == 2, "\(program.log)")
    #expect(program.log.contains("disable-user-service-publishing"))
    let service = try #require(try program.announcements().first)
    #expect(service["state"] as? String == "refused", "\(service)")
    // Another Avahi is asked at once.
    try hosts.stopAvahi(on: .boxa)
    try Data(configuration.utf8).write(to: URL(fileURLWithPath: path))
    try hosts.startAvahi(on: .boxa)
    let announced = "announced as 'camera on boxa' (_rtsp._tcp, port 8554)"
    #expect(eventually(within: 100) { program.process.log.count(of: announced) > 0 }, "\(program.log)")
    _ = try program.end()
  }

  @Test func `a camera that fails to open, slowly, does not come and go in the list`() throws {
    for host in AvahiHosts.Host.allCases { try hosts.startAvahi(on: host) }
    // What is opened, and is no clip some seconds later. The program sees the end of a pipe only while nobody has opened
    // it again.
    let script = "mkfifo pipe; while :; do exec 3> pipe; sleep 4; exec 3>&-; echo failed; sleep 1; done"
    let source = try hosts.start(["sh", "-c", script], on: .boxa)
    let pipe = hosts.directory.path("pipe")
    #expect(eventually(within: 60) { FileManager.default.fileExists(atPath: pipe) })
    let file = hosts.directory.path("nightjar.toml")
    let text = """
      rtsp = true
      announce = true
      [[camera]]
      name = "good"
      source = "test"
      size = "320x240"
      fps = 10
      [[camera]]
      name = "bad"
      source = "file:\(pipe)"
      loop = 1
      """
    try Data(text.utf8).write(to: URL(fileURLWithPath: file))
    let program = try AnnouncedProgram(["--config", file], on: hosts)
    #expect(
      eventually(within: 200) { source.outputSoFar.components(separatedBy: "failed").count > 4 }, "\(program.log)")
    #expect(eventually(within: 100) { program.log.contains("bad: not a y4m clip") }, "\(program.log)")
    #expect(program.log.components(separatedBy: "announced as 'bad on boxa'").count <= 2, "\(program.log)")
    #expect(try eventually(within: 100) { try Set(seen().map(\.name)) == ["good on boxa"] }, "\(program.log)")
    _ = try program.end()
  }
}

import Foundation
import TestSupport
import Testing

/// `nightjar doctor` on an MQTT broker that is not ours.
@Suite(.serialized) struct BrokerTests {
  private let directory: TemporaryDirectory

  init() throws { directory = try TemporaryDirectory() }

  private func doctor(_ url: String, _ options: [String] = []) throws -> DoctorReport {
    let report = try DoctorReport(DoctorTests.small + ["--mqtt", url] + options, in: directory)
    #expect(report.findings.count { $0.key.hasPrefix("mqtt") } == 1, "\(report.findings)")
    for finding in report.findings where finding.status != "ok" { #expect(!finding.mends.isEmpty, "\(finding)") }
    return report
  }

  @Test func `a broker that takes the connection is told, by a name of the doctor's own, and one that is away`() throws
  {
    let broker = try MQTTBroker()
    let url = "mqtt://127.0.0.1:\(broker.port)"
    let well = try #require(try doctor(url)["mqtt"])
    #expect(well.status == "ok" && well.text == "\(url) takes the connection, by MQTT 5")
    // A stream that runs keeps its connection: the broker ends that of another client with the same name.
    #expect(eventually { broker.clients.contains { $0.hasPrefix("doctor") } }, "\(broker.log)")
    #expect(!broker.clients.contains { $0.hasPrefix("nightjar") }, "\(broker.log)")
    try broker.stop()
    let away = try #require(try doctor(url)["mqtt-unreachable"])
    #expect(away.status == "warning" && away.text == "\(url): Connection refused")
    // TLS to a port that has none.
    try broker.start()
    #expect(try doctor("mqtts://127.0.0.1:\(broker.port)").has("mqtt-unreachable"))
  }

  @Test func `a refused password is told, and so is a file that others may read`() throws {
    let passwords = directory.path("passwords")
    let made = try Subprocess.run(["mosquitto_passwd", "-b", "-c", passwords, "anna", "correct horse"], in: directory)
    try #require(made.status == 0, "\(made.error)")
    let broker = try MQTTBroker(["allow_anonymous false", "password_file \(passwords)"], in: directory)
    let url = "mqtt://127.0.0.1:\(broker.port)"
    let login = try directory.write("anna\nwrong\n".utf8, as: "login")
    #expect(chmod(login, 0o644) == 0)
    let report = try doctor(url, ["--mqtt-login", login])
    let file = try #require(report["mqtt-file"])
    #expect(file.status == "problem" && report.exitCode == 1 && file.text.contains(login), "\(file)")
    #expect(try runMend(try #require(file.commands.first), in: directory).status == 0)
    #expect(chmod(login, 0o600) == 0)
    let refused = try #require(try doctor(url, ["--mqtt-login", login])["mqtt-refused"])
    #expect(refused.status == "warning")
    #expect(refused.text == "\(url): it refuses the user or the password; look into the file of --mqtt-login")
    #expect(refused.mends.first?.advice?.contains(login) == true)
    _ = try directory.write("anna\ncorrect horse\n".utf8, as: "login")
    #expect(try doctor(url, ["--mqtt-login", login]).has("mqtt"))
    #expect(try doctor(url).has("mqtt-refused"))
  }
}

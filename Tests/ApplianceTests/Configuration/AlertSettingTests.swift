import Appliance
import Foundation
import TestSupport
import Testing

/// Settings of the alerts.
@Suite struct AlertSettingTests {
  private static func check(_ text: String) throws -> Subprocess.Result {
    let directory = try TemporaryDirectory()
    let file = directory.path("box.toml")
    try text.write(toFile: file, atomically: true, encoding: .utf8)
    return try Subprocess.run([nightjarPath, "config", "check", "--config", file], in: directory)
  }

  /// The options that each fault of these settings is about, in the order of the faults.
  private static func faults(_ words: String...) -> [[String]] { faults(of: words) }

  private static func faults(of words: [String]) -> [[String]] {
    let layer = CommandLineWords(words).layer
    var faults = SettingFaults()
    var appliance = ApplianceConfiguration()
    appliance.fill(from: layer) { faults.add($0) }
    appliance.check(&faults)
    var camera = CameraConfiguration()
    camera.fill(from: layer) { faults.add($0) }
    camera.check(in: appliance, &faults)
    return faults.faults.map(\.options)
  }

  @Test(arguments: [
    ("noise", "loud", "choose off, low, medium, high, or 3 to 40 dB"), ("noise", "2dB", "3 to 40 dB"),
    ("noise", "41", "3 to 40 dB"), ("noise", "-12dB", "3 to 40 dB"),
    ("movement", "12", "choose off, low, medium or high"),
    ("webhook", "ftp://example.org/", "write https://HOST/PATH"), ("webhook", "https://a@b/", "without a user"),
    ("event-command", "logger -t x", "write the whole path of the program first"),
    ("mqtt", "broker.lan", "write mqtts://HOST"), ("mqtt", "mqtt://anna:secret@a", "without a user"),
    ("mqtt-prefix", "a/#", "without +, #"), ("mqtt-discovery", "/a", "empty levels"),
    ("mqtt-snapshots", "often", "choose events, none, or a time"),
    ("web-push-contact", "anna", "write a mail address or https://HOST/PATH"),
    ("web-push-contact", "http://example.org/", "write a mail address"),
    ("web-push-contact", "anna@b@c", "write a mail address"), ("web-push-contact", "<anna@b>", "write a mail address"),
    ("quiet-hours", "22:00", "as in 22:00-06:30"), ("quiet-hours", "22:00-22:00", "two different local times"),
  ])
  func `a setting that cannot be met is refused`(name: String, value: String, words: String) throws {
    let check = try Self.check("source = \"test\"\n\(name) = \"\(value)\"\n")
    #expect(check.status == 65 && check.error.contains("box.toml:2") && check.error.contains(words), "\(check.error)")
  }

  @Test(arguments: ["0,0,100", "0,0,101,20", "50,0,60,10", "0,0,0,10", "a,b,c,d", "0,0,100,20,3"])
  func `a mask that is not within the picture is refused`(mask: String) {
    #expect(Self.faults("--movement=low", "--movement-mask=\(mask)") == [["movement-mask"]])
  }

  @Test func `a key without a webhook is refused, and all settings of the ways out together are good`() throws {
    let without = Self.faults("--webhook-key=key", "--webhook-private")
    #expect(without == [["webhook-key", "webhook"], ["webhook-private", "webhook"]])
    let four = (1...4).map { "--webhook=http://\($0).example/" }
    #expect(Self.faults(of: four) == [])
    #expect(Self.faults(of: four + ["--webhook=http://5.example/"]) == [["webhook"]])
    let all = try Self.check(
      """
      webhook = ["https://example.org/hook", "http://192.168.1.7:8123/api?id=1"]
      webhook-private = true
      event-command = ["/usr/bin/logger", "-t", "nursery"]
      web-push = true
      web-push-contact = "mailto:anna@example.org"
      source = "test"

      """)
    #expect(all.status == 0, "\(all.error)")
  }

  @Test func `alerts without pictures are warned about, where the camera's own H.264 is passed on`() throws {
    let words = "camera front: its alerts have no pictures while its own H.264 is passed on"
    func error(_ encoder: String, _ more: String) throws -> String {
      let check = try Self.check(
        """
        rtsp = true
        \(more)
        [[camera]]
        name = "front"
        source = "/dev/video0"
        encoder = "\(encoder)"
        noise = "medium"
        [[camera]]
        name = "back"
        source = "/dev/video2"
        encoder = "\(encoder)"

        """)
      #expect(check.status == 0, "\(check.error)")
      return check.error
    }
    #expect(try error("camera", "").contains(words))
    #expect(try !error("camera", "").contains("camera back:"))
    #expect(try !error("auto", "").contains(words))
    #expect(try !error("camera", "event-pictures = false").contains(words))
    let broker = "event-pictures = false\nmqtt = \"mqtt://localhost\""
    #expect(try !error("camera", broker).contains(words))
    #expect(try error("camera", broker + "\nmqtt-snapshots = \"60s\"").contains(words))
  }

  @Test func `settings of MQTT need a broker, its certificates TLS, and a plain connection is warned about`() throws {
    let names = [("ca", "/dev/null"), ("login", "/dev/null"), ("prefix", "a"), ("discovery", "a"), ("snapshots", "5s")]
    #expect(
      Self.faults(of: names.map { "--mqtt-\($0)=\($1)" }) == names.map { name, _ in ["mqtt-\(name)", "mqtt"] })
    #expect(Self.faults("--mqtt=mqtts://a", "--mqtt-ca=/dev/null") == [])
    #expect(Self.faults("--mqtt=mqtt://a", "--mqtt-ca=/dev/null") == [["mqtt-ca"]])
    for (url, warning) in [
      ("mqtt://broker.lan", "reads the password, events and pictures"), ("mqtts://broker.lan", nil),
      ("mqtt://localhost", nil),
    ] {
      let check = try Self.check("mqtt = \"\(url)\"\nmqtt-login = \"/dev/null\"\nsource = \"test\"\n")
      #expect(check.status == 0, "\(check.error)")
      if let warning {
        #expect(check.error.contains(warning), "\(check.error)")
      } else {
        #expect(check.error.isEmpty, "\(check.error)")
      }
    }
  }

  @Test func `the files of MQTT are read strictly`() throws {
    let directory = try TemporaryDirectory()
    let login = try directory.write("anna\nsecret\n".utf8, as: "login")
    let authority = try directory.write("no certificate".utf8, as: "ca.pem")
    func check(_ text: String) throws -> Subprocess.Result {
      let file = try directory.write((text + "\nsource = \"test\"\n").utf8, as: "box.toml")
      return try Subprocess.run([nightjarPath, "config", "check", "--strict", "--config", file], in: directory)
    }
    let missing = try check("mqtt = \"mqtt://localhost\"\nmqtt-login = \"/no/such/file\"")
    let place = "\(directory.path("box.toml")):2: mqtt-login"
    let mend = "write the user on its first line, and the password on its second"
    #expect(missing.status == 66 && missing.log.failures == ["\(place): there is no file /no/such/file; \(mend)"])
    chmod(login, 0o644)
    let exposed = try check("mqtt = \"mqtt://localhost\"\nmqtt-login = \"\(login)\"")
    let reason = "--mqtt-login \(login): other users may read or write it; chmod 600 \(login)"
    #expect(exposed.status == 66 && exposed.log.failures == [reason], "\(exposed.error)")
    chmod(login, 0o600)
    #expect(try check("mqtt = \"mqtt://localhost\"\nmqtt-login = \"\(login)\"").status == 0)
    let empty = try check("mqtt = \"mqtts://localhost\"\nmqtt-ca = \"\(authority)\"")
    #expect(
      empty.status == 66 && empty.log.failures == ["--mqtt-ca \(authority): it has no certificate in PEM"],
      "\(empty.error)")
  }

  @Test func `masks without movement are refused, and all settings together are good`() throws {
    let mask = #"movement-mask = ["0,0,100,20", "50.5,50,49.5,50"]"#
    #expect(Self.faults("--movement-mask=0,0,100,20") == [["movement-mask", "movement"]])
    let all = try Self.check(
      """
      events-file = "/var/lib/nightjar/events.log"
      quiet-hours = "22:00-06:30"
      source = "test"
      noise = "12dB"
      crying = true
      movement = "high"
      \(mask)

      """)
    #expect(all.status == 0, "\(all.error)")
  }
}

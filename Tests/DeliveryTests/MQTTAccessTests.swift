import Alerts
import Delivery
import Foundation
import Platform
import TestSupport
import Testing

/// TLS and logins at a broker that is not ours.
@Suite struct MQTTAccessTests {
  /// An authority, and a certificate of it for `names`; returns the paths of both, and of the key.
  private static func certificate(
    _ names: String, in directory: TemporaryDirectory
  ) throws -> (authority: String, certificate: String, key: String) {
    let script = """
      set -e
      openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -days 2 -subj /CN=authority \
        -addext basicConstraints=critical,CA:TRUE -out authority.pem -keyout authority.key
      openssl req -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -subj /CN=broker -out broker.csr -keyout broker.key
      printf 'subjectAltName=%s\\n' "$0" > extensions
      openssl x509 -req -in broker.csr -CA authority.pem -CAkey authority.key -CAcreateserial -days 2 \
        -extfile extensions -out broker.pem
      """
    let made = try Subprocess.run(
      ["sh", "-c", "cd \"$1\"; " + script, names, directory.url.path], in: directory)
    try #require(made.status == 0, "\(made.error)")
    return (directory.path("authority.pem"), directory.path("broker.pem"), directory.path("broker.key"))
  }

  /// The first line of the log of a sender to `url`, once it is connected or has failed.
  private static func line(
    _ url: String, login: MQTTLogin? = nil, authorities: String? = nil
  ) throws -> (line: String, isConnected: Bool) {
    let (reports, counts) = (EventQueue<DeliveryReport>(), DeliveryCounts())
    let configuration = MQTTConfiguration(
      try #require(MQTTTarget(url)), login: login, authorities: authorities, prefix: "nightjar/box", version: "1.2")
    let sender = try MQTTSender(
      configuration, AlertHistory(), LiveFeed(), reports, counts: counts, times: MQTTSenderTests.calm)
    defer { sender.stop() }
    var lines: [String] = []
    try #require(
      eventually(within: 60) {
        lines += reports.take().map(\.text)
        return !lines.isEmpty
      })
    return (lines[0], counts.isConnected)
  }

  @Test func `an encrypted broker needs a certificate of the authority, and with its name`() throws {
    let directory = try TemporaryDirectory()
    let files = try Self.certificate("DNS:localhost,IP:127.0.0.1", in: directory)
    let broker = try MQTTBroker(
      ["allow_anonymous true", "certfile \(files.certificate)", "keyfile \(files.key)"], in: directory)
    for host in ["localhost", "127.0.0.1"] {
      let good = try Self.line("mqtts://\(host):\(broker.port)", authorities: files.authority)
      #expect(good.isConnected && good.line == "mqtt \(host):\(broker.port): connected", "\(good) \(broker.log)")
    }
    // OpenSSL's own words.
    let words = "certificate verify failed; nightjar tries again"
    let unknown = try Self.line("mqtts://localhost:\(broker.port)")
    #expect(!unknown.isConnected && unknown.line == "mqtt localhost:\(broker.port): \(words)", "\(unknown)")
    let foreign = try TemporaryDirectory()
    let other = try Self.certificate("DNS:example.org", in: foreign)
    let untrusted = try Self.line("mqtts://localhost:\(broker.port)", authorities: other.authority)
    #expect(!untrusted.isConnected && untrusted.line == unknown.line, "\(untrusted)")
    let third = try TemporaryDirectory()
    let wrong = try Self.certificate("DNS:example.org", in: third)
    let elsewhere = try MQTTBroker(
      ["allow_anonymous true", "certfile \(wrong.certificate)", "keyfile \(wrong.key)"], in: third)
    let mismatch = try Self.line("mqtts://localhost:\(elsewhere.port)", authorities: wrong.authority)
    // libmosquitto's own words.
    let named = "mqtt localhost:\(elsewhere.port): host name verification failed; nightjar tries again"
    #expect(!mismatch.isConnected && mismatch.line == named, "\(mismatch)")
    // Plain words to a port of TLS, and TLS to a plain one.
    #expect(try !Self.line("mqtt://localhost:\(broker.port)").isConnected)
    let plain = try MQTTBroker()
    #expect(try !Self.line("mqtts://127.0.0.1:\(plain.port)", authorities: files.authority).isConnected)
  }

  @Test func `a wrong password is told, and a right one connects`() throws {
    let directory = try TemporaryDirectory()
    let file = directory.path("passwords")
    let made = try Subprocess.run(["mosquitto_passwd", "-b", "-c", file, "anna", "correct horse"], in: directory)
    try #require(made.status == 0, "\(made.error)")
    let broker = try MQTTBroker(["allow_anonymous false", "password_file \(file)"], in: directory)
    let url = "mqtt://127.0.0.1:\(broker.port)"
    let good = try Self.line(url, login: MQTTLogin(text: "anna\ncorrect horse\n"))
    #expect(good.isConnected, "\(good) \(broker.log)")
    let words = "it refuses the user or the password; look into the file of --mqtt-login; nightjar tries again"
    for login in [MQTTLogin(text: "anna\nwrong\n"), MQTTLogin(text: "anna\n"), nil] {
      let bad = try Self.line(url, login: login)
      #expect(!bad.isConnected && bad.line.hasSuffix(words), "\(bad)")
    }
  }

  @Test(arguments: [
    ("refuse=1", "does not speak MQTT 3.1.1"), ("refuse=2", "refuses the client's name"),
    ("refuse=3", "is not available"), ("refuse=4", "the password"), ("refuse=99", "with code 99"),
    ("refuse5=133", "refuses the client's name"), ("refuse5=134", "the password"), ("refuse5=137", "is not available"),
    ("refuse5=138", "with code 138"),
  ])
  func `each refusal is told in its words`(behaviour: String, words: String) throws {
    let server = try HostileBroker(behaviour)
    let (line, isConnected) = try Self.line("mqtt://127.0.0.1:\(server.port)")
    #expect(!isConnected && line.contains(words), "\(line)")
  }
}

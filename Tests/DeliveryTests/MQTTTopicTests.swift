import Alerts
import Delivery
import Foundation
import Platform
import TestSupport
import Testing

/// URLs, logins and topics of MQTT.
@Suite struct MQTTTopicTests {
  @Test(arguments: [
    ("mqtt://broker.lan", false, "broker.lan", 1883), ("mqtts://broker.lan", true, "broker.lan", 8883),
    ("MQTTS://broker.lan:18883/", true, "broker.lan", 18883), ("mqtt://[fe80::1]:1", false, "fe80::1", 1),
    ("mqtt://192.0.2.7", false, "192.0.2.7", 1883),
  ])
  func `a URL has its parts`(text: String, isSecure: Bool, host: String, port: Int) throws {
    let target = try #require(MQTTTarget(text))
    #expect(target.isSecure == isSecure && target.host == host && target.port == port)
  }

  @Test(arguments: [
    "", "broker.lan", "mqtt://", "http://broker.lan", "mqtt://user:password@broker.lan", "mqtt://a/topic", "mqtt://a:0",
    "mqtt://a:70000", "mqtt://a b", "mqtt://[::1", "ws://a", "mqtt://a#b",
    "mqtt://" + String(repeating: "a", count: 300),
  ])
  func `a URL that is none of a broker is refused`(text: String) { #expect(MQTTTarget(text) == nil) }

  @Test func `loopback is told from other hosts`() {
    for text in ["mqtt://localhost", "mqtt://127.0.0.3", "mqtt://[::1]"] {
      #expect(MQTTTarget(text)?.isLoopback == true)
    }
    for text in ["mqtt://broker.lan", "mqtt://192.168.1.2", "mqtt://localhost.example.org"] {
      #expect(MQTTTarget(text)?.isLoopback == false)
    }
  }

  @Test(arguments: [
    ("anna\nsecret\n", "anna", "secret"), ("anna\nsecret", "anna", "secret"),
    ("anna\r\nse cret\r\n", "anna", "se cret"),
    ("anna\n", "anna", nil), ("box:anna\n\u{E4}:\"\n", "box:anna", "\u{E4}:\""),
  ])
  func `a login has two lines`(text: String, user: String, password: String?) throws {
    let login = try #require(MQTTLogin(text: text))
    #expect(login.user == user && login.password == password)
  }

  @Test(arguments: ["", "\nsecret\n", "a\nb\nc\n", "a\0\nb\n", "a\tb\nc\n"])
  func `a text that is no login is refused`(text: String) { #expect(MQTTLogin(text: text) == nil) }

  @Test func `a login that others may read is refused`() throws {
    let directory = try TemporaryDirectory()
    let file = try directory.write("anna\nsecret\n".utf8, as: "login")
    chmod(file, 0o644)
    let error = #expect(throws: SecretFileError.self) { try MQTTLogin(contentsOf: file) }
    #expect(error?.path == file && error?.cause == .file(.exposed(mode: 0o644), limit: MQTTLogin.fileLimit))
    chmod(file, 0o600)
    #expect(try MQTTLogin(contentsOf: file).user == "anna")
  }

  @Test func `a prefix is a topic without wildcards`() {
    for text in ["nightjar", "nightjar/box", "a.b/c_d/e-f", MQTTTopics.usualPrefix] {
      #expect(MQTTTopics.isPrefix(text), "\(text)")
    }
    for text in ["", "/a", "a/", "a//b", "a/+/b", "#", "a/#", "a b", "$SYS/a", "a\u{7}", "\u{E4}"] {
      #expect(!MQTTTopics.isPrefix(text), "\(text)")
    }
    #expect(!MQTTTopics.isPrefix(String(repeating: "a", count: 201)))
  }

  @Test func `identities have allowed characters, and different prefixes and cameras have different ones`() throws {
    let prefixes = ["nightjar/box", "nightjar_box", "nightjar/box.lan", "nightjar/box-lan", "a/b/c", "a_b/c"]
    let nodes = prefixes.map { MQTTTopics(prefix: $0).node }
    #expect(Set(nodes).count == prefixes.count && nodes[0] == "nightjar_box")
    let cameras = ["nursery", "living_room", "a.b", "a-b", "A.b"]
    let identities = cameras.map { MQTTTopics.identity(of: $0) }
    #expect(Set(identities).count == cameras.count && identities.prefix(2) == ["nursery", "living_room"])
    for identity in nodes + identities { #expect(identity.wholeMatch(of: /[a-zA-Z0-9_-]+/) != nil, "\(identity)") }
    let target = try #require(MQTTTarget("mqtt://a"))
    let clients = prefixes.map { MQTTConfiguration(target, prefix: $0, version: "1").clientIdentifier }
    #expect(Set(clients).count == prefixes.count)
    // MQTT 3.1.1 section 3.1.3.1: what every broker takes.
    #expect(clients.allSatisfy { $0.wholeMatch(of: /[0-9a-zA-Z]{1,23}/) != nil })
  }

  @Test func `of retained messages the newest counts, what is gone is removed, and a new connection gets all`() {
    typealias Message = RetainedMessages.Message
    let (a, b, other) = (
      Message(topic: "a", payload: [1]), Message(topic: "b", payload: [2]), Message(topic: "a", payload: [3])
    )
    var retained = RetainedMessages()
    retained.want([a, b])
    #expect([retained.next(at: .zero), retained.next(at: .zero), retained.next(at: .zero)] == [a, b, nil])
    retained.want([other, b])
    #expect([retained.next(at: .zero), retained.next(at: .zero)] == [other, nil])
    retained.forget()
    #expect([retained.next(at: .zero), retained.next(at: .zero), retained.next(at: .zero)] == [other, b, nil])
    retained.want([b])
    let removal = Message(topic: "a", payload: [])
    #expect([retained.next(at: .zero), retained.next(at: .zero)] == [removal, nil])
    // Not acknowledged: the next connection gets it too.
    retained.forget()
    #expect([retained.next(at: .zero), retained.next(at: .zero), retained.next(at: .zero)] == [removal, b, nil])
    retained.note(removal)
    retained.forget()
    #expect([retained.next(at: .zero), retained.next(at: .zero)] == [b, nil])
    retained.want([a, b])
    #expect([retained.next(at: .zero), retained.next(at: .zero)] == [a, nil])
    // What others have left: never a topic that is wanted, and not without end.
    retained.remove("a")
    #expect(retained.next(at: .zero) == nil)
    for number in 0..<1000 { retained.remove("left/\(number)") }
    var count = 0
    while let message = retained.next(at: .zero) {
      #expect(message.payload.isEmpty)
      count += 1
    }
    #expect(count == RetainedMessages.removalLimit)
  }

  @Test func `a message at which a broker ends each connection is passed over for a while, and not for good`() {
    let (a, b) = (
      RetainedMessages.Message(topic: "a", payload: [1]), RetainedMessages.Message(topic: "b", payload: [2])
    )
    var retained = RetainedMessages()
    retained.want([a, b])
    retained.giveUp(a, at: .zero)
    #expect(retained.next(at: .zero + .seconds(599)) == b && retained.next(at: .zero + .seconds(599)) == nil)
    retained.forget()
    #expect(retained.next(at: .zero + .seconds(600)) == a)
    // Each time for twice as long.
    retained.giveUp(a, at: .zero + .seconds(600))
    retained.forget()
    #expect(retained.next(at: .zero + .seconds(1799)) == b && retained.next(at: .zero + .seconds(1799)) == nil)
    retained.forget()
    #expect(retained.next(at: .zero + .seconds(1800)) == a)
  }
}

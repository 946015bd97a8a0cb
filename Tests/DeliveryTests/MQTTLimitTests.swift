import Alerts
import Delivery
import Platform
import TestSupport
import Testing

/// Brokers that take less than nightjar sends: Debian's mosquitto, and others that it cannot stand in for.
@Suite struct MQTTLimitTests {
  private static func url(_ port: Int) -> String { "mqtt://127.0.0.1:\(port)" }

  @Test func `an event that the broker refuses is counted and told, and not as sent`() throws {
    let directory = try TemporaryDirectory()
    let states = ["noise", "crying", "problem", "level"].map { "nursery/\($0)" }
    let names = states + ["status", "problem", "temperature"]
    // The last one is the test's own; see MQTTBroker.retained.
    let rules =
      ["topic readwrite homeassistant/#", "topic readwrite end/#"] + names.map { "topic readwrite nightjar/box/\($0)" }
    let file = try directory.write((rules.joined(separator: "\n") + "\n").utf8, as: "rules")
    let broker = try MQTTBroker(["allow_anonymous true", "acl_file \(file)"], in: directory)
    let box = try MQTTSenderTests.Box(Self.url(broker.port))
    try #require(eventually { box.counts.isConnected }, "\(box.lines)")
    box.begin(.noise)
    #expect(eventually(within: 60) { box.sender?.position == 1 }, "\(box.lines)")
    #expect(eventually { box.counts[.mqtt].lost == [.refused: 1] }, "\(box.counts[.mqtt])")
    #expect(box.counts[.mqtt].sent == 0 && box.counts[.mqtt].failed == 1)
    let words = "mqtt 127.0.0.1:\(broker.port): an event is lost: the broker refuses it: not authorized"
    #expect(eventually { box.lines.contains(words) }, "\(box.lines)")
    // The same is told once, and the states come through all the same.
    box.begin(.crying)
    #expect(eventually(within: 60) { box.counts[.mqtt].lost == [.refused: 2] }, "\(box.counts[.mqtt])")
    #expect(try eventually(within: 60) { try broker.retained("nightjar/box/nursery/crying").values.first == "ON" })
    #expect(box.lines.filter { $0 != "mqtt 127.0.0.1:\(broker.port): connected" } == [words])
    #expect(box.stop())
  }

  @Test func `an event that is larger than the broker takes is counted and told, and the next one comes`() throws {
    let broker = try MQTTBroker(["allow_anonymous true", "max_packet_size 500"])
    let box = try MQTTSenderTests.Box(Self.url(broker.port), discovery: nil)
    try #require(eventually { box.counts.isConnected }, "\(box.lines)")
    box.begin(.noise, text: String(repeating: "a", count: 500))
    #expect(eventually(within: 60) { box.counts[.mqtt].lost == [.tooLarge: 1] }, "\(box.counts[.mqtt]) \(box.lines)")
    let name = "mqtt 127.0.0.1:\(broker.port)"
    #expect(
      eventually { box.lines.count { $0 == "\(name): an event is lost: it is larger than the broker takes" } == 1 },
      "\(box.lines)")
    #expect(box.sender?.position == 1 && box.counts[.mqtt].sent == 0)
    box.begin(.crying)
    #expect(eventually(within: 60) { box.counts[.mqtt].sent == 1 }, "\(box.counts[.mqtt]) \(box.lines)")
    #expect(eventually { box.lines.last == "\(name) takes events again" }, "\(box.lines)")
    #expect(box.counts[.mqtt].failed == 1 && box.counts.isConnected)
    #expect(box.stop())
  }

  @Test func `a connection is told before the events that come through by it`() throws {
    let server = try HostileBroker("late")
    let box = try MQTTSenderTests.Box(Self.url(server.port), discovery: nil)
    box.begin(.noise, text: String(repeating: "a", count: 500))
    box.begin(.crying)
    #expect(eventually(within: 60) { box.counts[.mqtt].sent == 1 }, "\(box.counts[.mqtt]) \(box.lines)")
    let name = "mqtt 127.0.0.1:\(server.port)"
    #expect(eventually { box.lines.last == "\(name) takes events again" }, "\(box.lines)")
    let lost = "\(name): an event is lost: it is larger than the broker takes"
    #expect(box.lines.prefix(2) == [lost, "\(name): connected"], "\(box.lines)")
    #expect(server.connections == 1 && server.count("large") == 0)
    #expect(box.stop())
  }

  @Test func `a broker that offers QoS 0 alone, and retains nothing, gets all by QoS 0`() throws {
    let broker = try MQTTBroker(["allow_anonymous true", "max_qos 0", "retain_available false"])
    let listener = try MQTTListener(broker)
    let box = try MQTTSenderTests.Box(Self.url(broker.port))
    try #require(eventually { box.counts.isConnected }, "\(box.lines)")
    #expect(eventually { listener.texts("nightjar/box/nursery/noise") == ["OFF"] }, "\(broker.log)")
    for _ in 0..<20 {
      box.begin(.noise)
      box.end(.noise)
    }
    #expect(eventually(within: 60) { box.counts[.mqtt].sent == 40 }, "\(box.counts[.mqtt]) \(box.lines)")
    #expect(eventually { listener.texts("nightjar/box/nursery/event").count == 40 })
    #expect(listener.messages.allSatisfy { $0.qos == 0 && !$0.isRetained })
    #expect(box.sender?.position == 40 && box.counts[.mqtt].failed == 0)
    #expect(box.stop())
    #expect(eventually { listener.texts("nightjar/box/status") == ["online", "offline"] })
    #expect(box.lines == ["mqtt 127.0.0.1:\(broker.port): connected"])
  }

  /// The codes of MQTT 5 section 3.4.2.1.
  @Test(arguments: [
    (0x80, false), (0x83, false), (0x91, false), (0x97, false), (0x87, true), (0x90, true), (0x99, true),
  ])
  func `an event that the broker does not take for now is sent again, and one that it never takes is lost`(
    code: Int, isFinal: Bool
  ) throws {
    let server = try HostileBroker("puback=\(code)")
    var times = MQTTSender.Times()
    times.refusalDelays = .milliseconds(100)...Duration.milliseconds(400)
    let box = try MQTTSenderTests.Box(Self.url(server.port), times: times)
    try #require(eventually { box.counts.isConnected }, "\(box.lines)")
    box.begin(.noise)
    let name = "mqtt 127.0.0.1:\(server.port)"
    if isFinal {
      #expect(eventually { box.counts[.mqtt].lost == [.refused: 1] }, "\(box.counts[.mqtt]) \(box.lines)")
      #expect(eventually { box.lines.contains { $0.hasPrefix("\(name): an event is lost: the broker refuses it: ") } })
    } else {
      #expect(eventually { box.counts[.mqtt].sent == 1 }, "\(box.counts[.mqtt]) \(box.lines)")
      let isTold = eventually {
        box.lines.contains {
          $0.hasPrefix("\(name): the broker refuses it: ") && $0.hasSuffix("; nightjar tries again")
        }
      }
      #expect(isTold && eventually { box.lines.last == "\(name) takes events again" }, "\(box.lines)")
    }
    #expect(server.count("event") == (isFinal ? 1 : 2) && box.counts[.mqtt].failed == 1)
    box.begin(.crying)
    #expect(eventually { box.counts[.mqtt].sent == (isFinal ? 1 : 2) }, "\(box.lines)")
    #expect(server.connections == 1)
    #expect(box.stop())
  }

  @Test func `what the broker has acknowledged before the connection is lost is not sent again`() throws {
    let server = try HostileBroker("parting")
    let box = try MQTTSenderTests.Box(Self.url(server.port))
    try #require(eventually { box.counts.isConnected }, "\(box.lines)")
    box.begin(.noise)
    #expect(eventually { server.connections == 2 }, "\(box.lines)")
    box.begin(.crying)
    #expect(eventually { box.counts[.mqtt].sent == 2 }, "\(box.lines)")
    #expect(box.sender?.position == 2 && server.count("event") == 2)
    #expect(box.stop())
  }

  @Test func `an event at which the broker ends each connection is lost, and the next one comes`() throws {
    let server = try HostileBroker("poison=XPOISONX")
    let box = try MQTTSenderTests.Box(Self.url(server.port))
    try #require(eventually { box.counts.isConnected }, "\(box.lines)")
    box.begin(.noise, text: "XPOISONX")
    box.begin(.crying)
    #expect(eventually(within: 60) { box.counts[.mqtt].sent == 1 }, "\(box.counts[.mqtt]) \(box.lines)")
    #expect(box.counts[.mqtt].lost == [.ended: 1] && box.sender?.position == 2)
    let words = "mqtt 127.0.0.1:\(server.port): an event is lost: the broker ends each connection at it"
    #expect(eventually { box.lines.contains(words) }, "\(box.lines)")
    #expect(server.count("poison") == 4)
    #expect(box.stop())
  }

  @Test func `another message at which the broker ends each connection is passed over`() throws {
    let server = try HostileBroker("poison=nursery_noise")
    let box = try MQTTSenderTests.Box(Self.url(server.port))
    box.begin(.noise)
    #expect(eventually(within: 60) { box.counts[.mqtt].sent == 1 }, "\(box.counts[.mqtt]) \(box.lines)")
    let topic = "homeassistant/binary_sensor/nightjar_box/nursery_noise/config"
    let words = "mqtt 127.0.0.1:\(server.port): a message of \(topic) is lost: the broker ends each connection at it"
    #expect(eventually { box.lines.contains(words) }, "\(box.lines)")
    #expect(box.counts[.mqtt].lost.isEmpty && server.count("poison") == 4)
    #expect(box.stop())
  }

  @Test(arguments: [("a", 1, 9), ("a/b", 119, 129), ("a/b", 120, 131), ("a", 16_377, 16_386), ("a", 16_378, 16_388)])
  func `the length of a packet is that of MQTT 5`(topic: String, count: Int, expected: Int) {
    let payload = [UInt8](repeating: 0, count: count)
    #expect(MosquittoClient.size(of: topic, payload) == expected)
  }
}

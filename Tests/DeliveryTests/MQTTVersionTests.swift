import Alerts
import Delivery
import Platform
import TestSupport
import Testing

/// Brokers of both versions of MQTT, and what they say by them.
@Suite struct MQTTVersionTests {
  @Test(arguments: ["slow", "closing", "old5"])
  func `a broker from before MQTT 5 is spoken to by MQTT 3.1.1, and the log says so`(behaviour: String) throws {
    let server = try HostileBroker(behaviour)
    let box = try MQTTSenderTests.Box("mqtt://127.0.0.1:\(server.port)")
    try #require(eventually { box.counts.isConnected }, "\(box.lines)")
    if behaviour != "closing" {
      let words =
        "mqtt 127.0.0.1:\(server.port): connected by MQTT 3.1.1, in which it limits no message of its other users"
      #expect(eventually { box.lines == [words] }, "\(box.lines)")
    }
    #expect(server.connections == 1)
    #expect(box.stop())
  }

  @Test func `a broker that is silent to MQTT 5 gets MQTT 3.1.1, also after a lost connection`() throws {
    let server = try HostileBroker("silent5")
    let box = try MQTTSenderTests.Box("mqtt://127.0.0.1:\(server.port)", times: .init())
    try #require(eventually { box.counts.isConnected }, "\(box.lines)")
    let name = "mqtt 127.0.0.1:\(server.port)"
    let words = "\(name): connected by MQTT 3.1.1, in which it limits no message of its other users"
    #expect(eventually { box.lines == [words] }, "\(box.lines)")
    box.begin(.noise)
    #expect(eventually(within: 60) { box.counts[.mqtt].sent == 1 }, "\(box.lines)")
    #expect(server.connections == 2 && server.count("five") == 1)
    // Said once. That of a connection which soon is lost is told once it has lasted.
    #expect(eventually(within: 60) { box.lines.last == "\(name): connected again" }, "\(box.lines)")
    #expect(box.lines.count == 3, "\(box.lines)")
    #expect(box.stop())
  }

  @Test func `a broker that ended one connection to MQTT 5 is spoken to by MQTT 5 again later`() throws {
    let server = try HostileBroker("hiccup")
    var times = MQTTSender.Times()
    times.versionDelays = .milliseconds(500)...Duration.seconds(1)
    let box = try MQTTSenderTests.Box("mqtt://127.0.0.1:\(server.port)", times: times)
    let name = "mqtt 127.0.0.1:\(server.port)"
    let words = [
      "\(name): connected by MQTT 3.1.1, in which it limits no message of its other users",
      "\(name): it speaks MQTT 5 now",
    ]
    #expect(eventually(within: 60) { box.lines == words }, "\(box.lines)")
    box.begin(.noise)
    #expect(eventually(within: 60) { box.counts[.mqtt].sent == 1 }, "\(box.lines)")
    #expect(server.count("five") == 2 && server.count("old") == 1 && box.counts[.mqtt].failed == 0)
    #expect(box.stop())
  }

  @Test func `a broker that took MQTT 5, and is replaced by one that does not, is reached`() throws {
    let server = try HostileBroker("replaced")
    let box = try MQTTSenderTests.Box("mqtt://127.0.0.1:\(server.port)")
    try #require(eventually { box.counts.isConnected }, "\(box.lines)")
    box.begin(.noise)
    #expect(eventually(within: 60) { box.counts[.mqtt].sent == 1 }, "\(box.lines)")
    #expect(server.count("old") == 1)
    #expect(box.stop())
  }

  @Test func `by MQTT 3.1.1, a huge message of others does not reach memory, and events go out`() throws {
    let server = try HostileBroker("huge")
    _ = try MQTTSenderTests.peak()
    let before = try MQTTSenderTests.peak()
    let box = try MQTTSenderTests.Box("mqtt://127.0.0.1:\(server.port)")
    box.begin(.noise)
    #expect(eventually(within: 60) { box.counts[.mqtt].sent == 1 }, "\(box.lines)")
    let growth = try MQTTSenderTests.peak() - before
    print("memory for a message of 50 MB by MQTT 3.1.1: \(growth >> 20) MiB")
    #expect(growth < 20 << 20)
    let words = "mqtt 127.0.0.1:\(server.port): messages of more than 1 MiB come from it; nightjar tries again"
    #expect(box.lines.first == words, "\(box.lines)")
    // It asks for messages of others no more.
    #expect(server.connections == 2 && server.count("subscribed") == 1)
    #expect(box.stop())
  }

  @Test func `a broker that says by MQTT 5 that another client has the name is told at once`() throws {
    let server = try HostileBroker("taken5")
    let box = try MQTTSenderTests.Box("mqtt://127.0.0.1:\(server.port)")
    try #require(eventually { box.counts.isConnected }, "\(box.lines)")
    box.begin(.noise)
    let words =
      "mqtt 127.0.0.1:\(server.port): another client has its name there; give each program a --mqtt-prefix of its own; "
      + "nightjar tries again"
    #expect(eventually { box.lines.contains(words) }, "\(box.lines)")
    #expect(eventually(within: 60) { box.counts[.mqtt].sent == 1 }, "\(box.lines)")
    #expect(server.connections == 2)
    #expect(box.stop())
  }
}

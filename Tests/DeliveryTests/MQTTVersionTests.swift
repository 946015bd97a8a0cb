import Alerts
import Platform
import TestSupport
import Testing

@testable import Delivery

/// Brokers of both versions of MQTT, and what they say by them.
@Suite struct MQTTVersionTests {
  @Test(arguments: ["slow", "closing", "old5"])
  func `A broker from before MQTT 5 is spoken to by MQTT 3.1.1, and the log says so`(behaviour: String) throws {
    let server = try HostileBroker(behaviour)
    let box = try MQTTSenderTests.Box("mqtt://127.0.0.1:\(server.port)")
    try #require(eventually { box.counts.isConnected }, "\(box.lines)")
    if behaviour != "closing" {
      let words =
        "mqtt 127.0.0.1:\(server.port): connected by MQTT 3.1.1, in which nothing limits what its other users send"
      #expect(eventually { box.lines == [words] }, "\(box.lines)")
    }
    #expect(server.connections == 1)
    #expect(box.stop())
  }

  @Test func `A broker that is silent to MQTT 5 gets MQTT 3.1.1, also after a lost connection`() throws {
    let server = try HostileBroker("silent5")
    let box = try MQTTSenderTests.Box("mqtt://127.0.0.1:\(server.port)")
    try #require(eventually { box.counts.isConnected }, "\(box.lines)")
    let name = "mqtt 127.0.0.1:\(server.port)"
    let words = "\(name): connected by MQTT 3.1.1, in which nothing limits what its other users send"
    #expect(eventually { box.lines == [words] }, "\(box.lines)")
    box.begin(.noise)
    #expect(eventually(within: 60) { box.counts[.mqtt].sent == 1 }, "\(box.lines)")
    #expect(server.connections == 2 && server.count("five") == 1)
    // Said once. That of a connection which soon is lost is told once it has lasted.
    #expect(eventually(within: 60) { box.lines.last == "\(name): connected again" }, "\(box.lines)")
    #expect(box.lines.count == 3, "\(box.lines)")
    #expect(box.stop())
  }

  @Test func `A broker that says by MQTT 5 that another client has the name is told at once`() throws {
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

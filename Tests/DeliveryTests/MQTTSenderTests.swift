import Alerts
import Foundation
import Platform
import TestSupport
import Testing

@testable import Delivery

/// The connection to a broker that is not ours: Debian's mosquitto, with its own clients.
@Suite struct MQTTSenderTests {
  private static let camera = MQTTCamera(name: "nursery", detected: [.noise, .crying], hasSound: true)
  /// JPEG's first and last markers.
  private static let picture: [UInt8] =
    [0xFF, 0xD8] + (0..<200_000).map { UInt8(truncatingIfNeeded: $0 * 7) } + [0xFF, 0xD9]

  /// A sender, and what it is about.
  private final class Box {
    let history = AlertHistory()
    let feed = LiveFeed()
    let reports = EventQueue<DeliveryReport>(limit: 1000)
    let counts = DeliveryCounts()
    let configuration: MQTTConfiguration
    private(set) var sender: MQTTSender?
    private var told: [String] = []

    init(
      _ url: String, login: MQTTLogin? = nil, authorities: String? = nil, prefix: String = "nightjar/box",
      discovery: String? = "homeassistant", cameras: [MQTTCamera] = [MQTTSenderTests.camera],
      times: MQTTSender.Times = .init()
    ) throws {
      configuration = MQTTConfiguration(
        try #require(MQTTTarget(url)), login: login, authorities: authorities, prefix: prefix, discovery: discovery,
        version: "1.2")
      feed.set(cameras)
      sender = try MQTTSender(configuration, history, feed, reports, counts: counts, times: times)
    }

    deinit { sender?.stop() }

    /// The lines of the log so far.
    var lines: [String] {
      told += reports.take().map(\.text)
      return told
    }

    func begin(_ kind: AlertKind, _ camera: String = "nursery") {
      let condition = AlertCondition(kind, camera: camera, since: .now(), text: "\(kind)")
      history.record([.begin(condition, suppressed: 0)], isQuiet: false)
    }

    func end(_ kind: AlertKind, _ camera: String = "nursery") {
      history.record([.end(AlertSubject(kind: kind, camera: camera), since: .now())], isQuiet: false)
    }

    func stop() -> Bool {
      sender?.stop()
      return eventually { sender?.hasEnded == true }
    }
  }

  private static func url(_ broker: MQTTBroker) -> String { "mqtt://127.0.0.1:\(broker.port)" }

  @Test func `States are retained, an event comes once and in order, and the end is told`() throws {
    let broker = try MQTTBroker()
    let listener = try MQTTListener(broker)
    let box = try Box(Self.url(broker))
    try #require(eventually { box.counts.isConnected }, "\(box.lines)")
    try #require(eventually { listener.texts("nightjar/box/nursery/noise") == ["OFF"] }, "\(broker.log)")
    let begun = Date().timeIntervalSince1970
    box.begin(.noise)
    try #require(eventually { listener.texts("nightjar/box/nursery/noise") == ["OFF", "ON"] })
    try #require(eventually { listener.texts("nightjar/box/nursery/event").count == 1 })
    box.end(.noise)
    try #require(eventually { listener.texts("nightjar/box/nursery/event").count == 2 })
    #expect(eventually { listener.texts("nightjar/box/nursery/noise") == ["OFF", "ON", "OFF"] })
    let events = try listener.texts("nightjar/box/nursery/event").map {
      try JSONDecoder().decode(Alert.self, from: Data($0.utf8))
    }
    #expect(events == box.history.after(0).alerts)
    // The goal is 3 s, of which the broker has none.
    let arrived = try #require(listener.messages.first { $0.topic.hasSuffix("/event") })
    print("from the event to the broker's client: \(Int((arrived.time - begun) * 1000)) ms")
    #expect(arrived.time - begun < 30 && arrived.qos == 1 && !arrived.isRetained)
    #expect(eventually { box.counts[.mqtt] == DeliveryCounts.Totals(sent: 2, failed: 0, dropped: 0) })
    #expect(box.sender?.position == 2)
    // A client that comes later gets the states, and no events.
    box.begin(.crying)
    #expect(eventually { listener.texts("nightjar/box/nursery/crying").last == "ON" })
    let retained = try broker.retained("nightjar/#")
    #expect(
      retained == [
        "nightjar/box/status": "online", "nightjar/box/problem": "OFF", "nightjar/box/nursery/noise": "OFF",
        "nightjar/box/nursery/crying": "ON", "nightjar/box/nursery/problem": "OFF",
        "nightjar/box/nursery/level": "None", "nightjar/box/temperature": "None",
      ])
    #expect(box.stop())
    #expect(eventually { listener.texts("nightjar/box/status") == ["online", "offline"] })
    #expect(box.lines == ["mqtt 127.0.0.1:\(broker.port): connected"])
  }

  @Test func `Pictures arrive byte for byte, and again after Home Assistant's start`() throws {
    let broker = try MQTTBroker()
    let listener = try MQTTListener(broker)
    let box = try Box(Self.url(broker))
    let topic = "nightjar/box/nursery/snapshot"
    func pictures() -> [MQTTListener.Message] { listener.messages.filter { $0.topic == topic } }
    try #require(eventually { listener.texts("nightjar/box/status") == ["online"] }, "\(box.lines)")
    box.feed.show(Self.picture, of: "nursery")
    try #require(eventually { pictures().count == 1 })
    #expect(Array(pictures()[0].payload) == Self.picture && !pictures()[0].isRetained)
    // Too large, and of no camera any more.
    box.feed.show([UInt8](repeating: 0, count: LiveFeed.pictureLimit + 1), of: "nursery")
    let entity = "homeassistant/binary_sensor/nightjar_box/nursery_noise/config"
    #expect(listener.texts(entity).count == 1)
    try broker.publish("homeassistant/status", "offline")
    try broker.publish("homeassistant/status", "online")
    #expect(eventually { pictures().count == 2 && listener.texts(entity).count == 2 })
    // Whoever says so again and again is answered each five seconds.
    try broker.publish("homeassistant/status", "online", options: ["--repeat", "20"])
    #expect(eventually { listener.texts(entity).count == 3 })
    #expect(listener.texts(entity).count <= 4)
    #expect(box.stop())
  }

  @Test func `What is gone from the configuration is removed, also what an earlier run has left`() throws {
    let broker = try MQTTBroker()
    let left = try #require(HomeAssistantDiscovery(Box("mqtt://127.0.0.1:1").configuration))
      .message(.noise, of: "attic")
    try broker.publish(left.topic, String(decoding: left.payload, as: UTF8.self), isRetained: true)
    try broker.publish("nightjar/box/attic/noise", "ON", isRetained: true)
    try broker.publish("homeassistant/sensor/other_box/attic_level/config", "{}", isRetained: true)
    // Of somebody who wants nightjar to publish what no broker takes.
    for (number, camera) in ["+", "#", #"a\u0001"#, #"a\u0000"#, ""].enumerated() {
      let message = "{\"state_topic\":\"nightjar/box/\(camera)/noise\"}"
      try broker.publish("homeassistant/sensor/nightjar_box/x\(number)/config", message, isRetained: true)
    }
    let door = MQTTCamera(name: "door", detected: [.movement], hasSound: false)
    let box = try Box(Self.url(broker), cameras: [Self.camera, door])
    let listener = try MQTTListener(broker)
    func entities() throws -> [String] { try broker.retained("homeassistant/#").keys.sorted() }
    let ours = "homeassistant/binary_sensor/nightjar_box"
    try #require(
      try eventually {
        let entities = try entities()
        return entities.contains("\(ours)/door_movement/config") && !entities.contains(left.topic)
          && !entities.contains { $0.contains("/x") }
      }, "\(box.lines)")
    #expect(try eventually { try broker.retained("nightjar/box/attic/#").isEmpty })
    #expect(try entities().contains("homeassistant/sensor/other_box/attic_level/config"))
    box.feed.set([Self.camera])
    #expect(eventually { listener.messages.last { $0.topic == "nightjar/box/door/movement" }?.payload.isEmpty == true })
    #expect(try eventually { try !entities().contains { $0.contains("door") } })
    #expect(try entities().contains("\(ours)/nursery_noise/config"))
    #expect(try broker.retained("nightjar/box/door/#").isEmpty)
    #expect(box.stop())
  }

  @Test func `After a broker's restart, of which it has forgotten everything, all is back`() throws {
    let broker = try MQTTBroker()
    let box = try Box(Self.url(broker))
    try #require(eventually { box.counts.isConnected })
    box.begin(.noise)
    try #require(eventually { box.counts[.mqtt].sent == 1 })
    try broker.stop(SIGKILL)
    #expect(eventually { !box.counts.isConnected })
    box.begin(.crying)
    try broker.start()
    let begun = ContinuousClock.now
    #expect(eventually(within: 60) { box.counts[.mqtt].sent == 2 }, "\(box.lines)")
    let delay = ContinuousClock.now - begun
    print("from the broker's restart until all is back: \(delay)")
    // The goal is 5 s.
    #expect(delay < .seconds(50))
    let retained = try broker.retained()
    #expect(retained["nightjar/box/nursery/noise"] == "ON" && retained["nightjar/box/nursery/crying"] == "ON")
    #expect(retained["nightjar/box/status"] == "online")
    #expect(retained.keys.count { $0.hasPrefix("homeassistant/") } == 5)
    // That of a connection which soon is lost is told once it has lasted.
    #expect(eventually { box.lines.count == 3 } && box.lines[1].hasSuffix("nightjar tries again"), "\(box.lines)")
    #expect(box.lines.last == "mqtt 127.0.0.1:\(broker.port): connected again")
    #expect(box.stop())
  }

  @Test func `While the broker is away the newest events wait, and the log says how many were dropped`() throws {
    let broker = try MQTTBroker()
    try broker.stop()
    let box = try Box(Self.url(broker))
    try #require(eventually { box.lines.count == 1 })
    #expect(box.lines[0].contains(": Connection refused; nightjar tries again"), "\(box.lines)")
    for _ in 0..<75 {
      box.begin(.noise)
      box.end(.noise)
    }
    let words = "mqtt 127.0.0.1:\(broker.port): more than 100 events wait, so the oldest are dropped"
    #expect(eventually { box.lines.last == words }, "\(box.lines)")
    for _ in 0..<10 { box.begin(.crying) }
    try broker.start()
    let listener = try MQTTListener(broker)
    #expect(eventually(within: 60) { box.counts[.mqtt].sent == 100 }, "\(box.counts[.mqtt]) \(box.lines)")
    #expect(box.counts[.mqtt].dropped == 60 && box.sender?.position == 160)
    #expect(box.lines.last?.hasSuffix("connected, without the 60 events that were dropped") == true, "\(box.lines)")
    // The last ones came while somebody listened, and in order.
    let ids = try listener.texts("nightjar/box/nursery/event").map {
      try JSONDecoder().decode(Alert.self, from: Data($0.utf8)).id
    }
    #expect(ids == ids.sorted())
    #expect(box.stop())
  }

  @Test func `A broker that takes connections and answers nothing costs its time, and the log says so`() throws {
    let server = try HostileBroker("silent")
    var times = MQTTSender.Times()
    times.answer = .seconds(1)
    let box = try Box("mqtt://127.0.0.1:\(server.port)", times: times)
    #expect(eventually { server.connections >= 2 }, "\(box.lines)")
    let words = "mqtt 127.0.0.1:\(server.port): it takes the connection and does not answer; nightjar tries again"
    #expect(box.lines == [words])
    #expect(box.counts[.mqtt].failed >= 1)
    #expect(box.stop())
    // By TLS, of which it says nothing either.
    let secure = try Box("mqtts://127.0.0.1:\(server.port)", times: times)
    #expect(eventually { secure.lines.first?.contains("it takes the connection and does not answer") == true })
    #expect(secure.stop())
  }

  @Test(arguments: ["mute", "deaf"])
  func `A broker that falls silent after the connection is left`(behaviour: String) throws {
    let server = try HostileBroker(behaviour)
    let box = try Box("mqtt://127.0.0.1:\(server.port)")
    try #require(eventually { box.counts.isConnected })
    box.begin(.noise)
    #expect(eventually(within: 100) { server.connections >= 2 })
    #expect(box.lines.first?.contains("it takes messages and acknowledges none") == true, "\(box.lines)")
    #expect(box.counts[.mqtt].sent == 0)
    #expect(box.stop())
  }

  @Test func `A broker that stands still is left, and its own connection goes on afterwards`() throws {
    let broker = try MQTTBroker()
    let box = try Box(Self.url(broker))
    try #require(eventually { box.counts.isConnected })
    broker.freeze(true)
    #expect(eventually(within: 100) { !box.counts.isConnected })
    broker.freeze(false)
    #expect(eventually(within: 60) { box.counts.isConnected }, "\(box.lines)")
    // The will of the connection that was given up has no effect for long.
    #expect(try eventually(within: 60) { try broker.retained("nightjar/box/status").values.first == "online" })
    #expect(box.stop())
  }

  @Test(arguments: [("garbage", "mqtt"), ("flood", "mqtt"), ("garbage", "mqtts")])
  func `A server that talks nonsense, or without end, is left`(behaviour: String, scheme: String) throws {
    let server = try HostileBroker(behaviour)
    let box = try Box("\(scheme)://127.0.0.1:\(server.port)")
    if behaviour == "flood" {
      // A message that nobody wants has no effect, whatever its size. The log tells of the first end alone.
      #expect(eventually(within: 100) { server.connections >= 3 }, "\(box.lines)")
      #expect(box.lines.count == 1, "\(box.lines)")
    } else {
      #expect(eventually { box.lines.contains { $0.hasSuffix("nightjar tries again") } }, "\(box.lines)")
      #expect(box.counts[.mqtt].sent == 0 && !box.counts.isConnected)
    }
    #expect(box.stop())
  }

  @Test func `A will that comes late does not stay`() throws {
    let broker = try MQTTBroker()
    let listener = try MQTTListener(broker, "nightjar/box/status")
    let box = try Box(Self.url(broker))
    try #require(eventually { listener.texts("nightjar/box/status") == ["online"] })
    try broker.publish("nightjar/box/status", "offline", isRetained: true)
    #expect(eventually { listener.texts("nightjar/box/status") == ["online", "offline", "online"] })
    #expect(box.stop())
  }

  @Test func `One sender follows another without a word too many, from its last event on`() throws {
    let broker = try MQTTBroker()
    let listener = try MQTTListener(broker)
    let box = try Box(Self.url(broker))
    try #require(eventually { box.counts.isConnected })
    box.begin(.noise)
    try #require(eventually { box.sender?.position == 1 })
    let next = try MQTTSender(
      box.configuration, box.history, box.feed, box.reports, counts: box.counts, after: box.sender?.position,
      following: box.sender)
    defer { next.stop() }
    box.sender?.stop()
    box.begin(.crying)
    #expect(eventually { next.position == 2 }, "\(box.lines)")
    #expect(eventually { listener.texts("nightjar/box/status") == ["online", "offline", "online"] })
    #expect(listener.texts("nightjar/box/nursery/event").count == 2)
  }
}

/// A broker of Servers/brokers.py.
final class HostileBroker {
  let port: Int
  private let directory: TemporaryDirectory
  private let process: Subprocess

  init(_ behaviour: String) throws {
    directory = try TemporaryDirectory()
    port = try TCPPort.free()
    let script = packageRoot.appendingPathComponent("Tests/DeliveryTests/Servers/brokers.py").path
    process = try Subprocess(["python3", script, "\(port)", behaviour], in: directory)
    let process = process
    try #require(eventually(within: 60) { process.outputSoFar.contains("ready") }, "\(process.errorSoFar)")
  }

  deinit { process.send(SIGKILL) }

  /// How many connections it has taken.
  var connections: Int { process.outputSoFar.split(separator: "\n").count { $0 == "connection" } }
}

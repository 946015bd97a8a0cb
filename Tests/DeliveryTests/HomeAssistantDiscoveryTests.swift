import Alerts
import Delivery
import Foundation
import Platform
import TestSupport
import Testing

/// Home Assistant's discovery, judged by a JSON Schema of Home Assistant's own rules
/// (HomeAssistant/discovery.schema.json says where each is from) and by Debian's validator.
@Suite struct HomeAssistantDiscoveryTests {
  private static let cameras = [
    MQTTCamera(name: "nursery", detected: [.noise, .crying, .movement], hasSound: true),
    MQTTCamera(name: "back.door", detected: [.movement], hasSound: false),
    MQTTCamera(name: "garage", detected: [], hasSound: true),
  ]
  private static let start = Instant(nanoseconds: 1_000_000_000_000)

  private static func configuration(
    prefix: String = "nightjar/box", discovery: String? = "homeassistant"
  ) throws -> MQTTConfiguration {
    let target = try #require(MQTTTarget("mqtt://localhost"))
    return MQTTConfiguration(target, prefix: prefix, discovery: discovery, version: "1.2")
  }

  private static func reading(_ cameras: [MQTTCamera] = cameras) -> LiveFeed.Reading {
    LiveFeed.Reading(cameras: cameras, levels: ["nursery": -43.24, "garage": -0.06], temperature: 45.6)
  }

  private static func messages(
    _ reading: LiveFeed.Reading = reading(), open: [AlertSubject] = [], prefix: String = "nightjar/box",
    discovery: String? = "homeassistant"
  ) throws -> [String: String] {
    var state = MQTTState(try configuration(prefix: prefix, discovery: discovery))
    let messages = state.messages(reading, open: open, at: start)
    #expect(Set(messages.map(\.topic)).count == messages.count)
    return Dictionary(uniqueKeysWithValues: messages.map { ($0.topic, String(decoding: $0.payload, as: UTF8.self)) })
  }

  /// Returns the faults that Debian's validator finds in messages, a line each.
  private static func faults(_ messages: [(topic: String, payload: [String: Any])]) throws -> [Substring] {
    let directory = try TemporaryDirectory()
    let list = messages.map { ["topic": $0.topic, "payload": $0.payload] as [String: Any] }
    let file = try directory.write(try JSONSerialization.data(withJSONObject: list), as: "messages.json")
    let script = packageRoot.appendingPathComponent("Tests/DeliveryTests/HomeAssistant/validate.py").path
    // Of Debian, whose Python has its packages.
    let result = try Subprocess.run(["/usr/bin/python3", script, file], in: directory)
    try #require(result.status == 0, "\(result.error)")
    return result.outputText.split(separator: "\n")
  }

  private static func discovered(_ messages: [String: String]) throws -> [(topic: String, payload: [String: Any])] {
    try messages.filter { $0.key.hasPrefix("homeassistant/") }.sorted { $0.key < $1.key }.map { topic, text in
      (topic, try #require(try JSONSerialization.jsonObject(with: Data(text.utf8)) as? [String: Any]))
    }
  }

  @Test(arguments: ["nightjar/box", "home/upper_floor/box.lan", "a"])
  func `every message is one that Home Assistant takes, and its topics are those of the states`(prefix: String) throws {
    let messages = try Self.messages(prefix: prefix)
    let discovered = try Self.discovered(messages)
    #expect(discovered.count == 13)
    #expect(try Self.faults(discovered).isEmpty)
    #expect(Set(discovered.compactMap { $0.payload["unique_id"] as? String }).count == discovered.count)
    for (topic, payload) in discovered {
      #expect(payload["availability_topic"] as? String == "\(prefix)/status")
      if let state = payload["state_topic"] as? String {
        #expect(messages[state] != nil, "\(topic): \(state)")
      } else {
        #expect((payload["topic"] as? String)?.hasSuffix("/snapshot") == true)
      }
    }
    // The devices: one for each camera, below that of the host.
    let devices = discovered.compactMap { $0.payload["device"] as? [String: Any] }
    let identifiers = Set(devices.compactMap { ($0["identifiers"] as? [String])?.first })
    #expect(identifiers.count == 4)
    #expect(devices.allSatisfy { ($0["via_device"] as? String).map(identifiers.contains) ?? true })
  }

  @Test func `a camera whose own H.264 is passed on has no picture in Home Assistant`() throws {
    func snapshots(_ hasPictures: Bool) throws -> Int {
      let camera = MQTTCamera(name: "nursery", detected: [.noise], hasSound: true, hasPictures: hasPictures)
      return try Self.messages(Self.reading([camera])).keys.count { $0.contains("_snapshot/config") }
    }
    #expect(try snapshots(true) == 1)
    #expect(try snapshots(false) == 0)
  }

  @Test func `a prefix and a camera have other identities than the prefix of both together`() throws {
    func identities(_ prefix: String, _ camera: String) throws -> Set<String> {
      let cameras = [MQTTCamera(name: camera, detected: [.noise], hasSound: true)]
      let discovered = try Self.discovered(try Self.messages(Self.reading(cameras), prefix: prefix))
      let devices = discovered.compactMap { $0.payload["device"] as? [String: Any] }
      let own = discovered.compactMap { $0.payload["unique_id"] as? String }
      #expect(Set(own).count == discovered.count)
      return Set(own + devices.compactMap { ($0["identifiers"] as? [String])?.first } + discovered.map(\.topic))
    }
    let programs = [
      ("a/b", "c"), ("a", "b_c"), ("a/b/c", "d"), ("a/b", "c_d"), ("a", "b"), ("a_b", "c"), ("a", "b/c"),
      ("a/b", "noise"),
    ]
    let all = try programs.map { try identities($0, $1) }
    for (index, one) in all.enumerated() {
      for (other, name) in zip(all, programs).dropFirst(index + 1) where programs[index].0 != name.0 {
        #expect(one.isDisjoint(with: other), "\(programs[index]) and \(name): \(one.intersection(other))")
      }
    }
  }

  @Test func `messages that Home Assistant does not take are found`() throws {
    let good = try Self.discovered(try Self.messages())
    func fault(_ topic: String, _ change: (inout [String: Any]) -> Void) throws -> Bool {
      var message = try #require(good.first { $0.topic == topic })
      change(&message.payload)
      return try !Self.faults([message]).isEmpty
    }
    let noise = "homeassistant/binary_sensor/nightjar_box/nursery_noise/config"
    let temperature = "homeassistant/sensor/nightjar_box/temperature/config"
    let snapshot = "homeassistant/camera/nightjar_box/nursery_snapshot/config"
    #expect(try !fault(noise) { _ in })
    #expect(try fault(noise) { $0["state_topic"] = nil })
    #expect(try fault(noise) { $0["state_topic"] = "a/#" })
    #expect(try fault(noise) { $0["device_class"] = "noise" })
    #expect(try fault(noise) { $0["unique_id"] = nil })
    #expect(try fault(noise) { $0["state_topics"] = "a" })
    #expect(try fault(noise) { $0["device"] = ["name": "nursery"] })
    #expect(try fault(temperature) { $0["unit_of_measurement"] = "C" })
    #expect(try fault(snapshot) { ($0["state_topic"], $0["topic"]) = ("a", nil) })
    let payload = try #require(good.first).payload
    for topic in [
      "homeassistant/switch/a/b/config", "homeassistant/sensor/a.b/c/config", "homeassistant/sensor/a/config",
    ] {
      #expect(try !Self.faults([(topic, payload)]).isEmpty, "\(topic)")
    }
  }

  @Test func `states are those of open alerts, and what nobody looks for has none`() throws {
    let open = [
      AlertSubject(kind: .noise, camera: "nursery"), AlertSubject(kind: .cameraLost, camera: "garage"),
      AlertSubject(kind: .tooHot, camera: nil), AlertSubject(kind: .movement, camera: "gone"),
    ]
    let messages = try Self.messages(open: open)
    let states = messages.filter { $0.key.hasPrefix("nightjar/box/") }
    #expect(
      states == [
        "nightjar/box/status": "online", "nightjar/box/problem": "ON", "nightjar/box/temperature": "45.6",
        "nightjar/box/nursery/noise": "ON", "nightjar/box/nursery/crying": "OFF",
        "nightjar/box/nursery/movement": "OFF",
        "nightjar/box/nursery/problem": "OFF", "nightjar/box/nursery/level": "-43.2",
        "nightjar/box/back.door/movement": "OFF", "nightjar/box/back.door/problem": "OFF",
        "nightjar/box/garage/problem": "ON", "nightjar/box/garage/level": "-0.1",
      ])
    #expect(try Self.messages(open: open, discovery: nil) == states)
  }

  @Test func `figures change each ten seconds, one that is gone is unknown, and one that never was has no entity`()
    throws
  {
    var state = MQTTState(try Self.configuration())
    func text(_ topic: String, _ reading: LiveFeed.Reading, after seconds: Int64) -> String? {
      let messages = state.messages(reading, open: [], at: Self.start + .seconds(seconds))
      return messages.first { $0.topic == topic }.map { String(decoding: $0.payload, as: UTF8.self) }
    }
    let level = "nightjar/box/nursery/level"
    let entity = "homeassistant/sensor/nightjar_box/nursery_level/config"
    let silent = LiveFeed.Reading(cameras: Self.cameras)
    // Not what an earlier run has left.
    #expect(text(level, silent, after: 0) == "None" && text(entity, silent, after: 1) == nil)
    #expect(text("nightjar/box/temperature", silent, after: 2) == "None")
    #expect(text(level, Self.reading(), after: 9) == "None")
    #expect(text(level, Self.reading(), after: 10) == "-43.2" && text(entity, Self.reading(), after: 10) != nil)
    var louder = Self.reading()
    louder.levels["nursery"] = -12
    #expect(text(level, louder, after: 19) == "-43.2")
    #expect(text(level, louder, after: 20) == "-12.0")
    #expect(text(level, silent, after: 30) == "None" && text(entity, silent, after: 30) != nil)
    #expect(text("nightjar/box/temperature", silent, after: 30) == "None")
    louder.levels["nursery"] = -.infinity
    #expect(text(level, louder, after: 40) == "-1000.0")
    // A camera that is gone and comes again begins anew.
    #expect(text(level, LiveFeed.Reading(), after: 41) == nil && text(level, silent, after: 42) == "None")
    #expect(text(entity, silent, after: 43) == nil)
  }

  @Test func `of an earlier run, entities of cameras and detectors that are gone are removed, and nothing else`() throws
  {
    var state = MQTTState(try Self.configuration())
    _ = state.messages(LiveFeed.Reading(cameras: Self.cameras), open: [], at: Self.start)
    let discovery = try #require(state.discovery)
    let attic = discovery.message(.noise, of: "attic.2")
    #expect(
      state.leftBehind(topic: attic.topic, payload: attic.payload) == [attic.topic, "nightjar/box/attic.2/noise"])
    let noise = discovery.message(.noise, of: "back.door")
    #expect(state.leftBehind(topic: noise.topic, payload: noise.payload).count == 2)
    // A level that is not known yet, and all that there is.
    for (entity, camera) in [
      (HomeAssistantDiscovery.Entity.level, "nursery"), (.noise, "nursery"), (.snapshot, "back.door"),
    ] {
      let message = discovery.message(entity, of: camera)
      #expect(state.leftBehind(topic: message.topic, payload: message.payload).isEmpty)
    }
    let temperature = discovery.message(.temperature, of: nil)
    #expect(state.leftBehind(topic: temperature.topic, payload: temperature.payload).isEmpty)
    // Whoever else may write there cannot have other topics removed.
    for text in [
      #"{"state_topic": "zigbee/lamp/state"}"#, #"{"state_topic": "nightjar/box/status"}"#, "{", "[]",
      #"{"state_topic": "nightjar/box/nursery/noise"}"#, #"{"state_topic": "nightjar/box/a/b/noise"}"#,
    ] {
      #expect(state.leftBehind(topic: attic.topic, payload: Array(text.utf8)) == [attic.topic], "\(text)")
    }
  }
}

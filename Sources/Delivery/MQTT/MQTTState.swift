package import Alerts
package import Platform

/// The retained messages that a broker ought to have: availability, states, figures, and Home Assistant's discovery. Holds no
/// clock and no socket: the caller says the time.
package struct MQTTState {
  /// The time from one look at the figures to the next: each change is a row in Home Assistant's database.
  static let interval = Duration.seconds(10)

  private let topics: MQTTTopics
  package let discovery: HomeAssistantDiscovery?
  private let sendsPictures: Bool

  private var cameras: [MQTTCamera] = []
  /// The cameras whose level was known at some time, and `true` for the temperature. What never was has no entity.
  private var heard: Set<String> = []
  private var isWarm = false
  private var levels: [String: String] = [:]
  private var temperature: String?
  private var nextFigures = Instant.zero
  /// Home Assistant's messages for the present cameras.
  private var announcements: [RetainedMessages.Message] = []

  /// Creates a state that has sent nothing.
  package init(_ configuration: MQTTConfiguration) {
    topics = configuration.topics
    discovery = HomeAssistantDiscovery(configuration)
    sendsPictures = configuration.sendsPictures
  }

  /// Returns the messages for the present state.
  ///
  /// - Parameter open: the alerts that have begun and not ended.
  package mutating func messages(_ reading: LiveFeed.Reading, open: [AlertSubject], at now: Instant)
    -> [RetainedMessages.Message]
  {
    var isChanged = cameras != reading.cameras
    cameras = reading.cameras
    if isChanged {
      heard.formIntersection(cameras.map(\.name))
      levels = levels.filter { heard.contains($0.key) }
    }
    if now >= nextFigures {
      nextFigures = now + Self.interval
      levels = reading.levels.mapValues { Self.decimal($0) }
      temperature = reading.temperature.map { Self.decimal($0) }
      let known = heard.union(cameras.lazy.filter { reading.levels[$0.name] != nil }.map(\.name))
      isChanged = isChanged || known != heard || (temperature != nil) != isWarm
      (heard, isWarm) = (known, isWarm || temperature != nil)
    }
    if isChanged { announcements = announced() }
    return [message(topics.status, "online")] + states(Set(open)) + announcements
  }

  private func message(_ topic: String, _ text: String) -> RetainedMessages.Message {
    RetainedMessages.Message(topic: topic, payload: Array(text.utf8))
  }

  private func states(_ open: Set<AlertSubject>) -> [RetainedMessages.Message] {
    var messages: [RetainedMessages.Message] = []
    func add(_ name: String, _ camera: String?, _ isOn: Bool) {
      messages.append(message(topics.state(name, of: camera), isOn ? "ON" : "OFF"))
    }
    let troubled = Set(open.lazy.filter { !Self.detected.contains($0.kind) }.map(\.camera))
    for camera in cameras {
      for kind in Self.detected where camera.detected.contains(kind) {
        add(kind.rawValue, camera.name, open.contains(AlertSubject(kind: kind, camera: camera.name)))
      }
      add("problem", camera.name, troubled.contains(camera.name))
      if camera.hasSound {
        // Home Assistant's word for an unknown state. What an earlier run has left is no level of now.
        messages.append(message(topics.state("level", of: camera.name), levels[camera.name] ?? "None"))
      }
    }
    add("problem", nil, troubled.contains(nil))
    messages.append(message(topics.state("temperature", of: nil), temperature ?? "None"))
    return messages
  }

  /// The kinds that detectors find in the room. All other alerts are problems.
  private static let detected: [AlertKind] = [.noise, .crying, .movement]

  private func announced() -> [RetainedMessages.Message] {
    guard let discovery else { return [] }
    let present = entities { $0.hasSound && heard.contains($0.name) } + (isWarm ? [(.temperature, nil)] : [])
    return present.map { entity, camera in
      let (topic, payload) = discovery.message(entity, of: camera)
      return RetainedMessages.Message(topic: topic, payload: payload)
    }
  }

  private func entities(hasLevel: (MQTTCamera) -> Bool) -> [(HomeAssistantDiscovery.Entity, camera: String?)] {
    var entities: [(HomeAssistantDiscovery.Entity, camera: String?)] = []
    for camera in cameras {
      for kind in Self.detected where camera.detected.contains(kind) {
        if let entity = HomeAssistantDiscovery.Entity(rawValue: kind.rawValue) {
          entities.append((entity, camera.name))
        }
      }
      entities.append((.problem, camera.name))
      if hasLevel(camera) { entities.append((.level, camera.name)) }
      if sendsPictures, camera.hasPictures, !camera.detected.isEmpty { entities.append((.snapshot, camera.name)) }
    }
    return entities + [(.problem, nil)]
  }

  /// Returns the topics to clear because of a retained message of the discovery that an earlier run has left; none if the
  /// entity is wanted, or will be once its figure is known.
  package func leftBehind(topic: String, payload: [UInt8]) -> [String] {
    guard let discovery, MQTTTopics.isTopic(topic) else { return [] }
    let possible = entities(hasLevel: \.hasSound) + [(.temperature, nil)]
    guard !possible.contains(where: { discovery.topic($0, of: $1) == topic }) else { return [] }
    let state = discovery.stateTopic(of: payload)
    let wanted = Set(possible.map { topics.state($0.rawValue, of: $1) })
    return [topic] + (state.map { wanted.contains($0) ? [] : [$0] } ?? [])
  }

  /// Returns a number with one digit behind the point.
  private static func decimal(_ number: Double) -> String {
    guard !number.isNaN else { return "None" }
    let tenths = Int((min(max(number, -1000), 1000) * 10).rounded())
    return "\(tenths < 0 ? "-" : "")\(abs(tenths) / 10).\(abs(tenths) % 10)"
  }
}

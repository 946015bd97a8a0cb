import Alerts
import FoundationEssentials

/// The messages by which Home Assistant finds the program's entities
/// (https://www.home-assistant.io/integrations/mqtt/#mqtt-discovery): one device for each camera, and one for the program.
package struct HomeAssistantDiscovery: Sendable {
  let topics: MQTTTopics
  /// The beginning of the topics.
  let prefix: String
  let version: String

  package init?(_ configuration: MQTTConfiguration) {
    guard let prefix = configuration.discovery else { return nil }
    (topics, self.prefix, version) = (configuration.topics, prefix, configuration.version)
  }

  /// An entity, by the topics of its state.
  package enum Entity: String, CaseIterable {
    case noise, crying, movement, problem, level, temperature, snapshot

    var platform: String {
      switch self {
      case .noise, .crying, .movement, .problem: "binary_sensor"
      case .level, .temperature: "sensor"
      case .snapshot: "camera"
      }
    }
  }

  /// The topic on which Home Assistant says `online` after its start.
  var birthTopic: String { "\(prefix)/status" }

  /// The filter of the topics of this program's entities.
  var filter: String { "\(prefix)/+/\(topics.node)/+/config" }

  /// Returns the topic of an entity.
  func topic(_ entity: Entity, of camera: String?) -> String {
    "\(prefix)/\(entity.platform)/\(topics.node)/\(object(entity, camera))/config"
  }

  private func object(_ entity: Entity, _ camera: String?) -> String {
    camera.map { "\(MQTTTopics.identity(of: $0))_\(entity.rawValue)" } ?? entity.rawValue
  }

  /// Returns the identity of a camera's device, or of the host's. Neither part has a point, so that no other prefix and camera have
  /// the same: `a/b` with the camera `c` is not the host of `a/b/c`.
  private func device(_ camera: String?) -> String {
    camera.map { "\(topics.node).\(MQTTTopics.identity(of: $0))" } ?? topics.node
  }

  /// The keys that all platforms have, and those of each.
  private struct Payload: Encodable {
    struct Device: Encodable {
      let identifiers: [String]
      let name: String
      let manufacturer = "nightjar"
      let model: String
      let swVersion: String
      var viaDevice: String?
    }

    struct Origin: Encodable {
      let name = "nightjar"
      let swVersion: String
    }

    let name: String
    let uniqueID: String
    let availabilityTopic: String
    let device: Device
    let origin: Origin
    var stateTopic: String?
    var topic: String?
    var deviceClass: String?
    var stateClass: String?
    var unitOfMeasurement: String?
    var entityCategory: String?
    var icon: String?
  }

  /// Returns the message of an entity: its topic, and its payload as JSON.
  package func message(_ entity: Entity, of camera: String?) -> (topic: String, payload: [UInt8]) {
    let node = topics.node
    let device =
      if let camera {
        Payload.Device(
          identifiers: [self.device(camera)], name: camera, model: "camera", swVersion: version,
          viaDevice: node)
      } else {
        Payload.Device(identifiers: [node], name: topics.prefix, model: "host", swVersion: version)
      }
    var payload = Payload(
      name: Self.name(of: entity), uniqueID: "\(self.device(camera)).\(entity.rawValue)",
      availabilityTopic: topics.status,
      device: device, origin: Payload.Origin(swVersion: version))
    let state = topics.state(entity.rawValue, of: camera)
    if entity == .snapshot { payload.topic = state } else { payload.stateTopic = state }
    switch entity {
    case .noise, .crying: payload.deviceClass = "sound"
    case .movement: payload.deviceClass = "motion"
    case .problem: (payload.deviceClass, payload.entityCategory) = ("problem", "diagnostic")
    case .level:
      // Decibels of full scale. Home Assistant's class of sound pressure is for those of the air.
      (payload.unitOfMeasurement, payload.stateClass, payload.icon) = ("dBFS", "measurement", "mdi:volume-high")
    case .temperature:
      (payload.deviceClass, payload.stateClass) = ("temperature", "measurement")
      (payload.unitOfMeasurement, payload.entityCategory) = ("°C", "diagnostic")
    case .snapshot: break
    }
    let encoder = JSONEncoder()
    encoder.keyEncodingStrategy = .convertToSnakeCase
    encoder.outputFormatting = [.sortedKeys, .withoutEscapingSlashes]
    // Texts only: there is nothing that JSON cannot have.
    return (topic(entity, of: camera), (try? encoder.encode(payload)).map { Array($0) } ?? [])
  }

  private static func name(of entity: Entity) -> String {
    switch entity {
    case .noise: "Noise"
    case .crying: "Crying"
    case .movement: "Movement"
    case .problem: "Problem"
    case .level: "Sound level"
    case .temperature: "Temperature"
    case .snapshot: "Snapshot"
    }
  }

  /// Returns the topic of the state that a retained discovery message of this program names, if it is one of a camera; nil
  /// for any other text. The text is the broker's.
  func stateTopic(of payload: [UInt8]) -> String? {
    struct Named: Decodable {
      var stateTopic: String?
      var topic: String?
    }
    let decoder = JSONDecoder()
    decoder.keyDecodingStrategy = .convertFromSnakeCase
    guard let named = try? decoder.decode(Named.self, from: Data(payload)),
      let topic = named.stateTopic ?? named.topic, let parts = topics.parts(of: topic),
      Entity(rawValue: parts.name) != nil
    else { return nil }
    return topic
  }
}

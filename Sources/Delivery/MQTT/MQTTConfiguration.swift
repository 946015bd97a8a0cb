package import Alerts
import TLS

/// The settings of the connection to an MQTT broker, with the secrets that it needs.
package struct MQTTConfiguration: Hashable, Sendable {
  let target: MQTTTarget
  let login: MQTTLogin?
  /// The file of the authorities that may vouch for the broker; nil for those of the system.
  let authorities: String?
  let topics: MQTTTopics
  /// The beginning of the topics of Home Assistant's discovery; nil for no discovery.
  let discovery: String?
  /// `true` sends pictures.
  let sendsPictures: Bool
  /// The version of the program, for Home Assistant.
  let version: String

  /// Creates settings.
  ///
  /// - Parameters:
  ///   - authorities: the file of the authorities that may vouch for the broker; nil for those of the system.
  ///   - prefix: the beginning of all topics but those of the discovery.
  ///   - discovery: the beginning of the topics of Home Assistant's discovery; nil for no discovery.
  ///   - version: the version of the program.
  package init(
    _ target: MQTTTarget, login: MQTTLogin? = nil, authorities: String? = nil, prefix: String,
    discovery: String? = "homeassistant", sendsPictures: Bool = true, version: String
  ) {
    (self.target, self.login, self.authorities) = (target, login, authorities)
    topics = MQTTTopics(prefix: prefix)
    (self.discovery, self.sendsPictures, self.version) = (discovery, sendsPictures, version)
  }

  /// The client identifier. It is the same after each start, so that the broker ends the former connection, and tells its
  /// last will, before this one begins. 23 letters and digits are what every broker takes (MQTT 3.1.1 section 3.1.3.1).
  package var clientIdentifier: String {
    let digest = HashFunction.sha256.digest(of: topics.prefix.utf8)
    return "nightjar" + MQTTTopics.hexadecimal(digest.prefix(7))
  }
}

/// A camera as MQTT shows it: what its configuration says, whether or not it streams.
package struct MQTTCamera: Hashable, Sendable {
  /// The camera's name.
  package let name: String
  /// The kinds of alerts that detectors look for: noise, crying and movement.
  package let detected: Set<AlertKind>
  /// `true` if the camera may have sound.
  package let hasSound: Bool
  /// `false` if there are no pictures, because its own H.264 is passed on.
  package let hasPictures: Bool

  /// Creates a camera.
  package init(name: String, detected: Set<AlertKind>, hasSound: Bool, hasPictures: Bool = true) {
    (self.name, self.detected, self.hasSound, self.hasPictures) = (name, detected, hasSound, hasPictures)
  }
}

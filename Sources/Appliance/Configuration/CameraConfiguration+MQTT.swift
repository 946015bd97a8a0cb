import Alerts
import Delivery

extension CameraConfiguration {
  /// The camera as MQTT shows it.
  var forMQTT: MQTTCamera {
    var detected: Set<AlertKind> = []
    if detection.noise != nil { detected.insert(.noise) }
    if detection.crying { detected.insert(.crying) }
    if detection.movement != nil { detected.insert(.movement) }
    return MQTTCamera(
      name: name, detected: detected, hasSound: sound.choice != .none, hasPictures: !passesThrough)
  }
}

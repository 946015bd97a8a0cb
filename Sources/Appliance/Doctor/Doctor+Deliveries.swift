import Delivery
import Platform

/// The examination of the ways out of an event.
extension Doctor {
  func examineDeliveries(_ configuration: ApplianceConfiguration) {
    let settings = configuration.events.outputs.mqtt
    guard let broker = settings.broker else { return }
    looking(at: "the MQTT broker")
    let place = "\(broker.isSecure ? "mqtts" : "mqtt")://\(broker.authority)"
    let connection: MQTTConfiguration?
    do throws(ApplianceFailure) {
      connection = try settings.configuration(configuration.events.takesPictures)
    } catch {
      let paths = [settings.login, settings.authorities].compactMap { $0.map(ShellWord.quoted) }
      return tell(
        Finding(.mqttFile, error.description, mends: [.command("ls -l \(paths.joined(separator: " "))"), again]))
    }
    guard let connection else { return }
    switch MQTTTrial.result(of: connection) {
    case .taken(let isLimited):
      tell(Finding(.mqtt, "\(place) takes the connection, by MQTT \(isLimited ? "5" : "3.1.1")"))
    case .refused(let reason):
      let login = settings.login.map { "the user and the password are in \($0)" } ?? "mqtt-login = FILE names a user"
      tell(Finding(.mqttRefused, "\(place): \(reason)", mends: [.advice(login)]))
    case .unreachable(let reason):
      tell(
        Finding(
          .mqttUnreachable, "\(place): \(reason)",
          mends: [.advice("is the broker running, and is its name, port and certificate the one of mqtt = \"…\"?")]))
    }
  }
}

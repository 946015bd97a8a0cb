import Platform
import TLS

/// A broker's answer to a connection that ends at once. The broker's other clients learn nothing of it.
package enum MQTTTrial: Hashable, Sendable {
  /// It takes the connection. `isLimited` if it speaks MQTT 5, and so sends no large messages of its other users.
  case taken(isLimited: Bool)
  /// It does not want the connection.
  case refused(String)
  /// There is no answer.
  case unreachable(String)

  /// The time that it takes at most: a name server, and an answer for each family of addresses and each version of MQTT.
  private static let patience = MQTTSender.Times().answer * 6

  /// Connects to a broker, and ends the connection. Blocks.
  package static func result(of configuration: MQTTConfiguration) -> MQTTTrial {
    let call: BlockingCall<MQTTTrial, Never>
    do throws(SystemFailure) {
      call = try BlockingCall("nj-mqtt") { () throws(Never) in
        MosquittoClient.prepareThread()
        return attempt(configuration)
      }
    } catch {
      return .unreachable("\(error)")
    }
    guard let result = call.result(by: .now() + patience) else { return .unreachable("it does not answer") }
    return result.get()
  }

  private static func attempt(_ configuration: MQTTConfiguration) -> MQTTTrial {
    var opening = MQTTOpening(configuration, patience: MQTTSender.Times().answer, stop: -1)
    // By a name of its own: a broker ends the connection of the program that runs, if another client has its name.
    let name = "doctor" + MQTTTopics.hexadecimal(Secrets.randomBytes(8))
    switch opening.open(name, nil) {
    case .open(let client, let version):
      client.disconnect()
      return .taken(isLimited: version == .five)
    case .refused(let reason): return .refused(reason)
    case .failed(let error): return .unreachable(error.reason)
    }
  }
}

package import Delivery
package import Platform
import TLS

/// The settings of the connection to an MQTT broker.
package struct MQTTSettings: Hashable, Sendable {
  /// The pictures that go to the broker.
  package enum Snapshots: Hashable, Sendable {
    /// No pictures.
    case none
    /// The pictures of before and after each alert.
    case events
    /// The pictures of alerts, and one each time that so long has passed.
    case interval(Duration)

    /// The time from one picture to the next; nil for pictures of alerts alone.
    var interval: Duration? { if case .interval(let duration) = self { duration } else { nil } }
  }

  /// The broker; nil for none.
  package var broker: MQTTTarget?
  /// The file of the authorities that may vouch for the broker; nil for those of the system.
  package var authorities: String?
  /// The file of the user and the password; nil for neither.
  package var login: String?
  /// The beginning of the topics; nil for the default.
  package var prefix: String?
  /// The beginning of the topics of Home Assistant's discovery, or `none`; nil for the default.
  package var discovery: String?
  /// The pictures; nil for the default.
  package var snapshots: Snapshots?

  /// The largest file of authorities in bytes: those of a whole system have a quarter of it.
  private static let fileLimit = 1 << 20

  /// Returns the pictures that go to the broker. Without a setting of its own, who wants no pictures of alerts sends none.
  ///
  /// - Parameter takesPictures: `true` if pictures are kept of alerts.
  func sent(_ takesPictures: Bool) -> Snapshots {
    broker == nil ? .none : snapshots ?? (takesPictures ? .events : .none)
  }

  /// Parses the URL of a broker.
  static func broker(_ text: String) throws(ValueError) -> MQTTTarget? {
    guard let target = MQTTTarget(text) else {
      throw ValueError(
        "write mqtts://HOST or mqtt://HOST:PORT, without a user: the file of mqtt-login has user and password")
    }
    return .some(target)
  }

  /// Parses the beginning of topics.
  static func topic(_ text: String) throws(ValueError) -> String? {
    guard MQTTTopics.isPrefix(text) else {
      throw ValueError(
        "write a topic of \(MQTTTopics.limit) bytes at most, without +, #, blanks and empty levels, as in nightjar/box")
    }
    return .some(text)
  }

  /// Parses `events`, `none` or a time.
  static func snapshots(_ text: String) throws(ValueError) -> Snapshots? {
    switch text {
    case "events": return .some(.events)
    case "none": return .some(Snapshots.none)
    default:
      do throws(ValueError) {
        return .some(.interval(try SettingValues.duration(text, within: 2...86_400, example: "60s")))
      } catch {
        throw ValueError("choose events, none, or a time from 2s to 24h, as in 60s")
      }
    }
  }

  /// Reports settings that contradict each other.
  func check(_ faults: inout SettingFaults) {
    guard let broker else {
      if authorities != nil { faults.add("\(.mqttCA) is for \(.mqtt) only") }
      if login != nil { faults.add("\(.mqttLogin) is for \(.mqtt) only") }
      if prefix != nil { faults.add("\(.mqttPrefix) is for \(.mqtt) only") }
      if discovery != nil { faults.add("\(.mqttDiscovery) is for \(.mqtt) only") }
      if snapshots != nil { faults.add("\(.mqttSnapshots) is for \(.mqtt) only") }
      return
    }
    if authorities != nil, !broker.isSecure { faults.add(.mqttCA, "it is for mqtts:// only, which is encrypted") }
  }

  /// The lines about what is allowed and not safe.
  var warnings: [String] {
    guard let broker, !broker.isSecure, !broker.isLoopback else { return [] }
    let secret = login == nil ? "" : "the password, "
    return [
      "mqtt: mqtt://\(broker.authority) is not encrypted: whoever is on the way reads \(secret)events and pictures; "
        + "mqtts:// is encrypted"
    ]
  }

  /// Reads the files that the settings name. Returns nil without a broker.
  ///
  /// - Parameter takesPictures: `true` if pictures are kept of alerts.
  /// - Throws: ``ApplianceFailure``.
  func configuration(_ takesPictures: Bool) throws(ApplianceFailure) -> MQTTConfiguration? {
    guard let broker else { return nil }
    try requireAuthorities()
    return MQTTConfiguration(
      broker, login: try readLogin(), authorities: authorities, prefix: prefix ?? MQTTTopics.usualPrefix,
      discovery: discovery == "none" ? nil : discovery ?? "homeassistant",
      sendsPictures: sent(takesPictures) != .none,
      version: Program.version)
  }

  /// Reads the files that the settings name. Returns an error for each that cannot be used.
  func fileFailures() -> [ApplianceFailure] {
    guard broker != nil else { return [] }
    var failures: [ApplianceFailure] = []
    do throws(ApplianceFailure) { try requireAuthorities() } catch { failures.append(error) }
    do throws(ApplianceFailure) { _ = try readLogin() } catch { failures.append(error) }
    return failures
  }

  private func readLogin() throws(ApplianceFailure) -> MQTTLogin? {
    do throws(SecretFileError) {
      return try login.map { path throws(SecretFileError) in try MQTTLogin(contentsOf: path) }
    } catch {
      throw ApplianceFailure(kind: error.kind, description: "--\(ApplianceSetting.mqttLogin.rawValue) \(error)")
    }
  }

  private func requireAuthorities() throws(ApplianceFailure) {
    guard let path = authorities else { return }
    let reason: String
    do {
      let bytes = try PlainFile.contents(of: path, limit: Self.fileLimit, others: .reading).bytes
      if try !Certificate.all(pem: bytes).isEmpty { return }
      reason = "it has no certificate in PEM"
    } catch PlainFileError.missing {
      reason = "there is no such file"
    } catch PlainFileError.exposed {
      reason = "other users may write it; chmod o-w \(path)"
    } catch PlainFileError.tooLarge {
      reason = "it has more than \(Self.fileLimit) bytes"
    } catch PlainFileError.system(_, let errorNumber) {
      reason = SystemFailure.text(errorNumber)
    } catch let error as OpenSSLError {
      reason = "\(error)"
    } catch {
      reason = "it is no plain file"
    }
    throw ApplianceFailure(
      kind: .noInput, description: "--\(ApplianceSetting.mqttCA.rawValue) \(path): \(reason)")
  }
}

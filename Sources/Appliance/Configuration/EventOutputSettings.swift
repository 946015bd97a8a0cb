package import Delivery
import Platform
import TLS

/// The settings of the ways out of an event to other systems.
package struct EventOutputSettings: Hashable, Sendable {
  /// The URLs of webhooks.
  package var webhooks: [WebhookTarget] = []
  /// The file of the key that signs their requests; nil for no signature.
  package var webhookKey: String?
  /// `true` if webhooks may have addresses that no host of the internet has.
  package var allowsPrivateWebhooks = false
  /// The command that runs for each event: its program and its arguments; empty for none.
  package var command: [String] = []
  /// The connection to an MQTT broker.
  package var mqtt = MQTTSettings()

  /// The most webhooks: each has a thread.
  private static let webhookLimit = 4

  /// Parses the URL of a webhook.
  static func webhook(_ text: String) throws(ValueError) -> WebhookTarget {
    guard let target = WebhookTarget(text) else {
      throw ValueError(
        """
        write https://HOST/PATH or http://HOST:PORT/PATH, without a user and a fragment, and \(WebhookTarget.limit) \
        bytes at most
        """)
    }
    return target
  }

  /// Reports settings that contradict each other.
  func check(_ faults: inout SettingFaults) {
    if webhooks.count > Self.webhookLimit {
      faults.add(.webhook, "there are \(webhooks.count), and \(Self.webhookLimit) are allowed")
    }
    if webhooks.isEmpty {
      if webhookKey != nil { faults.add("\(.webhookKey) is for \(.webhook) only") }
      if allowsPrivateWebhooks { faults.add("\(.webhookPrivate) is for \(.webhook) only") }
    }
    mqtt.check(&faults)
    if let program = command.first, !program.hasPrefix("/") {
      faults.add(.eventCommand, "write the whole path of the program first, as in /usr/bin/logger; there is no shell")
    }
  }

  /// Reads the files that the settings name, as a stream does at its start. Returns an error for each that cannot be
  /// used.
  package func fileFailures() -> [ApplianceFailure] {
    var failures = mqtt.fileFailures()
    do throws(ApplianceFailure) { _ = try readKey() } catch { failures.append(error) }
    return failures
  }

  /// Reads the files that the settings name.
  ///
  /// - Throws: ``ApplianceFailure``.
  func plan(_ takesPictures: Bool) throws(ApplianceFailure) -> EventOutputPlan {
    let mqtt = try mqtt.configuration(takesPictures)
    return EventOutputPlan(settings: self, key: try readKey(), mqtt: mqtt)
  }

  private func readKey() throws(ApplianceFailure) -> WebhookKey? {
    do throws(SecretFileError) {
      return try webhookKey.map { path throws(SecretFileError) in try WebhookKey(contentsOf: path) }
    } catch {
      throw ApplianceFailure(kind: error.kind, description: "--\(ApplianceSetting.webhookKey.rawValue) \(error)")
    }
  }
}

/// The ways out of an event, with the secrets that they need.
struct EventOutputPlan: Hashable, Sendable {
  let settings: EventOutputSettings
  let key: WebhookKey?
  /// The connection to an MQTT broker; nil for none.
  let mqtt: MQTTConfiguration?

  /// Returns the outlets that take one event at a time.
  ///
  /// - Throws: `OpenSSLError`.
  func outlets() throws(OpenSSLError) -> [any EventOutlet] {
    var outlets: [any EventOutlet] = []
    for target in settings.webhooks {
      outlets.append(
        try Webhook(
          target, key: key, allowsPrivate: settings.allowsPrivateWebhooks, agent: "nightjar/\(Program.version)"))
    }
    if !settings.command.isEmpty { outlets.append(EventCommand(settings.command)) }
    return outlets
  }
}

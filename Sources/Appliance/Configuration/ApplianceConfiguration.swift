import CLinux
package import Platform
import Serving

/// The configuration of `nightjar stream`: the appliance and its cameras.
package struct ApplianceConfiguration: SettingsConfiguration {
  package typealias SettingName = ApplianceSetting

  /// The path of the control socket, or `none`; nil for the default.
  package var control: String?
  /// The RTSP server.
  package var rtsp = RTSPSettings()
  /// The control API.
  package var api = APISettings()
  /// The settings of the browsers' port.
  package var webrtc = WebRTCSettings()
  /// The HTTP server.
  package var http = HTTPSettings()
  /// The settings of the events.
  package var events = EventSettings()
  /// `true` if the streams are announced on the network.
  package var announces = false
  /// The time after which the program ends; nil for no end.
  package var duration: Duration?
  /// The file of the final figures, or `-`.
  package var statisticsPath: String?
  /// The file of the frame trace.
  package var tracePath: String?
  /// The maximum number of bytes of the trace. The default suffices for an hour and a half of a camera at 30 frames per
  /// second.
  package var traceLimit = 256_000_000
  /// `true` if no memory of the process is swapped out.
  package var locksMemory = false
  /// The part of the host's processors, 0…1, that the choice of x264's presets may use for all cameras and viewers.
  package var processorShare = 0.5

  /// The cameras, at least one, in the order of the file.
  package internal(set) var cameras: [CameraConfiguration] = []
  /// The path of the file that was read, if any.
  package internal(set) var path: String?
  /// The warnings, a line each: probable mistakes that do not prevent running.
  package internal(set) var warnings: [String] = []
  /// The settings of file and environment that the command line overrides.
  package internal(set) var overridden: Set<OptionSetting> = []
  /// The settings in words, with their origins. A setting without an entry has its default.
  package internal(set) var options: OptionLayer = [:]

  package init() {}

  /// The number of cameras, counted from the first, that may keep standby encoders prepared. The limit bounds memory
  /// and threads, whatever the number of cameras.
  package static let standbyLimit = 3

  /// `true` if browsers may watch by WebRTC.
  var servesBrowsers: Bool { api.https != nil || http.http != nil }

  /// Returns the settings of the appliance whose values differ from those of `old`.
  package func changes(from old: ApplianceConfiguration) -> Set<ApplianceSetting> { changedSettings(from: old) }

  /// Returns the configuration with those settings of `started` that apply at the start of the program only.
  package func keepingStart(of started: ApplianceConfiguration) -> ApplianceConfiguration {
    var kept = self
    for setting in Self.settings where setting.name.isForStart {
      setting.copy(started, &kept)
      kept.options[setting.option.name] = started.options[setting.option.name]
    }
    return kept
  }

  /// Returns a line for each new setting of the file that has no effect, because the command line takes precedence.
  package func overridden(since old: ApplianceConfiguration) -> [String] {
    func said(_ setting: OptionSetting) -> [String] { [setting.option.name] + setting.words }
    let before = Set(old.overridden.map(said))
    return overridden.filter { !before.contains(said($0)) }.map {
      "\($0.origin): \($0.option.name): the command line overrides it"
    }.sorted()
  }

  /// All settings of the appliance, in the order of the documentation.
  package static let settings: [Setting<Self>] = [
    .text(.control, .appliance, \.control),
    .address(.rtsp, \.rtsp.rtsp),
    .address(.rtsps, \.rtsp.rtsps),
    .text(.users, .appliance, \.rtsp.users),
    .text(.certificate, .appliance, \.rtsp.certificate),
    .text(.key, .appliance, \.rtsp.key),
    .text(.suite, .appliance, \.rtsp.suite, SettingValues.suite),
    .flag(.requireEncryption, .appliance, \.rtsp.requiresEncryption),
    .text(.sessions, kind: .integer, .appliance, \.rtsp.sessions) { text throws(ValueError) in
      try SettingValues.number(text, within: RTSPServerConfiguration.sessionLimits)
    },
    .flag(.announce, kind: .invertibleFlag, .appliance, \.announces),
    .address(.https, \.api.https),
    .text(.tokens, .appliance, \.api.tokens),
    .text(.webrtcPort, kind: .integer, .appliance, \.webrtc.port) { text throws(ValueError) in
      UInt16(try SettingValues.number(text, within: 0...65_535))
    },
    .list(.webrtcAddress, .appliance, \.webrtc.addresses, WebRTCSettings.address),
    .address(.http, \.http.http),
    .text(.eventsFile, .appliance, \.events.path),
    .flag(.eventPictures, kind: .invertibleFlag, .appliance, \.events.takesPictures),
    .text(.quietHours, .appliance, \.events.quietHours, EventSettings.quietHours),
    .flag(.webPush, kind: .invertibleFlag, .appliance, \.events.push.isOn),
    .text(.webPushContact, .appliance, \.events.push.contact, PushSettings.contact),
    .list(.webhook, .appliance, \.events.outputs.webhooks, EventOutputSettings.webhook),
    .text(.webhookKey, .appliance, \.events.outputs.webhookKey),
    .flag(.webhookPrivate, .appliance, \.events.outputs.allowsPrivateWebhooks),
    .list(.eventCommand, .appliance, \.events.outputs.command) { $0 },
    .text(.mqtt, .appliance, \.events.outputs.mqtt.broker, MQTTSettings.broker),
    .text(.mqttCA, .appliance, \.events.outputs.mqtt.authorities),
    .text(.mqttLogin, .appliance, \.events.outputs.mqtt.login),
    .text(.mqttPrefix, .appliance, \.events.outputs.mqtt.prefix, MQTTSettings.topic),
    .text(.mqttDiscovery, .appliance, \.events.outputs.mqtt.discovery, MQTTSettings.topic),
    .text(.mqttSnapshots, .appliance, \.events.outputs.mqtt.snapshots, MQTTSettings.snapshots),
    .text(.duration, kind: .number, .appliance, \.duration) { text throws(ValueError) in
      try SettingValues.duration(text, within: 0.1...31_536_000, example: "10s or 5m")
    },
    .text(.statistics, .appliance, \.statisticsPath),
    .text(.trace, .appliance, \.tracePath),
    .text(.traceLimit, kind: .number, .appliance, \.traceLimit) { text throws(ValueError) in
      try SettingValues.bytes(text, within: 1_000_000...1_000_000_000_000, example: "500M or 2G")
    },
    .flag(.lockMemory, .appliance, \.locksMemory),
    .text(.cpuBudget, kind: .number, .appliance, \.processorShare, SettingValues.processorShare),
  ]

  /// Reports settings that contradict each other.
  package func check(_ faults: inout SettingFaults) {
    rtsp.check(&faults)
    if announces, !rtsp.isServed { faults.add("\(.announce) is for \(.rtsp) and \(.rtsps) only") }
    api.check(beside: rtsp, &faults)
    webrtc.check(beside: api, http, options, &faults)
    http.check(beside: rtsp, api, &faults)
    events.outputs.check(&faults)
    if tracePath == "-" { faults.add(.trace, "name a file, which standard output is not") }
    if options[ApplianceSetting.traceLimit.rawValue] != nil, tracePath == nil {
      faults.add("\(.traceLimit) is for \(.trace) only")
    }
  }

  /// Locks the process's memory if the configuration requests that.
  ///
  /// - Throws: ``ApplianceFailure`` with the limit if there is one: memory beyond the limit could no longer be allocated.
  package func lockMemory() throws {
    guard locksMemory else { return }
    let limit = nightjar_lockable_bytes()
    guard limit == .max else {
      throw ApplianceFailure(
        kind: .noPermission,
        description:
          "--lock-memory: this program may lock only \(limit / 1024) KiB of memory; write 'USER - memlock "
          + "unlimited' to a file in /etc/security/limits.d, and log in again; in a unit: LimitMEMLOCK=infinity")
    }
    let result = nightjar_lock_memory()
    guard result == 0 else { throw SystemFailure("mlockall", errorNumber: result) }
  }
}

/// A failure of the appliance that no part of it has a type for.
package struct ApplianceFailure: Failure {
  package let kind: FailureKind
  package let description: String

  package init(kind: FailureKind, description: String) {
    (self.kind, self.description) = (kind, description)
  }
}

extension OptionTable {
  /// The options of `nightjar stream` that files and the environment may have too.
  package static let stream = OptionTable(all.filter { $0.scope != .tests })
  /// The options of its command line.
  package static let commandLine = OptionTable(all)
  private static let all = ApplianceConfiguration.settings.map(\.option) + CameraConfiguration.settings.map(\.option)
}

/// A kind of finding of `nightjar doctor`. The raw value never changes, because scripts rely on it. The word before the
/// first `-` is the subject.
package enum FindingKind: String, CaseIterable, Sendable {
  case configuration = "configuration"
  case configurationBroken = "configuration-broken"
  case configurationRemark = "configuration-remark"
  case service = "service"
  case serviceFailed = "service-failed"
  case serviceBroken = "service-broken"
  case serviceStopped = "service-stopped"
  case serviceDisabled = "service-disabled"
  case serviceMasked = "service-masked"
  case serviceRestarts = "service-restarts"
  case serviceSilent = "service-silent"
  case serviceGroup = "service-group"
  case stream = "stream"
  case streamSilent = "stream-silent"
  case streamClosed = "stream-closed"
  case clock = "clock"
  case clockFree = "clock-free"
  case clockWrong = "clock-wrong"
  case temperature = "temperature"
  case temperatureHigh = "temperature-high"
  case temperatureCritical = "temperature-critical"
  case realtime = "realtime"
  case realtimeNone = "realtime-none"
  case state = "state"
  case stateClosed = "state-closed"
  case stateFull = "state-full"
  case users = "users"
  case usersNeeded = "users-needed"
  case usersFile = "users-file"
  case tokens = "tokens"
  case tokensFile = "tokens-file"
  case certificate = "certificate"
  case certificateSoon = "certificate-soon"
  case certificateExpired = "certificate-expired"
  case certificateEarly = "certificate-early"
  case certificateFile = "certificate-file"
  case port = "port"
  case portHeld = "port-held"
  case portLow = "port-low"
  case portAddress = "port-address"
  case announcement = "announcement"
  case announcementWaiting = "announcement-waiting"
  case mqtt = "mqtt"
  case mqttFile = "mqtt-file"
  case mqttUnreachable = "mqtt-unreachable"
  case mqttRefused = "mqtt-refused"
  case vaapi = "vaapi"
  case vaapiUnusable = "vaapi-unusable"
  case renderGroup = "render-group"
  case renderLogin = "render-login"
  case renderMode = "render-mode"
  case camera = "camera"
  case cameraMissing = "camera-missing"
  case cameraNone = "camera-none"
  case cameraAwaited = "camera-awaited"
  case cameraOther = "camera-other"
  case cameraGroup = "camera-group"
  case cameraLogin = "camera-login"
  case cameraMode = "camera-mode"
  case cameraBusy = "camera-busy"
  case cameraFormat = "camera-format"
  case cameraSignal = "camera-signal"
  case cameraUnusable = "camera-unusable"
  case cameraLost = "camera-lost"
  case cameraFrozen = "camera-frozen"
  case cameraAbsent = "camera-absent"
  case cameraRemark = "camera-remark"
  case usb = "usb"
  case usbSlow = "usb-slow"
  case usbSleep = "usb-sleep"
  case rate = "rate"
  case rateLow = "rate-low"
  case rateLosses = "rate-losses"
  case rateNone = "rate-none"
  case encoder = "encoder"
  case encoderMissing = "encoder-missing"
  case encoderTight = "encoder-tight"
  case encoderSlow = "encoder-slow"
  case microphone = "microphone"
  case microphoneMissing = "microphone-missing"
  case microphoneGroup = "microphone-group"
  case microphoneLogin = "microphone-login"
  case microphoneMode = "microphone-mode"
  case microphoneBusy = "microphone-busy"
  case microphoneFormat = "microphone-format"
  case microphoneUnusable = "microphone-unusable"
  case microphoneLost = "microphone-lost"
  case microphoneUnused = "microphone-unused"
  case microphoneMuted = "microphone-muted"
  case microphoneSilent = "microphone-silent"
}

/// The severity of a finding.
package enum FindingStatus: String, CaseIterable, Comparable, Sendable {
  /// No problem.
  case ok
  /// The stream works, but not as well as it could, or not for long.
  case warning
  /// The stream does not work, or does not reach its viewers.
  case problem

  /// Returns `true` if `left` is less severe.
  package static func < (left: FindingStatus, right: FindingStatus) -> Bool { left.rank < right.rank }

  private var rank: Int {
    switch self {
    case .ok: 0
    case .warning: 1
    case .problem: 2
    }
  }
}

extension FindingKind {
  /// The subject of the finding: `camera` of `camera-busy`.
  package var subject: String { String(rawValue.prefix { $0 != "-" }) }

  /// The severity.
  package var status: FindingStatus { entry.status }

  /// The meaning, in a sentence for docs/doctor.md.
  package var meaning: String { entry.meaning }

  /// The general remedy; empty where none is needed. A finding has the exact command.
  package var mend: String { entry.mend }

  /// All kinds as a table in Markdown.
  package static var table: String {
    let rows = allCases.map { "| `\($0.rawValue)` | \($0.status.rawValue) | \($0.meaning) | \($0.mend) |" }
    return (["| key | status | what it means | what mends it |", "|---|---|---|---|"] + rows).joined(separator: "\n")
      + "\n"
  }
}

/// What `nightjar doctor` can find. Its raw value stays the same for good: scripts go by it. The word before the first `-`
/// is what was looked at.
public enum FindingKind: String, CaseIterable, Sendable {
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
}

/// How bad a finding is.
public enum FindingStatus: String, CaseIterable, Comparable, Sendable {
  /// As it should be.
  case ok
  /// It streams, but not as well as it could, or not for long.
  case warning
  /// It does not stream, or not to those who are meant.
  case problem

  /// The better one first.
  public static func < (left: FindingStatus, right: FindingStatus) -> Bool { left.rank < right.rank }

  private var rank: Int {
    switch self {
    case .ok: 0
    case .warning: 1
    case .problem: 2
    }
  }
}

extension FindingKind {
  /// What was looked at: `camera` of `camera-busy`.
  public var subject: String { String(rawValue.prefix { $0 != "-" }) }

  /// How bad it is.
  public var status: FindingStatus { entry.status }

  /// What it means, in a sentence for docs/doctor.md.
  public var meaning: String { entry.meaning }

  /// What mends it, in general; empty where there is nothing to mend. A finding has the exact command.
  public var mend: String { entry.mend }

  /// All kinds as a table in Markdown.
  public static var table: String {
    let rows = allCases.map { "| `\($0.rawValue)` | \($0.status.rawValue) | \($0.meaning) | \($0.mend) |" }
    return (["| key | status | what it means | what mends it |", "|---|---|---|---|"] + rows).joined(separator: "\n")
      + "\n"
  }
}

package import Alerts
import Detection
package import Platform
import Serving
import Streaming

/// Derives the alerts of the appliance itself, and those of the detectors, from the readings of its cameras. Holds no clock: the caller says the time.
package struct ApplianceAlerts: Sendable {
  /// The time that a condition must last before it is an alert: a reload and a short loss are none.
  static let patience = Duration.seconds(3)
  /// The time for which the picture must be black, of which at least two measurements say so: a hand before the lens is
  /// none.
  static let darkPatience = Duration.seconds(12)
  /// The age of the detectors' findings at which they say nothing any more.
  static let staleness = Duration.seconds(5)
  /// The time without a report after which the network of a viewer that has sent reports is lost. RTCP reports come at
  /// least every 7.5 s (RFC 3550 section 6.3.1: five seconds, times 1.5 at most).
  static let silence = Duration.seconds(15)
  /// The share of lost packets at which a viewer's network counts as lost.
  static let worstLoss = 0.5
  /// The room in a file system below which it counts as full.
  static let leastRoom = 16 << 20

  private var pending: [AlertSubject: Instant] = [:]

  /// Creates a judge without a history.
  package init() {}

  /// Returns the present alerts; called about once a second.
  ///
  /// - Parameters:
  ///   - roomOfHistory: the free bytes of the file system that has the history; nil if there is no file.
  ///   - errorOfHistory: the errno with which that file system refused the last event; 0 if it took it.
  package mutating func look(
    _ cameras: [CameraReading], roomOfHistory: Int?, errorOfHistory: CInt = 0, at now: Instant
  ) -> [AlertCondition] {
    var found: [(AlertKind, camera: String?, text: String)] = []
    for camera in cameras { found += Self.faults(of: camera, at: now) }
    if let hot = cameras.first(where: { ["serious", "critical"].contains($0.thermalState ?? "") }) {
      let degrees = hot.temperature.map { " at \(Int($0.rounded())) °C" } ?? ""
      found.append((.tooHot, nil, "the host is too hot\(degrees): nightjar lowers the picture's quality"))
    }
    if errorOfHistory != 0 {
      found.append((.diskFull, nil, "the history cannot be written: \(SystemFailure.text(errorOfHistory))"))
    } else if let room = roomOfHistory, room < Self.leastRoom {
      found.append((.diskFull, nil, "only \(room >> 10) KiB are free for the history"))
    }
    var present: [AlertSubject: Instant] = [:]
    var conditions: [AlertCondition] = []
    for (kind, camera, text) in found {
      let subject = AlertSubject(kind: kind, camera: camera)
      guard present[subject] == nil else { continue }
      let since = pending[subject] ?? now
      present[subject] = since
      guard now - since >= Self.patience else { continue }
      conditions.append(AlertCondition(kind, camera: camera, since: since, text: text))
    }
    pending = present
    return conditions + cameras.flatMap { Self.findings(of: $0, at: now) }
  }

  /// Returns what the detectors of a camera have found. They have an attack and a hold of their own.
  private static func findings(of camera: CameraReading, at now: Instant) -> [AlertCondition] {
    var found: [AlertCondition] = []
    if let (finding, time) = camera.heard, now - time < staleness {
      if camera.alertsToNoise, let age = finding.noise {
        found.append(
          AlertCondition(
            .noise, camera: camera.name, since: time - Duration(seconds: age),
            text: "noise: \(Int((finding.level - finding.background).rounded())) dB above the background"))
      }
      if let age = finding.crying {
        found.append(
          AlertCondition(
            .crying, camera: camera.name, since: time - Duration(seconds: age), confidence: finding.confidence,
            text: "probably crying"))
      }
    }
    // A camera that delivers nothing has an alert of its own.
    guard camera.state.isHealthy else { return found }
    if let since = camera.seen.movement {
      found.append(
        AlertCondition(
          .movement, camera: camera.name, since: since, confidence: camera.seen.confidence, text: "movement"))
    }
    if let since = camera.seen.dark, now - since >= darkPatience {
      found.append(
        AlertCondition(
          .cameraDark, camera: camera.name, since: since,
          text: "the picture is black: is it dark, or is the lens covered?"))
    }
    return found
  }

  private static func faults(of camera: CameraReading, at now: Instant) -> [(AlertKind, camera: String?, text: String)]
  {
    var found: [(AlertKind, camera: String?, text: String)] = []
    switch camera.state {
    case .frozen: found.append((.cameraFrozen, camera.name, "the camera delivers the same picture again and again"))
    case .waiting, .disconnected, .stalled, .failed, .stuck, .absent:
      found.append((.cameraLost, camera.name, "no picture: \(camera.reason ?? camera.state.rawValue)"))
    case .streaming, .idle, .starting: break
    }
    switch camera.sound {
    case .absent: found.append((.microphoneLost, camera.name, "the microphone is away: viewers hear silence"))
    case .stuck:
      found.append(
        (
          .microphoneLost, camera.name,
          "the sound stands still: the microphone neither delivers nor fails (unplug it, and plug it in again), or nightjar's own thread hangs"
        ))
    case .silent:
      found.append((.microphoneSilent, camera.name, "the microphone records nothing: is its switch off?"))
    case .present, .muted, nil: break
    }
    if camera.failovers > camera.recoveries {
      found.append((.encoderFailedOver, camera.name, "the hardware's encoder has failed: \(camera.encoder) encodes"))
    }
    let lost = camera.viewers.compactMap { viewer -> String? in
      guard let heard = viewer.heard else { return nil }
      let silence = now - heard
      if silence >= Self.silence { return "\(viewer.name) has sent no report for \(Int(silence.seconds)) s" }
      return viewer.fractionLost >= Self.worstLoss
        ? "\(viewer.name) loses \(Int(viewer.fractionLost * 100)) % of the packets" : nil
    }
    if let first = lost.first {
      found.append((.viewerLost, camera.name, lost.count > 1 ? "\(first), and \(lost.count - 1) more viewers" : first))
    }
    return found
  }
}

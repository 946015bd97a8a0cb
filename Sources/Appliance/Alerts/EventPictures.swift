import Alerts
import Platform
import Streaming

/// Takes the pictures of before and after the alerts. The thread of the alerts alone uses it.
struct EventPictures: ~Copyable {
  /// The time from an alert to the picture of after it.
  private static let delay = Duration.seconds(2)
  /// The time after which a picture that has not come is given up.
  private static let patience = Duration.seconds(15)
  /// The room in the file system below which no picture is written.
  private static let leastRoom = 4 * ApplianceAlerts.leastRoom

  private var cameras: [String: (pipeline: ObjectIdentifier, camera: EventCamera)] = [:]
  private var due: [(id: UInt64, camera: String, at: Instant)] = []

  /// Follows the pipelines in which somebody looks for alerts.
  mutating func follow(_ pipelines: [String: Pipeline]) {
    for name in cameras.keys where pipelines[name] == nil { cameras[name] = nil }
    for (name, pipeline) in pipelines where cameras[name]?.pipeline != ObjectIdentifier(pipeline) {
      cameras[name] = (ObjectIdentifier(pipeline), EventCamera(pipeline))
    }
  }

  /// Records decisions in `history`, each alert that begins with the picture of before it.
  ///
  /// - Parameter room: the free bytes of the file system; nil if there is no file, or nobody knows.
  mutating func record(
    _ decisions: [AlertDecision], in history: AlertHistory, isQuiet: Bool, room: Int?, at now: Instant
  ) {
    let hasRoom = (room ?? .max) >= Self.leastRoom
    let cameras = cameras
    let alerts = history.record(decisions, isQuiet: isQuiet, at: now) { condition in
      guard hasRoom, let camera = condition.subject.camera.flatMap({ cameras[$0]?.camera }) else { return nil }
      return camera.picture(before: condition.since)
    }
    for alert in alerts where alert.state == .began {
      if let camera = alert.camera, cameras[camera] != nil { due.append((alert.id, camera, now + Self.delay)) }
    }
    due.removeAll { entry in
      guard now >= entry.at else { return false }
      guard hasRoom, let picture = cameras[entry.camera]?.camera.picture(after: entry.at) else {
        return now - entry.at >= Self.patience
      }
      history.pictures.store(picture, .after, of: entry.id)
      return true
    }
    history.forgetPictures()
  }
}

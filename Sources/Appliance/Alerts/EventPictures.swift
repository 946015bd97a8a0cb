import Alerts
import Delivery
import Platform
import Streaming

/// Takes the pictures of before and after the alerts, for the history and for MQTT. The thread of the alerts alone uses it.
struct EventPictures: ~Copyable {
  /// The time from an alert to the picture of after it.
  private static let delay = Duration.seconds(2)
  /// The time after which a picture that has not come is given up.
  private static let patience = Duration.seconds(15)
  /// The room in the file system below which no picture is written.
  private static let leastRoom = 4 * ApplianceAlerts.leastRoom

  private let feed: LiveFeed
  private var cameras: [String: (pipeline: ObjectIdentifier, camera: EventCamera)] = [:]
  /// The time of the last picture of each camera that was shown without an alert.
  private var shown: [String: Instant] = [:]
  private var due: [(id: UInt64, camera: String, at: Instant)] = []

  /// - Parameter feed: takes the pictures for MQTT.
  init(_ feed: LiveFeed) { self.feed = feed }

  /// Follows the pipelines in which somebody looks for alerts.
  mutating func follow(_ pipelines: [String: Pipeline]) {
    for name in cameras.keys where pipelines[name] == nil { (cameras[name], shown[name]) = (nil, nil) }
    for (name, pipeline) in pipelines where cameras[name]?.pipeline != ObjectIdentifier(pipeline) {
      cameras[name] = (ObjectIdentifier(pipeline), EventCamera(pipeline))
    }
  }

  /// Records decisions in `history`, each alert that begins with the picture of before it.
  ///
  /// - Parameters:
  ///   - keepsPictures: `false` keeps no pictures in the history.
  ///   - room: the free bytes of the file system; nil if there is no file, or nobody knows.
  mutating func record(
    _ decisions: [AlertDecision], in history: AlertHistory, isQuiet: Bool, keepsPictures: Bool, room: Int?,
    at now: Instant
  ) {
    let isKept = keepsPictures && (room ?? .max) >= Self.leastRoom
    let cameras = cameras
    let alerts = history.record(decisions, isQuiet: isQuiet, at: now) { [feed] condition in
      guard let name = condition.subject.camera, let picture = cameras[name]?.camera.picture(before: condition.since)
      else { return nil }
      feed.show(picture, of: name)
      return isKept ? picture : nil
    }
    for alert in alerts where alert.state == .began {
      if let camera = alert.camera, cameras[camera] != nil { due.append((alert.id, camera, now + Self.delay)) }
    }
    due.removeAll { entry in
      guard now >= entry.at else { return false }
      guard let picture = cameras[entry.camera]?.camera.picture(after: entry.at) else {
        return now - entry.at >= Self.patience
      }
      feed.show(picture, of: entry.camera)
      if isKept { history.pictures.store(picture, .after, of: entry.id) }
      return true
    }
    history.forgetPictures()
  }

  /// Shows a picture of each camera if none was shown for `interval`.
  mutating func show(each interval: Duration, at now: Instant) {
    for (name, entry) in cameras where shown[name].map({ now - $0 >= interval }) ?? true {
      guard let picture = entry.camera.newestPicture(at: now) else { continue }
      shown[name] = now
      feed.show(picture, of: name)
    }
  }
}

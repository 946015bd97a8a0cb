package import Platform
package import Streaming
import Synchronization

/// An event of an RTSP server, one line for the user at the terminal.
package enum RTSPServerEvent: Sendable, CustomStringConvertible {
  /// A viewer gets these media of the stream, of this camera if there are several.
  case came(viewer: String, camera: String?, StreamMedia = .picture)
  /// The viewer has left after this time, with its statistics; nil for a member of a group.
  case left(viewer: String, camera: String?, after: Duration, DestinationStatistics?)
  /// The number of failed logins from an address since the last report.
  case loginsFailed(address: String, count: Int)
  /// The number of requests from an address since the last report for a camera that does not exist.
  case missed(address: String, cameras: [String], count: Int)
  /// The number of connections of an address that the server has closed for this reason since the last report.
  case closed(address: String, reason: String, count: Int)
  /// The number of requests of an address that were refused for this reason since the last report: for H.264 beside
  /// another codec, for more sessions than allowed, or because the stream cannot be sent.
  case refused(address: String, reason: String, count: Int)
  /// The number of connections from other machines closed since the last report, because there are no users.
  case fromElsewhere(count: Int)
  /// The number of connections turned away since the last report, because there are too many.
  case turnedAway(count: Int)

  /// The event's line.
  package var description: String {
    switch self {
    case .came(let viewer, let camera, .sound):
      "viewer \(viewer) is listening" + (camera.map { " to \($0)" } ?? "")
    case .came(let viewer, let camera, let media):
      "viewer \(viewer) is watching" + (camera.map { " \($0)" } ?? "") + (media.contains(.sound) ? " with sound" : "")
    case .left(let viewer, let camera, let time, let figures):
      "viewer \(viewer) left\(camera.map { " \($0)" } ?? "") after \(time.nanoseconds / 1_000_000_000) s"
        + (figures.map { ": \($0.packets) packets, \($0.framesDropped) frames lost" } ?? "")
    case .loginsFailed(let address, let count):
      "\(count == 1 ? "a login" : "\(count) logins") from \(address) failed: wrong name or password"
    case .missed(let address, let cameras, let count):
      "\(address) asked\(count == 1 ? "" : " \(count) times") for a camera that does not exist: "
        + (cameras.isEmpty ? "there is none now" : "a URL ends in \(cameras.joined(separator: " or "))")
    case .closed(let address, let reason, let count):
      "\(count == 1 ? "a connection" : "\(count) connections") from \(address) closed: \(reason)"
    case .refused(let address, let reason, let count):
      "\(count == 1 ? "a request" : "\(count) requests") of \(address) refused: \(reason)"
    case .fromElsewhere(let count):
      "\(count == 1 ? "a connection" : "\(count) connections") from other hosts closed: without users only this host may "
        + "watch; add one with: nightjar user add NAME"
    case .turnedAway(let count):
      "\(count == 1 ? "a connection was" : "\(count) connections were") refused: there are too many"
    }
  }

  /// `true` if the event needs attention.
  package var isWarning: Bool {
    switch self {
    case .came, .left, .closed: false
    case .missed, .loginsFailed, .refused, .fromElsewhere, .turnedAway: true
    }
  }
}

/// The events at a server, handed from its thread to the reader of the log. Floods of events are summed up.
package final class RTSPServerEvents: Sendable {
  private struct Waiting {
    var failedLogins = FloodCounts<String>(limit: RTSPServerEvents.limit)
    var closed = FloodCounts<Closing>(limit: RTSPServerEvents.limit)
    var refused = FloodCounts<Closing>(limit: RTSPServerEvents.limit)
    var missed = FloodCounts<String>(limit: RTSPServerEvents.limit)
    /// The cameras at the time of the last request for a missing one.
    var cameras: [String] = []
    var turnedAway = 0
    var fromElsewhere = 0
    var nextSum = Instant.zero
  }

  /// A connection that was closed, or a request that was refused.
  private struct Closing: Hashable {
    let address: String
    let reason: String
  }

  private let queue = EventQueue<RTSPServerEvent>(limit: RTSPServerEvents.limit)
  private let waiting = Mutex(Waiting())

  /// The most events that wait, and the most addresses whose failures are counted separately.
  package static let limit = 64
  /// The interval between sums.
  static let sumInterval = Duration(seconds: 10)
  /// The name that stands for further addresses once there are too many.
  private static let others = "other addresses"

  package init() {}

  /// Takes the events since the last call, oldest first; sums of failures every ten seconds.
  package func take(at now: Instant = .now()) -> [RTSPServerEvent] {
    waiting.withLock { waiting in
      var events = queue.take()
      let isSilent =
        waiting.turnedAway == 0 && waiting.fromElsewhere == 0 && waiting.failedLogins.isEmpty && waiting.closed.isEmpty
        && waiting.missed.isEmpty && waiting.refused.isEmpty
      guard now >= waiting.nextSum, !isSilent else { return events }
      waiting.nextSum = now + Self.sumInterval
      for (address, count) in waiting.failedLogins.take().sorted(by: { $0.key < $1.key }) {
        events.append(.loginsFailed(address: address, count: count))
      }
      for (address, count) in waiting.missed.take().sorted(by: { $0.key < $1.key }) {
        events.append(.missed(address: address, cameras: waiting.cameras, count: count))
      }
      if waiting.turnedAway > 0 { events.append(.turnedAway(count: waiting.turnedAway)) }
      for (closing, count) in waiting.closed.take() {
        events.append(.closed(address: closing.address, reason: closing.reason, count: count))
      }
      for (refusal, count) in waiting.refused.take() {
        events.append(.refused(address: refusal.address, reason: refusal.reason, count: count))
      }
      if waiting.fromElsewhere > 0 { events.append(.fromElsewhere(count: waiting.fromElsewhere)) }
      (waiting.turnedAway, waiting.fromElsewhere) = (0, 0)
      return events
    }
  }

  func add(_ event: RTSPServerEvent) { queue.add(event) }

  func loginFailed(from address: String) {
    waiting.withLock { $0.failedLogins.add(address, orElse: Self.others) }
  }

  func missed(by address: String, cameras: [String]) {
    waiting.withLock { waiting in
      waiting.cameras = cameras
      waiting.missed.add(address, orElse: Self.others)
    }
  }

  func closed(_ address: String, reason: String) {
    waiting.withLock {
      $0.closed.add(
        Closing(address: address, reason: reason), orElse: Closing(address: Self.others, reason: "various reasons"))
    }
  }

  func refused(_ address: String, reason: String) {
    waiting.withLock {
      $0.refused.add(
        Closing(address: address, reason: reason), orElse: Closing(address: Self.others, reason: "various reasons"))
    }
  }

  func turnedAway() {
    waiting.withLock { $0.turnedAway += 1 }
  }

  func cameFromElsewhere() {
    waiting.withLock { $0.fromElsewhere += 1 }
  }
}

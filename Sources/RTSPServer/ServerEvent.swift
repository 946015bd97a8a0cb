public import Media
public import Streaming
import Synchronization

/// Who came and went, one line for the person at the terminal.
public enum ServerEvent: Sendable, CustomStringConvertible {
  /// A viewer gets the stream; of this camera, where there are several.
  case came(viewer: String, camera: String?)
  /// It does not any more, after so long, and this is what it got; nil for one of a group.
  case left(viewer: String, camera: String?, after: MediaTime, DestinationStatistics?)
  /// So many logins from an address failed since the last word of it.
  case loginsFailed(address: String, count: Int)
  /// An address asked, so many times since the last word of it, for what is no camera of these.
  case missed(address: String, cameras: [String], count: Int)
  /// So many connections of an address were closed by us since the last word of it, for this reason.
  case closed(address: String, reason: String, count: Int)
  /// So many connections from other machines were closed since the last word of it, because there are no users.
  case fromElsewhere(count: Int)
  /// So many connections were turned away since the last word of it, because there are too many.
  case turnedAway(count: Int)

  /// The line.
  public var description: String {
    switch self {
    case .came(let viewer, let camera): "viewer \(viewer) is watching" + (camera.map { " \($0)" } ?? "")
    case .left(let viewer, let camera, let time, let figures):
      "viewer \(viewer) left\(camera.map { " \($0)" } ?? "") after \(time.nanoseconds / 1_000_000_000) s"
        + (figures.map { ": \($0.packets) packets, \($0.framesDropped) frames lost" } ?? "")
    case .loginsFailed(let address, let count):
      "\(count == 1 ? "a login" : "\(count) logins") from \(address) failed: wrong name or password"
    case .missed(let address, let cameras, let count):
      "\(address) asked\(count == 1 ? "" : " \(count) times") for a camera that is not there: "
        + (cameras.isEmpty ? "there is none now" : "its URL ends in \(cameras.joined(separator: " or "))")
    case .closed(let address, let reason, let count):
      "\(count == 1 ? "a connection" : "\(count) connections") from \(address) closed: \(reason)"
    case .fromElsewhere(let count):
      "\(count == 1 ? "a connection" : "\(count) connections") from elsewhere closed: without users only this machine may "
        + "watch; add one with: nightjar user add NAME"
    case .turnedAway(let count):
      "\(count == 1 ? "a connection was" : "\(count) connections were") turned away: there are too many"
    }
  }

  /// Whether somebody ought to look into it.
  public var isWarning: Bool {
    switch self {
    case .came, .left, .closed: false
    case .missed, .loginsFailed, .fromElsewhere, .turnedAway: true
    }
  }
}

/// What happened at a server, from its thread to whoever shows it. What comes in floods is summed up.
public final class ServerEvents: Sendable {
  private struct Waiting {
    var events: [ServerEvent] = []
    var failedLogins: [String: Int] = [:]
    var closed: [Closing: Int] = [:]
    var missed: [String: Int] = [:]
    /// Which cameras there were when one was missed last.
    var cameras: [String] = []
    var turnedAway = 0
    var fromElsewhere = 0
    var nextSum = MediaTime.zero
  }

  private struct Closing: Hashable {
    let address: String
    let reason: String
  }

  private let waiting = Mutex(Waiting())

  /// The most events that wait, and the most addresses whose failures are told apart.
  public static let limit = 64
  /// How often sums are told.
  static let sumInterval = MediaTime(seconds: 10)
  /// Where failures are counted once there are too many addresses.
  private static let others = "other addresses"

  init() {}

  /// Takes what happened since the last call, oldest first; sums of failures every ten seconds.
  public func take(at now: MediaTime = .now()) -> [ServerEvent] {
    waiting.withLock { waiting in
      var events = waiting.events
      waiting.events.removeAll()
      let isSilent =
        waiting.turnedAway == 0 && waiting.fromElsewhere == 0 && waiting.failedLogins.isEmpty && waiting.closed.isEmpty
        && waiting.missed.isEmpty
      guard now >= waiting.nextSum, !isSilent else { return events }
      waiting.nextSum = now + Self.sumInterval
      for (address, count) in waiting.failedLogins.sorted(by: { $0.key < $1.key }) {
        events.append(.loginsFailed(address: address, count: count))
      }
      for (address, count) in waiting.missed.sorted(by: { $0.key < $1.key }) {
        events.append(.missed(address: address, cameras: waiting.cameras, count: count))
      }
      if waiting.turnedAway > 0 { events.append(.turnedAway(count: waiting.turnedAway)) }
      for (closing, count) in waiting.closed {
        events.append(.closed(address: closing.address, reason: closing.reason, count: count))
      }
      if waiting.fromElsewhere > 0 { events.append(.fromElsewhere(count: waiting.fromElsewhere)) }
      waiting.failedLogins.removeAll()
      waiting.closed.removeAll()
      waiting.missed.removeAll()
      (waiting.turnedAway, waiting.fromElsewhere) = (0, 0)
      return events
    }
  }

  func add(_ event: ServerEvent) {
    waiting.withLock { if $0.events.count < Self.limit { $0.events.append(event) } }
  }

  func loginFailed(from address: String) {
    waiting.withLock { waiting in
      let isKnown = waiting.failedLogins[address] != nil || waiting.failedLogins.count < Self.limit
      waiting.failedLogins[isKnown ? address : Self.others, default: 0] += 1
    }
  }

  func missed(by address: String, cameras: [String]) {
    waiting.withLock { waiting in
      waiting.cameras = cameras
      let isKnown = waiting.missed[address] != nil || waiting.missed.count < Self.limit
      waiting.missed[isKnown ? address : Self.others, default: 0] += 1
    }
  }

  func closed(_ address: String, reason: String) {
    waiting.withLock { waiting in
      let closing = Closing(address: address, reason: reason)
      let isKnown = waiting.closed[closing] != nil || waiting.closed.count < Self.limit
      waiting.closed[isKnown ? closing : Closing(address: Self.others, reason: "various reasons"), default: 0] += 1
    }
  }

  func turnedAway() {
    waiting.withLock { $0.turnedAway += 1 }
  }

  func cameFromElsewhere() {
    waiting.withLock { $0.fromElsewhere += 1 }
  }
}

import Credentials
public import Media
import Synchronization

/// What somebody has changed by the control API, or tried to.
public struct ControlChange: Sendable, CustomStringConvertible {
  /// The most characters of ``what`` that are told: no destination has more.
  static let limit = 1024

  let who: Requester
  /// An address, or a process of this machine.
  let from: String
  let method: String
  let path: String
  /// In words, as in `rtp://192.0.2.7:5004`.
  let what: String
  /// Whether it was done. Why it was not is told to whoever asked.
  let isDone: Bool

  /// The line.
  public var description: String {
    let order = "\(method) \(path)\(what.isEmpty ? "" : ": \(what)")"
    return "\(who.name) (role \(who.role.rawValue)) at \(from): \(order)\(isDone ? "" : ", not done")"
  }
}

/// What happened at the control API, one line for the person at the terminal.
public enum ControlEvent: Sendable, CustomStringConvertible {
  /// Somebody has changed something, or tried to.
  case changed(ControlChange)
  /// So many changes more since the last word of it, which were too many to be told one by one.
  case unsaid(count: Int)
  /// So many requests of somebody were refused since the last word of it, for want of a role.
  case lacksRole(who: String, place: String, needed: String, count: Int)
  /// A client watches JPEG pictures; of this camera, where there are several.
  case came(viewer: ViewerPeer, camera: String?)
  /// It does not any more, after so long and so many pictures.
  case left(viewer: ViewerPeer, camera: String?, after: MediaTime, pictures: Int)
  /// So many logins from an address failed since the last word of it.
  case loginsFailed(address: String, count: Int)
  /// So many requests were refused since the last word of it, because another site's page made a browser send them.
  case crossSite(count: Int)
  /// So many connections were turned away since the last word of it, because there are too many.
  case turnedAway(count: Int)

  /// The line, where the control API is meant.
  public var description: String { line(of: "control") }

  /// The line.
  ///
  /// - Parameter service: whose event it is, as in `http`.
  public func line(of service: String) -> String { isOfViewer ? what : "\(service): \(what)" }

  /// Whether it is about a viewer who comes or goes.
  public var isOfViewer: Bool {
    switch self {
    case .came, .left: true
    case .changed, .unsaid, .lacksRole, .loginsFailed, .crossSite, .turnedAway: false
    }
  }

  private var what: String {
    switch self {
    case .changed(let change): change.description
    case .unsaid(let count): "\(count) more changes, too many to be told one by one"
    case .lacksRole(let who, let place, let needed, let count):
      "\(count == 1 ? "a request" : "\(count) requests") of \(who) at \(place) refused: the role \(needed) is needed"
    case .came(let viewer, let camera):
      "viewer mjpeg \(viewer.transport.rawValue) \(viewer.place) is watching" + (camera.map { " \($0)" } ?? "")
    case .left(let viewer, let camera, let time, let pictures):
      "viewer mjpeg \(viewer.transport.rawValue) \(viewer.place) left\(camera.map { " \($0)" } ?? "") after "
        + "\(time.nanoseconds / 1_000_000_000) s: \(pictures) pictures"
    case .loginsFailed(let address, let count):
      "\(count == 1 ? "a login" : "\(count) logins") from \(address) failed: wrong name, password or token"
    case .crossSite(let count):
      "\(count == 1 ? "a request was" : "\(count) requests were") refused that came by another name, through a proxy or from "
        + "another site's page"
    case .turnedAway(let count):
      "\(count == 1 ? "a connection was" : "\(count) connections were") turned away: there are too many"
    }
  }

  /// Whether somebody ought to look into it.
  public var isWarning: Bool {
    switch self {
    case .changed, .came, .left: false
    case .unsaid, .lacksRole, .loginsFailed, .crossSite, .turnedAway: true
    }
  }
}

/// What happened at a server of the control API, from its threads to whoever shows it. What comes in floods is summed up.
public final class ControlEvents: Sendable {
  private struct Waiting {
    var events: [ControlEvent] = []
    var unsaid = 0
    var lacking: [Lacking: Int] = [:]
    var failedLogins: [String: Int] = [:]
    var crossSite = 0
    var turnedAway = 0
    var totals = Totals()
    var nextSum = MediaTime.zero
  }

  /// One who asked for more than the role allows.
  private struct Lacking: Hashable {
    let who: String
    let place: String
    let needed: String
  }

  /// What happened since the beginning.
  public struct Totals: Hashable, Sendable {
    /// Failed logins.
    public var failedLogins = 0
    /// Connections that were turned away for their number.
    public var turnedAway = 0

    /// Nothing yet.
    public init() {}
  }

  private let waiting = Mutex(Waiting())

  /// What happened since the beginning, taken or not.
  public var totals: Totals { waiting.withLock { $0.totals } }

  /// The most addresses whose failures are told apart.
  public static let limit = 64
  /// The most events that wait to be told: more than come in a second.
  static let eventLimit = 1000
  /// How often sums are told.
  static let sumInterval = MediaTime(seconds: 10)

  init() {}

  /// Takes what happened since the last call, oldest first; sums every ten seconds.
  public func take(at now: MediaTime = .now()) -> [ControlEvent] {
    waiting.withLock { waiting in
      var events = waiting.events
      waiting.events.removeAll()
      if waiting.unsaid > 0 { events.append(.unsaid(count: waiting.unsaid)) }
      waiting.unsaid = 0
      let isSilent =
        waiting.failedLogins.isEmpty && waiting.lacking.isEmpty && waiting.crossSite + waiting.turnedAway == 0
      guard now >= waiting.nextSum, !isSilent else { return events }
      waiting.nextSum = now + Self.sumInterval
      for (lacking, count) in waiting.lacking.sorted(by: { $0.key.who < $1.key.who }) {
        events.append(
          .lacksRole(who: lacking.who, place: lacking.place, needed: lacking.needed, count: count))
      }
      waiting.lacking.removeAll()
      for (address, count) in waiting.failedLogins.sorted(by: { $0.key < $1.key }) {
        events.append(.loginsFailed(address: address, count: count))
      }
      if waiting.crossSite > 0 { events.append(.crossSite(count: waiting.crossSite)) }
      if waiting.turnedAway > 0 { events.append(.turnedAway(count: waiting.turnedAway)) }
      waiting.failedLogins.removeAll()
      (waiting.crossSite, waiting.turnedAway) = (0, 0)
      return events
    }
  }

  func add(_ event: ControlEvent) {
    waiting.withLock { waiting in
      if waiting.events.count < Self.eventLimit {
        waiting.events.append(event)
      } else if case .changed = event {
        waiting.unsaid += 1
      }
    }
  }

  func loginFailed(from address: String) {
    waiting.withLock { waiting in
      waiting.totals.failedLogins += 1
      let isKnown = waiting.failedLogins[address] != nil || waiting.failedLogins.count < Self.limit
      waiting.failedLogins[isKnown ? address : "other addresses", default: 0] += 1
    }
  }

  func lacksRole(_ who: String, at place: String, needed: Role) {
    waiting.withLock { waiting in
      let lacking = Lacking(who: who, place: place, needed: needed.rawValue)
      let isKnown = waiting.lacking[lacking] != nil || waiting.lacking.count < Self.limit
      let others = Lacking(who: "others", place: "other addresses", needed: needed.rawValue)
      waiting.lacking[isKnown ? lacking : others, default: 0] += 1
    }
  }

  func refusedCrossSite() { waiting.withLock { $0.crossSite += 1 } }

  func turnedAway() {
    waiting.withLock {
      $0.turnedAway += 1
      $0.totals.turnedAway += 1
    }
  }
}

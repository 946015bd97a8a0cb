package import Platform
package import Streaming
import Synchronization

/// A change by the control API, or an attempt at one.
package struct ControlChange: Sendable, CustomStringConvertible {
  /// The most characters of ``what`` that are reported: no destination has more.
  static let limit = 1024

  let who: Requester
  /// An address, or a process of this machine.
  let from: String
  let method: String
  let path: String
  /// The change in words, as in `rtp://192.0.2.7:5004`.
  let what: String
  /// `true` if the change was made. The client gets the reason if not.
  let isDone: Bool

  /// The event's line.
  package var description: String {
    let order = "\(method) \(path)\(what.isEmpty ? "" : ": \(what)")"
    return "\(who.name) (role \(who.role.rawValue)) at \(from): \(order)\(isDone ? "" : ", not done")"
  }
}

/// An event of the control API, one line for the user at the terminal.
package enum ControlEvent: Sendable, CustomStringConvertible {
  /// A client has changed something, or tried to.
  case changed(ControlChange)
  /// The number of further changes since the last report: too many to be reported one by one.
  case unsaid(count: Int)
  /// The number of one requester's requests that were refused since the last report, for lack of a role, and the method
  /// and path of the last one; nil for requesters that are not told apart.
  case lacksRole(who: String, place: String, last: String?, needed: String, count: Int)
  /// A client watches JPEG pictures or listens to MP3, of this camera if there are several.
  case came(viewer: ViewerPeer, EndlessAnswer, camera: String?)
  /// The client has left, after this time and this number of pictures or MP3 frames.
  case left(viewer: ViewerPeer, EndlessAnswer, camera: String?, after: Duration, units: Int)
  /// A client takes single pictures, of this camera if there are several: the first one within a minute.
  case took(viewer: ViewerPeer, camera: String?)
  /// The client has taken no more for a minute: the time from its first picture to the last, and their number.
  case tookLast(viewer: ViewerPeer, camera: String?, after: Duration, pictures: Int)
  /// The number of failed logins from an address since the last report.
  case loginsFailed(address: String, count: Int)
  /// The number of requests refused since the last report, because another site's page made a browser send them.
  case crossSite(count: Int)
  /// The number of connections turned away since the last report, because there are too many.
  case turnedAway(count: Int)

  /// The line for an event of the control API.
  package var description: String { line(of: "control") }

  /// Returns the event's line.
  ///
  /// - Parameter service: the service of the event, as in `http`.
  package func line(of service: String) -> String { isOfViewer ? what : "\(service): \(what)" }

  /// `true` if a viewer joins or leaves.
  package var isOfViewer: Bool {
    switch self {
    case .came, .left, .took, .tookLast: true
    case .changed, .unsaid, .lacksRole, .loginsFailed, .crossSite, .turnedAway: false
    }
  }

  private var what: String {
    switch self {
    case .changed(let change): change.description
    case .unsaid(let count): "\(count) more changes, too many to list"
    case .lacksRole(let who, let place, let last, let needed, let count):
      "\(count == 1 ? "a request" : "\(count) requests") of \(who) at \(place) refused: "
        + (last.map { count == 1 ? $0 : "the last one, \($0)," } ?? "this") + " needs the role \(needed)"
    case .came(let viewer, let kind, let camera):
      "viewer \(kind.rawValue) \(viewer.transport.rawValue) \(viewer.place) "
        + (kind == .sound
          ? "is listening" + (camera.map { " to \($0)" } ?? "") : "is watching" + (camera.map { " \($0)" } ?? ""))
    case .left(let viewer, let kind, let camera, let time, let units):
      "viewer \(kind.rawValue) \(viewer.transport.rawValue) \(viewer.place) left\(camera.map { " \($0)" } ?? "") after "
        + "\(time.nanoseconds / 1_000_000_000) s: \(units) \(kind == .sound ? "MP3 frames" : "pictures")"
    case .took(let viewer, let camera):
      "viewer snapshot \(viewer.transport.rawValue) \(viewer.person) takes pictures\(camera.map { " of \($0)" } ?? "")"
    case .tookLast(let viewer, let camera, let time, let pictures):
      "viewer snapshot \(viewer.transport.rawValue) \(viewer.person) left\(camera.map { " \($0)" } ?? "") after "
        + "\(time.nanoseconds / 1_000_000_000) s: \(pictures == 1 ? "1 picture" : "\(pictures) pictures")"
    case .loginsFailed(let address, let count):
      "\(count == 1 ? "a login" : "\(count) logins") from \(address) failed: wrong name, password or token"
    case .crossSite(let count):
      "\(count == 1 ? "a request was" : "\(count) requests were") refused that came by another name, through a proxy or from "
        + "another site's page"
    case .turnedAway(let count):
      "\(count == 1 ? "a connection was" : "\(count) connections were") refused: there are too many"
    }
  }

  /// `true` if the event needs attention.
  package var isWarning: Bool {
    switch self {
    case .changed, .came, .left, .took, .tookLast: false
    case .unsaid, .lacksRole, .loginsFailed, .crossSite, .turnedAway: true
    }
  }
}

/// The events at a server of the control API, handed from its threads to the reader of the log. Floods of events are
/// summed up.
package final class ControlEvents: Sendable {
  private struct Waiting {
    var unsaid = 0
    var lacking = FloodCounts<Lacking>(limit: ControlEvents.limit)
    /// The method and path of the last request, of those that are counted by themselves.
    var lastRefused: [Lacking: String] = [:]
    var failedLogins = FloodCounts<String>(limit: ControlEvents.limit)
    var crossSite = 0
    var turnedAway = 0
    var totals = Totals()
    var nextSum = Instant.zero
  }

  /// A requester that asked for more than its role allows.
  private struct Lacking: Hashable {
    let who: String
    let place: String
    let needed: String
  }

  /// The totals since the start.
  package struct Totals: Hashable, Sendable {
    /// Failed logins.
    package var failedLogins = 0
    /// Connections turned away because there were too many.
    package var turnedAway = 0

    /// Creates totals of zero.
    package init() {}
  }

  private let queue = EventQueue<ControlEvent>(limit: ControlEvents.eventLimit)
  private let waiting = Mutex(Waiting())

  /// The totals since the start, taken or not.
  package var totals: Totals { waiting.withLock { $0.totals } }

  /// The most addresses whose failures are counted separately.
  package static let limit = 64
  /// The name that stands for further addresses once there are too many.
  private static let others = "other addresses"
  /// The most events that wait to be reported: more than occur in a second.
  static let eventLimit = 1000
  /// The interval between sums.
  static let sumInterval = Duration(seconds: 10)

  init() {}

  /// Takes the events since the last call, oldest first; sums every ten seconds.
  package func take(at now: Instant = .now()) -> [ControlEvent] {
    waiting.withLock { waiting in
      var events = queue.take()
      if waiting.unsaid > 0 { events.append(.unsaid(count: waiting.unsaid)) }
      waiting.unsaid = 0
      let isSilent =
        waiting.failedLogins.isEmpty && waiting.lacking.isEmpty && waiting.crossSite + waiting.turnedAway == 0
      guard now >= waiting.nextSum, !isSilent else { return events }
      waiting.nextSum = now + Self.sumInterval
      for (lacking, count) in waiting.lacking.take().sorted(by: { $0.key.who < $1.key.who }) {
        events.append(
          .lacksRole(
            who: lacking.who, place: lacking.place, last: waiting.lastRefused[lacking], needed: lacking.needed,
            count: count))
      }
      waiting.lastRefused.removeAll()
      for (address, count) in waiting.failedLogins.take().sorted(by: { $0.key < $1.key }) {
        events.append(.loginsFailed(address: address, count: count))
      }
      if waiting.crossSite > 0 { events.append(.crossSite(count: waiting.crossSite)) }
      if waiting.turnedAway > 0 { events.append(.turnedAway(count: waiting.turnedAway)) }
      (waiting.crossSite, waiting.turnedAway) = (0, 0)
      return events
    }
  }

  func add(_ event: ControlEvent) {
    if !queue.add(event), case .changed = event { waiting.withLock { $0.unsaid += 1 } }
  }

  func loginFailed(from address: String) {
    waiting.withLock { waiting in
      waiting.totals.failedLogins += 1
      waiting.failedLogins.add(address, orElse: Self.others)
    }
  }

  /// Notes a refusal.
  ///
  /// - Parameter order: the method and path of the request.
  func lacksRole(_ who: String, at place: String, order: String, needed: Role) {
    let needed = needed.rawValue
    let lacking = Lacking(who: who, place: place, needed: needed)
    waiting.withLock {
      $0.lacking.add(lacking, orElse: Lacking(who: "others", place: Self.others, needed: needed))
      let isKnown = $0.lastRefused[lacking] != nil || $0.lastRefused.count < Self.limit
      if isKnown { $0.lastRefused[lacking] = order }
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

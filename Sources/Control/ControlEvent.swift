public import Media
import Synchronization

/// What happened at the control API, one line for the person at the terminal.
public enum ControlEvent: Sendable, CustomStringConvertible {
  /// Somebody has changed something; the last word is the path, as in `/v1/bitrate`.
  case changed(who: String, address: String, method: String, path: String)
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
    case .changed, .loginsFailed, .crossSite, .turnedAway: false
    }
  }

  private var what: String {
    switch self {
    case .changed(let who, let address, let method, let path): "\(who) at \(address): \(method) \(path)"
    case .came(let viewer, let camera):
      "viewer mjpeg \(viewer.transport.rawValue) \(viewer.place) is watching" + (camera.map { " \($0)" } ?? "")
    case .left(let viewer, let camera, let time, let pictures):
      "viewer mjpeg \(viewer.transport.rawValue) \(viewer.place) left\(camera.map { " \($0)" } ?? "") after "
        + "\(time.nanoseconds / 1_000_000_000) s: \(pictures) pictures"
    case .loginsFailed(let address, let count):
      "\(count == 1 ? "a login" : "\(count) logins") from \(address) failed: wrong name, password or token"
    case .crossSite(let count):
      "\(count == 1 ? "a request was" : "\(count) requests were") refused that came by another name or from another site's page"
    case .turnedAway(let count):
      "\(count == 1 ? "a connection was" : "\(count) connections were") turned away: there are too many"
    }
  }

  /// Whether somebody ought to look into it.
  public var isWarning: Bool {
    switch self {
    case .changed, .came, .left: false
    case .loginsFailed, .crossSite, .turnedAway: true
    }
  }
}

/// What happened at a ``NetworkControlServer``, from its threads to whoever shows it. What comes in floods is summed up.
public final class ControlEvents: Sendable {
  private struct Waiting {
    var events: [ControlEvent] = []
    var failedLogins: [String: Int] = [:]
    var crossSite = 0
    var turnedAway = 0
    var totals = Totals()
    var nextSum = MediaTime.zero
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

  /// The most events that wait, and the most addresses whose failures are told apart.
  public static let limit = 64
  /// How often sums are told.
  static let sumInterval = MediaTime(seconds: 10)

  init() {}

  /// Takes what happened since the last call, oldest first; sums every ten seconds.
  public func take(at now: MediaTime = .now()) -> [ControlEvent] {
    waiting.withLock { waiting in
      var events = waiting.events
      waiting.events.removeAll()
      guard now >= waiting.nextSum, !waiting.failedLogins.isEmpty || waiting.crossSite + waiting.turnedAway > 0
      else { return events }
      waiting.nextSum = now + Self.sumInterval
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
    waiting.withLock { if $0.events.count < Self.limit { $0.events.append(event) } }
  }

  func loginFailed(from address: String) {
    waiting.withLock { waiting in
      waiting.totals.failedLogins += 1
      let isKnown = waiting.failedLogins[address] != nil || waiting.failedLogins.count < Self.limit
      waiting.failedLogins[isKnown ? address : "other addresses", default: 0] += 1
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

import Encoding
import Host
import Media
import Platform
import Streaming

/// The report to systemd while the program streams: readiness, status, and a sign of life.
struct ServiceReport {
  /// The time at which ``report(_:isServing:isWaiting:at:)`` is due again.
  private(set) var next: Instant

  private let notifier: ServiceNotifier
  private let interval: Duration
  /// The time that a stage of a stream may take for a frame; nil if systemd has no watchdog for this program.
  let limit: Duration?
  private var cameras: [String: Camera] = [:]
  private var isReady = false
  /// The time since which nothing streams, and every camera is tried again.
  private var emptySince: Instant?
  private var nextStatus: Instant

  /// The state of one camera's stream.
  private struct Camera {
    let pipeline: Pipeline
    let snapshots: SnapshotViewers
    var last: (time: Instant, sent: Int, captured: Int)
  }

  private static let emptyInterval = Duration(seconds: 5)
  private static let statusInterval = Duration(seconds: 5)
  /// The interval between checks until the first picture has left.
  private static let startInterval = Duration(seconds: 0.1)

  /// Creates the report; fails if no systemd waits for it.
  init?(at now: Instant) {
    guard let notifier = ServiceNotifier() else { return nil }
    self.notifier = notifier
    next = now
    nextStatus = now
    // systemd needs a sign of life at least at every third of its period, and a stage gets half of the period.
    let period = notifier.watchdogPeriod
    interval = min(.seconds(1), period.map { Duration(nanoseconds: $0.nanoseconds / 8) } ?? .seconds(1))
    limit = period.map { Duration(nanoseconds: $0.nanoseconds / 2) }
  }

  /// Reports on the cameras that stream; called at ``next``.
  ///
  /// - Parameters:
  ///   - isServing: `true` if viewers can connect, or a destination is waited for, so that the stream counts as ready
  ///     before it flows.
  ///   - isWaiting: `true` if every camera that does not stream is being opened, or will be tried again.
  mutating func report(
    _ pipelines: [(name: String, pipeline: Pipeline, snapshots: SnapshotViewers)], isServing: Bool, isWaiting: Bool,
    at now: Instant
  ) {
    follow(pipelines, at: now)
    let isFlowing = pipelines.contains { $0.pipeline.progress.sent > 0 }
    // An appliance whose cameras are all missing is ready, and keeps trying to open them.
    if isFlowing || !isWaiting || !pipelines.isEmpty { emptySince = nil } else if emptySince == nil { emptySince = now }
    let isEmpty = emptySince.map { now - $0 > Self.emptyInterval } ?? false
    if !isReady, isServing || isFlowing || isEmpty {
      isReady = true
      notifier.ready()
      nextStatus = now
    }
    if now >= nextStatus {
      nextStatus = now + Self.statusInterval
      tellStatus(pipelines.map(\.name), at: now)
    }
    next = now + (isReady ? interval : Self.startInterval)
  }

  /// Tells systemd that the program is alive.
  func keepAlive() { notifier.keepAlive() }

  /// Begins to follow new pipelines, and forgets those that are gone.
  private mutating func follow(
    _ pipelines: [(name: String, pipeline: Pipeline, snapshots: SnapshotViewers)], at now: Instant
  ) {
    for (name, pipeline, snapshots) in pipelines where cameras[name]?.pipeline !== pipeline {
      cameras[name] = Camera(pipeline: pipeline, snapshots: snapshots, last: (now, 0, 0))
    }
    if cameras.count > pipelines.count {
      let names = Set(pipelines.map(\.name))
      cameras = cameras.filter { names.contains($0.key) }
    }
  }

  /// Reports that the program ends on purpose, so that systemd does not restart it.
  func stopping() { notifier.stopping() }

  /// Reports `29.9 fps to 2 viewers, 30.0 fps from the camera, x264, 0 dropped`, for several cameras one after another.
  private mutating func tellStatus(_ names: [String], at now: Instant) {
    let parts = names.compactMap { name -> String? in
      guard let camera = cameras[name] else { return nil }
      let statistics = camera.pipeline.counters
      cameras[name]?.last = (now, statistics.sent, statistics.captured)
      let others = OtherViewers(camera.pipeline, statistics, camera.snapshots)
      let text = Self.text(statistics, others, since: camera.last, at: now)
      return names.count == 1 ? text : "\(name): \(text)"
    }
    notifier.status(parts.isEmpty ? "no camera streams" : parts.joined(separator: "; "))
  }

  private static func text(
    _ statistics: StreamStatistics, _ others: OtherViewers,
    since last: (time: Instant, sent: Int, captured: Int), at now: Instant
  ) -> String {
    let seconds = max((now - last.time).seconds, 0.001)
    let sent = Terminal.decimal(Double(statistics.sent - last.sent) / seconds, digits: 1)
    let captured = Terminal.decimal(Double(statistics.captured - last.captured) / seconds, digits: 1)
    let all = statistics.viewers
    let viewers = all.count - others.h264
    let who = Self.text(destinations: all.count { !$0.isGuest }, guests: all.count { $0.isGuest && !$0.getsH264 })
    let encoder = statistics.encoderName
    guard last.captured > 0 else { return "starting, \(who), \(encoder)" }
    let counts = others.counts.map { "\($0), " }.joined()
    if viewers == 0, !counts.isEmpty { return "\(counts)\(captured) fps from the camera, \(encoder) rests" }
    return viewers == 0
      ? "nobody is watching, \(captured) fps from the camera, \(encoder) rests"
      : "\(sent) fps to \(who), \(counts)\(captured) fps from the camera, \(encoder), "
        + "\(statistics.dropped) dropped"
  }

  /// Returns `2 viewers`, `1 destination`, or `1 destination and 2 viewers`.
  private static func text(destinations: Int, guests: Int) -> String {
    let viewers = guests == 1 ? "1 viewer" : "\(guests) viewers"
    let given = destinations == 1 ? "1 destination" : "\(destinations) destinations"
    if destinations == 0 { return viewers }
    return guests == 0 ? given : "\(given) and \(viewers)"
  }
}

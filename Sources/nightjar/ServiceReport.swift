import Encoding
import Media
import Streaming
import SystemService

/// What systemd is told while it streams: that it does, how it goes, and that every stage is alive.
struct ServiceReport {
  /// When ``look(_:isServing:isWaiting:isAlone:at:mend:)`` is due again.
  private(set) var next: MediaTime

  private let notifier: ServiceNotifier
  private let terminal: Terminal
  private let interval: MediaTime
  private let limit: MediaTime?
  private var cameras: [String: Camera] = [:]
  private var isReady = false
  /// Since when nothing streams, and everything is tried again.
  private var emptySince: MediaTime?
  private var nextStatus: MediaTime

  /// What is known of a camera's stream.
  private struct Camera {
    let pipeline: Pipeline
    var watch: ProgressWatch?
    var told: ProgressWatch.Stage?
    var last: (time: MediaTime, sent: Int, captured: Int)
  }

  private static let emptyInterval = MediaTime(seconds: 5)
  private static let statusInterval = MediaTime(seconds: 5)
  /// How often is looked whether the first picture has left.
  private static let startInterval = MediaTime(seconds: 0.1)

  /// Nil where no systemd waits to be told.
  init?(terminal: Terminal, at now: MediaTime) {
    guard let notifier = ServiceNotifier() else { return nil }
    self.notifier = notifier
    self.terminal = terminal
    next = now
    nextStatus = now
    // systemd wants a sign of life at every third of its period at least, and a stage gets half of it.
    let period = notifier.watchdogPeriod
    interval = min(.second, period.map { MediaTime(nanoseconds: $0.nanoseconds / 8) } ?? .second)
    limit = period.map { MediaTime(nanoseconds: $0.nanoseconds / 2) }
  }

  /// Tells what there is to tell of the cameras that stream; at ``next``, and at any time before.
  ///
  /// - Parameters:
  ///   - isServing: whether viewers can come by themselves, or a destination is waited for, so that the stream is there
  ///     before it flows.
  ///   - isWaiting: whether all that does not stream is being seen to: opened, or tried again in a while.
  ///   - isAlone: whether there is one camera in all: that it stands still is what the watchdog is for.
  ///   - mend: what is done about a camera that stands still beside others.
  mutating func look(
    _ pipelines: [(name: String, pipeline: Pipeline)], isServing: Bool, isWaiting: Bool, isAlone: Bool,
    at now: MediaTime, mend: (String) -> Void
  ) {
    guard now >= next else { return }
    follow(pipelines, at: now)
    let isFlowing = pipelines.contains { $0.pipeline.progress.sent > 0 }
    // A box whose cameras are all away has done what it can, and sees to them.
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
    guard limit != nil else { return }
    var isAlive = isWaiting || !pipelines.isEmpty
    for (name, pipeline) in pipelines {
      cameras[name]?.watch?.look(pipeline.progress, at: now)
      let stage = cameras[name]?.watch?.stuck
      tellStuck(stage, of: name, isAlone: isAlone)
      guard stage != nil else { continue }
      if isAlone { isAlive = false } else { mend(name) }
    }
    if isAlive { notifier.keepAlive() }
  }

  /// Begins to watch those that are new, and forgets those that are gone.
  private mutating func follow(_ pipelines: [(name: String, pipeline: Pipeline)], at now: MediaTime) {
    for (name, pipeline) in pipelines where cameras[name]?.pipeline !== pipeline {
      let interval = pipeline.sourceFormat.frameRate.interval
      cameras[name] = Camera(
        pipeline: pipeline, watch: limit.map { ProgressWatch(limit: $0, frameInterval: interval, at: now) },
        last: (now, 0, 0))
    }
    if cameras.count > pipelines.count {
      let names = Set(pipelines.map(\.name))
      cameras = cameras.filter { names.contains($0.key) }
    }
  }

  /// The program ends, and is not to be started again for that.
  func stopping() { notifier.stopping() }

  private mutating func tellStuck(_ stage: ProgressWatch.Stage?, of name: String, isAlone: Bool) {
    let told = cameras[name]?.told
    guard stage != told else { return }
    cameras[name]?.told = stage
    let whose = isAlone ? "" : "\(name): "
    guard let stage else {
      if let told { terminal.line("\(whose)\(told.rawValue) goes on again", event: "recovered") }
      return
    }
    let consequence =
      isAlone ? "unless it goes on, systemd's watchdog ends this program and starts it again" : "it is begun anew"
    terminal.line("\(whose)\(stage.rawValue) stands still: \(stage.lack); \(consequence)", .error, event: "stuck")
  }

  /// `29.9 fps to 2 viewers, 30.0 fps from the camera, x264, 0 dropped`, of several cameras one after another.
  private mutating func tellStatus(_ names: [String], at now: MediaTime) {
    let parts = names.compactMap { name -> String? in
      guard let camera = cameras[name] else { return nil }
      let statistics = camera.pipeline.counters
      let lookers = camera.pipeline.pictureStatistics.viewers.count { !$0.isSnapshot }
      cameras[name]?.last = (now, statistics.sent, statistics.captured)
      let text = Self.text(statistics, lookers: lookers, since: camera.last, at: now)
      return names.count == 1 ? text : "\(name): \(text)"
    }
    notifier.status(parts.isEmpty ? "no camera streams" : parts.joined(separator: "; "))
  }

  private static func text(
    _ statistics: StreamStatistics, lookers: Int, since last: (time: MediaTime, sent: Int, captured: Int),
    at now: MediaTime
  ) -> String {
    let seconds = max((now - last.time).seconds, 0.001)
    let sent = Terminal.decimal(Double(statistics.sent - last.sent) / seconds, digits: 1)
    let captured = Terminal.decimal(Double(statistics.captured - last.captured) / seconds, digits: 1)
    let viewers = statistics.destinations.count
    let who = viewers == 1 ? "1 viewer" : "\(viewers) viewers"
    let encoder = statistics.encoderName
    guard last.captured > 0 else { return "starting, \(who), \(encoder)" }
    let looking = lookers == 0 ? "" : "\(lookers) by MJPEG, "
    if viewers == 0, lookers > 0 { return "\(looking)\(captured) fps from the camera, \(encoder) rests" }
    return viewers == 0
      ? "nobody is watching, \(captured) fps from the camera, \(encoder) rests"
      : "\(sent) fps to \(who), \(looking)\(captured) fps from the camera, \(encoder), "
        + "\(statistics.dropped) dropped"
  }
}

extension MediaTime {
  fileprivate static let second = MediaTime(seconds: 1)
}

extension ProgressWatch.Stage {
  /// What a stage that stands still does not do.
  fileprivate var lack: String {
    switch self {
    case .capture: "no frame has come"
    case .encode: "frames come and are not encoded"
    case .send: "pictures are encoded and not sent"
    }
  }
}

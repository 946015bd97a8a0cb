import Encoding
import Media
import Streaming
import SystemService

/// What systemd is told while it streams: that it does, how it goes, and that every stage is alive.
struct ServiceReport {
  /// When ``look(_:at:)`` is due again.
  private(set) var next: MediaTime

  private let notifier: ServiceNotifier
  private let terminal: Terminal
  private let isServing: Bool
  private let interval: MediaTime
  private var watch: ProgressWatch?
  private var isReady = false
  private var told: ProgressWatch.Stage?
  private var lastStatus: (time: MediaTime, sent: Int, captured: Int)

  private static let statusInterval = MediaTime(seconds: 5)
  /// How often is looked whether the first picture has left.
  private static let startInterval = MediaTime(seconds: 0.1)

  /// Nil where no systemd waits to be told.
  ///
  /// - Parameter isServing: whether viewers can come by themselves, so that the stream is there before it flows.
  init?(_ pipeline: Pipeline, terminal: Terminal, isServing: Bool, at now: MediaTime) {
    guard let notifier = ServiceNotifier() else { return nil }
    self.notifier = notifier
    self.terminal = terminal
    self.isServing = isServing
    next = now
    lastStatus = (now, 0, 0)
    // systemd wants a sign of life at every third of its period at least, and a stage gets half of it.
    let period = notifier.watchdogPeriod
    interval = min(.second, period.map { MediaTime(nanoseconds: $0.nanoseconds / 8) } ?? .second)
    watch = period.map {
      ProgressWatch(
        limit: MediaTime(nanoseconds: $0.nanoseconds / 2), frameInterval: pipeline.sourceFormat.frameRate.interval,
        at: now)
    }
  }

  /// Tells what there is to tell; at ``next``, and at any time before.
  mutating func look(_ pipeline: Pipeline, at now: MediaTime) {
    guard now >= next else { return }
    let progress = pipeline.progress
    if !isReady, isServing || progress.sent > 0 {
      isReady = true
      notifier.ready()
      tellStatus(pipeline.statistics, at: now)
    } else if now - lastStatus.time >= Self.statusInterval {
      tellStatus(pipeline.statistics, at: now)
    }
    next = now + (isReady ? interval : Self.startInterval)
    guard watch != nil else { return }
    watch?.look(progress, at: now)
    tellStuck(watch?.stuck)
    if watch?.stuck == nil { notifier.keepAlive() }
  }

  /// The program ends, and is not to be started again for that.
  func stopping() { notifier.stopping() }

  private mutating func tellStuck(_ stage: ProgressWatch.Stage?) {
    guard stage != told else { return }
    defer { told = stage }
    guard let stage else {
      if let told { terminal.line("\(told.rawValue) goes on again", event: "recovered") }
      return
    }
    terminal.line(
      "\(stage.rawValue) stands still: \(stage.lack); unless it goes on, systemd's watchdog ends this program and starts "
        + "it again", .error, event: "stuck")
  }

  private mutating func tellStatus(_ statistics: StreamStatistics, at now: MediaTime) {
    let seconds = max((now - lastStatus.time).seconds, 0.001)
    let sent = Double(statistics.sent - lastStatus.sent) / seconds
    let captured = Double(statistics.captured - lastStatus.captured) / seconds
    let isFirst = lastStatus.captured == 0
    lastStatus = (now, statistics.sent, statistics.captured)
    let viewers = statistics.destinations.count
    let who = viewers == 1 ? "1 viewer" : "\(viewers) viewers"
    let encoder = statistics.encoderName
    guard !isFirst else { return notifier.status("starting, \(who), \(encoder)") }
    let camera = "\(Terminal.decimal(captured, digits: 1)) fps from the camera"
    notifier.status(
      viewers == 0
        ? "nobody is watching, \(camera), \(encoder) rests"
        : "\(Terminal.decimal(sent, digits: 1)) fps to \(who), \(camera), \(encoder), \(statistics.dropped) dropped")
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

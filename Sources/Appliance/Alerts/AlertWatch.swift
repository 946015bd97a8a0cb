import Alerts
import CLinux
import Delivery
import Glibc
import Platform
import Serving
import Synchronization

/// Looks for alerts once a second, on a thread of its own, and records them. Neither frames nor the main thread wait for
/// it: it reads what they publish, and only this thread waits for the file system of the history.
final class AlertWatch: @unchecked Sendable {
  // Sendable: `thread` belongs to the main thread. All other state is constant, or under a lock.

  private struct State {
    var hasEnded = false
    var settings: EventSettings
  }

  private let figures: ApplianceFigures
  private let history: AlertHistory
  private let feed: LiveFeed
  private let monitor = Monitor()
  private let state: Mutex<State>
  private var thread: NamedThread?

  private static let interval = Duration.seconds(1)
  /// The number of looks from one measurement of the file system's room to the next, and from one write to the disk.
  private static let settlingLooks = 10

  init(_ figures: ApplianceFigures, _ history: AlertHistory, _ feed: LiveFeed, _ settings: EventSettings) {
    (self.figures, self.history, self.feed) = (figures, history, feed)
    state = Mutex(State(settings: settings))
  }

  /// Starts the thread.
  ///
  /// - Throws: ``SystemFailure`` if the system has no thread left.
  func start() throws(SystemFailure) {
    thread = try NamedThread("nj-alerts") { [self] in run() }
  }

  /// Sets other quiet hours, and whether pictures are taken. Any thread may call it.
  func set(_ settings: EventSettings) { state.withLock { $0.settings = settings } }

  /// Ends the thread after its last look. A thread that a file system holds is left behind.
  func stop() {
    state.withLock { $0.hasEnded = true }
    monitor.locked { monitor.signal() }
    if let thread = thread.take() { thread.detach() }
  }

  private func run() {
    var policy = AlertPolicy(open: history.open, at: .now())
    var alerts = ApplianceAlerts()
    var pictures = EventPictures(feed)
    var room: Int?
    var looks = 0
    var next = Instant.now() + Self.interval
    while true {
      let now = Instant.now()
      let (hasEnded, settings) = state.withLock { ($0.hasEnded, $0.settings) }
      if hasEnded { break }
      if looks % Self.settlingLooks == 0 { room = history.path.flatMap(Self.room) }
      let sent = settings.outputs.mqtt.sent(settings.takesPictures)
      pictures.follow(settings.takesPictures || sent != .none ? figures.illustratedPipelines() : [:])
      let readings = figures.readings()
      // Without MQTT, nothing is allocated for it.
      if feed.isFollowed { publish(readings) }
      let conditions = alerts.look(
        readings, roomOfHistory: room, errorOfHistory: history.errorNumber, at: now)
      let isQuiet = settings.quietHours?.contains(seconds: AlertClock.seconds(of: now, at: now)) ?? false
      let decisions = policy.look(conditions, at: now)
      pictures.record(
        decisions, in: history, isQuiet: isQuiet, keepsPictures: settings.takesPictures, room: room, at: now)
      if let interval = sent.interval { pictures.show(each: interval, at: now) }
      looks += 1
      if !decisions.isEmpty || looks % Self.settlingLooks == 0 { history.settle() }
      monitor.locked { _ = monitor.wait(until: next) }
      next = max(next, .now()) + Self.interval
    }
    history.settle()
  }

  /// Hands the figures to MQTT.
  private func publish(_ readings: [CameraReading]) {
    let levels = readings.compactMap { reading in reading.level.map { (reading.name, $0) } }
    feed.set(
      levels: Dictionary(levels) { $1 }, temperature: readings.lazy.compactMap(\.temperature).first)
  }

  /// Returns the free bytes for this user of the file system that has the file at `path`; nil if nobody knows.
  private static func room(_ path: String) -> Int? {
    var status = statvfs()
    guard statvfs(path, &status) == 0 else { return nil }
    return Int(clamping: UInt64(status.f_bavail).multipliedReportingOverflow(by: UInt64(status.f_frsize)).partialValue)
  }
}

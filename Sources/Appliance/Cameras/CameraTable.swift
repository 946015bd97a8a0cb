import Host
package import Platform
import Serving
import Streaming

/// The cameras of an appliance, independent of pipelines, threads and clocks. The table takes events, and returns their
/// effects, which the run carries out in order. What comes of an effect is another event.
///
/// A camera streams, or some work on it is under way, or both, or its next attempt has a time, or its source has come to
/// its end.
package struct CameraTable: Sendable {
  /// A camera, and its state.
  package struct Entry: Sendable {
    /// The number that distinguishes this camera from every other one of the run.
    package let number: Int
    /// The camera's configuration.
    package var configuration: CameraConfiguration
    /// The time since which the camera streams; nil while it does not.
    var streamingSince: Instant?
    /// The work under way on the camera.
    var work: Work?
    /// `true` while missing destinations are searched for.
    var isSearching = false
    /// The changes that failed, in whole or in part.
    package var unmet: Set<CameraChange> = []
    /// `true` if the camera may keep standby encoders prepared.
    package var keepsStandby = false
    /// The time of the next attempt to open the camera; nil if no attempt is due.
    var retry: Instant?
    /// `true` if the source has come to its end.
    var isOver = false
    /// The number of standstills after which the stream was restarted.
    package var standstills = 0
    /// The reason for the last failure; nil after a while of streaming.
    var complaint: String?
    var backOff = RetryBackOff()
    var watch: ProgressWatch?
    var toldStage: ProgressWatch.Stage?

    /// The camera's name.
    var name: String { configuration.name }
    /// `true` if the camera streams.
    package var isStreaming: Bool { streamingSince != nil }

    /// The reason why the camera does not stream; nil while it streams.
    package var absence: String? {
      guard !isStreaming else { return nil }
      return isOver ? "its source has ended" : complaint ?? "it is being opened"
    }

    /// Returns `true` if the camera will stream without intervention. A camera that hangs in a driver, or stood still
    /// repeatedly, will not.
    func isSeenTo(at now: Instant) -> Bool {
      if let work { return now - work.since < RetryBackOff.longest }
      return isOver || retry != nil && standstills <= 2
    }
  }

  /// Work on a camera, which may wait for a driver.
  struct Work: Sendable {
    /// The changes that are being made to the stream; nil if the camera is being opened.
    var changes: Set<CameraChange>?
    let since: Instant
    /// `true` if the result is no longer needed.
    var isStale = false
    /// The changes to make once the work is done.
    var queued: Set<CameraChange> = []
    /// `true` if some of the changes failed.
    var hasFailed = false
  }

  /// The progress of a reload.
  struct Reload: Sendable {
    /// The time of the request.
    let asked: Instant
    var answer = ReloadAnswer(cameras: [])
    /// The cameras with work still under way, and the outcome that their work leads to.
    var pending: [String: ReloadAnswer.Camera] = [:]
    var serversFollow = false
  }

  /// The configuration of the appliance.
  private(set) var configuration: ApplianceConfiguration
  /// The cameras, in the order of the configuration.
  package var entries: [Entry] = []
  var reload: Reload?
  /// The changes of servers since the last reload, which the next one's answer tells.
  var serverChanges: [String] = []
  private(set) var isServed: Bool
  private var lastNumber = 0

  /// Creates the table with the cameras of `configuration`, none of which streams.
  package init(_ configuration: ApplianceConfiguration, isServed: Bool) {
    (self.configuration, self.isServed) = (configuration, isServed)
    for camera in configuration.cameras { entries.append(entry(camera)) }
  }

  /// The circumstances that decide what a camera needs.
  var circumstances: CameraCircumstances {
    CameraCircumstances(
      hasControl: configuration.control != "none", isServed: isServed,
      isOneOfSeveral: configuration.cameras.count > 1, servesBrowsers: configuration.servesBrowsers)
  }

  /// `true` if the end of the only camera is the end of the program.
  package var endsWithItsCamera: Bool { entries.count == 1 && reload == nil }

  /// `true` if no camera has anything more to stream.
  package var isOver: Bool { entries.allSatisfy { $0.isOver && $0.work == nil } }

  /// `true` if every camera that does not stream is being opened, or will be tried again.
  package func isWaiting(at now: Instant) -> Bool { entries.allSatisfy { $0.isStreaming || $0.isSeenTo(at: now) } }

  /// The time of the next ``Event/tick``; nil if none is due.
  package var deadline: Instant? { entries.lazy.compactMap(\.retry).min() }

  /// Returns the camera with this number; nil if there is none any more.
  package subscript(number: Int) -> Entry? { entries.first { $0.number == number } }

  /// Opens all cameras that do not stream: at the start, where none has to be open before the program goes on.
  package mutating func begin(at now: Instant) -> [Effect] {
    var effects: [Effect] = []
    for index in entries.indices where !entries[index].isStreaming { open(index, at: now, &effects) }
    return effects
  }

  /// Notes the only camera's stream, which was opened before the program goes on.
  package mutating func beginAlone(at now: Instant) {
    entries[0].keepsStandby = true
    entries[0].streamingSince = now
  }

  /// Takes an event, and returns its effects.
  package mutating func handle(_ event: Event, at now: Instant) -> [Effect] {
    var effects: [Effect] = []
    switch event {
    case .reload(let new, let isServed, let asked, let warnings, let observations):
      follow(new, isServed: isServed, asked: asked, warnings, observations, at: now, &effects)
    case .serversFollowed:
      reload?.serversFollow = false
      effects.append(.publish)
    case .serverChanged(let text):
      if reload != nil {
        reload?.answer.server.append(text)
      } else if !serverChanges.contains(text) {
        serverChanges.append(text)
      }
    case .workEnded(let number, let outcome):
      if let index = index(number) { take(outcome, index, at: now, &effects) }
    case .workFailed(let number, let reason):
      if let index = index(number) { workFailed(index, reason, at: now, &effects) }
    case .adopted(let number, let failure):
      if let index = index(number) { adopted(index, failure, at: now, &effects) }
    case .streams(let number):
      if let index = index(number) { streams(index, at: now, &effects) }
    case .ended(let number, let failure):
      if let index = index(number) { ended(index, failure, at: now, &effects) }
    case .searches(let number, let isSearching):
      guard let index = index(number) else { break }
      entries[index].isSearching = isSearching
      settle(index)
    case .refusedDestination(let number):
      if let index = index(number) { entries[index].unmet.insert(.setting(.to)) }
    case .complaint(let number, let text, let event): complain(text, of: number, event: event, &effects)
    case .progress(let progress, let intervals, let limit):
      watch(progress, intervals, limit: limit, at: now, &effects)
    case .tick: tick(at: now, &effects)
    case .carriedOut: endReload(&effects)
    }
    return effects
  }

  /// Adopts another configuration, whose cameras are not entries yet. What applies at the start stays as it was then.
  mutating func adopt(_ configuration: ApplianceConfiguration, isServed: Bool) {
    (self.configuration, self.isServed) = (configuration.keepingStart(of: self.configuration), isServed)
  }

  // MARK: One camera

  /// Creates the entry of a camera.
  mutating func entry(_ camera: CameraConfiguration) -> Entry {
    lastNumber += 1
    return Entry(number: lastNumber, configuration: camera)
  }

  private func index(_ number: Int) -> Int? { entries.firstIndex { $0.number == number } }

  /// Begins to open a camera.
  mutating func open(_ index: Int, at now: Instant, _ effects: inout [Effect]) {
    let others = entries.indices.count { $0 != index && entries[$0].keepsStandby }
    entries[index].keepsStandby = others < ApplianceConfiguration.standbyLimit
    entries[index].retry = nil
    entries[index].work = Work(changes: nil, since: now)
    effects.append(.open(entries[index].number))
  }

  /// Stops a camera's stream. `source` is what it has now.
  mutating func release(_ index: Int, _ source: SourceSelection, _ effects: inout [Effect]) {
    entries[index].keepsStandby = false
    guard entries[index].isStreaming else { return }
    stop(index)
    effects.append(.release(entries[index].number, source))
  }

  private mutating func stop(_ index: Int) {
    entries[index].streamingSince = nil
    entries[index].isSearching = false
    entries[index].watch = nil
    entries[index].toldStage = nil
  }

  /// Begins to change a camera's stream.
  mutating func change(_ index: Int, _ changes: Set<CameraChange>, at now: Instant, _ effects: inout [Effect]) {
    entries[index].work = Work(changes: changes, since: now)
    effects.append(.change(entries[index].number, changes))
  }

  /// Notes that a camera does not stream. Further attempts follow after 1, 2, 4, … 60 s.
  mutating func fail(_ index: Int, _ reason: String, at now: Instant, _ effects: inout [Effect]) {
    stop(index)
    entries[index].retry = now + entries[index].backOff.failed(after: .zero)
    // Once: an unchanged reason is no news.
    if reason != entries[index].complaint {
      effects.append(.tell(entries[index].number, "\(reason); nightjar tries again", .error, event: "camera_failed"))
    }
    entries[index].complaint = reason
    if reload?.pending[entries[index].name] != nil {
      reload?.answer.warnings.append("\(entries[index].name): \(reason); nightjar tries again")
    }
  }

  private mutating func take(_ outcome: Outcome, _ index: Int, at now: Instant, _ effects: inout [Effect]) {
    guard let work = entries[index].work else { return }
    if work.isStale {
      // A camera that was opened in vain is released before it is opened again.
      release(index, entries[index].configuration.source, &effects)
      open(index, at: now, &effects)
      effects.append(.close)
      return settleAndPublish(index, &effects)
    }
    switch outcome {
    case .opened:
      // The work is done once the stream has begun.
      effects.append(.begin(entries[index].number))
    case .changed(let complaints):
      for complaint in complaints { complain(complaint, of: entries[index].number, event: "reload", &effects) }
      entries[index].work?.hasFailed = !complaints.isEmpty
      // The work is done once all parts of the stream have the changes.
      effects.append(.adopt(entries[index].number, work.changes ?? []))
    case .failed(let reason): workFailed(index, reason, at: now, &effects)
    }
  }

  private mutating func adopted(_ index: Int, _ failure: String?, at now: Instant, _ effects: inout [Effect]) {
    guard let work = entries[index].work else { return }
    if let failure { complain(failure, of: entries[index].number, event: "reload", &effects) }
    entries[index].work = nil
    entries[index].unmet = failure != nil || work.hasFailed ? work.changes ?? [] : []
    changeMore(index, work.queued, at: now, &effects)
    settleAndPublish(index, &effects)
  }

  private mutating func workFailed(_ index: Int, _ reason: String, at now: Instant, _ effects: inout [Effect]) {
    let work = entries[index].work
    entries[index].work = nil
    if entries[index].isStreaming {
      entries[index].unmet.formUnion(work?.changes ?? [])
      complain(reason, of: entries[index].number, event: "reload", &effects)
      changeMore(index, work?.queued ?? [], at: now, &effects)
    } else {
      fail(index, reason, at: now, &effects)
    }
    settleAndPublish(index, &effects)
  }

  private mutating func streams(_ index: Int, at now: Instant, _ effects: inout [Effect]) {
    let queued = entries[index].work?.queued ?? []
    entries[index].work = nil
    entries[index].streamingSince = now
    effects += [.publish, .introduce(entries[index].number)]
    changeMore(index, queued, at: now, &effects)
    settleAndPublish(index, &effects)
  }

  /// Makes the changes that were requested while other work was under way.
  private mutating func changeMore(
    _ index: Int, _ queued: Set<CameraChange>, at now: Instant, _ effects: inout [Effect]
  ) {
    guard entries[index].isStreaming, !queued.isEmpty else { return }
    change(index, queued.union(entries[index].unmet), at: now, &effects)
  }

  private mutating func ended(_ index: Int, _ failure: String?, at now: Instant, _ effects: inout [Effect]) {
    stop(index)
    effects.append(.publish)
    if let failure {
      fail(index, failure, at: now, &effects)
    } else {
      entries[index].isOver = true
      effects.append(.tell(entries[index].number, "the source has ended", .info, event: "ended"))
    }
    settle(index)
  }

  private mutating func tick(at now: Instant, _ effects: inout [Effect]) {
    for index in entries.indices {
      // After a while of streaming, the next failure counts as the first again.
      if let since = entries[index].streamingSince, now - since > RetryBackOff.stable {
        entries[index].backOff = RetryBackOff()
        entries[index].complaint = nil
        entries[index].standstills = 0
      }
      if let retry = entries[index].retry, retry <= now { open(index, at: now, &effects) }
    }
    lookAtReload(at: now, &effects)
  }

  private mutating func settleAndPublish(_ index: Int, _ effects: inout [Effect]) {
    settle(index)
    effects.append(.publish)
  }
}

/// The circumstances in an appliance that decide what a camera needs.
struct CameraCircumstances: Hashable, Sendable {
  /// `true` if a client may request another orientation.
  var hasControl: Bool
  /// `true` if viewers can connect by RTSP.
  var isServed: Bool
  /// `true` if there are other cameras, which a missing camera must not hold up.
  var isOneOfSeveral: Bool
  /// `true` if browsers may watch by WebRTC, which they do with constrained baseline.
  var servesBrowsers = false
}

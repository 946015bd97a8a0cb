import Host
import Platform
import Serving

extension CameraTable {
  /// The time that a reload waits for its cameras. Clients wait longer for the answer.
  static let reloadPatience = Duration(seconds: 7)

  mutating func follow(
    _ new: ApplianceConfiguration, isServed: Bool, asked: Instant, _ warnings: [String],
    _ observations: [Int: Observation], at now: Instant, _ effects: inout [Effect]
  ) {
    var reload = Reload(asked: asked)
    reload.answer.warnings = warnings
    reload.answer.server = serverChanges
    serverChanges = []
    reload.serversFollow = true
    self.reload = reload
    let (former, old) = (entries, circumstances)
    let isServedAnew = self.isServed != isServed
    adopt(new, isServed: isServed)
    entries = new.cameras.map { camera in former.first { $0.name == camera.name } ?? entry(camera) }
    // A camera that one entry releases may be the one that another entry opens.
    for entry in former where self[entry.number] == nil {
      if entry.isStreaming { effects.append(.release(entry.number, entry.configuration.source)) }
      effects.append(.tell(nil, "\(entry.name): removed from the configuration", .info, event: "removed"))
      note(entry.name, .removed, [])
    }
    var opening: [Int] = []
    for (index, camera) in new.cameras.enumerated() {
      let number = entries[index].number
      if former.contains(where: { $0.number == number }) {
        var changes = camera.changes(from: entries[index].configuration).union(entries[index].unmet)
        // The RTSP server decides if the encoder may rest.
        if isServedAnew { changes.insert(.service) }
        let observation = observations[number] ?? Observation()
        if follow(index, camera, changes, from: old, observation, at: now, &effects) { opening.append(index) }
      } else {
        // The same camera under another name.
        let former = former.first { entry in self[entry.number] == nil && entry.configuration.source == camera.source }
        effects.append(.add(number, after: former?.number))
        wait(entries[index].name, .added, [])
        opening.append(index)
      }
    }
    for entry in former where self[entry.number] == nil { effects.append(.remove(entry.number)) }
    for index in opening { open(index, at: now, &effects) }
    effects.append(.close)
  }

  /// Applies the new configuration to a camera. Returns `true` if the camera is to be opened for the change.
  private mutating func follow(
    _ index: Int, _ camera: CameraConfiguration, _ differences: Set<CameraChange>, from old: CameraCircumstances,
    _ observation: Observation, at now: Instant, _ effects: inout [Effect]
  ) -> Bool {
    let (entry, former, new) = (entries[index], entries[index].configuration, circumstances)
    var changes = differences
    // Without configured destinations, the other cameras decide the default.
    if former.destinations(in: old) != camera.destinations(in: new) { changes.insert(.setting(.to)) }
    // Browsers decide the profile.
    if former.encoding.profile(isBaselineNeeded: old.servesBrowsers)
      != camera.encoding.profile(isBaselineNeeded: new.servesBrowsers)
    {
      changes.insert(.setting(.profile))
    }
    if entry.isStreaming {
      // Changes by `nightjar ctl` since then go back to the configured values.
      changes.formUnion(observation.controlled)
      // Missing destinations are searched for at once.
      if observation.lacksDestination { changes.insert(.setting(.to)) }
    }
    let told = changes.sorted { $0.name < $1.name }.map(camera.text)
    effects.append(.follow(entry.number, sourceChanged: former.source != camera.source))
    entries[index].configuration = camera
    entries[index].unmet = []
    // A picture that cannot rotate needs another pipeline.
    let canRotate = !changes.changesOrientation || former.turns(in: old) && camera.turns(in: new)
    let isLive = entry.isStreaming && canRotate && changes.allSatisfy(\.isLive)
    if let work = entry.work {
      if isLive, !work.isStale {
        // The camera is changed once more when the present work is done.
        entries[index].work?.queued.formUnion(changes)
        wait(entry.name, changes.isEmpty ? .unchanged : .changed, told)
        return false
      }
      // The result of the present work is no longer needed.
      if !changes.isEmpty { entries[index].work?.isStale = true }
      wait(entry.name, changes.isEmpty ? .unchanged : .restarted, told)
      return false
    }
    guard !changes.isEmpty || !entry.isStreaming && !entry.isOver else {
      note(entry.name, .unchanged, [])
      return false
    }
    if isLive {
      wait(entry.name, .changed, told)
      change(index, changes, at: now, &effects)
      return false
    }
    wait(entry.name, changes.isEmpty ? .unchanged : .restarted, told)
    if entry.isStreaming {
      let names = changes.map(\.name).sorted().joined(separator: ", ")
      effects.append(.tell(entry.number, "restarts, for \(names)", .info, event: "restarted"))
      release(index, former.source, &effects)
    }
    entries[index].isOver = false
    return true
  }

  // MARK: The answer

  private mutating func note(_ name: String, _ outcome: ReloadAnswer.Outcome, _ changes: [String]) {
    reload?.answer.cameras.append(ReloadAnswer.Camera(name: name, outcome: outcome, changes: changes))
  }

  private mutating func wait(_ name: String, _ outcome: ReloadAnswer.Outcome, _ changes: [String]) {
    reload?.pending[name] = ReloadAnswer.Camera(name: name, outcome: outcome, changes: changes)
  }

  /// Ends the wait for a camera that has no work under way.
  mutating func settle(_ index: Int) {
    if entries[index].work == nil, !entries[index].isSearching { settle(entries[index].name) }
  }

  private mutating func settle(_ name: String) {
    guard let camera = reload?.pending.removeValue(forKey: name) else { return }
    reload?.answer.cameras.append(camera)
  }

  /// Answers a reload whose cameras take longer than its client waits. The work on the cameras goes on.
  mutating func lookAtReload(at now: Instant, _ effects: inout [Effect]) {
    guard let reload else { return }
    let warning = "an earlier reload waits for a camera; this one follows it later"
    effects.append(
      .answerWaiters(since: now - Self.reloadPatience, ReloadAnswer(cameras: [], warnings: [warning])))
    guard now - reload.asked > Self.reloadPatience else { return }
    for name in reload.pending.keys.sorted() {
      self.reload?.answer.warnings.append("\(name): it takes long, and continues after this answer")
      settle(name)
    }
  }

  /// Answers the reload once no camera is pending, and everything is carried out that may be told in the answer.
  mutating func endReload(_ effects: inout [Effect]) {
    guard let reload, reload.pending.isEmpty, !reload.serversFollow else { return }
    self.reload = nil
    let answer = reload.answer
    let changed = answer.cameras.filter { $0.outcome != .unchanged }
    let words = changed.map { "\($0.name) \($0.outcome.rawValue)" } + answer.server
    let text = words.isEmpty ? "nothing has changed" : words.joined(separator: ", ")
    effects.append(.tell(nil, "reloaded: \(text)", .info, event: "reloaded"))
    for warning in answer.warnings { effects.append(.tell(nil, warning, .warning, event: "reload")) }
    effects.append(.answer(answer))
  }

  /// Tells of a failure: during a reload in its answer, which also goes to the log at its end, otherwise in the log.
  mutating func complain(_ text: String, of number: Int?, event: String, _ effects: inout [Effect]) {
    guard reload == nil else {
      let name = number.flatMap { self[$0]?.name }
      reload?.answer.warnings.append(name.map { "\($0): \(text)" } ?? text)
      return
    }
    effects.append(.tell(number, text, .warning, event: event))
  }
}

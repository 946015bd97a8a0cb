import Control
import Media
import RTSPServer
import Streaming
import SystemService

/// What a reload has led to so far.
struct Reloading {
  /// When it was asked for.
  let asked: MediaTime
  var answer = ReloadAnswer(cameras: [])
  /// The cameras that something is still being done about, and what will have become of them.
  var pending: [String: ReloadAnswer.Camera] = [:]

  /// Notes what became of a camera.
  mutating func note(_ name: String, _ outcome: ReloadAnswer.Outcome, _ changes: [String] = []) {
    answer.cameras.append(ReloadAnswer.Camera(name: name, outcome: outcome, changes: changes))
  }

  mutating func wait(for name: String, _ outcome: ReloadAnswer.Outcome, _ changes: [String] = []) {
    pending[name] = ReloadAnswer.Camera(name: name, outcome: outcome, changes: changes)
  }
}

extension StreamSession {
  /// How long a reload waits for its cameras: less than who waits for it.
  private static let reloadPatience = MediaTime(seconds: 7)
  /// How long an answer is given to leave.
  private static let answerTime = MediaTime(seconds: 0.3)

  /// Does what others have asked for; one reload at a time.
  func takeReloads() {
    guard reloading == nil, let asked = control.beginReload() else { return }
    let notes = Notes()
    do {
      let new = try loadConfiguration()
      let served = try new.box.serving.configuration(sockets: sockets, after: serving, notes)
      let servedAPI = try new.box.api.configuration(new.box.serving, rtsp: served, after: servingAPI, notes)
      let servedHTTP = try new.box.http.configuration(new.box.serving, rtsp: served, after: servingHTTP)
      reloading = Reloading(asked: asked)
      reloading?.answer.warnings = new.warnings + new.overridden(since: configuration)
      // What is told once when a server begins is no news as long as it goes on.
      for note in notes.take() where note.level == .warning { reloading?.answer.warnings.append(note.text) }
      let late = new.changes(from: configuration).intersection(StreamCommand.startOptions)
      for option in late.sorted() { reloading?.answer.warnings.append("\(option): from the next start on") }
      apply(new, served, servedAPI, servedHTTP)
    } catch {
      terminal.line("not reloaded, everything goes on as it was: \(error)", .error, event: "reload_refused")
      control.endReload(.failure(error))
    }
  }

  private func apply(
    _ new: BoxConfiguration, _ served: ServerConfiguration?, _ servedAPI: NetworkControlServer.Configuration?,
    _ servedHTTP: ReadingServer.Configuration?
  ) {
    let former = slots
    let places = Dictionary(uniqueKeysWithValues: former.map { ($0.name, place(of: $0)) })
    configuration = new
    // What servers have counted whose place another one may take.
    control.figures.look(rtsp: rtsp, https: api, http: http)
    let (oldServing, oldAPI, oldHTTP) = (serving, servingAPI, servingHTTP)
    (serving, servingAPI, servingHTTP) = (served, servedAPI, servedHTTP)
    let isServedAnew = (oldServing == nil) != (served == nil)
    let kept = new.streams.map { camera in former.first { $0.name == camera.name } ?? slot(camera) }
    slots = kept
    // What is let go of first may be what another is to have.
    for slot in former where !kept.contains(where: { $0 === slot }) { leave(slot) }
    var begun: [CameraSlot] = []
    for (slot, camera) in zip(kept, new.streams) {
      slot.terminal.name = kept.count > 1 ? slot.name : nil
      if let place = places[slot.name], former.contains(where: { $0 === slot }) {
        if follow(slot, camera, isServedAnew: isServedAnew, from: place) { begun.append(slot) }
      } else {
        reloading?.wait(for: slot.name, .added)
        begun.append(slot)
      }
    }
    for slot in begun {
      open(slot)
      // Where there was no thread for it.
      settle(slot)
    }
    closeReleased()
    serveAnew(oldServing)
    serveAPIAnew(oldAPI)
    serveHTTPAnew(oldHTTP)
    publish()
    endReload()
  }

  /// Has a camera do what it is to do now; whether it is to be opened for it.
  private func follow(
    _ slot: CameraSlot, _ camera: BoxConfiguration.Camera, isServedAnew: Bool, from old: OpenedCamera.Place
  ) -> Bool {
    var options = camera.changes(from: slot.camera).union(slot.unmet)
    let (former, place) = (slot.camera.command, place(of: slot))
    // Where nobody says, it depends on the others.
    if former.destinations(in: old) != camera.command.destinations(in: place) { options.insert("to") }
    let controlled = slot.controlled.take()
    if let stream = slot.stream {
      // What `nightjar ctl` has made of it since goes back to what is said here.
      options.formUnion(controlled)
      let there = stream.pipeline.destinations.map(\.destination)
      // What is missing is looked for at once.
      if !slot.destinations.allSatisfy(there.contains) { options.insert("to") }
    }
    // Whether the encoder may rest.
    if isServedAnew { options.insert("rtsp") }
    let changes = options.sorted().map { $0 == "rtsp" ? "rtsp" : "\($0): \(camera.text(of: $0))" }
    slot.follow(camera)
    slot.unmet = []
    // A picture that cannot turn is another pipeline's.
    let canTurn = options.isDisjoint(with: ["orientation", "mirror"]) || former.turns && camera.command.turns
    let isLive = slot.stream != nil && canTurn && options.isSubset(of: StreamCommand.liveOptions)
    if slot.work != nil {
      if isLive, !slot.isStale {
        // It is changed once more when that is done.
        slot.queued.formUnion(options)
        reloading?.wait(for: slot.name, options.isEmpty ? .unchanged : .changed, changes)
        return false
      }
      // What comes of that is of no use any more.
      slot.isStale = slot.isStale || !options.isEmpty
      reloading?.wait(for: slot.name, options.isEmpty ? .unchanged : .restarted, changes)
      return false
    }
    guard !options.isEmpty || slot.stream == nil && !slot.isOver else {
      reloading?.note(slot.name, .unchanged)
      return false
    }
    if let stream = slot.stream, isLive {
      reloading?.wait(for: slot.name, .changed, changes)
      change(slot, stream, options)
      return false
    }
    reloading?.wait(for: slot.name, options.isEmpty ? .unchanged : .restarted, changes)
    if slot.stream != nil {
      slot.terminal.line("begins anew, for \(options.sorted().joined(separator: ", "))", event: "restarted")
      release(slot, source: former.source)
    }
    slot.isOver = false
    return true
  }

  private func change(_ slot: CameraSlot, _ stream: CameraStream, _ options: Set<String>) {
    do {
      slot.work = try CameraWork.change(stream.pipeline, to: slot.camera.command, changed: options, wake)
      slot.changed = options
      exchangeDestinations(of: slot, stream)
    } catch {
      slot.unmet = options
      reloading?.pending[slot.name] = nil
      complain("\(error)", of: slot)
    }
  }

  /// A camera that is none any more. What is still being done about it comes to nothing.
  private func leave(_ slot: CameraSlot) {
    release(slot, source: slot.camera.command.source)
    terminal.line("\(slot.name): no camera of this box any more", event: "removed")
    reloading?.note(slot.name, .removed)
  }

  // MARK: What has come of it

  /// Takes what has come of the work on cameras.
  func takeWork() {
    for slot in slots {
      guard let work = slot.work, var outcome = work.take() else { continue }
      slot.terminal.tell(work.notes)
      slot.work = nil
      if slot.isStale {
        // What was opened for nothing lets go of its camera before it is opened again.
        outcome = .changed(complaints: [])
        release(slot, source: slot.camera.command.source)
        slot.queued = []
        slot.isStale = false
        open(slot)
        closeReleased()
      } else {
        take(outcome, slot)
        let queued = slot.queued
        slot.queued = []
        if let stream = slot.stream, !queued.isEmpty { change(slot, stream, queued.union(slot.unmet)) }
      }
      settle(slot)
      publish()
    }
    for slot in slots { takeFindings(of: slot) }
    endReload()
  }

  private func take(_ outcome: CameraWork.Outcome, _ slot: CameraSlot) {
    do {
      switch outcome {
      case .opened(let camera):
        let stream = try CameraStream(camera, slot.camera.command, slot.terminal)
        do {
          try stream.start()
        } catch {
          stream.leave()
          throw error
        }
        slot.stream = stream
        slot.destinations = camera.destinations
        stream.introduce()
        publish()
        introduceURLs(of: slot)
      case .changed(let complaints):
        slot.unmet = complaints.isEmpty ? [] : slot.changed
        for complaint in complaints { complain(complaint, of: slot) }
        try slot.stream?.follow(slot.camera.command, changed: slot.changed, destinations: slot.destinations)
        if !slot.changed.isDisjoint(with: ["rtsp-multicast", "thermal", "load-adaptation"]) { publish() }
      case .failed(let error): throw error
      }
    } catch {
      if slot.stream == nil {
        slot.fail(error, at: .now())
        reloading?.answer.warnings.append("\(slot.name): \(error); it is tried again")
      } else {
        slot.unmet = slot.changed
        complain("\(error)", of: slot)
      }
    }
  }

  /// Ends the wait for a camera that nothing is done about any more.
  func settle(_ slot: CameraSlot) {
    if slot.work == nil, slot.search == nil { settle(slot.name) }
  }

  private func settle(_ name: String) {
    guard let camera = reloading?.pending.removeValue(forKey: name) else { return }
    reloading?.answer.cameras.append(camera)
  }

  /// Answers where a camera takes longer than whoever waits for it; what is being done about it goes on.
  func lookAtReload() {
    guard let reloading else { return }
    let warning = "a reload before this one waits for a camera; this one follows it, and is not waited for"
    control.answerWaiters(since: .now() - Self.reloadPatience, ReloadAnswer(cameras: [], warnings: [warning]))
    guard MediaTime.now() - reloading.asked > Self.reloadPatience else { return }
    for name in reloading.pending.keys.sorted() {
      self.reloading?.answer.warnings.append("\(name): it takes its time, and goes on without being waited for")
      settle(name)
    }
    endReload()
  }

  /// Answers once nothing is left to do.
  private func endReload() {
    guard let reloading, reloading.pending.isEmpty else { return }
    self.reloading = nil
    let answer = reloading.answer
    let changed = answer.cameras.filter { $0.outcome != .unchanged }
    let words = changed.map { "\($0.name) \($0.outcome.rawValue)" } + answer.server
    terminal.line(
      "reloaded: \(words.isEmpty ? "nothing has changed" : words.joined(separator: ", "))", event: "reloaded")
    for warning in answer.warnings { terminal.warning(warning, event: "reload") }
    control.endReload(.success(answer))
    if isAPIStale { exchangeOfAPI = .now() + Self.answerTime }
  }

  /// Tells of something that could not be done: whoever asked for the reload, and with its end the log.
  func complain(_ text: String, of slot: CameraSlot? = nil, event: String = "reload") {
    guard reloading == nil else {
      reloading?.answer.warnings.append(slot.map { "\($0.name): \(text)" } ?? text)
      return
    }
    slot?.terminal.warning(text, event: event) ?? terminal.warning(text, event: event)
  }
}

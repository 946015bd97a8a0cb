import Control
import Media
import RTSPServer
import Streaming
import SystemService

/// What a reload has led to so far, and who waits to be told.
struct Reloading {
  let waiting: [ReloadWaiter]
  let began = MediaTime.now()
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
  /// Takes what others have asked for; one reload at a time.
  func takeReloads() {
    guard reloading == nil, let waiting = control.takeReloads() else { return }
    let notes = Notes()
    do {
      let new = try loadConfiguration()
      let served = try new.box.serving.configuration(sockets: sockets, after: serving, notes)
      let servedAPI = try new.box.api.configuration(new.box.serving, rtsp: served, after: servingAPI, notes)
      reloading = Reloading(waiting: waiting)
      reloading?.answer.warnings = new.warnings
      apply(new, served, servedAPI, notes)
    } catch {
      terminal.line("not reloaded, everything goes on as it was: \(error)", .error, event: "reload_refused")
      for waiter in waiting { waiter.resume(throwing: error) }
    }
  }

  private func apply(
    _ new: BoxConfiguration, _ served: ServerConfiguration?, _ servedAPI: NetworkControlServer.Configuration?,
    _ notes: Notes
  ) {
    let old = configuration
    let places = Dictionary(uniqueKeysWithValues: slots.map { ($0.name, place(of: $0.name)) })
    configuration = new
    let late = new.changes(from: old).intersection(StreamCommand.startOptions).sorted()
    for option in late { reloading?.answer.warnings.append("\(option): from the next start on") }
    let isOneOfSeveral = new.streams.count > 1
    let (oldServing, oldAPI) = (serving, servingAPI)
    (serving, servingAPI) = (served, servedAPI)
    var kept: [CameraSlot] = []
    for camera in new.streams {
      guard let slot = slots.first(where: { $0.name == camera.name && !$0.isLeaving }) else {
        let slot = slot(camera)
        kept.append(slot)
        reloading?.wait(for: camera.name, .added)
        open(slot)
        continue
      }
      slot.terminal.name = isOneOfSeveral ? slot.name : nil
      kept.append(slot)
      let isServedAnew = (oldServing == nil) != (served == nil)
      follow(slot, camera, isServedAnew: isServedAnew, from: places[camera.name] ?? place(of: camera.name))
    }
    for slot in slots where !kept.contains(where: { $0 === slot }) {
      kept.append(slot)
      leave(slot)
    }
    slots = kept
    // What is told once when a server begins is no news as long as it goes on.
    for note in notes.take() where note.level == .warning { reloading?.answer.warnings.append(note.text) }
    serveAnew(oldServing)
    serveAPIAnew(oldAPI)
    publish()
    endReload()
  }

  /// Has a camera do what it is to do now.
  private func follow(
    _ slot: CameraSlot, _ camera: BoxConfiguration.Camera, isServedAnew: Bool, from old: OpenedCamera.Place
  ) {
    var options = camera.changes(from: slot.camera)
    let place = place(of: slot.name)
    let command = slot.camera.command
    // Where nobody says, it depends on the others.
    if command.destinations(in: old) != camera.command.destinations(in: place) { options.insert("to") }
    // Whether the encoder may rest.
    if isServedAnew { options.insert("rtsp") }
    let changes = options.sorted().map { $0 == "rtsp" ? "rtsp" : "\($0): \(camera.text(of: $0))" }
    slot.camera = camera
    if slot.work != nil {
      // What comes of that is of no use any more.
      slot.isStale = slot.isStale || !options.isEmpty
      reloading?.wait(for: slot.name, options.isEmpty ? .unchanged : .restarted, changes)
    } else if let stream = slot.stream {
      let isLive = options.isSubset(of: StreamCommand.liveOptions)
      // A picture that cannot turn is another pipeline's.
      let canTurn = options.isDisjoint(with: ["orientation", "mirror"]) || command.turns && camera.command.turns
      if options.isEmpty {
        reloading?.note(slot.name, .unchanged)
      } else if isLive, canTurn {
        reloading?.wait(for: slot.name, .changed, changes)
        change(slot, stream, to: camera.command, from: old, options)
      } else {
        reloading?.wait(for: slot.name, .restarted, changes)
        slot.terminal.line("begins anew, for \(options.sorted().joined(separator: ", "))", event: "restarted")
        slot.stream = nil
        slot.isOver = false
        stream.stop()
        stream.leave()
        open(slot, after: stream.pipeline)
      }
    } else {
      slot.isOver = false
      reloading?.wait(for: slot.name, options.isEmpty ? .unchanged : .restarted, changes)
      open(slot)
    }
  }

  private func change(
    _ slot: CameraSlot, _ stream: CameraStream, to command: StreamCommand, from old: OpenedCamera.Place,
    _ options: Set<String>
  ) {
    do {
      slot.work = try CameraWork.change(
        stream.pipeline, from: stream.command, in: old, to: command, in: place(of: slot.name), changed: options, wake)
      slot.changed = options
    } catch {
      reloading?.pending[slot.name] = nil
      complain("\(error)", of: slot)
    }
  }

  /// Tells of something that could not be done: whoever asked for the reload, and with its end the log.
  func complain(_ text: String, of slot: CameraSlot? = nil) {
    guard reloading == nil else {
      reloading?.answer.warnings.append(slot.map { "\($0.name): \(text)" } ?? text)
      return
    }
    slot?.terminal.warning(text, event: "reload") ?? terminal.warning(text, event: "reload")
  }

  /// A camera that is none any more.
  private func leave(_ slot: CameraSlot) {
    slot.isLeaving = true
    reloading?.wait(for: slot.name, .removed)
    guard slot.work == nil else { return }
    guard let stream = slot.stream else {
      removeSlot(slot)
      return
    }
    slot.stream = nil
    stream.stop()
    stream.leave()
    do {
      slot.work = try CameraWork.close(stream.pipeline, wake)
    } catch {
      _ = stream.pipeline.waitUntilEnd()
      removeSlot(slot)
    }
  }

  private func removeSlot(_ slot: CameraSlot) {
    slots.removeAll { $0 === slot }
    terminal.line("\(slot.name): no camera of this box any more", event: "removed")
    settle(slot.name)
  }

  /// Takes what has come of the work on cameras.
  func takeWork() {
    for slot in slots {
      guard let work = slot.work, let outcome = work.take() else { continue }
      slot.terminal.tell(work.notes)
      slot.work = nil
      if slot.isLeaving {
        removeSlot(slot)
      } else if slot.isStale {
        slot.isStale = false
        open(slot)
      } else {
        take(outcome, slot)
        settle(slot.name)
      }
    }
    endReload()
  }

  private func take(_ outcome: CameraWork.Outcome, _ slot: CameraSlot) {
    do {
      switch outcome {
      case .opened(let camera):
        let stream = try CameraStream(camera, slot.camera.command, slot.terminal)
        slot.stream = stream
        do {
          try stream.start()
        } catch {
          slot.stream = nil
          stream.leave()
          throw error
        }
        stream.introduce()
        publish()
        introduceURLs(of: slot)
      case .changed(let complaints):
        for complaint in complaints { complain(complaint, of: slot) }
        try slot.stream?.follow(slot.camera.command, changed: slot.changed)
        if slot.changed.contains("to") { slot.stream?.introduceDestinations() }
        if !slot.changed.isDisjoint(with: ["rtsp-multicast", "thermal", "load-adaptation"]) { publish() }
      case .failed(let error): throw error
      case .closed: break
      }
    } catch {
      if slot.stream == nil {
        slot.fail(error, at: .now())
        reloading?.answer.warnings.append("\(slot.name): \(error); it is tried again")
      } else {
        complain("\(error)", of: slot)
      }
    }
  }

  /// Nothing is done about a camera any more.
  private func settle(_ name: String) {
    guard let camera = reloading?.pending.removeValue(forKey: name) else { return }
    reloading?.answer.cameras.append(camera)
  }

  /// How long a reload waits for its cameras: less than who waits for it.
  private static let reloadPatience = MediaTime(seconds: 7)

  /// Answers where a camera takes longer than whoever waits for it; what is being done about it goes on.
  func lookAtReload() {
    guard let reloading, MediaTime.now() - reloading.began > Self.reloadPatience else { return }
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
    control.noteReload()
    let answer = reloading.answer
    let changed = answer.cameras.filter { $0.outcome != .unchanged }
    let words = changed.map { "\($0.name) \($0.outcome.rawValue)" } + answer.server
    terminal.line(
      "reloaded: \(words.isEmpty ? "nothing has changed" : words.joined(separator: ", "))", event: "reloaded")
    for warning in answer.warnings { terminal.warning(warning, event: "reload") }
    for waiter in reloading.waiting { waiter.resume(returning: answer) }
    // Others may have asked meanwhile.
    takeReloads()
  }
}

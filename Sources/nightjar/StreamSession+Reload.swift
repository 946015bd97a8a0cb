import Control
import Credentials
import Media
import RTSPServer
import Streaming
import SystemService

/// What a reload has led to so far, and who waits to be told.
struct Reloading {
  let waiting: [ReloadWaiter]
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

/// How a change of an option comes into effect.
enum OptionEffect {
  /// In the stream that goes on.
  case live
  /// By another RTSP server in the place of this one; the stream goes on, and viewers come again.
  case server
  /// By another pipeline in the place of this one.
  case pipeline
  /// When the program starts again.
  case nextStart

  init(of option: String) {
    switch option {
    case "bitrate", "to", "sdp", "orientation", "mirror", "facing", "thermal", "load-adaptation", "no-load-adaptation":
      self = .live
    case "rtsp", "rtsps", "users", "tls-cert", "tls-key", "rtsps-suite", "require-encryption", "https", "tokens":
      self = .server
    // Shared by viewers of the server, and reserved in the pipeline.
    case "rtsp-multicast": self = .pipeline
    case "control", "config", "duration", "stats-json": self = .nextStart
    default: self = .pipeline
    }
  }
}

extension StreamSession {
  /// Takes what others have asked for; one reload at a time.
  func takeReloads() {
    guard reloading == nil, let waiting = control.takeReloads() else { return }
    let notes = Notes()
    do {
      let new = try loadConfiguration()
      let served = try new.box.serving.configuration(sockets: sockets, notes)
      let servedAPI = try new.box.api.configuration(new.box.serving, rtsp: served, notes)
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
    let late = new.changes(from: old).filter { OptionEffect(of: $0) == .nextStart }.sorted()
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
    serveAnew(oldServing, notes)
    serveAPIAnew(oldAPI, notes)
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
    let changes = options.sorted().map { "\($0): \(camera.text(of: $0))" }
    slot.camera = camera
    if slot.work != nil {
      // What comes of that is of no use any more.
      slot.isStale = !options.isEmpty || isServedAnew
      reloading?.wait(for: slot.name, options.isEmpty ? .unchanged : .restarted, changes)
    } else if let stream = slot.stream {
      let isLive = options.allSatisfy { OptionEffect(of: $0) == .live } && !isServedAnew
      // A picture that cannot turn is another pipeline's.
      let canTurn = options.isDisjoint(with: ["orientation", "mirror"]) || command.turns && camera.command.turns
      if options.isEmpty, !isServedAnew {
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
      slot.terminal.line("not changed: \(error)", .error)
      reloading?.pending[slot.name] = nil
      reloading?.answer.warnings.append("\(slot.name): \(error)")
    }
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
    slot.terminal.line("is none of the cameras any more", event: "removed")
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
      case .changed(let complaints):
        for complaint in complaints { slot.terminal.line(complaint, .warning, event: "reload") }
        reloading?.answer.warnings += complaints.map { "\(slot.name): \($0)" }
        try slot.stream?.follow(slot.camera.command, changed: slot.changed)
        if slot.changed.contains("to") { slot.stream?.introduceDestinations() }
      case .failed(let error): throw error
      case .closed: break
      }
    } catch {
      reloading?.answer.warnings.append("\(slot.name): \(error)")
      if slot.stream == nil { slot.fail(error, at: .now()) } else { slot.terminal.line("\(error)", .warning) }
    }
  }

  /// Nothing is done about a camera any more.
  private func settle(_ name: String) {
    guard let camera = reloading?.pending.removeValue(forKey: name) else { return }
    reloading?.answer.cameras.append(camera)
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

  // MARK: The server

  /// Has the RTSP server do what it is to do now: by itself where users have changed, else by another one.
  private func serveAnew(_ old: ServerConfiguration?, _ notes: Notes) {
    guard let new = serving else {
      rtsp?.stop()
      if rtsp != nil { reloading?.answer.server.append("RTSP ended") }
      rtsp = nil
      return
    }
    do {
      if let rtsp, let old, old.isSame(as: new) {
        guard old.users?.users != new.users?.users else { return }
        try rtsp.set(users: new.users)
        reloading?.answer.server.append("users changed")
        return
      }
      rtsp?.stop()
      rtsp = nil
      terminal.tell(notes)
      rtsp = try serve(new)
      reloading?.answer.server.append("RTSP restarted")
    } catch {
      terminal.line("\(error)", .error, event: "reload")
      reloading?.answer.warnings.append("\(error)")
      guard rtsp == nil, let old else { return }
      // Rather as it was than not at all.
      serving = old
      rtsp = try? serve(old)
    }
  }

  /// The same for the control API.
  private func serveAPIAnew(_ old: NetworkControlServer.Configuration?, _ notes: Notes) {
    guard let new = servingAPI else {
      api?.stop()
      if api != nil { reloading?.answer.server.append("HTTPS ended") }
      api = nil
      return
    }
    do {
      if let api, let old, old.isSame(as: new) {
        let isSame = old.users?.users == new.users?.users && old.tokens == new.tokens
        guard !isSame else { return }
        api.set(users: new.users, tokens: new.tokens)
        reloading?.answer.server.append("users of HTTPS changed")
        return
      }
      api?.stop()
      api = nil
      terminal.tell(notes)
      api = try serveAPI(new)
      reloading?.answer.server.append("HTTPS restarted")
    } catch {
      terminal.line("\(error)", .error, event: "reload")
      reloading?.answer.warnings.append("\(error)")
      guard api == nil, let old else { return }
      servingAPI = old
      api = try? serveAPI(old)
    }
  }
}

extension NetworkControlServer.Configuration {
  /// Whether one server does for both, but for who may ask.
  fileprivate func isSame(as other: Self) -> Bool {
    listeners == other.listeners && identity.fingerprint == other.identity.fingerprint
  }
}

extension ServerConfiguration {
  /// Whether one server does for both, but for who may watch.
  fileprivate func isSame(as other: ServerConfiguration) -> Bool {
    listeners == other.listeners && requiresEncryption == other.requiresEncryption && suite == other.suite
      && identity?.fingerprint == other.identity?.fingerprint
  }
}

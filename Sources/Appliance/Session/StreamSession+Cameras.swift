import Host
import Platform
import Streaming

/// The effects of the camera table, carried out.
extension StreamSession {
  /// Passes an event to the table, and carries out its effects and those of the events that come of them.
  func handle(_ event: CameraTable.Event) { perform(table.handle(event, at: .now())) }

  /// Carries out effects in order. An effect may lead to an event. The effects of that event come before the remaining
  /// effects.
  func perform(_ effects: [CameraTable.Effect]) {
    waitingEffects = effects + waitingEffects
    // An effect that is being carried out has led here.
    guard !isPerforming else { return }
    isPerforming = true
    defer { isPerforming = false }
    repeat {
      while !waitingEffects.isEmpty {
        if let event = perform(waitingEffects.removeFirst()) {
          waitingEffects = table.handle(event, at: .now()) + waitingEffects
        }
      }
      waitingEffects = table.handle(.carriedOut, at: .now())
    } while !waitingEffects.isEmpty
  }

  /// Carries out an effect. Returns the event that comes of it at once.
  private func perform(_ effect: CameraTable.Effect) -> CameraTable.Event? {
    switch effect {
    case .add(let number, let former): add(number, after: former)
    case .remove(let number): slots.removeAll { $0.number == number }
    case .follow(let number, let sourceChanged):
      if let (slot, entry) = camera(number) { slot.follow(entry.configuration, sourceChanged: sourceChanged) }
    case .open(let number): return open(number)
    case .begin(let number): return begin(number)
    case .change(let number, let changes): return change(number, changes)
    case .adopt(let number, let changes): return adopt(number, changes)
    case .release(let number, let source): release(number, source)
    case .close: closeReleased()
    case .publish: publish()
    case .introduce(let number): introduce(number)
    case .tell(let number, let text, let level, let event): tell(text, level, of: number, event: event)
    case .answer(let answer): self.answer(answer)
    case .answerWaiters(let time, let answer): control.answerWaiters(since: time, answer)
    case .keepAlive: service?.keepAlive()
    }
    return nil
  }

  /// Returns a camera's resources and state; `nil` if there is no such camera any more.
  func camera(_ number: Int) -> (slot: CameraSlot, entry: CameraTable.Entry)? {
    guard let slot = slots.first(where: { $0.number == number }), let entry = table[number] else { return nil }
    return (slot, entry)
  }

  /// Makes the resources of a camera.
  func add(_ number: Int, after former: Int? = nil) {
    guard let entry = table[number] else { return }
    let slot = CameraSlot(entry, CameraTerminal(terminal, name: nil))
    if let former = slots.first(where: { $0.number == former }) { slot.controlled.mute(former.controlled.isMuted) }
    slots.append(slot)
    followTable()
  }

  /// Puts the resources in the table's order. Lets the lines of each camera begin with its name, if there are several.
  func followTable() {
    for slot in slots { slot.terminal.name = table.entries.count > 1 ? slot.name : nil }
    let places = Dictionary(uniqueKeysWithValues: table.entries.enumerated().map { ($1.number, $0) })
    slots.sort { (places[$0.number] ?? .max) < (places[$1.number] ?? .max) }
  }

  /// Returns the conditions under which a camera is opened in this appliance.
  func place(of entry: CameraTable.Entry) -> OpenedCamera.Place {
    OpenedCamera.Place(
      circumstances: table.circumstances, waitsForDestinations: waits, keepsStandby: entry.keepsStandby,
      started: started, trace: CameraTrace(number: entry.number, name: entry.name, recorder: trace))
  }

  // MARK: Effects

  private func open(_ number: Int) -> CameraTable.Event? {
    guard let (slot, entry) = camera(number) else { return nil }
    let camera = entry.configuration
    let former = released.filter { $0.slot == slot.name || $0.source == camera.source }
    released.removeAll { $0.slot == slot.name || $0.source == camera.source }
    do {
      slot.work = try CameraWork.open(
        camera, in: place(of: entry), slot.controlsForOpening(camera), after: former.map(\.pipeline), wake)
      return nil
    } catch {
      released += former
      return .workFailed(number, "\(error)")
    }
  }

  private func begin(_ number: Int) -> CameraTable.Event? {
    guard let (slot, entry) = camera(number), let opened = slot.opened else { return nil }
    slot.opened = nil
    do {
      let stream = try CameraStream(opened, entry.configuration, slot.terminal, budget)
      do {
        slot.controlled.follow(stream.pipeline.sound)
        try stream.start()
      } catch {
        stream.leave()
        throw error
      }
      slot.stream = stream
      slot.destinations = opened.destinations
      return .streams(number)
    } catch {
      return .workFailed(number, "\(error)")
    }
  }

  private func introduce(_ number: Int) {
    guard let (slot, _) = camera(number) else { return }
    slot.stream?.introduce()
    introduceURLs(of: slot)
  }

  private func change(_ number: Int, _ changes: Set<CameraChange>) -> CameraTable.Event? {
    guard let (slot, entry) = camera(number), let stream = slot.stream else { return nil }
    do {
      slot.work = try CameraWork.change(stream.pipeline, to: entry.configuration, changes, wake)
    } catch {
      return .workFailed(number, "\(error)")
    }
    exchangeDestinations(of: slot, stream, entry.configuration)
    return nil
  }

  private func adopt(_ number: Int, _ changes: Set<CameraChange>) -> CameraTable.Event? {
    guard let (slot, entry) = camera(number) else { return nil }
    do {
      try slot.stream?.follow(entry.configuration, changes, destinations: slot.destinations)
      return .adopted(number, failure: nil)
    } catch {
      return .adopted(number, failure: "\(error)")
    }
  }

  private func release(_ number: Int, _ source: SourceSelection) {
    guard let slot = slots.first(where: { $0.number == number }), let stream = slot.stream else { return }
    slot.stream = nil
    stream.stop()
    stream.leave()
    released.append(Released(slot: slot.name, source: source, pipeline: stream.pipeline))
  }

  /// Ends the released pipelines that no camera waits for.
  private func closeReleased() {
    for former in released {
      // Without a thread the pipeline ends with the program.
      try? CameraWork.close(former.pipeline)
    }
    released.removeAll()
  }

  private func tell(_ text: String, _ level: LogLevel, of number: Int?, event: String) {
    let camera = number.flatMap { number in slots.first { $0.number == number }?.terminal }
    switch (camera, level) {
    case (let camera?, .warning): camera.warning(text, event: event)
    case (let camera?, _): camera.line(text, level, event: event)
    case (nil, .warning): terminal.warning(text, event: event)
    case (nil, _): terminal.line(text, level, event: event)
    }
  }

  // MARK: Events

  /// Passes on the results of the finished work on cameras.
  func takeWork() {
    for slot in slots { if let outcome = takeOutcome(of: slot) { handle(.workEnded(slot.number, outcome)) } }
    for slot in slots { takeFindings(of: slot) }
  }

  /// Takes the result of finished work; `nil` if there is none. A camera that was opened in vain is let go here, because
  /// it is opened again next.
  private func takeOutcome(of slot: CameraSlot) -> CameraTable.Outcome? {
    guard let work = slot.work, let outcome = work.take() else { return nil }
    slot.terminal.tell(work.notes)
    slot.work = nil
    switch outcome {
    case .opened(let camera):
      if table[slot.number]?.work?.isStale == false { slot.opened = camera }
      return .opened
    case .changed(let complaints): return .changed(complaints: complaints)
    case .failed(let error): return .failed("\(error)")
    }
  }

  /// Finishes the pipelines that have ended by themselves. Returns `true` if nothing is left to stream.
  func endStreams() -> Bool {
    for slot in slots {
      guard slot.work == nil, let stream = slot.stream, stream.pipeline.ended.hasFired() else { continue }
      if table.endsWithItsCamera { return true }
      let outcome = stream.finish()
      slot.report = StreamReport(stream, name: slot.name)
      slot.stream = nil
      let failure: String? = if case .failed(let error) = outcome { "\(error)" } else { nil }
      handle(.ended(slot.number, failure: failure))
    }
    return table.isOver
  }
}

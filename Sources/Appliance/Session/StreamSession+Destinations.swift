import Platform
import Streaming

/// The destinations that a stream is to have: at the start, after a reload, and again while one of them is missing.
extension StreamSession {
  /// Begins a search for the destinations of `slot` that are missing and due at `now`.
  func lookForDestinations(of slot: CameraSlot, at now: Instant) {
    guard slot.search == nil, let stream = slot.stream, let next = slot.missing.next, next <= now else { return }
    let missing = slot.missing.destinations
    // `nightjar ctl remove` may have been first.
    guard !missing.isEmpty else { return }
    do {
      slot.search = try DestinationSearch(missing, for: stream.pipeline, wake)
      handle(.searches(slot.number, true))
    } catch {
      slot.missing.noteAttempt(of: missing, at: now)
      for destination in missing { tell(error, of: destination, slot) }
    }
  }

  /// Adopts the results that a search has found so far.
  func takeFindings(of slot: CameraSlot) {
    // The work under way changes the files that describe the destinations.
    guard let search = slot.search, slot.work == nil else { return }
    let (findings, isDone) = search.take()
    var added: [ViewerID] = []
    for finding in findings {
      switch finding.result {
      case .success(let id):
        let (wasMissing, wasTold) = slot.missing.remove(finding.destination)
        guard wasMissing else {
          // A reload or `nightjar ctl` has removed the destination.
          search.pipeline.remove(id)
          continue
        }
        added.append(id)
        if wasTold { slot.terminal.line("\(finding.destination) is there now", event: "destination_found") }
      case .failure(let error): tell(error, of: finding.destination, slot)
      }
    }
    if !added.isEmpty { slot.stream?.introduceDestinations(added) }
    guard isDone else { return }
    slot.search = nil
    slot.missing.noteAttempt(of: search.destinations, at: .now())
    handle(.searches(slot.number, false))
  }

  /// Tells why a stream does not go to `destination`: once in the log, and in each reload's answer. A destination that
  /// the pipeline refuses is not tried again before a reload.
  private func tell(_ error: any Error, of destination: StreamDestination, _ slot: CameraSlot) {
    // A reload or `nightjar ctl` has removed the destination.
    guard slot.missing.destinations.contains(destination) else { return }
    // `nightjar ctl add` was first.
    if slot.stream?.pipeline.destinations.contains(where: { $0.destination == destination }) == true {
      slot.missing.remove(destination)
      return
    }
    let mayPass = (error as? StreamDestinationError)?.mayPass ?? (error is SystemFailure)
    let text = "\(error)" + (mayPass ? "; nightjar tries again" : "")
    let isNews = slot.missing.note(text, of: destination)
    if !mayPass {
      slot.missing.remove(destination)
      slot.destinations.removeAll { $0 == destination }
      handle(.refusedDestination(slot.number))
    }
    let isAwaited = table.reload?.pending[slot.name] != nil
    if isNews || isAwaited { handle(.complaint(slot.number, text, event: "destination_missing")) }
  }

  /// Applies the configured destinations to the stream. Destinations that are no longer configured end at once. New and
  /// missing destinations are searched for.
  func exchangeDestinations(
    of slot: CameraSlot, _ stream: CameraStream, _ camera: CameraConfiguration
  ) {
    let there = stream.pipeline.destinations
    let missing = slot.missing.destinations
    let wanted = camera.destinations(in: table.circumstances)
    // The file does not mention the destinations of `nightjar ctl add`, and those of `ctl remove` are to come back.
    for destination in slot.destinations where !wanted.contains(destination) {
      if let entry = there.first(where: { $0.destination == destination }) { stream.pipeline.remove(entry.id) }
      slot.missing.remove(destination)
    }
    let new = wanted.filter { destination in
      missing.contains(destination) || !there.contains { $0.destination == destination }
    }
    for destination in wanted {
      guard let entry = there.first(where: { $0.destination == destination }) else { continue }
      do {
        try stream.pipeline.setSoundTaken(destination.soundPort.isTaken, of: entry.id)
      } catch {
        handle(.complaint(slot.number, "\(destination) gets no sound: \(error)", event: "destination_missing"))
      }
    }
    slot.destinations = wanted
    guard !new.isEmpty else { return }
    slot.missing.add(new, at: .now())
    lookForDestinations(of: slot, at: .now())
  }
}

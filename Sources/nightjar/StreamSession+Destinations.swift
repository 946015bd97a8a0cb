import Media
import Streaming

/// The destinations that a stream is to have: at the start, after a reload, and again while one of them is missing.
extension StreamSession {
  /// Begins to look for the destinations of `slot` that are missing and due at `now`.
  func lookForDestinations(of slot: CameraSlot, at now: MediaTime) {
    guard slot.search == nil, let stream = slot.stream, let next = slot.missing.next, next <= now else { return }
    let missing = slot.missing.destinations
    // `nightjar ctl remove` may have been first.
    guard !missing.isEmpty else { return }
    do {
      slot.search = try DestinationSearch(missing, for: stream.pipeline, wake)
    } catch {
      slot.missing.noteAttempt(of: missing, at: now)
      for destination in missing { tell(error, of: destination, slot) }
    }
  }

  /// Takes what an attempt has found so far.
  func takeFindings(of slot: CameraSlot) {
    // What is being changed names the files that describe them.
    guard let search = slot.search, slot.work == nil else { return }
    let (findings, isDone) = search.take()
    var added: [ViewerID] = []
    for finding in findings {
      switch finding.result {
      case .success(let id):
        let (wasMissing, wasTold) = slot.missing.remove(finding.destination)
        guard wasMissing else {
          // A reload or `nightjar ctl` does not want it any more.
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
    settle(slot)
  }

  /// Tells why a stream does not go to `destination`: once, and whoever asks for a reload. What will not pass is not tried
  /// again before that.
  private func tell(_ error: any Error, of destination: StreamDestination, _ slot: CameraSlot) {
    // A reload or `nightjar ctl` does not want it any more.
    guard slot.missing.destinations.contains(destination) else { return }
    // `nightjar ctl add` was first.
    if slot.stream?.pipeline.destinations.contains(where: { $0.destination == destination }) == true {
      slot.missing.remove(destination)
      return
    }
    let mayPass = (error as? StreamDestinationError)?.mayPass ?? (error is SystemFailure)
    let text = "\(error)" + (mayPass ? "; it is tried again" : "")
    let isNews = slot.missing.note(text, of: destination)
    if !mayPass {
      slot.missing.remove(destination)
      slot.destinations.removeAll { $0 == destination }
      slot.unmet.insert("to")
    }
    let isAwaited = reloading?.pending[slot.name] != nil
    if isNews || isAwaited { complain(text, of: slot, event: "destination_missing") }
  }

  /// Has the stream go where its configuration says now: what it does not say any more ends at once, what is new is looked
  /// for, and so is what is missing.
  func exchangeDestinations(of slot: CameraSlot, _ stream: CameraStream) {
    let there = stream.pipeline.destinations
    let missing = slot.missing.destinations
    let wanted = slot.camera.command.destinations(in: place(of: slot))
    // Of those that came by `nightjar ctl add` the file says nothing, and what went by `ctl remove` is to come back.
    for destination in slot.destinations where !wanted.contains(destination) {
      if let entry = there.first(where: { $0.destination == destination }) { stream.pipeline.remove(entry.id) }
      slot.missing.remove(destination)
    }
    let new = wanted.filter { destination in
      missing.contains(destination) || !there.contains { $0.destination == destination }
    }
    slot.destinations = wanted
    guard !new.isEmpty else { return }
    slot.missing.add(new, at: .now())
    lookForDestinations(of: slot, at: .now())
  }
}

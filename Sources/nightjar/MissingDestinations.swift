import Media
import Streaming
import Synchronization
import Threading

/// The destinations that a stream is to have and does not have yet, because a host name, a route or an interface is not
/// there: after 1, 2, 4, … 60 s they are tried again. Any thread may look and remove; the main thread does the rest.
final class MissingDestinations: Sendable {
  private struct Entry {
    let destination: StreamDestination
    /// What was said of it last; nil before the first attempt.
    var complaint: String?
  }

  private struct State {
    var entries: [Entry] = []
    var backOff = RetryBackOff()
    var next: MediaTime?
  }

  private let state = Mutex(State())

  /// The destinations, in the order in which they were added.
  var destinations: [StreamDestination] { state.withLock { $0.entries.map(\.destination) } }

  /// When they are to be tried again; nil where there are none.
  var next: MediaTime? { state.withLock { $0.entries.isEmpty ? nil : $0.next } }

  /// Adds what is to be tried at `time`, all that is here with it.
  func add(_ destinations: [StreamDestination], at time: MediaTime) {
    state.withLock { state in
      for destination in destinations where !state.entries.contains(where: { $0.destination == destination }) {
        state.entries.append(Entry(destination: destination))
      }
      state.next = time
      state.backOff = RetryBackOff()
    }
  }

  /// Removes a destination that was found, or is not wanted any more; whether it was here, and whether a complaint of it
  /// was told.
  @discardableResult
  func remove(_ destination: StreamDestination) -> (wasMissing: Bool, wasTold: Bool) {
    state.withLock { state in
      guard let index = state.entries.firstIndex(where: { $0.destination == destination }) else {
        return (false, false)
      }
      return (true, state.entries.remove(at: index).complaint != nil)
    }
  }

  /// Removes all.
  func removeAll() { state.withLock { $0 = State() } }

  /// Notes why a destination is missing; whether that is news.
  func note(_ complaint: String, of destination: StreamDestination) -> Bool {
    state.withLock { state in
      guard let index = state.entries.firstIndex(where: { $0.destination == destination }) else { return false }
      defer { state.entries[index].complaint = complaint }
      return state.entries[index].complaint != complaint
    }
  }

  /// An attempt has ended at `now`: sets the time of the next one.
  func noteAttempt(of tried: [StreamDestination], at now: MediaTime) {
    state.withLock { state in
      // What was added meanwhile does not wait.
      let isNew = state.entries.contains { !tried.contains($0.destination) }
      state.next = isNew ? now : now + state.backOff.failed(after: .zero)
    }
  }
}

/// An attempt to send a stream to destinations that were missing, on a thread of its own, because a name server may take
/// its time. What it finds is told one by one.
final class DestinationSearch: Sendable {
  /// What became of one of them.
  struct Finding: Sendable {
    let destination: StreamDestination
    let result: Result<ViewerID, any Error>
  }

  let pipeline: Pipeline
  let destinations: [StreamDestination]
  private let findings = Mutex<(list: [Finding], isDone: Bool)>(([], false))

  /// Begins to look for `destinations`, addresses before names.
  ///
  /// - Throws: ``SystemFailure`` where the system has no thread left.
  init(_ destinations: [StreamDestination], for pipeline: Pipeline, _ wake: WakeUp) throws(SystemFailure) {
    self.pipeline = pipeline
    self.destinations = destinations
    let ordered = destinations.filter { !$0.hasName } + destinations.filter(\.hasName)
    try NamedThread("nj-resolve") { [self] in
      for (index, destination) in ordered.enumerated() {
        let result = Result { try pipeline.add(destination) }
        findings.withLock { state in
          state.list.append(Finding(destination: destination, result: result))
          state.isDone = index == ordered.count - 1
        }
        wake.fire()
      }
    }.detach()
  }

  /// What was found since the last call, and whether that was all.
  func take() -> (findings: [Finding], isDone: Bool) {
    findings.withLock { state in
      defer { state.list = [] }
      return (state.list, state.isDone)
    }
  }
}

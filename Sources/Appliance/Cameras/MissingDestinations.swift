package import Platform
package import Streaming
import Synchronization

/// The configured destinations that a stream does not reach yet, because a host name, a route or an interface is
/// missing. Further attempts follow after 1, 2, 4, … 60 s. Any thread may read and remove destinations; the main thread
/// does the rest.
package final class MissingDestinations: Sendable {
  private struct Entry {
    let destination: StreamDestination
    /// The last message told of the destination; `nil` before the first attempt.
    var complaint: String?
  }

  private struct State {
    var entries: [Entry] = []
    var backOff = RetryBackOff()
    var next: Instant?
  }

  private let state = Mutex(State())

  /// Creates an empty list.
  package init() {}

  /// The destinations, in the order in which they were added.
  package var destinations: [StreamDestination] { state.withLock { $0.entries.map(\.destination) } }

  /// The destinations, and the last message told of each; `nil` before the first attempt.
  var complaints: [(destination: StreamDestination, text: String?)] {
    state.withLock { $0.entries.map { (destination: $0.destination, text: $0.complaint) } }
  }

  /// The time of the next attempt; `nil` if there are no destinations.
  package var next: Instant? { state.withLock { $0.entries.isEmpty ? nil : $0.next } }

  /// Adds destinations. The next attempt, at `time`, includes all the others, and the pauses between attempts start
  /// again at 1 s.
  package func add(_ destinations: [StreamDestination], at time: Instant) {
    state.withLock { state in
      for destination in destinations where !state.entries.contains(where: { $0.destination == destination }) {
        state.entries.append(Entry(destination: destination))
      }
      state.next = time
      state.backOff = RetryBackOff()
    }
  }

  /// Removes a destination that was found, or is no longer configured.
  ///
  /// - Returns: `wasMissing` is `true` if the destination was present, and `wasTold` if its complaint was told.
  @discardableResult
  package func remove(_ destination: StreamDestination) -> (wasMissing: Bool, wasTold: Bool) {
    state.withLock { state in
      guard let index = state.entries.firstIndex(where: { $0.destination == destination }) else {
        return (false, false)
      }
      return (true, state.entries.remove(at: index).complaint != nil)
    }
  }

  /// Removes all destinations.
  func removeAll() { state.withLock { $0 = State() } }

  /// Records the reason why a destination is missing. Returns `true` if the reason is new.
  package func note(_ complaint: String, of destination: StreamDestination) -> Bool {
    state.withLock { state in
      guard let index = state.entries.firstIndex(where: { $0.destination == destination }) else { return false }
      defer { state.entries[index].complaint = complaint }
      return state.entries[index].complaint != complaint
    }
  }

  /// Records an attempt that has ended at `now`, and sets the time of the next one.
  package func noteAttempt(of tried: [StreamDestination], at now: Instant) {
    state.withLock { state in
      // Destinations that were added meanwhile do not wait.
      let isNew = state.entries.contains { !tried.contains($0.destination) }
      state.next = isNew ? now : now + state.backOff.failed(after: .zero)
    }
  }
}

/// An attempt to send a stream to destinations that were missing, on a thread of its own, because a name server may
/// take its time. The results are told one by one.
final class DestinationSearch: Sendable {
  /// The result for one destination.
  struct Finding: Sendable {
    let destination: StreamDestination
    let result: Result<ViewerID, any Error>
  }

  let pipeline: Pipeline
  let destinations: [StreamDestination]
  private let findings = Mutex<(list: [Finding], isDone: Bool)>(([], false))

  /// Begins to search for `destinations`, addresses before names.
  ///
  /// - Throws: ``SystemFailure`` if the system has no thread left.
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

  /// Returns the results since the last call, and `true` for `isDone` if these are the last.
  func take() -> (findings: [Finding], isDone: Bool) {
    findings.withLock { state in
      defer { state.list = [] }
      return (state.list, state.isDone)
    }
  }
}

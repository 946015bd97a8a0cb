import Synchronization

/// The values that wait for one subscriber of a ``Broadcast``, and the subscriber that waits for a value.
final class WaitingValues<Element: Sendable>: Sendable {
  private struct State {
    var values: [(value: Element, bytes: Int)] = []
    var bytes = 0
    var reader: CheckedContinuation<Element?, Never>?
    var hasEnded = false
  }

  private let state = Mutex(State())
  private let (countLimit, byteLimit): (Int, Int)

  /// Creates an empty queue of at most so many values and bytes; the newest value is kept whatever its size.
  init(countLimit: Int, byteLimit: Int) { (self.countLimit, self.byteLimit) = (countLimit, byteLimit) }

  /// Adds a value, and returns the number of older ones that gave way.
  func add(_ value: Element, bytes: Int) -> Int {
    let (reader, lost) = state.withLock { state -> (CheckedContinuation<Element?, Never>?, Int) in
      guard !state.hasEnded else { return (nil, 0) }
      if let reader = state.reader.take() { return (reader, 0) }
      state.values.append((value, bytes))
      state.bytes += bytes
      var lost = 0
      while state.values.count > countLimit || state.bytes > byteLimit, state.values.count > 1 {
        state.bytes -= state.values.removeFirst().bytes
        lost += 1
      }
      return (nil, lost)
    }
    reader?.resume(returning: value)
    return lost
  }

  /// Returns the oldest value, waiting for one; nil at the end, and for a second reader at once.
  func next() async -> Element? {
    await withCheckedContinuation { continuation in
      let answer = state.withLock { state -> Element?? in
        if !state.values.isEmpty {
          let (value, bytes) = state.values.removeFirst()
          state.bytes -= bytes
          return value
        }
        guard !state.hasEnded, state.reader == nil else { return .some(nil) }
        state.reader = continuation
        return nil
      }
      if let answer { continuation.resume(returning: answer) }
    }
  }

  /// Ends the stream behind the values that wait.
  func finish() {
    let reader = state.withLock { state in
      state.hasEnded = true
      return state.reader.take()
    }
    reader?.resume(returning: nil)
  }
}

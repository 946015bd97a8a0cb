import Synchronization

/// An answer from a thread to one task, given once, before or after the task waits for it. The first answer counts.
package final class OneAnswer<Value: Sendable>: Sendable {
  private enum State {
    case open
    case waiting(CheckedContinuation<Value, any Error>)
    case given(Result<Value, any Error>)
    case done
  }

  private let state = Mutex(State.open)

  /// Creates an answer that has not been given.
  package init() {}

  /// Resumes `continuation` with the answer, now or once it is given. Called once.
  package func wait(_ continuation: CheckedContinuation<Value, any Error>) {
    let result = state.withLock { state -> Result<Value, any Error>? in
      if case .given(let result) = state {
        state = .done
        return result
      }
      state = .waiting(continuation)
      return nil
    }
    if let result { continuation.resume(with: result) }
  }

  /// `true` if the answer has been given.
  package var isGiven: Bool {
    state.withLock { state in
      switch state {
      case .open, .waiting: false
      case .given, .done: true
      }
    }
  }

  /// Gives the answer; returns `false` where an earlier answer exists, which counts.
  @discardableResult
  package func give(_ result: Result<Value, any Error>) -> Bool {
    let (isFirst, continuation) = state.withLock { state -> (Bool, CheckedContinuation<Value, any Error>?) in
      switch state {
      case .open:
        state = .given(result)
        return (true, nil)
      case .waiting(let continuation):
        state = .done
        return (true, continuation)
      case .given, .done: return (false, nil)
      }
    }
    continuation?.resume(with: result)
    return isFirst
  }
}

public import Media

/// A call that may not come back, as into a driver, on a thread of its own. One that does not is left behind there.
public struct BlockingCall<Success: Sendable, Failure: Error>: Sendable {
  private final class Answer: @unchecked Sendable {
    // Sendable: `result` is touched under the monitor alone.
    let monitor = Monitor()
    var result: Result<Success, Failure>?
  }

  private let answer = Answer()

  /// Begins `body` on a thread called `name` (at most 15 bytes).
  ///
  /// - Throws: ``SystemFailure`` where the system has no thread left.
  public init(_ name: String, _ body: @escaping @Sendable () throws(Failure) -> Success) throws(SystemFailure) {
    let answer = answer
    let thread = try NamedThread(name) {
      let result = Result { () throws(Failure) in try body() }
      answer.monitor.locked {
        answer.result = result
        answer.monitor.signal()
      }
    }
    // It is waited for by the clock, not by its end.
    thread.detach()
  }

  /// Waits for what comes of it, until `deadline` at most; nil where nothing has come by then.
  public func result(by deadline: MediaTime) -> Result<Success, Failure>? {
    answer.monitor.locked {
      while answer.result == nil, answer.monitor.wait(until: deadline) {}
      return answer.result
    }
  }
}

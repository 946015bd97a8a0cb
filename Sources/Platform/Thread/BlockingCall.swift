/// A call that may hang, such as a driver's, on a thread of its own. A call that hangs is left behind on that thread.
package struct BlockingCall<Success: Sendable, Failure: Error>: Sendable {
  private final class Answer: @unchecked Sendable {
    // Sendable: `result` is accessed under the monitor only.
    let monitor = Monitor()
    var result: Result<Success, Failure>?
  }

  private let answer = Answer()

  /// Starts `body` on a thread called `name` (at most 15 bytes).
  ///
  /// - Throws: ``SystemFailure`` where the system has no thread left.
  package init(_ name: String, _ body: @escaping @Sendable () throws(Failure) -> Success) throws(SystemFailure) {
    let answer = answer
    let thread = try NamedThread(name) {
      let result = Result { () throws(Failure) in try body() }
      answer.monitor.locked {
        answer.result = result
        answer.monitor.signal()
      }
    }
    // The wait ends by the clock, not by the thread's end.
    thread.detach()
  }

  /// Waits for the result until `deadline` at most; returns nil where there is none by then.
  package func result(by deadline: Instant) -> Result<Success, Failure>? {
    answer.monitor.locked {
      while answer.result == nil, answer.monitor.wait(until: deadline) {}
      return answer.result
    }
  }
}

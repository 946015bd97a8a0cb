import COpenSSL
package import Platform

/// A failure of OpenSSL, with the text from the thread's error queue.
package struct OpenSSLError: Failure, Hashable {
  /// The step that failed.
  package let step: String
  /// The reason of the first queued error; `unknown` if there was none.
  package let reason: String

  /// Creates an error from the thread's queue, and empties the queue. A remaining error would be attributed to the
  /// next call.
  init(_ step: String) {
    self.step = step
    reason = Self.drain()
  }

  /// Creates an error of our own.
  init(_ step: String, reason: String) {
    (self.step, self.reason) = (step, reason)
  }

  /// Empties the queue and returns the text of its first error.
  static func drain() -> String {
    var first: UInt = 0
    while case let next = ERR_get_error(), next != 0 {
      if first == 0 { first = next }
    }
    guard first != 0 else { return "unknown" }
    if let reason = ERR_reason_error_string(first) { return String(cString: reason) }
    var text = [CChar](repeating: 0, count: 256)
    ERR_error_string_n(first, &text, text.count)
    return String(cBuffer: text)
  }

  /// A one-line description for the person at the terminal.
  package var description: String { "\(step): \(reason)" }

  /// The kind of failure.
  package var kind: FailureKind { .data }
}

import COpenSSL
package import Media

/// A refusal of OpenSSL's: its own words, as it left them in the thread's queue of errors.
package struct OpenSSLError: Failure, Hashable {
  /// What was tried.
  package let step: String
  /// Why it failed, of the first error that was queued; `unknown` where there was none.
  package let reason: String

  /// Takes every error out of the queue, which is the thread's own: what stays would be told of the next call.
  init(_ step: String) {
    self.step = step
    reason = Self.drain()
  }

  /// A refusal of our own.
  init(_ step: String, reason: String) {
    (self.step, self.reason) = (step, reason)
  }

  /// The words of the first error in the queue, which is empty then.
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

  /// One line for the person at the terminal.
  package var description: String { "\(step): \(reason)" }

  /// What kind of failure it is.
  package var kind: FailureKind { .data }
}

import NIOCore
import Platform
import Synchronization

/// The answer to `GET /metrics`, written at most ten times a second, however many requests and servers there are.
package final class MetricsPage: Sendable {
  /// The time that a page stays valid.
  static let lifetime = Duration(seconds: 0.1)

  private struct State {
    var page = ByteBuffer()
    var made: Instant?
  }

  private let state = Mutex(State())
  private let make: @Sendable (inout MetricsText) -> Void

  /// Creates a page that `make` writes. `make` is called on threads of Swift concurrency, one call at a time.
  package init(_ make: @escaping @Sendable (inout MetricsText) -> Void) {
    self.make = make
  }

  /// The current page.
  var content: ByteBuffer {
    state.withLock { state in
      let now = Instant.now()
      if let made = state.made, now - made < Self.lifetime { return state.page }
      var text = MetricsText()
      make(&text)
      state.page = ByteBuffer(bytes: text.bytes)
      state.made = now
      return state.page
    }
  }
}

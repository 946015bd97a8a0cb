import Media
import NIOCore
import Synchronization

/// What `GET /metrics` answers, made anew at most ten times a second, however often and by however many servers it is
/// asked for.
public final class MetricsPage: Sendable {
  /// How long a page is good enough.
  static let lifetime = MediaTime(seconds: 0.1)

  private struct State {
    var page = ByteBuffer()
    var made: MediaTime?
  }

  private let state = Mutex(State())
  private let make: @Sendable (inout MetricsText) -> Void

  /// A page that `make` writes. It is called on threads of Swift concurrency, one call at a time.
  public init(_ make: @escaping @Sendable (inout MetricsText) -> Void) {
    self.make = make
  }

  /// The page of now.
  var content: ByteBuffer {
    state.withLock { state in
      let now = MediaTime.now()
      if let made = state.made, now - made < Self.lifetime { return state.page }
      var text = MetricsText()
      make(&text)
      state.page = ByteBuffer(bytes: text.bytes)
      state.made = now
      return state.page
    }
  }
}

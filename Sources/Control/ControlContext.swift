import Hummingbird
import Media

/// A request on its way: by whom, and what the answer may have in it.
struct ControlContext: RequestContext {
  var coreContext: CoreRequestContextStorage
  /// How the client is connected, and who has logged in.
  var peer = ViewerPeer(.unix)
  /// Whether nobody but the client can read the answer.
  var mayGetKeys = true
  /// Whether the client is there and may still ask what it has asked: an answer without an end ends where it may not.
  var isStillAllowed: @Sendable () -> Bool = { true }
  /// Tells of a viewer who comes or goes.
  var note: @Sendable (ControlEvent) -> Void = { _ in }
  /// Counts an answer without an end as long as its connection lasts; why there may not be another.
  var admitStream: @Sendable () -> Refusal? = { nil }

  init(source: Source) {
    coreContext = .init(source: source)
  }
}

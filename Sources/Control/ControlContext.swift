import Hummingbird

/// A request on its way: by whom, and what the answer may have in it.
struct ControlContext: RequestContext {
  var coreContext: CoreRequestContextStorage
  /// The client's address and port, for a person.
  var client = "here"
  /// Whether nobody but the client can read the answer.
  var mayGetKeys = true
  /// Whether the client is there and may still ask what it has asked: an answer without an end ends where it may not.
  var isStillAllowed: @Sendable () -> Bool = { true }
  /// Counts an answer without an end as long as its connection lasts; why there may not be another.
  var admitStream: @Sendable () -> Refusal? = { nil }

  init(source: Source) {
    coreContext = .init(source: source)
  }
}

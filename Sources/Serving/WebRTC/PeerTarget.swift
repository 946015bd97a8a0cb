package import Streaming

/// A camera that browsers watch by WebRTC.
///
/// Called on threads of Swift concurrency, several at a time, as ``ControlTarget`` is.
package protocol PeerTarget: Sendable {
  /// Answers the offer of a browser, which gets the stream once it has connected.
  ///
  /// - Parameter isAllowed: returns `true` while the requester may watch.
  /// - Throws: `OfferError`; ``PeerServerError``; another `Failure` where the stream serves no browsers.
  func watch(
    _ offer: String, _ peer: ViewerPeer, isAllowed: @escaping @Sendable () -> Bool
  ) throws -> PeerServer.Answer

  /// Returns `true` if this camera has a session of this name.
  func isWatching(_ session: String) -> Bool

  /// Ends a session of this camera. Returns `false` if there is none of this name.
  func endWatching(_ session: String) -> Bool
}

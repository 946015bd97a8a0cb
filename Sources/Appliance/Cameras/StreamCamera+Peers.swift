import Platform
import Serving
import Streaming

extension StreamCamera {
  func watch(
    _ offer: String, _ peer: ViewerPeer, isAllowed: @escaping @Sendable () -> Bool
  ) throws -> PeerServer.Answer {
    guard let peers else { throw PeerServerError.notServed }
    return try peers.answer(offer, of: pipeline, camera: name, peer: peer, isAllowed: isAllowed)
  }

  func isWatching(_ session: String) -> Bool { peers?.has(session, of: name) ?? false }

  func endWatching(_ session: String) -> Bool { peers?.end(session, of: name) ?? false }
}

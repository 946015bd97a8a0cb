import Platform
import Serving
import Streaming

extension StreamCamera {
  func listen(_ peer: ViewerPeer) throws -> any MP3Sequence {
    guard let listener = try pipeline.listen("mp3 \(peer.place)", peer: peer, onLeave: changes.announce) else {
      throw ControlFailure.noSound(name)
    }
    return PipelineMP3(listener)
  }

  /// Returns the listeners of MP3.
  func listeners() -> [StreamViewer] {
    guard let sound = pipeline.sound else { return [] }
    return sound.figures.mp3.listeners.map {
      StreamViewer(
        camera: name, isGuest: true, peer: $0.peer,
        delivery: StreamStatus.Destination(
          url: $0.name, kind: "mp3", tracks: StreamMedia.sound.names, packets: $0.frames, bytes: $0.bytes,
          packetsLost: 0, framesDropped: $0.lost))
    }
  }
}

/// A pipeline's sound, as the control API hears it.
private final class PipelineMP3: MP3Sequence {
  private let listener: MP3Listener

  init(_ listener: MP3Listener) { self.listener = listener }

  func next(until deadline: Instant) async throws -> MP3Frames { try await listener.next(until: deadline) }

  func noteSent(_ sound: MP3Frames) { listener.noteSent(sound) }
}

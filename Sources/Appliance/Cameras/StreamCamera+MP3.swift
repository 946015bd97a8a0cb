import Platform
import Serving
import Streaming

extension StreamCamera {
  func listen(_ peer: ViewerPeer) throws -> any LiveSequence<MP3Frames> {
    guard let listener = try pipeline.listen("mp3 \(peer.place)", peer: peer, onLeave: changes.announce) else {
      throw ControlFailure.noSound(name)
    }
    return listener
  }

  /// Returns the listeners of MP3.
  func listeners() -> [StreamViewer] {
    guard let sound = pipeline.sound else { return [] }
    return sound.figures.mp3.listeners.map { StreamViewer($0, of: .sound, camera: name) }
  }
}

extension StreamViewer {
  /// Creates the list's form of a viewer by HTTP.
  init(_ figures: LiveViewerStatistics, of answer: EndlessAnswer, camera: String) {
    let media: StreamMedia = answer == .sound ? .sound : .picture
    self.init(
      camera: camera, isGuest: true, peer: figures.peer,
      delivery: StreamStatus.Destination(
        url: figures.name, kind: answer.rawValue, tracks: media.names, packets: figures.units, bytes: figures.bytes,
        packetsLost: 0, framesDropped: figures.lost))
  }
}

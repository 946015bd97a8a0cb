import Media
import Platform
import RTP
import Serving
import Streaming

extension StreamCamera {
  func look(_ peer: ViewerPeer, isSnapshot: Bool) throws -> any LiveSequence<ServedPicture> {
    let name = "\(isSnapshot ? "snapshot" : "mjpeg") \(peer.place)"
    return LivePictures(
      try pipeline.look(name, peer: peer, isSnapshot: isSnapshot, onLeave: changes.announce), of: self)
  }

  var pictureOrigin: ServedPicture.Origin {
    origin(isPlaceholder: pipeline.counters.camera.map { !$0.state.delivers } ?? false)
  }

  /// Returns the origin of a picture that was made now.
  fileprivate func origin(isPlaceholder: Bool) -> ServedPicture.Origin {
    if isPlaceholder { return .placeholder }
    return isSubstitute ? .substitute : isFrozen ? .frozen : .live
  }

  func noteSnapshot(_ peer: ViewerPeer, bytes: Int) -> Bool { snapshots.note(peer, bytes: bytes) }

  func sessionDescription(ofDestination number: Int?) -> DescribedDestination? {
    let destinations = pipeline.destinations
    let entry =
      if let number { destinations.indices.contains(number - 1) ? destinations[number - 1] : nil } else {
        destinations.first { $0.destination.payload.needsDescription }
      }
    guard let entry, let description = pipeline.sessionDescription(for: entry.id, sessionID: sessionID) else {
      return nil
    }
    return DescribedDestination(text: description.text, hasKey: entry.suite != nil)
  }

  /// Returns the viewers of streams of JPEG pictures.
  func pictureViewers(_ statistics: PictureStatistics) -> [StreamViewer] {
    statistics.viewers.filter { !$0.isSnapshot }.map { StreamViewer($0, of: .pictures, camera: name) }
  }
}

extension StreamStatus.Pictures {
  /// Creates the status's form of the figures.
  init(_ statistics: PictureStatistics, _ snapshots: SnapshotViewers) {
    let taking = snapshots.count()
    self.init(
      viewers: statistics.watching + taking, snapshotViewers: taking, coded: statistics.coded,
      passed: statistics.passed, skipped: statistics.skipped)
  }
}

/// A pipeline's pictures, as the control API sees them.
private final class LivePictures: LiveSequence {
  private let viewer: LiveViewer<LivePicture>
  private let camera: StreamCamera

  init(_ viewer: LiveViewer<LivePicture>, of camera: StreamCamera) {
    self.viewer = viewer
    self.camera = camera
  }

  func next(until deadline: Instant) async throws -> ServedPicture {
    let picture = try await viewer.next(until: deadline)
    return ServedPicture(picture.bytes, camera.origin(isPlaceholder: picture.isPlaceholder))
  }

  func noteSent(_ units: Int, bytes: Int) { viewer.noteSent(units, bytes: bytes) }
}

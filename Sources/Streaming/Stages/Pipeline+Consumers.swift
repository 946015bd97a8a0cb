import Synchronization

/// The consumers of access units beside the send stage.
extension Pipeline {
  /// The number of the track of sound; nil without a microphone.
  package var soundTrack: Int? { sound.map { _ in tracks.count - 1 } }

  /// Hands a track's access units to one more consumer. Those of pictures begin with a key frame, which is requested.
  /// Any thread may call it.
  ///
  /// - Parameter track: the number of the track; that of pictures is 0, that of sound ``soundTrack``.
  package func add(_ consumer: any CodedPictureConsumer, to track: Int = 0) {
    viewerList.withLock { list in
      list.consumers[track, default: 0] += 1
      tracks[track].consumers.add(consumer)
      noteWatched(list)
    }
    if track == 0 { requestKeyFrame() }
  }

  /// Hands no more access units to a consumer, of whatever track. Returns `false` if it was none. Any thread may call it.
  @discardableResult
  package func remove(_ consumer: any CodedPictureConsumer) -> Bool {
    viewerList.withLock { list in
      guard let track = tracks.firstIndex(where: { $0.consumers.remove(consumer) }) else { return false }
      list.consumers[track, default: 0] -= 1
      noteWatched(list)
      return true
    }
  }
}

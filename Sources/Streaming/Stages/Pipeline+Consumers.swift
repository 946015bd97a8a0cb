import Synchronization

/// The consumers of coded pictures beside the send stage.
extension Pipeline {
  /// Hands the coded pictures to one more consumer, from a key frame on, which is requested. Any thread may call it.
  package func add(_ consumer: any CodedPictureConsumer) {
    viewerList.withLock { list in
      list.consumers += 1
      tracks[0].consumers.add(consumer)
      noteWatched(list)
    }
    requestKeyFrame()
  }

  /// Hands no more pictures to a consumer. Returns `false` if it was none. Any thread may call it.
  @discardableResult
  package func remove(_ consumer: any CodedPictureConsumer) -> Bool {
    viewerList.withLock { list in
      guard tracks[0].consumers.remove(consumer) else { return false }
      list.consumers -= 1
      noteWatched(list)
      return true
    }
  }
}

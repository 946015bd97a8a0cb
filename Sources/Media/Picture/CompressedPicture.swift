import Synchronization

/// A flag that tells a source whether any client requests pictures as JPEG. While it is set, a camera keeps its own
/// compressed bytes with each frame (``Frame/compressed``).
public final class PictureDemand: Sendable {
  private let watched = Atomic(false)

  /// Creates a demand that is not set.
  public init() {}

  /// `true` while a client requests pictures. Any thread may read it; the read is a single load.
  public var isWatched: Bool { watched.load(ordering: .relaxed) }

  /// Sets whether any client requests pictures. Any thread may call it.
  public func set(_ isWatched: Bool) { watched.store(isWatched, ordering: .relaxed) }
}

/// A picture as its camera compressed it (JPEG), which belongs to a frame with the uncompressed samples.
public final class CompressedPicture: @unchecked Sendable {
  // Sendable: only the thread that made the picture writes it, and only while no other thread holds it.

  private var memory: UnsafeMutableBufferPointer<UInt8>
  private var count = 0

  fileprivate init() {
    memory = .allocate(capacity: 0)
  }

  deinit {
    memory.deallocate()
  }

  /// The compressed bytes; valid while the picture is held.
  public var bytes: UnsafeBufferPointer<UInt8> { UnsafeBufferPointer(rebasing: memory[..<count]) }

  fileprivate func set(_ source: UnsafeBufferPointer<UInt8>) {
    if memory.count < source.count {
      memory.deallocate()
      // The capacity is one and a half times the length: pictures of one camera differ in length.
      memory = .allocate(capacity: source.count * 3 / 2)
    }
    _ = memory.update(fromContentsOf: source)
    count = source.count
  }
}

/// A few ``CompressedPicture``s that the one thread that reads a camera uses again and again. Nothing is allocated once
/// they are as large as the camera's pictures.
public final class CompressedPictures {
  /// One waits for the encoder, one is encoded, one is sent on, one is read, and one is spare.
  private static let limit = 5
  private var pictures: [CompressedPicture] = []

  /// Creates pictures without memory; ``keep(_:)`` allocates it as needed.
  public init() {}

  /// Copies `bytes`; returns nil where all pictures are in use.
  public func keep(_ bytes: UnsafeBufferPointer<UInt8>) -> CompressedPicture? {
    for index in pictures.indices where isKnownUniquelyReferenced(&pictures[index]) {
      pictures[index].set(bytes)
      return pictures[index]
    }
    guard pictures.count < Self.limit else { return nil }
    let picture = CompressedPicture()
    picture.set(bytes)
    pictures.append(picture)
    return picture
  }

  /// Frees the memory of pictures that are not in use.
  public func removeAll() {
    if !pictures.isEmpty { pictures.removeAll() }
  }
}

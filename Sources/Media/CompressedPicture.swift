import Synchronization

/// Whether anybody wants pictures as JPEG, told to whoever may have them as such already: a camera keeps its own bytes
/// then, with ``Frame/compressed``.
public final class PictureDemand: Sendable {
  private let watched = Atomic(false)

  /// A demand that is not there yet.
  public init() {}

  /// Whether somebody wants pictures now. From any thread; one load.
  public var isWatched: Bool { watched.load(ordering: .relaxed) }

  /// From now on somebody does, or nobody any more. From any thread.
  public func set(_ isWatched: Bool) { watched.store(isWatched, ordering: .relaxed) }
}

/// A picture as its camera has compressed it (JPEG), whose samples a frame has uncompressed.
public final class CompressedPicture: @unchecked Sendable {
  // Sendable: written by the one thread that made it, and only while nobody else holds it.

  private var memory: UnsafeMutableBufferPointer<UInt8>
  private var count = 0

  fileprivate init() {
    memory = .allocate(capacity: 0)
  }

  deinit {
    memory.deallocate()
  }

  /// All of it; valid as long as the picture is held.
  public var bytes: UnsafeBufferPointer<UInt8> { UnsafeBufferPointer(rebasing: memory[..<count]) }

  fileprivate func set(_ source: UnsafeBufferPointer<UInt8>) {
    if memory.count < source.count {
      memory.deallocate()
      // Half as much again: pictures of one camera differ in length.
      memory = .allocate(capacity: source.count * 3 / 2)
    }
    _ = memory.update(fromContentsOf: source)
    count = source.count
  }
}

/// A few ``CompressedPicture``s that are used again and again by the one thread that reads a camera. Nothing is allocated
/// once they are as large as its pictures.
public final class CompressedPictures {
  /// One each that waits for the encoder, is encoded and is sent on, and one that is read; and one to spare.
  private static let limit = 5
  private var pictures: [CompressedPicture] = []

  /// Pictures without memory; ``keep(_:)`` takes it as it is needed.
  public init() {}

  /// Copies `bytes`; nil where all pictures are held by others.
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

  /// Gives memory back that nobody holds.
  public func removeAll() {
    if !pictures.isEmpty { pictures.removeAll() }
  }
}

package import Media
import PixelConversion
import Synchronization

/// Scales frames down for a restricted encoder. The thread that restricts the encoder allocates the memory, off the
/// frame path: two frames of each size, of the restriction that frames follow and of the last two.
package final class FrameReducer: Sendable {
  private struct Way {
    let scaler: PictureScaler
    let pool: FramePool

    func scales(_ size: PictureSize, to reduced: PictureSize) -> Bool {
      scaler.size == size && scaler.frameSize == reduced
    }
  }

  private struct State {
    var ways: [Way] = []
    /// The size of the last frame that was scaled, which is a way that stays, in both aspects.
    var used: PictureSize?

    /// Removes the oldest way that no frame takes.
    mutating func removeOldest() {
      let kept = used.map { [$0, FrameReducer.turned($0)] } ?? []
      if let index = ways.firstIndex(where: { !kept.contains($0.scaler.frameSize) }) { ways.remove(at: index) }
    }
  }
  private let state = Mutex(State())

  /// The number of ways that are kept: upright and rotated, of the restriction that frames follow, of one that an
  /// encoder is opened for, and of the next.
  private static let limit = 6
  private let capacity: Int
  private let copiesUnchanged: Bool

  /// Creates a reducer without memory.
  ///
  /// - Parameters:
  ///   - capacity: the number of frames of each size that may be in use at a time.
  ///   - copiesUnchanged: `true` if frames are copied where their size stays the same, too.
  package init(capacity: Int = 2, copiesUnchanged: Bool = false) {
    (self.capacity, self.copiesUnchanged) = (capacity, copiesUnchanged)
  }

  /// Gives the memory back, once no frame uses it.
  func removeAll() { state.withLock { $0 = State() } }

  /// Prepares memory to scale frames of `size` to `reduced`, and frames with both sizes on their side.
  ///
  /// - Throws: ``FramePoolError``, `ConversionError`.
  package func prepare(from size: PictureSize, to reduced: PictureSize) throws {
    for (size, reduced) in [(size, reduced), (Self.turned(size), Self.turned(reduced))]
    where size != reduced || copiesUnchanged {
      let isKnown = state.withLock { state in
        guard let index = state.ways.firstIndex(where: { $0.scales(size, to: reduced) }) else { return false }
        state.ways.append(state.ways.remove(at: index))
        return true
      }
      if isKnown { continue }
      let way = Way(
        scaler: try PictureScaler(from: size, to: reduced),
        pool: try FramePool(size: reduced, capacity: capacity))
      state.withLock {
        $0.ways.append(way)
        if $0.ways.count > Self.limit { $0.removeOldest() }
      }
    }
  }

  /// Returns `frame`, scaled so that it has the size `rotated` once it is rotated.
  ///
  /// - Throws: ``EncoderError/unavailable(_:)`` where there is no memory for it.
  package func reduce(_ frame: borrowing Frame, to rotated: PictureSize) throws(EncoderError) -> Frame {
    // The inverse of each rotation swaps the sides if the rotation does.
    let size = frame.orientation.swapsSides ? Self.turned(rotated) : rotated
    let found = way(from: frame.planes.size, to: size)
    let checkout = found?.pool.checkout(color: frame.color, timestamp: frame.timestamp, captured: frame.captured)
    guard let found, var reduced = checkout else {
      throw .unavailable("no memory to scale pictures to \(size)")
    }
    do throws(ConversionError) {
      try found.scaler.scale(frame.planes, into: reduced.planes)
    } catch {
      throw .unavailable("a picture cannot be scaled: \(error)")
    }
    reduced.orientation = frame.orientation
    reduced.isPlaceholder = frame.isPlaceholder
    return reduced
  }

  private func way(from size: PictureSize, to reduced: PictureSize) -> Way? {
    state.withLock { state in
      state.used = reduced
      return state.ways.first { $0.scales(size, to: reduced) }
    }
  }

  private static func turned(_ size: PictureSize) -> PictureSize {
    PictureSize(width: size.height, height: size.width)
  }
}

import Media
import PixelConversion
import Synchronization

/// Scales frames down for an encoder that is to do with less. Its memory is made by whoever restricts the encoder, off the
/// frames' way: two frames of each size, of the last two restrictions.
final class FrameReducer: Sendable {
  private struct Way {
    let scaler: PictureScaler
    let pool: FramePool
  }

  private let ways = Mutex<[Way]>([])

  /// How many ways are kept: upright and turned, before and after a change.
  private static let limit = 4
  private static let capacity = 2

  /// Readies memory to scale frames of `size` to `reduced`, and of those on their side.
  ///
  /// - Throws: ``FramePoolError``, `ConversionError`.
  func prepare(from size: PictureSize, to reduced: PictureSize) throws {
    for (size, reduced) in [(size, reduced), (Self.turned(size), Self.turned(reduced))] where size != reduced {
      let isKnown = ways.withLock { ways in
        // What is in use by now goes last.
        guard let index = ways.firstIndex(where: { $0.scaler.size == size && $0.scaler.frameSize == reduced }) else {
          return false
        }
        ways.append(ways.remove(at: index))
        return true
      }
      if isKnown { continue }
      let way = Way(
        scaler: try PictureScaler(from: size, to: reduced),
        pool: try FramePool(size: reduced, capacity: Self.capacity))
      ways.withLock {
        $0.append(way)
        if $0.count > Self.limit { $0.removeFirst($0.count - Self.limit) }
      }
    }
  }

  /// `frame`, scaled so that it has the size `laid` once it is laid.
  ///
  /// - Throws: ``EncoderError/unavailable(_:)`` where there is no memory for it.
  func reduce(_ frame: borrowing Frame, to laid: PictureSize) throws(EncoderError) -> Frame {
    // Each rotation's inverse swaps the sides as it does.
    let size = frame.orientation.swapsSides ? Self.turned(laid) : laid
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
    ways.withLock { ways in ways.first { $0.scaler.size == size && $0.scaler.frameSize == reduced } }
  }

  private static func turned(_ size: PictureSize) -> PictureSize {
    PictureSize(width: size.height, height: size.width)
  }
}

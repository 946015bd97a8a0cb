import Media
import PixelConversion

/// The rotation on the CPU of frames that an encoder does not rotate itself. With it, no frame is lost if a driver's
/// video processing fails.
struct FrameRotator {
  /// A pool of one frame, since each frame is encoded as soon as it is rotated.
  private let pool: FramePool
  /// The converter for each orientation, in the order of ``Orientation/all``.
  private var converters: [PixelConverter?] = []

  /// Creates memory and converters for frames that have `size` after rotation.
  ///
  /// - Throws: ``/Media/EncoderError/unavailable(_:)`` if memory is short.
  init(size: PictureSize) throws(EncoderError) {
    do {
      pool = try FramePool(size: size, capacity: 1)
      for orientation in Orientation.all {
        converters.append(
          orientation == .upright
            ? nil : try PixelConverter(from: .nv12, size: orientation.size(of: size), orientation: orientation))
      }
    } catch {
      throw .unavailable("no memory to rotate pictures: \(error)")
    }
  }

  /// Returns `frame`, rotated upright.
  ///
  /// - Throws: ``/Media/EncoderError/notTurned(_:reason:)``.
  func upright(_ frame: borrowing Frame) throws(EncoderError) -> Frame {
    let checkout = pool.checkout(color: frame.color, timestamp: frame.timestamp, captured: frame.captured)
    guard let upright = checkout, let converter = converters[frame.orientation.index] else {
      throw .notTurned(frame.orientation, reason: "no frame is free for it")
    }
    do throws(ConversionError) {
      try converter.convert(SourcePicture(frame.planes), into: upright.planes)
    } catch {
      throw .notTurned(frame.orientation, reason: error.description)
    }
    return upright
  }
}

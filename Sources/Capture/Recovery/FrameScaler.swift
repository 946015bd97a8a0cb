import CTracing
import Media
import PixelConversion
import Platform

/// Scales a camera's frames to the size of a stream that began with another size, into its own memory.
final class FrameScaler {
  private let level: PictureScaler
  private let sideways: PictureScaler
  private let size: PictureSize
  private var pools: (level: FramePool?, sideways: FramePool?)

  /// Creates a scaler from pictures of `size` to pictures of `streamSize`. Both are the sizes of upright pictures.
  ///
  /// - Throws: `ConversionError` or `FramePoolError`.
  init(from size: PictureSize, to streamSize: PictureSize) throws {
    let turned = Orientation(.quarter)
    level = try PictureScaler(from: size, to: streamSize)
    sideways = try PictureScaler(from: turned.size(of: size), to: turned.size(of: streamSize))
    self.size = size
    pools = (try FramePool(size: streamSize), nil)
  }

  /// Returns a frame of the stream's size. `frame` is already rotated by `orientation`; the encoder applies no
  /// rotation.
  ///
  /// - Throws: `ConversionError` or `FramePoolError`.
  func scale(_ frame: consuming Frame, orientation: Orientation) throws -> CaptureEvent {
    let scaler = orientation.swapsSides ? sideways : level
    if orientation.swapsSides, pools.sideways == nil { pools.sideways = try FramePool(size: scaler.frameSize) }
    let pool = orientation.swapsSides ? pools.sideways : pools.level
    let checkout = pool?.checkout(color: frame.color, timestamp: frame.timestamp, captured: frame.captured)
    guard var target = checkout else { return .dropped(.poolExhausted, count: 1) }
    target.arrived = frame.arrived
    let timestamp = frame.timestamp.nanoseconds
    let mark = nightjar_convert_begin(timestamp)
    defer { nightjar_convert_end(timestamp, mark) }
    try scaler.scale(frame.planes, into: target.planes)
    return .frame(target)
  }
}

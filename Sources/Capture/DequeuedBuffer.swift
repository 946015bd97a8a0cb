import CLinux
import Media

/// A buffer as it came from the driver: to be looked at, then given back by its index.
struct DequeuedBuffer {
  /// Its number.
  var index = 0
  /// `V4L2_BUF_FLAG_*`.
  var flags: UInt32 = 0
  /// `enum v4l2_field`.
  var field: UInt32 = 0
  /// The driver's count of pictures.
  var sequence: UInt32 = 0
  /// The driver's timestamp.
  var timestamp = MediaTime.zero
  /// Whether a frame may lie in it for long: the driver has enough others.
  var mayBeLent = false
  /// The bytes of each plane: where they start in it, and how many there are.
  var contents: (DequeuedPlane, DequeuedPlane, DequeuedPlane) = (.init(), .init(), .init())

  /// Whether the driver marked it as damaged.
  var isDamaged: Bool { flags & nightjar_V4L2_BUF_FLAG_ERROR != 0 }
  /// Whether ``timestamp`` is on `CLOCK_MONOTONIC`.
  var isMonotonic: Bool {
    flags & nightjar_V4L2_BUF_FLAG_TIMESTAMP_MASK == nightjar_V4L2_BUF_FLAG_TIMESTAMP_MONOTONIC
  }
}

/// The used bytes of one plane of a dequeued buffer.
struct DequeuedPlane {
  /// Where they start.
  var base: UnsafeMutablePointer<UInt8>?
  /// How many there are; never beyond the plane's memory.
  var byteCount = 0
}

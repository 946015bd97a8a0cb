import CLinux
import Platform

/// A buffer dequeued from the driver, which its reader returns by the index.
struct DequeuedBuffer {
  /// The buffer's number.
  var index = 0
  /// `V4L2_BUF_FLAG_*`.
  var flags: UInt32 = 0
  /// `enum v4l2_field`.
  var field: UInt32 = 0
  /// The driver's count of pictures.
  var sequence: UInt32 = 0
  /// The driver's timestamp.
  var timestamp = Instant.zero
  /// `true` if a frame may keep the buffer: the driver has enough others.
  var mayBeLent = false
  /// The used bytes of each plane: their start and their number.
  var contents: (DequeuedPlane, DequeuedPlane, DequeuedPlane) = (.init(), .init(), .init())

  /// `true` if the driver marked the buffer as damaged.
  var isDamaged: Bool { flags & nightjar_V4L2_BUF_FLAG_ERROR != 0 }
  /// `true` if ``timestamp`` is on `CLOCK_MONOTONIC`.
  var isMonotonic: Bool {
    flags & nightjar_V4L2_BUF_FLAG_TIMESTAMP_MASK == nightjar_V4L2_BUF_FLAG_TIMESTAMP_MONOTONIC
  }
}

/// The used bytes of one plane of a dequeued buffer.
struct DequeuedPlane {
  /// The start of the bytes.
  var base: UnsafeMutablePointer<UInt8>?
  /// The number of bytes; never beyond the plane's memory.
  var byteCount = 0
}

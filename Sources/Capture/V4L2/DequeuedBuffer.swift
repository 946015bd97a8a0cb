import CLinux
package import Platform

/// A buffer dequeued from the driver, which its reader returns by the index.
package struct DequeuedBuffer {
  /// The buffer's number.
  package var index = 0
  /// `V4L2_BUF_FLAG_*`.
  package var flags: UInt32 = 0
  /// `enum v4l2_field`.
  var field: UInt32 = 0
  /// The driver's count of pictures.
  package var sequence: UInt32 = 0
  /// The driver's timestamp.
  var timestamp = Instant.zero
  /// `true` if a frame may keep the buffer: the driver has enough others.
  var mayBeLent = false
  /// The used bytes of each plane: their start and their number.
  package var contents: (DequeuedPlane, DequeuedPlane, DequeuedPlane) = (.init(), .init(), .init())

  /// Creates a buffer with these values of the driver.
  package init(
    index: Int = 0, flags: UInt32 = 0, field: UInt32 = 0, sequence: UInt32 = 0, timestamp: Instant = .zero,
    mayBeLent: Bool = false, contents: (DequeuedPlane, DequeuedPlane, DequeuedPlane) = (.init(), .init(), .init())
  ) {
    self.index = index
    self.flags = flags
    self.field = field
    self.sequence = sequence
    self.timestamp = timestamp
    self.mayBeLent = mayBeLent
    self.contents = contents
  }

  /// `true` if the driver marked the buffer as damaged.
  var isDamaged: Bool { flags & nightjar_V4L2_BUF_FLAG_ERROR != 0 }
  /// `true` if ``timestamp`` is on `CLOCK_MONOTONIC`.
  var isMonotonic: Bool {
    flags & nightjar_V4L2_BUF_FLAG_TIMESTAMP_MASK == nightjar_V4L2_BUF_FLAG_TIMESTAMP_MONOTONIC
  }
}

/// The used bytes of one plane of a dequeued buffer.
package struct DequeuedPlane {
  /// The start of the bytes.
  var base: UnsafeMutablePointer<UInt8>?
  /// The number of bytes; never beyond the plane's memory.
  package var byteCount = 0

  /// Creates a plane; without arguments, an empty one.
  package init(base: UnsafeMutablePointer<UInt8>? = nil, byteCount: Int = 0) {
    self.base = base
    self.byteCount = byteCount
  }
}

/// A picture as its camera coded it: H.264 with start codes (`V4L2_PIX_FMT_H264`), in the memory of a ``Frame``.
package struct CameraCodedPicture: @unchecked Sendable {
  // Sendable: the bytes live as long as the frame, which has one holder at a time.

  /// The coded bytes, as the driver delivered them; valid while the frame lives. Nobody has checked them.
  package let bytes: UnsafeRawBufferPointer
  /// The picture's number, one more than that of the picture before. A gap says that pictures were lost, and that this
  /// one cannot be decoded unless it is a key frame.
  package let number: UInt64

  /// Creates a picture of `bytes`, which the frame keeps.
  package init(bytes: UnsafeRawBufferPointer, number: UInt64) {
    self.bytes = bytes
    self.number = number
  }
}

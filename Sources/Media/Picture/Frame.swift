public import Platform

/// The two planes of an NV12 picture, lent for the length of a call.
public struct NV12Planes {
  /// Width and height in luma samples; both even.
  public let size: PictureSize
  /// `size.height` rows of `size.width` bytes.
  public let luma: UnsafeMutablePointer<UInt8>
  /// The luma stride: bytes from one row to the next.
  public let lumaStride: Int
  /// `size.height / 2` rows of `size.width / 2` Cb Cr pairs.
  public let chroma: UnsafeMutablePointer<UInt8>
  /// The chroma stride: bytes from one row to the next.
  public let chromaStride: Int

  /// Creates planes at the given addresses. The caller guarantees that they match `size` and the strides.
  public init(
    size: PictureSize, luma: UnsafeMutablePointer<UInt8>, lumaStride: Int, chroma: UnsafeMutablePointer<UInt8>,
    chromaStride: Int
  ) {
    self.size = size
    self.luma = luma
    self.lumaStride = lumaStride
    self.chroma = chroma
    self.chromaStride = chromaStride
  }

  /// Checks the planes for an encoder of pictures of `expected`, which would otherwise read out of bounds or encode
  /// garbage.
  ///
  /// - Throws: ``EncoderError/frameSize(_:expected:)`` or ``EncoderError/frameRows(_:least:)``.
  public func check(for expected: PictureSize) throws(EncoderError) {
    guard size == expected else { throw .frameSize(size, expected: expected) }
    let stride = min(lumaStride, chromaStride)
    guard stride >= size.width else { throw .frameRows(stride, least: size.width) }
  }
}

/// A frame's memory as a DMA-BUF, for hardware that reads it without a copy: NV12, linear, both planes in one buffer.
public struct DMABuffer: Hashable, Sendable {
  /// The exported buffer (`VIDIOC_EXPBUF`), open for reading; valid while the frame lives. The frame's owner closes it.
  public let fileDescriptor: CInt
  /// The buffer's identifier, unique in the process's life, whereas the kernel reuses descriptor numbers. All frames in
  /// the same buffer share it, so that an imported buffer can be kept for the next frame.
  public let identifier: UInt64
  /// The buffer's length in bytes.
  public let byteCount: Int
  /// The offset of the luma plane in the buffer, in bytes.
  public let lumaOffset: Int
  /// The luma stride: bytes from one row to the next.
  public let lumaStride: Int
  /// The offset of the chroma plane in the buffer, in bytes.
  public let chromaOffset: Int
  /// The chroma stride: bytes from one row to the next.
  public let chromaStride: Int

  /// Creates a buffer of this layout.
  public init(
    fileDescriptor: CInt, identifier: UInt64, byteCount: Int, lumaOffset: Int, lumaStride: Int, chromaOffset: Int,
    chromaStride: Int
  ) {
    self.fileDescriptor = fileDescriptor
    self.identifier = identifier
    self.byteCount = byteCount
    self.lumaOffset = lumaOffset
    self.lumaStride = lumaStride
    self.chromaOffset = chromaOffset
    self.chromaStride = chromaStride
  }
}

/// The owner of frames' memory, which takes a slot back when its frame ends: the frame pool, or a camera's own buffer
/// queue.
///
/// It is a class with one overridable method instead of a protocol existential. A frame is created and ended on the hot
/// path, and this costs one indirect call.
open class FrameOwner: @unchecked Sendable {
  /// Creates an owner.
  public init() {}

  /// Takes `slot` back. Called once for each frame, on any thread; must not block.
  open func recycle(slot: Int) {
    preconditionFailure("a frame owner takes its slots back")
  }
}

/// An NV12 picture on its way from the camera to the encoder.
///
/// A frame has one holder at a time. When the holder releases it, its memory returns to the owner: the pool or the
/// camera driver. That is why a frame that waits too long starves the camera.
public struct Frame: ~Copyable, @unchecked Sendable {
  // Sendable although it holds pointers: the frame has one holder at a time, and the owner hands a slot
  // out again only after `recycle`.

  /// The picture's planes; valid while this frame lives.
  public let planes: NV12Planes
  /// The planes' memory as a DMA-BUF for hardware, where the owner provides it.
  public let dmaBuffer: DMABuffer?
  /// The colour description of the samples.
  public var color: ColorDescription
  /// The picture's capture time on the stream's own timeline, from which RTP timestamps are derived.
  public var timestamp: Instant
  /// The time at which the picture became available, on `CLOCK_MONOTONIC`; latencies are measured from it. It differs
  /// from ``timestamp`` only where the timeline is not the clock's, as for a file read at full speed.
  public var captured: Instant
  /// The time at which the source had the whole picture, before conversion; nil for a picture that does not come
  /// directly from a camera.
  public var arrived: Instant?
  /// The orientation that the encoder must still apply to the planes, where it does so better than the source.
  /// ``Orientation/upright`` where the source has already rotated them.
  public var orientation = Orientation.upright
  /// The picture in its final orientation, as its camera compressed it, where a client requests that
  /// (``VideoSource/keepCompressed(while:)``).
  public var compressed: CompressedPicture?
  /// The picture as the camera coded it, in place of samples: then the planes are blank, and only an encoder that passes
  /// coded pictures on accepts the frame. Nil for a picture of samples.
  package var coded: CameraCodedPicture?
  /// `true` if the frame replaces a picture that the camera does not deliver.
  public var isPlaceholder = false
  /// The owner's slot that the frame occupies.
  public let slot: Int
  private let owner: FrameOwner

  /// Creates a frame in `slot` of `owner`, which must keep the planes' memory until that slot is recycled.
  public init(
    planes: NV12Planes, dmaBuffer: DMABuffer? = nil, color: ColorDescription, timestamp: Instant,
    captured: Instant, slot: Int, owner: FrameOwner
  ) {
    self.planes = planes
    self.dmaBuffer = dmaBuffer
    self.color = color
    self.timestamp = timestamp
    self.captured = captured
    self.slot = slot
    self.owner = owner
  }

  deinit {
    owner.recycle(slot: slot)
  }

  /// The size of the picture after rotation by ``orientation``.
  public var rotatedSize: PictureSize { orientation.size(of: planes.size) }

  /// Checks the frame for an encoder of pictures of `expected` that rotates by itself. Without the check, the encoder
  /// would read out of bounds or encode garbage.
  ///
  /// - Throws: ``EncoderError/frameSize(_:expected:)`` or ``EncoderError/frameRows(_:least:)``.
  public func check(for expected: PictureSize) throws(EncoderError) {
    guard rotatedSize == expected else { throw .frameSize(rotatedSize, expected: expected) }
    try planes.check(for: planes.size)
  }

  /// Checks the frame, as ``check(for:)`` does, for an encoder that does not rotate.
  ///
  /// - Throws: ``EncoderError/notTurned(_:reason:)`` too.
  public func checkUpright(for expected: PictureSize) throws(EncoderError) {
    try check(for: expected)
    guard orientation == .upright else { throw .notTurned(orientation, reason: "the encoder does not rotate") }
  }
}

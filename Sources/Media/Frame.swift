/// The two planes of an NV12 picture, lent for the length of a call.
public struct NV12Planes {
  /// Width and height in luma samples; both even.
  public let size: PictureSize
  /// `size.height` rows of `size.width` bytes.
  public let luma: UnsafeMutablePointer<UInt8>
  /// Bytes from one row of luma to the next.
  public let lumaStride: Int
  /// `size.height / 2` rows of `size.width / 2` Cb Cr pairs.
  public let chroma: UnsafeMutablePointer<UInt8>
  /// Bytes from one row of chroma to the next.
  public let chromaStride: Int

  /// Planes at the given addresses; the caller vouches that they hold what `size` and the strides say.
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

  /// Refuses what an encoder of pictures of `expected` would read beyond, or encode as garbage.
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
  /// The exported buffer (`VIDIOC_EXPBUF`), open for reading; valid while the frame lives. Belongs to the frame's
  /// owner.
  public let fileDescriptor: CInt
  /// Tells this buffer from every other in the process's life: a descriptor's number is used again, this is not. All
  /// frames in the same buffer have the same, so that what was imported once may be kept for the next.
  public let identifier: UInt64
  /// The buffer's length in bytes.
  public let byteCount: Int
  /// Where the luma plane starts, in bytes from the buffer's start.
  public let lumaOffset: Int
  /// Bytes from one row of luma to the next.
  public let lumaStride: Int
  /// Where the chroma plane starts, in bytes from the buffer's start.
  public let chromaOffset: Int
  /// Bytes from one row of chroma to the next.
  public let chromaStride: Int

  /// A buffer of this layout.
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

/// Whoever owns the memory of frames and takes a slot back when its frame ends: the frame pool, or
/// a camera's own buffer queue.
///
/// A class with one overridable method instead of a protocol existential: a frame is made and ended on the
/// hot path, and this costs one indirect call.
open class FrameOwner: @unchecked Sendable {
  /// Nothing of its own.
  public init() {}

  /// Takes `slot` back. Called once for each frame, from whichever thread ended it; must not block.
  open func recycle(slot: Int) {
    preconditionFailure("a frame owner takes its slots back")
  }
}

/// One NV12 picture on its way from the camera to the encoder.
///
/// It has one holder at a time; when that one lets it go, its memory returns to the owner: to the pool,
/// or to the camera driver. That is why a frame that waits too long starves the camera.
public struct Frame: ~Copyable, @unchecked Sendable {
  // Sendable although it holds pointers: the frame has one holder at a time, and the owner hands a slot
  // out again only after `recycle`.

  /// The picture's planes; valid while this frame lives.
  public let planes: NV12Planes
  /// The same memory for hardware, where the owner can give it.
  public let dmaBuffer: DMABuffer?
  /// What the samples mean.
  public var color: ColorDescription
  /// When the picture was taken, on the stream's own timeline: RTP timestamps come from it.
  public var timestamp: MediaTime
  /// When the picture became available on `CLOCK_MONOTONIC`: latencies are measured from it. Differs from
  /// ``timestamp`` only where the timeline is not the clock's, as in a file that is read at full speed.
  public var captured: MediaTime
  /// When the source had the picture whole, before it was converted; nil for one that no camera has just given.
  public var arrived: MediaTime?
  /// How the planes are still to be laid before anybody sees them: by the encoder, where it does that better than the
  /// source. ``Orientation/upright`` where the source has laid them already.
  public var orientation = Orientation.upright
  /// The same picture, laid as it is to be seen, as its camera has compressed it, where somebody wants that
  /// (``VideoSource/keepCompressed(while:)``).
  public var compressed: CompressedPicture?
  /// Whether it takes the place of a picture that the camera does not deliver.
  public var isPlaceholder = false
  /// Which of its owner's slots it occupies.
  public let slot: Int
  private let owner: FrameOwner

  /// A frame in `slot` of `owner`, which must keep the planes' memory until that slot is recycled.
  public init(
    planes: NV12Planes, dmaBuffer: DMABuffer? = nil, color: ColorDescription, timestamp: MediaTime,
    captured: MediaTime, slot: Int, owner: FrameOwner
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

  /// The size of the picture once it is laid by ``orientation``.
  public var laidSize: PictureSize { orientation.size(of: planes.size) }

  /// Refuses what an encoder of pictures of `expected` that turns by itself would read beyond, or encode as garbage.
  ///
  /// - Throws: ``EncoderError/frameSize(_:expected:)`` or ``EncoderError/frameRows(_:least:)``.
  public func check(for expected: PictureSize) throws(EncoderError) {
    guard laidSize == expected else { throw .frameSize(laidSize, expected: expected) }
    try planes.check(for: planes.size)
  }

  /// The same for an encoder that does not turn.
  ///
  /// - Throws: ``EncoderError/notTurned(_:reason:)`` too.
  public func checkUpright(for expected: PictureSize) throws(EncoderError) {
    try check(for: expected)
    guard orientation == .upright else { throw .notTurned(orientation, reason: "the encoder does not turn") }
  }
}

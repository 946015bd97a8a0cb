public import Media
public import Platform

/// A decoded picture that subscribers share. Its memory returns to the decoder's pool when the last one releases it.
///
/// ``frame`` is an NV12 picture for an encoder, a converter or a file. Several subscribers may have the same picture, so
/// nobody writes into its planes.
public final class DecodedPicture: Sendable {
  /// The picture's samples.
  public let frame: Frame

  /// The surface of the driver; nil where software decoded, or nobody wants it.
  private let surface: DriverSurface?

  init(_ frame: consuming Frame, surface: DriverSurface? = nil) {
    self.frame = frame
    self.surface = surface
  }

  /// Returns the picture as the driver has it, for another device: as DMA-BUFs, without a copy.
  ///
  /// - Throws: ``DecoderError/notExported(_:)`` where software decoded the picture, where
  ///   ``VideoDecoder/Configuration/keepsSurfaces`` is not set, or where the driver does not export surfaces.
  public func exportedSurface() throws(DecoderError) -> ExportedSurface {
    guard let surface else { throw .notExported("it was decoded in software, or its surface was not kept") }
    return try surface.exported()
  }

  /// The size of the picture.
  public var size: PictureSize { frame.planes.size }
  /// The colour description, as the stream states it.
  public var color: ColorDescription { frame.color }
  /// The time stamp of the access unit.
  public var timestamp: Instant { frame.timestamp }
  /// The time at which the access unit was available, on `CLOCK_MONOTONIC`.
  public var captured: Instant { frame.captured }

  /// The samples as bytes: the rows of luma, then those of the interleaved chroma, without padding.
  public var bytes: [UInt8] {
    let planes = frame.planes
    let (width, height) = (planes.size.width, planes.size.height)
    return [UInt8](unsafeUninitializedCapacity: planes.size.pixels * 3 / 2) { memory, count in
      func append(_ rows: Int, _ base: UnsafeMutablePointer<UInt8>, _ stride: Int) {
        for row in 0..<rows {
          (memory.baseAddress.unsafelyUnwrapped + count).update(from: base + row * stride, count: width)
          count += width
        }
      }
      append(height, planes.luma, planes.lumaStride)
      append(height / 2, planes.chroma, planes.chromaStride)
    }
  }
}

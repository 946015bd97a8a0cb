import CAVCodec

/// A picture in the memory of the driver. It holds one of the decoder's surfaces for as long as it lives.
final class DriverSurface: @unchecked Sendable {
  // Sendable: nothing changes the frame, and libavutil counts references atomically.

  private let frame: UnsafeMutablePointer<AVFrame>

  /// Holds the surface of a decoded frame; nil where there is no memory, or the frame is no surface.
  init?(_ frame: UnsafeMutablePointer<AVFrame>) {
    guard frame.pointee.format == AV_PIX_FMT_VAAPI.rawValue, let reference = av_frame_clone(frame) else { return nil }
    self.frame = reference
  }

  deinit {
    var frame = Optional(frame)
    av_frame_free(&frame)
  }

  /// Returns the surface as DMA-BUFs.
  ///
  /// - Throws: ``DecoderError/notExported(_:)`` where the driver does not export it.
  func exported() throws(DecoderError) -> ExportedSurface {
    guard let mapped = av_frame_alloc() else { throw .memory }
    mapped.pointee.format = AV_PIX_FMT_DRM_PRIME.rawValue
    let result = av_hwframe_map(mapped, frame, nightjar_av_map_read)
    guard result >= 0, let data = mapped.pointee.data.0 else {
      var mapped = Optional(mapped)
      av_frame_free(&mapped)
      throw .notExported(result < 0 ? CodecSession.Fault(result).reason : "the driver exports nothing")
    }
    let description = UnsafeRawPointer(data).assumingMemoryBound(to: AVDRMFrameDescriptor.self).pointee
    return ExportedSurface(
      description, mapped, origin: (Int(frame.pointee.crop_left), Int(frame.pointee.crop_top)))
  }
}

/// A decoded picture as DMA-BUFs (Linux's buffer sharing), for a display, an encoder or a GPU that reads it without a copy.
///
/// The file descriptors belong to this value, and are closed with it: `dup` one that must live longer. The picture's surface stays
/// with it too, and the decoder has a limited number of them (``VideoDecoder/Configuration/poolCapacity``).
public final class ExportedSurface: @unchecked Sendable {
  // Sendable: all is constant; the frame is released once.

  /// A piece of memory.
  public struct Object: Hashable, Sendable {
    /// The descriptor of the DMA-BUF.
    public let descriptor: CInt
    /// The size in bytes.
    public let byteCount: Int
    /// The format modifier of DRM, which says how samples are laid out, such as 0 for rows.
    public let modifier: UInt64
  }

  /// A plane of samples in an object.
  public struct Plane: Hashable, Sendable {
    /// The fourcc of DRM, such as `NV12`, or `R8` and `GR88` where each plane has its own.
    public let format: UInt32
    /// The number of the object in ``ExportedSurface/objects``.
    public let object: Int
    /// The offset of the first sample in bytes.
    public let offset: Int
    /// The bytes from one row to the next.
    public let stride: Int
  }

  /// The pieces of memory.
  public let objects: [Object]
  /// The planes, luma first.
  public let planes: [Plane]
  /// The column and the row of the surface at which the picture begins, in samples of luma: a stream may crop its pictures.
  public let origin: (x: Int, y: Int)
  private let frame: UnsafeMutablePointer<AVFrame>

  init(_ description: AVDRMFrameDescriptor, _ frame: UnsafeMutablePointer<AVFrame>, origin: (x: Int, y: Int)) {
    (self.frame, self.origin) = (frame, origin)
    objects = Self.elements(description.objects, description.nb_objects).map { (object: AVDRMObjectDescriptor) in
      Object(descriptor: object.fd, byteCount: object.size, modifier: object.format_modifier)
    }
    planes = Self.elements(description.layers, description.nb_layers).flatMap { (layer: AVDRMLayerDescriptor) in
      Self.elements(layer.planes, layer.nb_planes).map { (plane: AVDRMPlaneDescriptor) in
        Plane(
          format: layer.format, object: Int(plane.object_index), offset: Int(plane.offset), stride: Int(plane.pitch))
      }
    }
  }

  deinit {
    var frame = Optional(frame)
    av_frame_free(&frame)
  }

  /// The first `count` elements of an array of C, which Swift sees as a tuple.
  private static func elements<Tuple, Element>(_ tuple: Tuple, _ count: CInt) -> [Element] {
    withUnsafeBytes(of: tuple) { bytes in
      Array(bytes.bindMemory(to: Element.self).prefix(max(0, Int(count))))
    }
  }
}

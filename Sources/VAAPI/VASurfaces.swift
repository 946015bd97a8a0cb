import CVA
import Media

/// NV12 surfaces of one size in the driver's memory; destroyed with this object.
final class VASurfaces {
  let display: VADisplayConnection
  let size: PictureSize
  let identifiers: [VASurfaceID]

  /// Creates `count` surfaces.
  ///
  /// - Throws: ``EncoderError/call(library:function:code:reason:)``.
  init(_ display: VADisplayConnection, size: PictureSize, count: Int) throws(EncoderError) {
    var format = VASurfaceAttrib()
    format.type = VASurfaceAttribPixelFormat
    format.flags = UInt32(VA_SURFACE_ATTRIB_SETTABLE)
    format.value.type = VAGenericValueTypeInteger
    format.value.value.i = CInt(bitPattern: UInt32(VA_FOURCC_NV12))
    var list = [VASurfaceID](repeating: VASurfaceID(VA_INVALID_SURFACE), count: count)
    try check(
      vaCreateSurfaces(
        display.handle, UInt32(VA_RT_FORMAT_YUV420), UInt32(size.width), UInt32(size.height), &list, UInt32(count),
        &format, 1), "vaCreateSurfaces")
    self.display = display
    self.size = size
    identifiers = list
  }

  deinit {
    var list = identifiers
    vaDestroySurfaces(display.handle, &list, CInt(list.count))
  }
}

/// An encoding context with the coded buffer and the reconstructed pictures, whose sizes are whole blocks. Both are
/// destroyed with the context.
final class VAEncodingContext {
  let display: VADisplayConnection
  let identifier: VAContextID
  /// The two reconstructed pictures: the reference and the current picture.
  let reconstructed: VASurfaces
  let codedBuffer: VABufferID
  /// The coded buffer's size in bytes.
  let codedCapacity: Int
  private let configuration: VAConfiguration

  /// Creates the context for pictures of `codec` that are `inputs.size` after padding to whole blocks.
  ///
  /// - Throws: ``EncoderError/call(library:function:code:reason:)``.
  init(_ configuration: VAConfiguration, inputs: VASurfaces, _ codec: VideoCodec) throws(EncoderError) {
    let display = configuration.display
    let size = inputs.size
    reconstructed = try VASurfaces(display, size: size, count: 2)
    var targets = inputs.identifiers + reconstructed.identifiers
    var context = VAContextID(VA_INVALID_ID)
    try check(
      vaCreateContext(
        display.handle, configuration.identifier, CInt(size.width), CInt(size.height), VA_PROGRESSIVE, &targets,
        CInt(targets.count), &context), "vaCreateContext")
    // A macroblock has at most 3200 bits (ITU-T H.264 clause A.3.1), and as many samples of HEVC 5/3 of their own bits
    // (H.265 clause A.3.2); the rest is headers and emulation prevention.
    let capacity = (size.pixels + 255) / 256 * (codec == .hevc ? 640 : 400) + 65_536
    var buffer = VABufferID(VA_INVALID_ID)
    let status = vaCreateBuffer(
      display.handle, context, VAEncCodedBufferType, UInt32(capacity), 1, nil, &buffer)
    guard status == VA_STATUS_SUCCESS else {
      vaDestroyContext(display.handle, context)
      throw failure(status, "vaCreateBuffer")
    }
    self.display = display
    self.configuration = configuration
    identifier = context
    codedBuffer = buffer
    codedCapacity = capacity
  }

  deinit {
    vaDestroyBuffer(display.handle, codedBuffer)
    vaDestroyContext(display.handle, identifier)
  }
}

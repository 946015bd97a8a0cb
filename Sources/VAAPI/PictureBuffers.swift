import CVA
import Media

/// The parameter buffers of one picture: creates them, submits them to the driver and destroys them. The list's memory
/// is reused.
final class PictureBuffers {
  private let context: VAEncodingContext
  private let list: UnsafeMutablePointer<VABufferID>
  private var count = 0

  /// The largest number of buffers for one picture: sequence, picture, four miscellaneous, two for the packed parameter
  /// sets, and three for each slice.
  static let limit = 8 + 3 * EncoderConfiguration.sliceLimits.upperBound

  init(_ context: VAEncodingContext) {
    self.context = context
    list = .allocate(capacity: Self.limit)
  }

  deinit {
    destroy()
    list.deallocate()
  }

  /// Creates a buffer with the bytes of `value`.
  ///
  /// - Throws: ``EncoderError/call(library:function:code:reason:)``.
  func add<T>(_ type: VABufferType, _ value: UnsafeMutablePointer<T>) throws(EncoderError) {
    try add(type, UnsafeMutableRawPointer(value), byteCount: MemoryLayout<T>.size)
  }

  /// Creates a buffer with `byteCount` bytes at `bytes`; libva copies them.
  ///
  /// - Throws: ``EncoderError/call(library:function:code:reason:)``.
  func add(_ type: VABufferType, _ bytes: UnsafeMutableRawPointer, byteCount: Int) throws(EncoderError) {
    precondition(count < Self.limit, "more parameter buffers than a picture has")
    var identifier = VABufferID(VA_INVALID_ID)
    try check(
      vaCreateBuffer(context.display.handle, context.identifier, type, UInt32(byteCount), 1, bytes, &identifier),
      "vaCreateBuffer")
    list[count] = identifier
    count += 1
  }

  /// Creates the two buffers of a packed header: `bitCount` bits of NAL units, including the start code and emulation
  /// prevention bytes.
  ///
  /// - Throws: ``EncoderError/call(library:function:code:reason:)``.
  func add(packed type: UInt32, _ bytes: borrowing [UInt8], bitCount: Int) throws(EncoderError) {
    var header = VAEncPackedHeaderParameterBuffer()
    header.type = type
    header.bit_length = UInt32(bitCount)
    header.has_emulation_bytes = 1
    try add(VAEncPackedHeaderParameterBufferType, &header)
    try bytes.span.withUnsafeBytes { (data) throws(EncoderError) in
      guard let base = data.baseAddress else { return }
      try add(VAEncPackedHeaderDataBufferType, UnsafeMutableRawPointer(mutating: base), byteCount: data.count)
    }
  }

  /// Encodes the picture on `surface` with these buffers, then destroys the buffers.
  ///
  /// - Throws: ``EncoderError/call(library:function:code:reason:)``. The picture is ended in that case too.
  func encode(_ surface: VASurfaceID) throws(EncoderError) {
    defer { destroy() }
    let display = context.display.handle
    try check(vaBeginPicture(display, context.identifier, surface), "vaBeginPicture")
    let rendered = vaRenderPicture(display, context.identifier, list, CInt(count))
    let ended = vaEndPicture(display, context.identifier)
    try check(rendered, "vaRenderPicture")
    try check(ended, "vaEndPicture")
  }

  /// Destroys the buffers.
  func destroy() {
    for index in 0..<count { vaDestroyBuffer(context.display.handle, list[index]) }
    count = 0
  }
}

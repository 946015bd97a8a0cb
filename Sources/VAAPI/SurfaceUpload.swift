import CVA
import Glibc
import Media

/// A ring of input surfaces, and the upload of pictures into them. The upload writes to an image derived from the
/// surface, which is the surface's own memory. If the driver cannot derive an NV12 image, the upload writes to a
/// separate image, which is put into the surface.
///
/// A derived image exists from ``map()`` to ``finish()``: some drivers do not encode a surface whose memory is mapped.
final class SurfaceUpload {
  let surfaces: VASurfaces
  /// `true` if images are derived from the surfaces.
  let derives: Bool
  /// The size of the picture within the surface. The padding repeats the last column and row.
  private let size: PictureSize
  private let display: VADisplayConnection
  private var index = 0
  private var image = VAImage()
  /// `true` if `image` exists.
  private var hasImage = false
  private var memory: UnsafeMutablePointer<UInt8>?

  /// The number of surfaces: one that the driver encodes, one being filled, one to spare.
  static let ringCount = 3

  /// Creates `count` surfaces for pictures of `size` and finds out how to fill them.
  ///
  /// - Parameter whole: The size of the surfaces: whole blocks; nil for whole macroblocks.
  /// - Throws: ``EncoderError``.
  init(
    _ display: VADisplayConnection, size: PictureSize, whole: PictureSize? = nil,
    count: Int = SurfaceUpload.ringCount
  ) throws(EncoderError) {
    self.display = display
    self.size = size
    let whole = whole ?? PictureSize(width: (size.width + 15) & ~15, height: (size.height + 15) & ~15)
    surfaces = try VASurfaces(display, size: whole, count: count)
    derives = Self.canDerive(display, surfaces, size)
    if !derives {
      image = try Self.makeImage(display, whole)
      hasImage = true
      guard Self.isUsable(image, size) else {
        throw .output(library: "VA-API", "vaCreateImage made no NV12 image of \(whole)")
      }
    }
  }

  deinit {
    abandon()
    if hasImage { vaDestroyImage(display.handle, image.image_id) }
  }

  /// `true` if a picture can be copied into the memory.
  var isMapped: Bool { memory != nil }

  /// Maps the next surface's memory. Does nothing if it is already mapped.
  ///
  /// - Throws: ``EncoderError/call(library:function:code:reason:)``.
  func map() throws(EncoderError) {
    guard memory == nil else { return }
    if derives {
      try check(vaDeriveImage(display.handle, surfaces.identifiers[index], &image), "vaDeriveImage")
      hasImage = true
      guard Self.isUsable(image, size) else {
        dropDerived()
        throw .output(library: "VA-API", "vaDeriveImage gave another layout than before")
      }
    }
    var address: UnsafeMutableRawPointer?
    let status = vaMapBuffer(display.handle, image.buf, &address)
    guard status == VA_STATUS_SUCCESS, let address else {
      dropDerived()
      throw failure(status == VA_STATUS_SUCCESS ? VAStatus(VA_STATUS_ERROR_UNKNOWN) : status, "vaMapBuffer")
    }
    memory = address.assumingMemoryBound(to: UInt8.self)
  }

  /// Lends `body` the corner of the mapped memory for a picture of size `wanted`, which must not exceed the surface's.
  /// Does nothing without mapped memory.
  func withPlanes(of wanted: PictureSize, _ body: (NV12Planes) -> Void) {
    guard let memory else { return }
    body(planes(memory, wanted))
  }

  /// Lends `body` the contents of the next surface, which must not be in use.
  ///
  /// - Throws: ``EncoderError/call(library:function:code:reason:)``.
  func read<Result>(_ body: (NV12Planes) -> Result) throws(EncoderError) -> Result {
    if !derives {
      let width = UInt32(min(surfaces.size.width, Int(image.width)))
      let height = UInt32(min(surfaces.size.height, Int(image.height)))
      try check(
        vaGetImage(display.handle, surfaces.identifiers[index], 0, 0, width, height, image.image_id), "vaGetImage")
    }
    try map()
    defer { abandon() }
    guard let memory else { throw .order(call: "read(_:)", needs: "map()") }
    return body(planes(memory, size))
  }

  private func planes(_ memory: UnsafeMutablePointer<UInt8>, _ size: PictureSize) -> NV12Planes {
    NV12Planes(
      size: size, luma: memory + Int(image.offsets.0), lumaStride: Int(image.pitches.0),
      chroma: memory + Int(image.offsets.1), chromaStride: Int(image.pitches.1))
  }

  /// Copies a picture that is smaller than the surface into its corner; the rest of the surface stays unchanged.
  func copyCorner(_ source: NV12Planes) {
    guard let memory else { return }
    let target = planes(memory, source.size)
    let width = source.size.width
    for row in 0..<source.size.height {
      memcpy(target.luma + row * target.lumaStride, source.luma + row * source.lumaStride, width)
    }
    for row in 0..<source.size.height / 2 {
      memcpy(target.chroma + row * target.chromaStride, source.chroma + row * source.chromaStride, width)
    }
  }

  /// Copies a picture into the mapped memory. The memory may be uncached, so it is written in order and never read.
  func copy(_ planes: NV12Planes) {
    guard let memory else { return }
    let whole = surfaces.size
    // A derived image may be smaller than the requested surface, but never smaller than the picture.
    let columns = min(whole.width, Int(image.width) & ~1)
    let rows = min(whole.height, Int(image.height) & ~1)
    let luma = memory + Int(image.offsets.0)
    let pitch = Int(image.pitches.0)
    if pitch == planes.lumaStride, columns == size.width {
      memcpy(luma, planes.luma, pitch * (size.height - 1) + size.width)
    } else {
      for row in 0..<size.height {
        let source = planes.luma + row * planes.lumaStride
        let target = luma + row * pitch
        memcpy(target, source, size.width)
        if columns > size.width { memset(target + size.width, CInt(source[size.width - 1]), columns - size.width) }
      }
    }
    for row in stride(from: size.height, to: rows, by: 1) {
      let source = planes.luma + (size.height - 1) * planes.lumaStride
      memcpy(luma + row * pitch, source, size.width)
      memset(luma + row * pitch + size.width, CInt(source[size.width - 1]), columns - size.width)
    }
    copyChroma(planes, to: memory + Int(image.offsets.1), columns: columns, rows: rows / 2)
  }

  private func copyChroma(_ planes: NV12Planes, to chroma: UnsafeMutablePointer<UInt8>, columns: Int, rows: Int) {
    let pitch = Int(image.pitches.1)
    let height = size.height / 2
    if pitch == planes.chromaStride, columns == size.width, rows == height {
      memcpy(chroma, planes.chroma, pitch * (height - 1) + size.width)
      return
    }
    for row in 0..<rows {
      let source = planes.chroma + min(row, height - 1) * planes.chromaStride
      let target = chroma + row * pitch
      memcpy(target, source, size.width)
      for column in stride(from: size.width, to: columns, by: 2) {
        target[column] = source[size.width - 2]
        target[column + 1] = source[size.width - 1]
      }
    }
  }

  /// Fills the mapped memory with `luma` and neutral chroma.
  func fill(luma: UInt8) {
    guard let memory else { return }
    let columns = min(surfaces.size.width, Int(image.width) & ~1)
    let rows = min(surfaces.size.height, Int(image.height))
    for row in 0..<rows {
      memset(memory + Int(image.offsets.0) + row * Int(image.pitches.0), CInt(luma), columns)
    }
    for row in 0..<rows / 2 {
      memset(memory + Int(image.offsets.1) + row * Int(image.pitches.1), 128, columns)
    }
  }

  /// Unmaps the memory and returns the surface with the picture. The next ``map()`` maps the next surface.
  ///
  /// - Parameter part: The size of the written part of the surface; nil for all of it.
  /// - Throws: ``EncoderError/call(library:function:code:reason:)``, or ``EncoderError/order(call:needs:)`` if no
  ///   memory is mapped.
  func finish(_ part: PictureSize? = nil) throws(EncoderError) -> VASurfaceID {
    let surface = surfaces.identifiers[index]
    guard memory != nil else { throw .order(call: "finish()", needs: "map()") }
    memory = nil
    let status = vaUnmapBuffer(display.handle, image.buf)
    dropDerived()
    try check(status, "vaUnmapBuffer")
    if !derives {
      let width = UInt32(min(part?.width ?? surfaces.size.width, Int(image.width)))
      let height = UInt32(min(part?.height ?? surfaces.size.height, Int(image.height)))
      try check(
        vaPutImage(display.handle, surface, image.image_id, 0, 0, width, height, 0, 0, width, height), "vaPutImage")
    }
    index = (index + 1) % surfaces.identifiers.count
    return surface
  }

  /// Undoes ``map()``.
  func abandon() {
    guard memory != nil else { return }
    memory = nil
    vaUnmapBuffer(display.handle, image.buf)
    dropDerived()
  }

  private func dropDerived() {
    guard derives, hasImage else { return }
    hasImage = false
    vaDestroyImage(display.handle, image.image_id)
  }

  /// Returns `true` if the driver derives NV12 images that can be mapped.
  private static func canDerive(_ display: VADisplayConnection, _ surfaces: VASurfaces, _ size: PictureSize) -> Bool {
    var image = VAImage()
    guard vaDeriveImage(display.handle, surfaces.identifiers[0], &image) == VA_STATUS_SUCCESS else { return false }
    defer { vaDestroyImage(display.handle, image.image_id) }
    guard isUsable(image, size) else { return false }
    var address: UnsafeMutableRawPointer?
    guard vaMapBuffer(display.handle, image.buf, &address) == VA_STATUS_SUCCESS else { return false }
    vaUnmapBuffer(display.handle, image.buf)
    return address != nil
  }

  private static func makeImage(_ display: VADisplayConnection, _ size: PictureSize) throws(EncoderError) -> VAImage {
    let limit = Int(vaMaxNumImageFormats(display.handle))
    guard (0...VAAPICapabilities.listLimit).contains(limit) else {
      throw .output(library: "VA-API", "\(limit) image formats announced")
    }
    var formats = [VAImageFormat](repeating: VAImageFormat(), count: max(1, limit))
    var count: CInt = 0
    try check(vaQueryImageFormats(display.handle, &formats, &count), "vaQueryImageFormats")
    guard (0...limit).contains(Int(count)),
      var format = formats.prefix(Int(count)).first(where: { $0.fourcc == UInt32(VA_FOURCC_NV12) })
    else {
      throw .unavailable("\(display.vendor) neither derives NV12 images nor makes them: pictures cannot be uploaded")
    }
    var image = VAImage()
    try check(
      vaCreateImage(display.handle, &format, CInt(size.width), CInt(size.height), &image), "vaCreateImage")
    return image
  }

  /// Returns `true` if the image is NV12, holds a picture of `size`, and has its planes within its memory.
  private static func isUsable(_ image: VAImage, _ size: PictureSize) -> Bool {
    guard image.format.fourcc == UInt32(VA_FOURCC_NV12), image.num_planes == 2, Int(image.width) >= size.width,
      Int(image.height) >= size.height, image.pitches.0 >= image.width, image.pitches.1 >= image.width & ~1
    else { return false }
    let rows = Int(image.height)
    let lumaEnd = Int(image.offsets.0) + Int(image.pitches.0) * (rows - 1) + Int(image.width)
    let chromaEnd = Int(image.offsets.1) + Int(image.pitches.1) * (rows / 2 - 1) + Int(image.width) & ~1
    return lumaEnd <= Int(image.data_size) && chromaEnd <= Int(image.data_size)
  }
}

import CTurboJPEG
import Media

/// Decodes JPEG pictures of one size into NV12 frames, by libjpeg-turbo: luma directly into the frame, chroma through
/// scratch memory. A picture to be rotated is first decoded into scratch memory as a whole, because a JPEG cannot be
/// decoded in parts.
///
/// Pictures without Huffman tables, as UVC cameras send them, are decoded with the tables of ITU-T T.81 annex K.3. RGB
/// and CMYK pictures are refused: no camera sends them. libjpeg itself allocates a little for every picture.
final class JPEGDecoder {
  private let size: PictureSize
  private let interleaver: ChromaInterleaver
  private let rotator: PictureRotator?
  private let scratch: UnsafeMutablePointer<UInt8>
  /// The number of bytes of one of the three planes in `scratch`.
  private let planeBytes: Int
  private var handle: tjhandle?

  /// Creates a decoder for pictures of `size`, which `rotator` rotates if it is not nil.
  ///
  /// - Throws: ``ConversionError``.
  init(size: PictureSize, rotator: PictureRotator?) throws(ConversionError) {
    self.size = size
    self.rotator = rotator
    interleaver = try ChromaInterleaver(size: size)
    guard let handle = tjInitDecompress() else { throw .unavailable(library: "libjpeg-turbo") }
    self.handle = handle
    // Planes are padded to whole chroma samples; the largest sample covers 4 luma samples (TurboJPEG's "YUV Image
    // Format Notes"). Room for 4:4:4 is reserved; the part that 4:2:0 does not need is never touched.
    planeBytes = Self.padded(size.width) * Self.padded(size.height)
    // After the planes, the NV12 picture to be rotated.
    scratch = .allocate(capacity: planeBytes * 3 + (rotator == nil ? 0 : size.pixels * 3 / 2))
    if rotator != nil {
      // Touches the part that 4:2:2 needs, so that the first picture after a rotation causes no page fault.
      scratch.initialize(repeating: 0, count: planeBytes / 2)
      (scratch + planeBytes).initialize(repeating: 0, count: planeBytes / 2)
      (scratch + planeBytes * 3).initialize(repeating: 0, count: size.pixels * 3 / 2)
    }
  }

  deinit {
    scratch.deallocate()
    if let handle { tjDestroy(handle) }
  }

  /// Decodes the `byteCount` bytes at `source` into `planes`, which have the decoder's size after the rotation.
  ///
  /// - Throws: ``ConversionError/corrupt(_:)`` for anything but a complete picture of that size.
  func decode(_ source: SourcePlane, into planes: NV12Planes) throws(ConversionError) {
    guard let rotator else { return try decodeUpright(source, into: planes) }
    let luma = scratch + planeBytes * 3
    let upright = NV12Planes(
      size: size, luma: luma, lumaStride: size.width, chroma: luma + size.pixels, chromaStride: size.width)
    try decodeUpright(source, into: upright)
    rotator.rotateLuma(
      SourcePlane(base: luma, stride: size.width, byteCount: size.pixels), rows: 0..<size.height, into: planes)
    rotator.rotateChroma(
      pairs: SourcePlane(base: upright.chroma, stride: size.width, byteCount: size.pixels / 2), isSwapped: false,
      rows: 0..<size.height / 2, into: planes)
  }

  private func decodeUpright(_ source: SourcePlane, into planes: NV12Planes) throws(ConversionError) {
    guard source.byteCount >= Self.shortest else { throw .short(got: source.byteCount, expected: Self.shortest) }
    guard let handle = handle ?? tjInitDecompress() else { throw .unavailable(library: "libjpeg-turbo") }
    self.handle = handle
    do throws(ConversionError) {
      try decode(source, into: planes, handle: handle)
    } catch {
      // A decoder keeps tables from one picture to the next. Those of a broken picture would spoil every later one that
      // has no tables of its own.
      tjDestroy(handle)
      self.handle = nil
      throw error
    }
  }

  private func decode(_ source: SourcePlane, into planes: NV12Planes, handle: tjhandle) throws(ConversionError) {
    let length = UInt(source.byteCount)
    var (width, height, subsampling, colorspace): (CInt, CInt, CInt, CInt) = (0, 0, -1, -1)
    if tjDecompressHeader3(handle, source.base, length, &width, &height, &subsampling, &colorspace) != 0 {
      try check(handle)
    }
    guard width == size.width, height == size.height else {
      throw .corrupt("a JPEG of \(width)x\(height) instead of \(size)")
    }
    guard colorspace == TJCS_YCbCr.rawValue || colorspace == TJCS_GRAY.rawValue else {
      throw .corrupt("a JPEG in RGB or CMYK; only Y'CbCr and grey are decoded")
    }
    let isGrey = subsampling == TJSAMP_GRAY.rawValue

    // Padded luma does not fit into the frame.
    let lumaWidth = Int(tjPlaneWidth(0, width, subsampling))
    let lumaHeight = Int(tjPlaneHeight(0, height, subsampling))
    let chroma =
      isGrey
      ? PictureSize(width: 0, height: 0)
      : PictureSize(
        width: Int(tjPlaneWidth(1, width, subsampling)), height: Int(tjPlaneHeight(1, height, subsampling)))
    guard (size.width...Self.padded(size.width)).contains(lumaWidth),
      (size.height...Self.padded(size.height)).contains(lumaHeight),
      chroma.width <= size.width, chroma.height <= size.height
    else { throw .corrupt("a JPEG of unknown chroma subsampling") }
    let isPadded = lumaWidth != size.width || lumaHeight != size.height
    let luma = isPadded ? scratch + planeBytes * 2 : planes.luma
    let lumaStride = isPadded ? lumaWidth : planes.lumaStride

    let cb = SourcePlane(base: scratch, stride: chroma.width, byteCount: planeBytes)
    let cr = SourcePlane(base: scratch + planeBytes, stride: chroma.width, byteCount: planeBytes)
    var targets: (UnsafeMutablePointer<UInt8>?, UnsafeMutablePointer<UInt8>?, UnsafeMutablePointer<UInt8>?) =
      (luma, scratch, scratch + planeBytes)
    var strides = (CInt(lumaStride), CInt(chroma.width), CInt(chroma.width))
    let result = withUnsafeMutablePointer(to: &targets) { targets in
      targets.withMemoryRebound(to: UnsafeMutablePointer<UInt8>?.self, capacity: 3) { targets in
        withUnsafeMutablePointer(to: &strides) { strides in
          strides.withMemoryRebound(to: CInt.self, capacity: 3) { strides in
            tjDecompressToYUVPlanes(
              handle, source.base, length, targets, width, strides, height, TJFLAG_LIMITSCANS)
          }
        }
      }
    }
    if result != 0 {
      try check(handle)
      // libjpeg-turbo reports only the first warning, so a later error may be hidden. The presence of the end can be
      // checked.
      guard source.endsInEOI else { throw .corrupt("the JPEG has no end") }
    }

    if isPadded { planes.copyLuma(from: SourcePlane(base: luma, stride: lumaStride, byteCount: planeBytes)) }
    if isGrey {
      planes.clearChroma()
    } else {
      try interleaver.interleave(cb: cb, cr: cr, of: chroma, into: planes)
    }
  }

  /// Throws the library's error, with one exception that many webcams cause in every picture: a few bytes between the
  /// end of the coded data and the next marker.
  private func check(_ handle: tjhandle) throws(ConversionError) {
    guard let text = tjGetErrorStr2(handle) else { throw .corrupt("libjpeg-turbo gave no reason") }
    let isWarning = tjGetErrorCode(handle) == TJERR_WARNING.rawValue
    guard isWarning, Self.contains(text, "extraneous bytes before marker") else {
      throw .corrupt(String(cString: text))
    }
  }

  /// Returns `text.contains(words)`, without an allocation.
  private static func contains(_ text: UnsafePointer<CChar>, _ words: StaticString) -> Bool {
    var start = text
    while start.pointee != 0 {
      var index = 0
      while index < words.utf8CodeUnitCount, UInt8(truncatingIfNeeded: start[index]) == words.utf8Start[index] {
        index += 1
      }
      if index == words.utf8CodeUnitCount { return true }
      start += 1
    }
    return false
  }

  private static func padded(_ length: Int) -> Int { (length + 3) / 4 * 4 }

  /// The number of bytes of SOI and EOI.
  private static let shortest = 4
}

extension SourcePlane {
  /// `true` if an EOI marker (T.81 table B.1) is the last marker; cameras add padding after it.
  fileprivate var endsInEOI: Bool {
    var index = byteCount - 2
    while index >= 0 {
      // A marker, but neither a stuffed 0xff00 nor fill bytes.
      if base[index] == 0xff, base[index + 1] != 0, base[index + 1] != 0xff { return base[index + 1] == 0xd9 }
      index -= 1
    }
    return false
  }
}

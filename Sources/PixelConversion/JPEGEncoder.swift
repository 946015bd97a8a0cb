import CTurboJPEG
import CYUV
public import Media

/// Encodes NV12 pictures as JPEG by JFIF: Y'CbCr of BT.601 in full range, 4:2:0, by libjpeg-turbo.
///
/// Samples that already have that meaning are coded unchanged; all others are converted first. Primaries and transfer
/// stay unchanged: JFIF cannot express them. One thread at a time uses it. Memory is allocated for the first picture of
/// a size and kept.
public final class JPEGEncoder {
  /// The quality, 1…100 on libjpeg's scale.
  public let quality: Int

  private let handle: tjhandle
  /// The chroma planes, and luma if it is converted; then the coded picture.
  private var samples = Scratch()
  private var coded = Scratch()
  /// The converter that rotates pictures, and their size before the rotation.
  private var turning: (converter: PixelConverter, size: PictureSize)?
  private var turned = Scratch()

  /// Creates an encoder, as yet without memory for pictures.
  ///
  /// - Throws: ``ConversionError/unavailable(library:)``.
  public init(quality: Int = 80) throws(ConversionError) {
    precondition((1...100).contains(quality), "libjpeg's quality")
    guard let handle = tjInitCompress() else { throw .unavailable(library: "libjpeg-turbo") }
    self.handle = handle
    self.quality = quality
  }

  deinit {
    tjDestroy(handle)
  }

  /// Encodes `planes`, whose samples have the meaning `color`, rotated by `orientation`.
  ///
  /// - Returns: a complete JPEG, SOI to EOI.
  /// - Throws: ``ConversionError``.
  public func encode(
    _ planes: NV12Planes, color: ColorDescription, orientation: Orientation = .upright
  ) throws(ConversionError) -> [UInt8] {
    guard orientation != .upright else { return try encodeUpright(planes, color) }
    if turning?.size != planes.size || turning?.converter.orientation != orientation {
      turning = (try PixelConverter(from: .nv12, size: planes.size, orientation: orientation), planes.size)
    }
    let size = orientation.size(of: planes.size)
    let memory = turned.reserve(size.pixels * 3 / 2)
    let target = NV12Planes(
      size: size, luma: memory, lumaStride: size.width, chroma: memory + size.pixels, chromaStride: size.width)
    try turning?.converter.convert(SourcePicture(planes), into: target)
    return try encodeUpright(target, color)
  }

  private func encodeUpright(_ planes: NV12Planes, _ color: ColorDescription) throws(ConversionError) -> [UInt8] {
    let (width, height) = (CInt(planes.size.width), CInt(planes.size.height))
    let limit = tjBufSize(width, height, CInt(TJSAMP_420.rawValue))
    var target: UnsafeMutablePointer<UInt8>? = coded.reserve(Int(limit))
    var count = limit
    let isDone = compress(planes, JFIFSamples(color, size: planes.size), to: &target, &count)
    guard isDone, let target else { throw .corrupt(String(cString: tjGetErrorStr2(handle))) }
    return Array(UnsafeBufferPointer(start: target, count: Int(count)))
  }

  /// Compresses `planes` to `target`. Returns `false` if the library fails.
  ///
  /// - Parameter meaning: the conversion of the samples; nil codes them unchanged.
  private func compress(
    _ planes: NV12Planes, _ meaning: JFIFSamples?, to target: inout UnsafeMutablePointer<UInt8>?, _ count: inout UInt
  ) -> Bool {
    let (width, height) = (planes.size.width / 2, planes.size.height / 2)
    let cb = samples.reserve(width * height * 6)
    let cr = cb + width * height
    var (luma, lumaStride) = (planes.luma, planes.lumaStride)
    if let meaning {
      (luma, lumaStride) = (cr + width * height, planes.size.width)
      meaning.convert(planes, luma: luma, cb: cb, cr: cr)
    } else {
      SplitUVPlane(
        planes.chroma, CInt(planes.chromaStride), cb, CInt(width), cr, CInt(width), CInt(width), CInt(height))
    }
    var sources: (UnsafePointer<UInt8>?, UnsafePointer<UInt8>?, UnsafePointer<UInt8>?) =
      (UnsafePointer(luma), UnsafePointer(cb), UnsafePointer(cr))
    var strides = (CInt(lumaStride), CInt(width), CInt(width))
    let result = withUnsafeMutablePointer(to: &sources) { sources in
      sources.withMemoryRebound(to: UnsafePointer<UInt8>?.self, capacity: 3) { sources in
        withUnsafePointer(to: &strides) { strides in
          strides.withMemoryRebound(to: CInt.self, capacity: 3) { strides in
            tjCompressFromYUVPlanes(
              handle, sources, CInt(planes.size.width), strides, CInt(planes.size.height), CInt(TJSAMP_420.rawValue),
              &target, &count, CInt(quality), TJFLAG_NOREALLOC)
          }
        }
      }
    }
    return result == 0
  }
}

/// Memory that is kept from one picture to the next.
private struct Scratch: ~Copyable {
  private var memory: UnsafeMutablePointer<UInt8>?
  private var capacity = 0

  init() {}

  deinit {
    memory?.deallocate()
  }

  /// Returns at least `count` bytes with undefined contents.
  mutating func reserve(_ count: Int) -> UnsafeMutablePointer<UInt8> {
    if let memory, capacity >= count { return memory }
    memory?.deallocate()
    let new = UnsafeMutablePointer<UInt8>.allocate(capacity: count)
    (memory, capacity) = (new, count)
    return new
  }
}

public import Media

/// The first line of a YUV4MPEG2 clip, as in the manual page yuv4mpeg(5) of mjpegtools.
///
///     YUV4MPEG2 W1280 H720 F30:1 Ip A1:1 C420jpeg XCOLORRANGE=LIMITED
///
/// A pure function of bytes: it reads no file.
public struct Y4MHeader: Hashable, Sendable {
  /// The chroma subsampling.
  public enum Chroma: Hashable, Sendable {
    /// 4:2:0, with any siting of its samples.
    case yuv420
    /// 4:2:2.
    case yuv422
    /// 4:4:4.
    case yuv444
    /// 4:1:1.
    case yuv411
    /// Luma only.
    case mono
  }

  /// The size in luma samples; encodable.
  public let size: PictureSize
  /// The frame rate, from 0.1 to 240 frames per second, as for cameras.
  public let frameRate: FrameRate
  /// The chroma planes after luma.
  public let chroma: Chroma
  /// The meaning of the samples. A y4m clip tells at most the range; HD counts as BT.709, smaller sizes as SMPTE 170M.
  public let color: ColorDescription
  /// The number of bytes of the header, with its newline.
  public let byteCount: Int

  /// The largest number of bytes of a header, or of a frame's header.
  public static let byteLimit = 256

  /// Reads the header at the beginning of `bytes`, and no more than ``byteLimit`` of them.
  ///
  /// - Throws: ``Y4MError``.
  public init(_ bytes: Span<UInt8>) throws(Y4MError) {
    let magic: StaticString = "YUV4MPEG2"
    for index in 0..<magic.utf8CodeUnitCount {
      guard index < bytes.count, bytes[index] == magic.utf8Start[index] else { throw .notY4M }
    }
    let limit = min(bytes.count, Self.byteLimit)
    var end = magic.utf8CodeUnitCount
    guard end < limit, Self.isSeparator(bytes[end]) || bytes[end] == Self.newline else { throw .notY4M }
    while end < limit, bytes[end] != Self.newline { end += 1 }
    guard end < limit else { throw .headerTooLong(limit: Self.byteLimit) }
    guard bytes[end - 1] != UInt8(ascii: "\r") else { throw .lineEnd }
    byteCount = end + 1

    var fields = Fields()
    var start = magic.utf8CodeUnitCount
    while start < end {
      if Self.isSeparator(bytes[start]) {
        start += 1
        continue
      }
      var stop = start
      while stop < end, !Self.isSeparator(bytes[stop]) { stop += 1 }
      try fields.take(bytes.extracting(start..<stop))
      start = stop
    }

    guard let width = fields.width else { throw .missing(field: "W") }
    guard let height = fields.height else { throw .missing(field: "H") }
    guard let rate = fields.rate else { throw .missing(field: "F") }
    size = PictureSize(width: width, height: height)
    guard size.isEncodable else { throw .size(size) }
    guard (0.1...240).contains(rate.framesPerSecond) else { throw .rate(rate) }
    frameRate = rate
    chroma = fields.chroma ?? .yuv420
    var color = height >= 720 ? ColorDescription.bt709 : .smpte170M
    color.isFullRange = fields.isFullRange ?? false
    self.color = color
  }

  /// The size of each of the two chroma planes; empty for ``Chroma/mono``. Halves and quarters are rounded up.
  public var chromaSize: PictureSize {
    switch chroma {
    case .yuv420: PictureSize(width: (size.width + 1) / 2, height: (size.height + 1) / 2)
    case .yuv422: PictureSize(width: (size.width + 1) / 2, height: size.height)
    case .yuv444: size
    case .yuv411: PictureSize(width: (size.width + 3) / 4, height: size.height)
    case .mono: PictureSize(width: 0, height: 0)
    }
  }

  /// The number of bytes of a frame after its own header.
  public var frameByteCount: Int { size.pixels + 2 * chromaSize.pixels }

  private static let newline = UInt8(ascii: "\n")

  private static func isSeparator(_ byte: UInt8) -> Bool { byte == UInt8(ascii: " ") }
}

/// The fields found so far.
private struct Fields {
  var width: Int?
  var height: Int?
  var rate: FrameRate?
  var chroma: Y4MHeader.Chroma?
  var isFullRange: Bool?
  private var hasInterlacing = false
  private var hasAspect = false

  mutating func take(_ field: Span<UInt8>) throws(Y4MError) {
    let value = Self.printable(field.extracting(1..<field.count))
    switch field[0] {
    case UInt8(ascii: "W"):
      guard width == nil else { throw .repeated(field: "W") }
      guard let number = Self.number(value), number > 0 else { throw .malformed(field: "W", value: value) }
      width = Int(number)
    case UInt8(ascii: "H"):
      guard height == nil else { throw .repeated(field: "H") }
      guard let number = Self.number(value), number > 0 else { throw .malformed(field: "H", value: value) }
      height = Int(number)
    case UInt8(ascii: "F"):
      guard rate == nil else { throw .repeated(field: "F") }
      let parts = value.utf8.split(separator: UInt8(ascii: ":"), omittingEmptySubsequences: false)
      guard parts.count == 2, let over = Self.number(Substring(parts[0])), let under = Self.number(Substring(parts[1])),
        let fraction = FrameRate(over, under)
      else { throw .malformed(field: "F", value: value) }
      rate = fraction
    case UInt8(ascii: "I"):
      guard !hasInterlacing else { throw .repeated(field: "I") }
      hasInterlacing = true
      switch value {
      case "p", "?": break
      case "t", "b", "m": throw .interlaced(value)
      default: throw .malformed(field: "I", value: value)
      }
    case UInt8(ascii: "C"):
      guard chroma == nil else { throw .repeated(field: "C") }
      chroma = try Self.chroma(value)
    case UInt8(ascii: "A"):
      // The aspect of a sample: H.264 could carry it, but every other source here has square samples.
      guard !hasAspect else { throw .repeated(field: "A") }
      hasAspect = true
    case UInt8(ascii: "X"):
      switch value {
      case "COLORRANGE=FULL": isFullRange = true
      case "COLORRANGE=LIMITED": isFullRange = false
      default: break
      }
    default:
      throw .unknownField(Self.printable(field))
    }
  }

  private static func chroma(_ value: String) throws(Y4MError) -> Y4MHeader.Chroma {
    switch value {
    case "420", "420jpeg", "420mpeg2", "420paldv": return .yuv420
    case "422": return .yuv422
    case "444": return .yuv444
    case "411": return .yuv411
    case "mono": return .mono
    default: break
    }
    // `420p10`, `mono16` and similar ones, as ffmpeg writes them.
    for prefix in ["420p", "422p", "444p", "mono"] where value.hasPrefix(prefix) {
      if let depth = number(value.dropFirst(prefix.count)), (9...16).contains(depth) { throw .highBitDepth(value) }
    }
    throw .chroma(value)
  }

  /// Returns the number of up to ten decimal digits that fits 32 bits; nil for anything else.
  private static func number(_ text: some StringProtocol) -> UInt32? {
    guard (1...10).contains(text.utf8.count),
      text.utf8.allSatisfy({ (UInt8(ascii: "0")...UInt8(ascii: "9")).contains($0) })
    else { return nil }
    return UInt32(text)
  }

  /// Returns the bytes as text, with `?` for what cannot be printed, because the text goes to a terminal.
  private static func printable(_ bytes: Span<UInt8>) -> String {
    var text = ""
    for index in bytes.indices {
      text.unicodeScalars.append((0x21...0x7e).contains(bytes[index]) ? Unicode.Scalar(bytes[index]) : "?")
    }
    return text
  }
}

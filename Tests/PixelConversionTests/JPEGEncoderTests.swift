import Media
import PixelConversion
import TestSupport
import Testing

/// Our JPEGs, as ffmpeg decodes them.
@Suite struct JPEGEncoderTests {
  /// 8-bit colours whose Y'CbCr by each matrix is known from its definition (ITU-R BT.601 and BT.709, H.273 section 8.3).
  static let colors: [[Double]] = [
    [191, 191, 191], [191, 191, 0], [0, 191, 191], [0, 191, 0], [191, 0, 191], [191, 0, 0], [0, 0, 191], [16, 16, 16],
  ]

  static let meanings: [(color: ColorDescription, red: Double, blue: Double)] = [
    (.jpeg, 0.299, 0.114), (.smpte170M, 0.299, 0.114), (.bt709, 0.2126, 0.0722),
    (ColorDescription(primaries: 1, transfer: 1, matrix: 1, isFullRange: true), 0.2126, 0.0722),
    (ColorDescription(primaries: 9, transfer: 1, matrix: 9, isFullRange: false), 0.2627, 0.0593),
  ]

  /// Bars of ``colors`` from left to right.
  private static func paint(_ meaning: (color: ColorDescription, red: Double, blue: Double), into planes: NV12Planes) {
    func level(_ value: Double, _ offset: Double, _ range: (full: Double, limited: Double)) -> UInt8 {
      let isFull = meaning.color.isFullRange
      let scaled = value * (isFull ? range.full : range.limited) + (offset == 0 ? (isFull ? 0 : 16) : 128)
      return UInt8(min(max(scaled.rounded(), 0), 255))
    }
    for x in 0..<planes.size.width {
      let rgb = colors[x * 8 / planes.size.width].map { $0 / 255 }
      let luma = meaning.red * rgb[0] + (1 - meaning.red - meaning.blue) * rgb[1] + meaning.blue * rgb[2]
      let cb = (rgb[2] - luma) / (2 * (1 - meaning.blue))
      let cr = (rgb[0] - luma) / (2 * (1 - meaning.red))
      for y in 0..<planes.size.height { planes.luma[y * planes.lumaStride + x] = level(luma, 0, (255, 219)) }
      for y in 0..<planes.size.height / 2 {
        planes.chroma[y * planes.chromaStride + x] = level(x.isMultiple(of: 2) ? cb : cr, 128, (255, 224))
      }
    }
  }

  private static func decode(_ jpeg: [UInt8], as format: String) throws -> [UInt8] {
    let folder = try TemporaryDirectory()
    let file = try folder.write(jpeg, as: "picture.jpg")
    return try output(
      of: "ffmpeg -nostdin -v error -xerror -i \(file) -vf format=\(format) -f rawvideo -sws_flags accurate_rnd -")
  }

  @Test(arguments: meanings.indices, [PictureSize(width: 320, height: 240), PictureSize(width: 1280, height: 720)])
  func `colours come out as they went in, whatever the samples mean`(index: Int, size: PictureSize) throws {
    let meaning = Self.meanings[index]
    let pool = try FramePool(size: size, capacity: 1)
    let frame = try pool.anyFrame()
    Self.paint(meaning, into: frame.planes)
    let encoder = try JPEGEncoder()
    let rgb = try Self.decode(encoder.encode(frame.planes, color: meaning.color), as: "rgb24")
    try #require(rgb.count == size.pixels * 3)
    for (bar, color) in Self.colors.enumerated() {
      let start = (size.height / 2 * size.width + (2 * bar + 1) * size.width / 16) * 3
      for channel in 0..<3 {
        #expect(abs(Double(rgb[start + channel]) - color[channel]) <= 5, "bar \(bar) of \(meaning.color): \(channel)")
      }
    }
  }

  @Test(arguments: sizes)
  func `a picture of JFIF's own colours is coded as it is`(size: PictureSize) throws {
    let raw = try testPicture(size, "yuvj420p")
    let picture = try PackedPicture(raw: ffmpegConverts(raw, size, from: "yuv420p"), size: size)
    var (luma, chroma) = (picture.luma, picture.chroma)
    let jpeg = try luma.withUnsafeMutableBufferPointer { luma in
      try chroma.withUnsafeMutableBufferPointer { chroma in
        let planes = NV12Planes(
          size: size, luma: try #require(luma.baseAddress), lumaStride: size.width,
          chroma: try #require(chroma.baseAddress), chromaStride: size.width)
        return try JPEGEncoder(quality: 95).encode(planes, color: .jpeg)
      }
    }
    #expect(Array(jpeg[6..<11]) == Array("JFIF\0".utf8))
    let result = try JPEGTests.reference(jpeg, size, decoded: "yuvj420p")
    #expect(psnr(result.luma, picture.luma) > 33)
    #expect(psnr(result.chroma, picture.chroma) > 33)
  }

  @Test(arguments: Orientation.all)
  func `a picture to rotate is rotated before the coding`(orientation: Orientation) throws {
    let size = PictureSize(width: 320, height: 240)
    let pool = try FramePool(size: size, capacity: 1)
    let frame = try pool.anyFrame()
    Self.paint(Self.meanings[1], into: frame.planes)
    // A dark corner at the top left, so that all eight differ.
    for y in 0..<80 { for x in 0..<80 { frame.planes.luma[y * frame.planes.lumaStride + x] = 16 } }
    let encoder = try JPEGEncoder()
    let jpeg = try encoder.encode(frame.planes, color: .smpte170M, orientation: orientation)
    let laid = orientation.size(of: size)
    let turned = try FramePool(size: laid, capacity: 1).anyFrame()
    try PixelConverter(from: .nv12, size: size, orientation: orientation)
      .convert(SourcePicture(frame.planes), into: turned.planes)
    let expected = try encoder.encode(turned.planes, color: .smpte170M)
    let (left, right) = (try Self.decode(jpeg, as: "gray"), try Self.decode(expected, as: "gray"))
    #expect(left.count == laid.pixels && left == right)
    // And another one upright by the same encoder.
    #expect(try Self.decode(encoder.encode(frame.planes, color: .smpte170M), as: "gray").count == size.pixels)
  }

  /// The segments before the coded data: marker and content.
  private static func segments(_ jpeg: [UInt8]) -> [(marker: UInt8, range: Range<Int>)] {
    var result: [(UInt8, Range<Int>)] = []
    var index = 2
    while index + 4 <= jpeg.count, jpeg[index] == 0xff, result.last?.0 != 0xda {
      let length = Int(jpeg[index + 2]) << 8 | Int(jpeg[index + 3])
      result.append((jpeg[index + 1], index..<index + 2 + length))
      index += 2 + length
    }
    return result
  }

  @Test func `a camera's JPEG without Huffman tables gets the standard ones, and nothing else changes`() throws {
    let whole = try output(
      of: "ffmpeg -nostdin -v error -f lavfi -i testsrc2=size=320x240 -frames:v 1 -pix_fmt yuvj420p -c:v mjpeg "
        + "-huffman default -q:v 3 -f mjpeg -")
    let tables = Self.segments(whole).filter { $0.marker == 0xc4 }
    try #require(!tables.isEmpty)
    var stripped = whole
    for table in tables.reversed() { stripped.removeSubrange(table.range) }
    // As cameras pad.
    let padded = stripped + [UInt8](repeating: 0, count: 37)
    let complete = try #require(padded.withUnsafeBufferPointer { JPEGStream.complete($0) })
    let added = Self.segments(complete).filter { $0.marker == 0xc4 }
    #expect(added.count == 1)
    // Tables by class and number; ffmpeg's encoder has those of the standard too.
    func contents(_ jpeg: [UInt8], _ segments: [(marker: UInt8, range: Range<Int>)]) -> [UInt8: [UInt8]] {
      var tables: [UInt8: [UInt8]] = [:]
      for segment in segments {
        var rest = jpeg[segment.range].dropFirst(4)
        while let name = rest.popFirst() {
          let count = rest.prefix(16).reduce(0) { $0 + Int($1) }
          tables[name] = Array(rest.prefix(16 + count))
          rest = rest.dropFirst(16 + count)
        }
      }
      return tables
    }
    #expect(contents(complete, added) == contents(whole, tables))
    var again = complete
    again.removeSubrange(added[0].range)
    #expect(again == stripped)
    #expect(try Self.decode(complete, as: "yuvj420p") == Self.decode(whole, as: "yuvj420p"))
  }

  @Test func `a JPEG that is whole stays as it is, and one that is not is none`() throws {
    let whole = try output(of: JPEGTests.ffmpeg("yuvj422p")(PictureSize(width: 320, height: 240)))
    #expect(whole.withUnsafeBufferPointer { JPEGStream.complete($0) } == whole)
    for count in [0, 1, 2, 3, 20, 300, whole.count / 2, whole.count - 1] {
      #expect(Array(whole.prefix(count)).withUnsafeBufferPointer { JPEGStream.complete($0) } == nil, "\(count)")
    }
    // Not a camera's: nothing is read beyond the end, whatever lengths it tells.
    for seed in 0..<200 {
      var broken = Array(whole.prefix(700)) + [0xff, 0xd9]
      broken[2 + seed * 3] = UInt8(truncatingIfNeeded: seed &* 77)
      let memory = try GuardedBytes(broken)
      withExtendedLifetime(memory) {
        _ = JPEGStream.complete(UnsafeBufferPointer(start: memory.start, count: memory.count))
      }
    }
  }
}

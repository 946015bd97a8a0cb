import Media
import PixelConversion
import TestSupport
import Testing

/// Every uncompressed format against ffmpeg's conversion of the same bytes.
@Suite struct RawFormatTests {
  /// A V4L2 code, ffmpeg's name for it and bytes in a row for each luma sample.
  struct Format: CustomTestStringConvertible {
    let code: String
    let name: String
    let bytesPerSample: Int
    /// `true` if the chroma of both is the same to the bit, because nothing is resampled.
    let isExact: Bool

    var testDescription: String { code }
  }

  static let formats = [
    Format(code: "NV12", name: "nv12", bytesPerSample: 1, isExact: true),
    Format(code: "NV21", name: "nv21", bytesPerSample: 1, isExact: true),
    Format(code: "YU12", name: "yuv420p", bytesPerSample: 1, isExact: true),
    Format(code: "YUYV", name: "yuyv422", bytesPerSample: 2, isExact: false),
    Format(code: "UYVY", name: "uyvy422", bytesPerSample: 2, isExact: false),
    Format(code: "YVYU", name: "yvyu422", bytesPerSample: 2, isExact: false),
  ]

  @Test(arguments: pairs(formats, sizes))
  func `a raw picture becomes the NV12 that ffmpeg makes of it`(format: Format, size: PictureSize) throws {
    let picture = try testPicture(size, format.name)
    let expected = try PackedPicture(raw: ffmpegConverts(picture, size, from: format.name), size: size)
    let code = try #require(PixelFormat(format.code))
    let result = try convert(picture, size, from: code, stride: size.width * format.bytesPerSample)
    #expect(result.luma == expected.luma)
    if format.isExact {
      #expect(result.chroma == expected.chroma)
    } else {
      #expect(psnr(result.chroma, expected.chroma) > 45)
    }
  }

  @Test(arguments: sizes)
  func `YV12 is YU12 with its chroma planes exchanged`(size: PictureSize) throws {
    let picture = try testPicture(size, "yuv420p")
    let expected = try PackedPicture(raw: ffmpegConverts(picture, size, from: "yuv420p"), size: size)
    let (luma, chroma) = (size.pixels, size.pixels / 4)
    let exchanged = picture[..<luma] + picture[(luma + chroma)...] + picture[luma..<luma + chroma]
    #expect(try convert(Array(exchanged), size, from: .yv12, stride: size.width) == expected)
  }

  @Test(arguments: sizes)
  func `VYUY is UYVY with Cb and Cr exchanged`(size: PictureSize) throws {
    var picture = try testPicture(size, "uyvy422")
    let expected = try convert(picture, size, from: .uyvy, stride: size.width * 2)
    for index in stride(from: 0, to: picture.count, by: 4) { picture.swapAt(index, index + 2) }
    let format = try #require(PixelFormat("VYUY"))
    #expect(try convert(picture, size, from: format, stride: size.width * 2) == expected)
  }

  @Test(arguments: sizes)
  func `grey keeps its luma and has no colour`(size: PictureSize) throws {
    let picture = try testPicture(size, "gray")
    let format = try #require(PixelFormat("GREY"))
    let result = try convert(picture, size, from: format, stride: size.width)
    #expect(result.luma == picture)
    #expect(result.chroma.allSatisfy { $0 == 128 })
  }

  @Test(arguments: sizes)
  func `formats of several memory planes equal those of one`(size: PictureSize) throws {
    let planar = try testPicture(size, "yuv420p")
    let expected = try PackedPicture(raw: ffmpegConverts(planar, size, from: "yuv420p"), size: size)
    let (luma, chroma, half) = (size.pixels, size.pixels / 4, size.width / 2)
    let y = try GuardedBytes(Array(planar[..<luma]))
    let cb = try GuardedBytes(Array(planar[luma..<luma + chroma]))
    let cr = try GuardedBytes(Array(planar[(luma + chroma)...]))
    let pairs = try GuardedBytes(expected.chroma)
    let reversed = try GuardedBytes(
      stride(from: 0, to: expected.chroma.count, by: 2).flatMap { [expected.chroma[$0 + 1], expected.chroma[$0]] })
    let first = y.plane(stride: size.width)
    let cases: [(PixelFormat, SourcePicture)] = [
      (.ym12, SourcePicture(first: first, second: cb.plane(stride: half), third: cr.plane(stride: half))),
      (.ym21, SourcePicture(first: first, second: cr.plane(stride: half), third: cb.plane(stride: half))),
      (.nm12, SourcePicture(first: first, second: pairs.plane(stride: size.width))),
      (.nm21, SourcePicture(first: first, second: reversed.plane(stride: size.width))),
    ]
    for (format, picture) in cases {
      #expect(try convert(picture, size, with: PixelConverter(from: format, size: size)) == expected, "\(format)")
    }
    withExtendedLifetime((y, cb, cr, pairs, reversed)) {}
  }

  @Test(arguments: ["NV12", "NV21", "YU12", "YV12", "YUYV", "UYVY", "YVYU", "VYUY", "GREY"])
  func `padding at the end of rows is skipped, and need not be there after the last row`(code: String) throws {
    let size = PictureSize(width: 642, height: 362)
    let format = try #require(PixelFormat(code))
    let rows = Self.rows(of: format, size)
    var generator = SystemRandomNumberGenerator()
    let widest = rows.map(\.width).max() ?? 0
    let tight = rows.map { row in (0..<row.width).map { _ in UInt8.random(in: 0...255, using: &generator) } }
    let padding = 46
    // The first plane's padding is 46 bytes; that of half as wide rows is half of it.
    var padded: [UInt8] = []
    for (index, row) in tight.enumerated() {
      padded += row
      if index < tight.count - 1 {
        padded += [UInt8](repeating: 0xee, count: row.count == widest ? padding : padding / 2)
      }
    }
    let expected = try convert(tight.flatMap { $0 }, size, from: format, stride: widest)
    #expect(try convert(padded, size, from: format, stride: widest + padding) == expected)

    #expect(throws: ConversionError.short(got: padded.count - 1, expected: padded.count)) {
      try convert(padded.dropLast(), size, from: format, stride: widest + padding)
    }
    let firstPlane = rows.prefix { $0.plane == 0 }.count * (widest + padding) - padding
    #expect(throws: ConversionError.short(got: 0, expected: firstPlane)) {
      try convert([], size, from: format, stride: widest + padding)
    }
    #expect(throws: ConversionError.stride(widest - 1, minimum: widest)) {
      try convert(padded, size, from: format, stride: widest - 1)
    }
    for stride in [0, -widest, Int.min, Int.max, Int.max / 2] {
      #expect(throws: ConversionError.stride(stride, minimum: widest)) {
        try convert(padded, size, from: format, stride: stride)
      }
    }
  }

  @Test(arguments: ["YUYV", "UYVY", "YVYU", "VYUY"])
  func `packed 4:2:2 comes out right at every width, whatever remains after the last vector`(code: String) throws {
    let format = try #require(PixelFormat(code))
    // Where in a pair of pixels luma, Cb and Cr are.
    let (y, cb, cr) = ["YUYV": (0, 1, 3), "UYVY": (1, 0, 2), "YVYU": (0, 3, 1), "VYUY": (1, 2, 0)][code] ?? (0, 0, 0)
    var generator = SeededGenerator(seed: 7)
    for width in stride(from: 16, through: 200, by: 2) {
      let size = PictureSize(width: width, height: 36)
      let picture = (0..<width * 2 * 36).map { _ in UInt8.random(in: 0...255, using: &generator) }
      let result = try convert(picture, size, from: format, stride: width * 2)
      var luma: [UInt8] = []
      var chroma: [UInt8] = []
      for row in 0..<36 {
        for column in 0..<width { luma.append(picture[row * width * 2 + column * 2 + y]) }
      }
      for row in 0..<18 {
        for pair in 0..<width / 2 {
          for component in [cb, cr] {
            let upper = row * 2 * width * 2 + pair * 4 + component
            chroma.append(UInt8((Int(picture[upper]) + Int(picture[upper + width * 2]) + 1) / 2))
          }
        }
      }
      #expect(result.luma == luma, "\(size)")
      #expect(result.chroma == chroma, "\(size)")
    }
  }

  /// The rows of a picture in one buffer, with the number of the plane that each belongs to.
  static func rows(of format: PixelFormat, _ size: PictureSize) -> [(plane: Int, width: Int)] {
    let luma = (0..<size.height).map { _ in (plane: 0, width: size.width) }
    switch format {
    case .nv12, .nv21: return luma + (0..<size.height / 2).map { _ in (plane: 1, width: size.width) }
    case .yu12, .yv12: return luma + (0..<size.height).map { (plane: 1 + $0 * 2 / size.height, width: size.width / 2) }
    case PixelFormat("GREY"): return luma
    default: return luma.map { (plane: 0, width: $0.width * 2) }
    }
  }

  @Test func `planes that are missing or too short are refused`() throws {
    let size = PictureSize(width: 64, height: 32)
    let memory = try GuardedBytes([UInt8](repeating: 1, count: size.pixels))
    let short = try GuardedBytes([UInt8](repeating: 1, count: 32 * 16 - 1))
    let pool = try FramePool(size: size, capacity: 1)
    let frame = try pool.anyFrame()
    let planes = frame.planes
    let luma = memory.plane(stride: 64)
    for format in [PixelFormat.nm12, .nm21] {
      let converter = try PixelConverter(from: format, size: size)
      #expect(throws: ConversionError.planes(got: 1, expected: 2)) {
        try converter.convert(SourcePicture(first: luma), into: planes)
      }
      #expect(throws: ConversionError.short(got: 511, expected: 1024)) {
        try converter.convert(SourcePicture(first: luma, second: short.plane(stride: 64)), into: planes)
      }
    }
    for format in [PixelFormat.ym12, .ym21] {
      let converter = try PixelConverter(from: format, size: size)
      #expect(throws: ConversionError.planes(got: 1, expected: 3)) {
        try converter.convert(SourcePicture(first: luma), into: planes)
      }
      #expect(throws: ConversionError.planes(got: 2, expected: 3)) {
        try converter.convert(SourcePicture(first: luma, second: luma), into: planes)
      }
      #expect(throws: ConversionError.short(got: 511, expected: 512)) {
        try converter.convert(
          SourcePicture(first: luma, second: memory.plane(stride: 32), third: short.plane(stride: 32)), into: planes)
      }
    }
    withExtendedLifetime((memory, short)) {}
    _ = consume frame
  }

  @Test func `a format without a conversion is reported`() throws {
    let size = PictureSize(width: 640, height: 480)
    for code in ["RGB3", "H264", "BA81", "Y16"] {
      let format = try #require(PixelFormat(code))
      #expect(!PixelConverter.supports(format))
      #expect(throws: ConversionError.unsupported(format)) { try PixelConverter(from: format, size: size) }
    }
    for size in [PictureSize(width: 641, height: 480), PictureSize(width: 0, height: 0)] {
      #expect(throws: ConversionError.size(size)) { try PixelConverter(from: .yuyv, size: size) }
      #expect(throws: ConversionError.size(size)) { try PixelConverter(from: .mjpeg, size: size) }
    }
    let small = PictureSize(width: 320, height: 240)
    let picture = try testPicture(size, "nv12")
    let memory = try GuardedBytes(picture)
    #expect(throws: ConversionError.frameSize(small, expected: size)) {
      try convert(
        SourcePicture(first: memory.plane(stride: 640)), small, with: PixelConverter(from: .nv12, size: size))
    }
  }
}

import Media
import PixelConversion
import TestSupport
import Testing

/// JPEG pictures made by programs other than ours, against ffmpeg's decoder.
@Suite struct JPEGTests {
  /// The writer of a picture, ffmpeg's pixel format for it, and the command.
  struct Kind: CustomTestStringConvertible {
    let name: String
    let decoded: String
    let command: @Sendable (PictureSize) -> String
    /// Decibels of chroma, as in the tests of the resampling.
    var threshold = 40.0

    var testDescription: String { name }
  }

  static func ffmpeg(_ format: String, _ options: String = "") -> @Sendable (PictureSize) -> String {
    {
      "ffmpeg -nostdin -v error -f lavfi -i testsrc2=size=\($0) -frames:v 1 -pix_fmt \(format) -c:v mjpeg -q:v 3 "
        + "\(options) -f mjpeg -"
    }
  }

  static func gstreamer(_ format: String) -> @Sendable (PictureSize) -> String {
    {
      "gst-launch-1.0 -q videotestsrc num-buffers=1 "
        + "! video/x-raw,format=\(format),width=\($0.width),height=\($0.height) ! jpegenc ! fdsink"
    }
  }

  static let kinds = [
    Kind(name: "4:2:0", decoded: "yuvj420p", command: ffmpeg("yuvj420p")),
    Kind(name: "4:2:0, default Huffman tables", decoded: "yuvj420p", command: ffmpeg("yuvj420p", "-huffman default")),
    Kind(name: "4:2:2 as 2x2,1x2,1x2", decoded: "yuvj422p", command: ffmpeg("yuvj422p")),
    Kind(name: "4:4:4 as 1x2,1x2,1x2", decoded: "yuvj444p", command: ffmpeg("yuvj444p")),
    Kind(name: "4:2:0 by libjpeg", decoded: "yuvj420p", command: gstreamer("I420")),
    Kind(name: "4:2:2 as 2x1,1x1,1x1", decoded: "yuvj422p", command: gstreamer("Y42B")),
    Kind(name: "4:4:4 as 1x1,1x1,1x1", decoded: "yuvj444p", command: gstreamer("Y444")),
    Kind(name: "4:1:1", decoded: "yuvj411p", command: gstreamer("Y41B"), threshold: 20),
    Kind(name: "grey", decoded: "gray", command: gstreamer("GRAY8")),
  ]

  /// The picture that ffmpeg decodes, as NV12 in the same range.
  static func reference(_ jpeg: [UInt8], _ size: PictureSize, decoded: String) throws -> PackedPicture {
    let folder = try TemporaryDirectory()
    let file = try folder.write(jpeg, as: "picture.jpg")
    // The native format, named again without its range, so that nothing is scaled to limited range.
    let raw = try output(
      of: "ffmpeg -nostdin -v error -f mjpeg -i \(file) -pix_fmt \(decoded) -f rawvideo -")
    if decoded == "gray" {
      return try PackedPicture(raw: raw + [UInt8](repeating: 128, count: size.pixels / 2), size: size)
    }
    let name = decoded.replacing("yuvj", with: "yuv")
    return try PackedPicture(raw: ffmpegConverts(raw, size, from: name), size: size)
  }

  @Test(arguments: pairs(kinds, sizes))
  func `a JPEG of any subsampling is decoded as ffmpeg does`(kind: Kind, size: PictureSize) throws {
    let jpeg = try output(of: kind.command(size))
    let expected = try Self.reference(jpeg, size, decoded: kind.decoded)
    let result = try convert(jpeg, size, from: .mjpeg, stride: 0)
    #expect(psnr(result.luma, expected.luma) > 45)
    #expect(psnr(result.chroma, expected.chroma) > kind.threshold)
  }

  @Test(arguments: sizes)
  func `a JPEG of 4:4:0 is decoded as ffmpeg does`(size: PictureSize) throws {
    // Nobody here writes one; 2x2,1x2,1x2 has as many blocks in as many units as 2x2,2x1,2x1.
    var jpeg = try output(of: Self.ffmpeg("yuvj422p")(size))
    let components = try #require(Self.marker(0xc0, in: jpeg)) + 10
    try #require(jpeg[components + 1] == 0x22 && jpeg[components + 4] == 0x12 && jpeg[components + 7] == 0x12)
    jpeg[components + 4] = 0x21
    jpeg[components + 7] = 0x21
    let expected = try Self.reference(jpeg, size, decoded: "yuvj440p")
    let result = try convert(jpeg, size, from: .jpeg, stride: 0)
    #expect(psnr(result.luma, expected.luma) > 45)
    #expect(psnr(result.chroma, expected.chroma) > 40)
  }

  @Test(arguments: sizes)
  func `a JPEG without Huffman tables is decoded with the standard ones`(size: PictureSize) throws {
    let jpeg = try output(of: Self.ffmpeg("yuvj422p", "-huffman default")(size))
    let stripped = try Self.withoutHuffmanTables(jpeg)
    try #require(stripped.count < jpeg.count && Self.marker(0xc4, in: stripped) == nil)
    let expected = try convert(jpeg, size, from: .mjpeg, stride: 0)
    #expect(try convert(stripped, size, from: .mjpeg, stride: 0) == expected)
  }

  @Test func `a broken picture's Huffman tables do not spoil the next picture`() throws {
    let size = PictureSize(width: 640, height: 480)
    let plain = try Self.withoutHuffmanTables(output(of: Self.ffmpeg("yuvj420p", "-huffman default")(size)))
    let expected = try convert(plain, size, from: .mjpeg, stride: 0)
    // Optimal tables are another picture's own.
    let other = try output(of: Self.ffmpeg("yuvj420p", "-huffman optimal")(size))
    let converter = try PixelConverter(from: .mjpeg, size: size)
    let broken = try GuardedBytes(Array(other.prefix(other.count / 2)))
    let whole = try GuardedBytes(plain)
    for _ in 0..<3 {
      #expect(throws: ConversionError.self) {
        try convert(SourcePicture(first: broken.plane(stride: 0)), size, with: converter)
      }
      #expect(try convert(SourcePicture(first: whole.plane(stride: 0)), size, with: converter) == expected)
    }
  }

  @Test func `pictures of different subsampling may follow each other`() throws {
    let size = PictureSize(width: 642, height: 362)
    let converter = try PixelConverter(from: .mjpeg, size: size)
    for kind in Self.kinds + Self.kinds.reversed() {
      let jpeg = try GuardedBytes(output(of: kind.command(size)))
      let result = try convert(SourcePicture(first: jpeg.plane(stride: 0)), size, with: converter)
      let fresh = try convert(
        SourcePicture(first: jpeg.plane(stride: 0)), size, with: PixelConverter(from: .mjpeg, size: size))
      #expect(result == fresh, "\(kind.name)")
    }
  }

  @Test func `bytes between the coded data and the end are harmless, and so is padding behind it`() throws {
    let size = PictureSize(width: 640, height: 480)
    let jpeg = try output(of: Self.ffmpeg("yuvj422p")(size))
    try #require(jpeg.suffix(2) == [0xff, 0xd9])
    let expected = try convert(jpeg, size, from: .mjpeg, stride: 0)
    for extra in [[UInt8](repeating: 0, count: 1), [0x12, 0x34, 0x56], [UInt8](repeating: 0xaa, count: 300)] {
      let result = try convert(jpeg.dropLast(2) + extra + [0xff, 0xd9], size, from: .mjpeg, stride: 0)
      #expect(result == expected)
      let padded = try convert(jpeg + extra, size, from: .mjpeg, stride: 0)
      #expect(padded == expected)
      // The same warning, but then the end is missing.
      #expect(throws: ConversionError.self) {
        try convert(jpeg.dropLast(2) + extra, size, from: .mjpeg, stride: 0)
      }
    }
  }

  @Test func `a JPEG of another size is corrupt`() throws {
    let jpeg = try output(of: Self.ffmpeg("yuvj420p")(PictureSize(width: 640, height: 480)))
    for size in [PictureSize(width: 1280, height: 720), PictureSize(width: 320, height: 240)] {
      #expect(throws: ConversionError.corrupt("a JPEG of 640x480 instead of \(size)")) {
        try convert(jpeg, size, from: .mjpeg, stride: 0)
      }
    }
  }

  @Test func `a JPEG that is cut anywhere is refused`() throws {
    let size = PictureSize(width: 330, height: 246)
    let jpeg = try output(of: Self.ffmpeg("yuvj420p")(size))
    for length in 0..<4 {
      #expect(throws: ConversionError.short(got: length, expected: 4)) {
        try convert(Array(jpeg.prefix(length)), size, from: .mjpeg, stride: 0)
      }
    }
    for length in Array(stride(from: 4, to: jpeg.count - 2, by: 61)) + [jpeg.count - 2] {
      let error = #expect(throws: ConversionError.self) {
        try convert(Array(jpeg.prefix(length)), size, from: .mjpeg, stride: 0)
      }
      guard case .corrupt? = error else {
        Issue.record("\(length) bytes: \(String(describing: error))")
        return
      }
    }
  }

  @Test func `garbled JPEGs never break anything, and those with damaged coded data are noticed`() throws {
    let size = PictureSize(width: 330, height: 246)
    var generator = SeededGenerator(seed: 42)
    for kind in Self.kinds {
      let jpeg = try output(of: kind.command(size))
      let converter = try PixelConverter(from: .mjpeg, size: size)
      var refused = 0
      for _ in 0..<300 {
        var garbled = jpeg
        for _ in 0..<Int.random(in: 1...20, using: &generator) {
          garbled[Int.random(in: 0..<garbled.count, using: &generator)] = UInt8.random(in: 0...255, using: &generator)
        }
        let memory = try GuardedBytes(garbled)
        do {
          _ = try convert(SourcePicture(first: memory.plane(stride: 0)), size, with: converter)
        } catch {
          refused += 1
          guard case ConversionError.corrupt(let reason) = error, !reason.isEmpty else { throw error }
        }
      }
      // A wrong bit that still decodes to something cannot be told from a picture.
      #expect(refused > 30, "\(kind.name)")
      let whole = try GuardedBytes(jpeg)
      let result = try convert(SourcePicture(first: whole.plane(stride: 0)), size, with: converter)
      #expect(try result == convert(jpeg, size, from: .mjpeg, stride: 0))
    }
  }

  @Test func `RGB in a JPEG is refused`() throws {
    let size = PictureSize(width: 64, height: 48)
    let jpeg = try output(of: Self.gstreamer("Y444")(size))
    // Adobe's APP14 marker with transform 0: no Y'CbCr (T.872 clause 6.5.3).
    let adobe: [UInt8] = [0xff, 0xee, 0, 14] + Array("Adobe".utf8) + [0, 100, 0, 0, 0, 0, 0]
    let start = try #require(Self.marker(0xdb, in: jpeg))
    let rgb = [0xff, 0xd8] + adobe + jpeg[start...]
    #expect(throws: ConversionError.corrupt("a JPEG in RGB or CMYK; only Y'CbCr and grey are decoded")) {
      try convert(Array(rgb), size, from: .mjpeg, stride: 0)
    }
  }

  /// Where the marker `0xff code` of a segment begins.
  static func marker(_ code: UInt8, in jpeg: [UInt8]) -> Int? {
    var index = 2
    while index + 3 < jpeg.count, jpeg[index] == 0xff {
      if jpeg[index + 1] == code { return index }
      if jpeg[index + 1] == 0xda { return nil }
      index += 2 + Int(jpeg[index + 2]) << 8 + Int(jpeg[index + 3])
    }
    return nil
  }

  /// `jpeg` without its DHT segments.
  static func withoutHuffmanTables(_ jpeg: [UInt8]) throws -> [UInt8] {
    var result = jpeg
    while let start = marker(0xc4, in: result) {
      let length = 2 + Int(result[start + 2]) << 8 + Int(result[start + 3])
      result.removeSubrange(start..<start + length)
    }
    return result
  }
}

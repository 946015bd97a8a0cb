import Capture
import Glibc
import Media
import TestSupport
import Testing

@Suite struct Y4MHeaderTests {
  static func header(_ text: String) throws(Y4MError) -> Y4MHeader {
    let bytes = Array(text.utf8)
    return try Y4MHeader(bytes.span)
  }

  @Test func `headers of every kind are understood`() throws {
    let plain = try Self.header("YUV4MPEG2 W640 H480 F30:1\n")
    #expect(plain.size == PictureSize(width: 640, height: 480))
    #expect(plain.frameRate == .thirty)
    #expect(plain.chroma == .yuv420)
    #expect(plain.color == .smpte170M)
    #expect(plain.byteCount == 26)
    #expect(plain.frameByteCount == 640 * 480 * 3 / 2)

    let full = try Self.header(
      "YUV4MPEG2 W1280 H720 F30000:1001 Ip A1:1 C420jpeg XYSCSS=420JPEG XCOLORRANGE=FULL\nFRAME")
    #expect(full.frameRate == FrameRate(30_000, 1001))
    #expect(full.color == ColorDescription(primaries: 1, transfer: 1, matrix: 1, isFullRange: true))
    let limited = try Self.header("YUV4MPEG2 C420mpeg2  XCOLORRANGE=LIMITED A0:0 I? F25:1 H1080 W1920\n")
    #expect(limited.color == .bt709)

    let chromas: [(String, Y4MHeader.Chroma, Int, Int)] = [
      ("420", .yuv420, 321, 182), ("420jpeg", .yuv420, 321, 182), ("420mpeg2", .yuv420, 321, 182),
      ("420paldv", .yuv420, 321, 182), ("422", .yuv422, 321, 364), ("444", .yuv444, 642, 364),
      ("411", .yuv411, 161, 364), ("mono", .mono, 0, 0),
    ]
    for (name, chroma, width, height) in chromas {
      let header = try Self.header("YUV4MPEG2 W642 H364 F30:1 C\(name)\n")
      #expect(header.chroma == chroma)
      #expect(header.chromaSize == PictureSize(width: width, height: height))
      #expect(header.frameByteCount == 642 * 364 + 2 * width * height)
    }
  }

  static let broken: [(String, Y4MError)] = [
    ("", .notY4M), ("YUV4MPEG", .notY4M), ("YUV4MPEG2", .notY4M), ("RIFF....AVI ", .notY4M),
    ("YUV4MPEG3 W640 H480 F30:1\n", .notY4M), ("YUV4MPEG22 W640 H480 F30:1\n", .notY4M),
    ("YUV4MPEG2 W640 H480 F30:1", .headerTooLong(limit: 256)),
    ("YUV4MPEG2 W640 H480 F30:1 X" + String(repeating: "x", count: 300) + "\n", .headerTooLong(limit: 256)),
    ("YUV4MPEG2\n", .missing(field: "W")), ("YUV4MPEG2 H480 F30:1\n", .missing(field: "W")),
    ("YUV4MPEG2 W640 F30:1\n", .missing(field: "H")), ("YUV4MPEG2 W640 H480\n", .missing(field: "F")),
    ("YUV4MPEG2 W640 W640 H480 F30:1\n", .repeated(field: "W")),
    ("YUV4MPEG2 W640 H480 H480 F30:1\n", .repeated(field: "H")),
    ("YUV4MPEG2 W640 H480 F30:1 F25:1\n", .repeated(field: "F")),
    ("YUV4MPEG2 W640 H480 F30:1 Ip Ip\n", .repeated(field: "I")),
    ("YUV4MPEG2 W640 H480 F30:1 C420 C444\n", .repeated(field: "C")),
    ("YUV4MPEG2 W H480 F30:1\n", .malformed(field: "W", value: "")),
    ("YUV4MPEG2 W0 H480 F30:1\n", .malformed(field: "W", value: "0")),
    ("YUV4MPEG2 W-640 H480 F30:1\n", .malformed(field: "W", value: "-640")),
    ("YUV4MPEG2 W+640 H480 F30:1\n", .malformed(field: "W", value: "+640")),
    ("YUV4MPEG2 W64x H480 F30:1\n", .malformed(field: "W", value: "64x")),
    ("YUV4MPEG2 W640 H99999999999999999999 F30:1\n", .malformed(field: "H", value: "99999999999999999999")),
    ("YUV4MPEG2 W640 H4294967296 F30:1\n", .malformed(field: "H", value: "4294967296")),
    ("YUV4MPEG2 W640 H480 F30\n", .malformed(field: "F", value: "30")),
    ("YUV4MPEG2 W640 H480 F0:0\n", .malformed(field: "F", value: "0:0")),
    ("YUV4MPEG2 W640 H480 F30:\n", .malformed(field: "F", value: "30:")),
    ("YUV4MPEG2 W640 H480 F30:1:1\n", .malformed(field: "F", value: "30:1:1")),
    ("YUV4MPEG2 W640 H480 F30:1 Iq\n", .malformed(field: "I", value: "q")),
    ("YUV4MPEG2 W640 H480 F30:1 I\u{1b}[2J\n", .malformed(field: "I", value: "?[2J")),
    ("YUV4MPEG2 W640 H480 F30:1 Z1\n", .unknownField("Z1")),
    ("YUV4MPEG2 W640 H480\tF30:1\n", .malformed(field: "H", value: "480?F30:1")),
    ("YUV4MPEG2 W640 H480 F1000:1\n", .rate(FrameRate(1000) ?? .thirty)),
    ("YUV4MPEG2 W640 H480 F241:1\n", .rate(FrameRate(241) ?? .thirty)),
    ("YUV4MPEG2 W640 H480 F1:1000\n", .rate(FrameRate(1, 1000) ?? .thirty)),
    ("YUV4MPEG2 W640 H480 F1:11\n", .rate(FrameRate(1, 11) ?? .thirty)),
    ("YUV4MPEG2 W640 H480 F25:1\r\n", .lineEnd), ("YUV4MPEG2 W640 H480 F25:1 C420\r\nFRAME\r\n", .lineEnd),
    ("YUV4MPEG2 W640 H480 F4294967295:1\n", .rate(FrameRate(4_294_967_295) ?? .thirty)),
    ("YUV4MPEG2 W640 H480 F1:4294967295\n", .rate(FrameRate(1, 4_294_967_295) ?? .thirty)),
    ("YUV4MPEG2 W641 H480 F30:1\n", .size(PictureSize(width: 641, height: 480))),
    ("YUV4MPEG2 W640 H2 F30:1\n", .size(PictureSize(width: 640, height: 2))),
    ("YUV4MPEG2 W16386 H480 F30:1\n", .size(PictureSize(width: 16_386, height: 480))),
    ("YUV4MPEG2 W4294967294 H4294967294 F30:1\n", .size(PictureSize(width: 4_294_967_294, height: 4_294_967_294))),
    ("YUV4MPEG2 W640 H480 F30:1 It\n", .interlaced("t")), ("YUV4MPEG2 W640 H480 F30:1 Ib\n", .interlaced("b")),
    ("YUV4MPEG2 W640 H480 F30:1 Im\n", .interlaced("m")),
    ("YUV4MPEG2 W640 H480 F30:1 C420p10\n", .highBitDepth("420p10")),
    ("YUV4MPEG2 W640 H480 F30:1 C444p16\n", .highBitDepth("444p16")),
    ("YUV4MPEG2 W640 H480 F30:1 Cmono12\n", .highBitDepth("mono12")),
    ("YUV4MPEG2 W640 H480 F30:1 C444alpha\n", .chroma("444alpha")),
    ("YUV4MPEG2 W640 H480 F30:1 C410\n", .chroma("410")), ("YUV4MPEG2 W640 H480 F30:1 C\n", .chroma("")),
  ]

  @Test(arguments: broken)
  func `a broken header is refused in one line`(text: String, expected: Y4MError) {
    #expect(throws: expected) { try Self.header(text) }
    #expect(!expected.description.contains { $0.isNewline || $0 == "\u{1b}" })
  }

  @Test func `the mend of a deep clip works`() throws {
    let size = PictureSize(width: 64, height: 48)
    let deep = try Clip(testClip(size, "yuv420p10le", frames: 2))
    #expect(throws: Y4MError.highBitDepth("420p10")) { try Y4MFile(path: deep.path) }
    let advice = Y4MError.highBitDepth("420p10").description
    let command = "ffmpeg -i in -pix_fmt yuv420p out.y4m"
    try #require(advice.contains(command))
    let mended = "\(deep.folder)/out.y4m"
    _ = try output(
      of: command.replacing(" in ", with: " \(deep.path) -v error ").replacing("out.y4m", with: mended))
    #expect(try Y4MFile(path: mended).format.size == size)
  }

  @Test func `random bytes after the magic word are never more than an error`() {
    var state: UInt64 = 1
    func random(_ limit: UInt64) -> UInt64 {
      state = state &* 6_364_136_223_846_793_005 &+ 1_442_695_040_888_963_407
      return (state >> 33) % limit
    }
    let words = [
      "W", "H", "F", "C", "I", "A", "X", "640", "480", "30:1", " ", "\n", "420", "p", "9999999999", ":", "\0",
    ]
    var accepted = 0
    for _ in 0..<20_000 {
      var text = "YUV4MPEG2 "
      if random(2) == 0 { text += "W640 H480 F30:1 " }
      for _ in 0..<random(12) { text += words[Int(random(UInt64(words.count)))] }
      if let header = try? Self.header(text) {
        accepted += 1
        #expect(header.size.isEncodable && header.byteCount <= text.utf8.count)
      }
    }
    #expect(accepted > 100)
  }
}

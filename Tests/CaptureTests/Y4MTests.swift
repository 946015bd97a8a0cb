import Glibc
import Media
import TestSupport
import Testing

@testable import Capture

/// What `command` writes to its standard output; it must succeed.
func output(of command: String) throws -> [UInt8] {
  guard let pipe = popen(command, "re") else { throw SystemFailure("popen") }
  var bytes: [UInt8] = []
  var buffer = [UInt8](repeating: 0, count: 1 << 16)
  while true {
    let count = fread(&buffer, 1, buffer.count, pipe)
    if count == 0 { break }
    bytes += buffer[..<count]
  }
  guard pclose(pipe) == 0 else { throw SystemFailure(command, errorNumber: ECHILD) }
  return bytes
}

/// A folder with one clip in it, which goes when this value does.
final class Clip {
  let folder: String
  var path: String { "\(folder)/clip.y4m" }

  init() throws {
    var template = Array("/tmp/nightjar-test-XXXXXX".utf8CString)
    guard mkdtemp(&template) != nil else { throw SystemFailure("mkdtemp") }
    folder = String(decoding: template.dropLast().map { UInt8(truncatingIfNeeded: $0) }, as: UTF8.self)
  }

  /// A clip of `bytes`.
  convenience init(_ bytes: some Sequence<UInt8>) throws {
    try self.init()
    try write(bytes)
  }

  func write(_ bytes: some Sequence<UInt8>) throws {
    let bytes = Array(bytes)
    guard let stream = fopen(path, "we") else { throw SystemFailure("fopen") }
    defer { fclose(stream) }
    guard fwrite(bytes, 1, bytes.count, stream) == bytes.count else { throw SystemFailure("fwrite") }
  }

  deinit {
    _ = system("rm -r \(folder)")
  }
}

/// ffmpeg's moving test pattern as a y4m clip.
func testClip(_ size: PictureSize, _ pixelFormat: String, frames: Int, rate: String = "30") throws -> [UInt8] {
  try output(
    of: """
      ffmpeg -nostdin -v error -f lavfi -i testsrc2=size=\(size):rate=\(rate) -frames:v \(frames) \
      -pix_fmt \(pixelFormat) -strict -1 -f yuv4mpegpipe -
      """)
}

/// The picture without padding: luma and chroma.
func packed(_ planes: NV12Planes) -> (luma: [UInt8], chroma: [UInt8]) {
  let size = planes.size
  let luma = (0..<size.height).flatMap {
    Array(UnsafeBufferPointer(start: planes.luma + $0 * planes.lumaStride, count: size.width))
  }
  let chroma = (0..<size.height / 2).flatMap {
    Array(UnsafeBufferPointer(start: planes.chroma + $0 * planes.chromaStride, count: size.width))
  }
  return (luma, chroma)
}

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

@Suite struct Y4MFileTests {
  static let small = PictureSize(width: 64, height: 48)

  /// All events of a clip until it ends, at full speed.
  static func timestamps(of file: Y4MFile, limit: Int = 1000) throws -> [MediaTime] {
    let interrupt = try Interrupt()
    try file.start()
    var result: [MediaTime] = []
    while result.count < limit {
      switch try file.next(interrupt: interrupt) {
      case .frame(let frame): result.append(frame.timestamp)
      case .ended: return result
      default: throw SystemFailure("a picture was lost", errorNumber: EIO)
      }
    }
    return result
  }

  /// ffmpeg's name, V4L2's code and decibels of chroma.
  static let formats: [(name: String, code: String, threshold: Double)] = [
    ("yuv420p", "YU12", .infinity), ("yuv422p", "422P", 45), ("yuv444p", "YM24", 45), ("yuv411p", "411P", 20),
    ("gray", "GREY", .infinity),
  ]
  static let sizes = [
    PictureSize(width: 1280, height: 720), PictureSize(width: 642, height: 362), PictureSize(width: 66, height: 50),
    PictureSize(width: 16, height: 16),
  ]

  @Test(arguments: formats, sizes)
  func `every picture of a clip is the one that ffmpeg reads`(
    format: (name: String, code: String, threshold: Double), size: PictureSize
  ) throws {
    let clip = try Clip(testClip(size, format.name, frames: 3))
    // Grey is expanded to full range by ffmpeg on its way to NV12, so that its samples are compared as they are.
    let isGrey = format.name == "gray"
    let raw = try output(
      of: """
        ffmpeg -nostdin -v error -i \(clip.path) -sws_flags area -pix_fmt \(isGrey ? "gray" : "nv12") -f rawvideo -
        """)
    let frameBytes = isGrey ? size.pixels : size.pixels * 3 / 2
    try #require(raw.count == 3 * frameBytes)

    let file = try Y4MFile(path: clip.path, pacing: .maximum, loops: 1)
    #expect(file.format.pixelFormat.description == format.code)
    #expect(file.format.size == size && file.format.frameRate == .thirty && file.format.conversion == "libyuv")
    #expect(file.name == clip.path && !file.isLive)
    let interrupt = try Interrupt()
    try file.start()
    for index in 0..<3 {
      let before = MediaTime.now()
      guard case .frame(let frame) = try file.next(interrupt: interrupt) else {
        Issue.record("no frame \(index)")
        return
      }
      #expect(frame.captured >= before && frame.captured <= .now())
      #expect(frame.color == file.format.color)
      let picture = packed(frame.planes)
      let expected = raw[index * frameBytes..<(index + 1) * frameBytes]
      #expect(picture.luma == Array(expected.prefix(size.pixels)))
      let chroma = isGrey ? [UInt8](repeating: 128, count: size.pixels / 2) : Array(expected.dropFirst(size.pixels))
      #expect(psnr(picture.chroma, chroma) >= format.threshold)
    }
    guard case .ended = try file.next(interrupt: interrupt) else {
      Issue.record("not ended")
      return
    }
  }

  @Test func `timestamps go on over all loops`() throws {
    let clip = try Clip(testClip(Self.small, "yuv420p", frames: 4, rate: "30000/1001"))
    let rate = try #require(FrameRate(30_000, 1001))
    let file = try Y4MFile(path: clip.path, pacing: .maximum, loops: 3)
    let expected = (0..<12).map { rate.time(ofFrame: $0) }
    #expect(try Self.timestamps(of: file) == expected)
    // Anew after a stop.
    file.stop()
    file.stop()
    #expect(try Self.timestamps(of: file) == expected)
    #expect(try Self.timestamps(of: Y4MFile(path: clip.path, pacing: .maximum), limit: 50).count == 50)
    #expect(throws: Y4MError.loops(0)) { try Y4MFile(path: clip.path, loops: 0) }
    #expect(throws: Y4MError.capacity(0)) { try Y4MFile(path: clip.path, capacity: 0) }
  }

  @Test func `in real time pictures keep to the clock, and each is delivered or told as lost`() throws {
    let clip = try Clip(testClip(Self.small, "yuv420p", frames: 10, rate: "100"))
    let rate = try #require(FrameRate(100))
    let file = try Y4MFile(path: clip.path, loops: 2)
    #expect(file.isLive)
    let interrupt = try Interrupt()
    let before = MediaTime.now()
    try file.start()
    var tick: Int64 = 0
    var start: MediaTime?
    while true {
      let event = try file.next(interrupt: interrupt)
      switch event {
      case .frame(let frame):
        let origin = start ?? frame.timestamp - rate.time(ofFrame: tick)
        start = origin
        #expect(origin >= before && MediaTime.now() >= frame.timestamp)
        #expect(frame.timestamp == origin + rate.time(ofFrame: tick) && frame.captured == frame.timestamp)
        tick += 1
        if tick == 5 { usleep(55_000) }
      case .dropped(let cause, let count):
        #expect(cause == .driver && count > 0)
        tick += Int64(count)
      case .idle:
        Issue.record("idle")
        return
      case .ended:
        #expect(tick == 20)
        return
      }
    }
  }

  @Test func `in real time a picture without memory is lost; at full speed it is waited for`() throws {
    let clip = try Clip(testClip(Self.small, "yuv420p", frames: 3, rate: "50"))
    let interrupt = try Interrupt()
    let live = try Y4MFile(path: clip.path, pacing: .realtime, loops: nil, capacity: 1)
    try live.start()
    guard case .frame(let held) = try live.next(interrupt: interrupt) else {
      Issue.record("no frame")
      return
    }
    var isExhausted = false
    for _ in 0..<100 where !isExhausted {
      switch try live.next(interrupt: interrupt) {
      case .dropped(.poolExhausted, let count):
        #expect(count == 1)
        isExhausted = true
      case .dropped(.driver, _): break
      default:
        Issue.record("neither a drop")
        return
      }
    }
    #expect(isExhausted)
    #expect(held.planes.size == Self.small)

    let file = try Y4MFile(path: clip.path, pacing: .maximum, loops: 1, capacity: 1)
    try file.start()
    guard case .frame(let first) = try file.next(interrupt: interrupt) else {
      Issue.record("no frame")
      return
    }
    let slot = LateReturn(first)
    var thread = pthread_t()
    let context = Unmanaged.passRetained(slot)
    pthread_create(
      &thread, nil,
      { context in
        guard let context else { return nil }
        usleep(30_000)
        Unmanaged<LateReturn>.fromOpaque(context).takeRetainedValue().release()
        return nil
      }, context.toOpaque())
    guard case .frame(let second) = try file.next(interrupt: interrupt) else {
      Issue.record("no frame")
      return
    }
    pthread_join(thread, nil)
    #expect(slot.isReleased)
    #expect(second.timestamp == FrameRate(50)?.time(ofFrame: 1))
    // Nobody returns this one: only the interrupt ends the wait.
    interrupt.fire()
    guard case .idle = try file.next(interrupt: interrupt) else {
      Issue.record("not interrupted")
      return
    }
  }

  @Test func `a clip that is cut off is told with the frame and the byte`() throws {
    let whole = try testClip(Self.small, "yuv420p", frames: 3)
    let header = try Y4MHeader(whole.span)
    let frameBytes = 6 + header.frameByteCount
    try #require(whole.count == header.byteCount + 3 * frameBytes)

    let onlyHeader = try Clip(whole.prefix(header.byteCount))
    #expect(throws: Y4MError.empty) { try Y4MFile(path: onlyHeader.path) }
    let nothing = try Clip([])
    #expect(throws: Y4MError.notY4M) { try Y4MFile(path: nothing.path) }
    for length in [header.byteCount + 1, header.byteCount + 6, header.byteCount + frameBytes - 1] {
      let clip = try Clip(whole.prefix(length))
      let missing = header.byteCount + frameBytes - length
      #expect(throws: Y4MError.truncated(frame: 1, offset: Int64(length), missing: missing)) {
        try Y4MFile(path: clip.path)
      }
    }
    for length in [whole.count - 1, whole.count - frameBytes + 3, whole.count - frameBytes + 6, whole.count - 800] {
      let clip = try Clip(whole.prefix(length))
      for pacing in [Y4MFile.Pacing.maximum, .realtime] {
        let file = try Y4MFile(path: clip.path, pacing: pacing, loops: nil)
        let expected = Y4MError.truncated(frame: 3, offset: Int64(length), missing: whole.count - length)
        #expect(throws: expected) { try Self.drain(file) }
      }
    }
  }

  /// Takes pictures until something is thrown.
  static func drain(_ file: Y4MFile) throws {
    let interrupt = try Interrupt()
    try file.start()
    for _ in 0..<1000 { _ = try file.next(interrupt: interrupt) }
  }

  @Test func `a frame without its marker is told, and one with parameters is read`() throws {
    let whole = try testClip(Self.small, "yuv420p", frames: 3)
    let header = try Y4MHeader(whole.span)
    let second = header.byteCount + 6 + header.frameByteCount
    for (index, byte) in [(0, "G"), (4, "e"), (5, "S"), (5, "\r")] {
      var broken = whole
      broken[second + index] = byte.utf8.first ?? 0
      let clip = try Clip(broken)
      #expect(throws: Y4MError.marker(frame: 2, offset: Int64(second))) {
        try Self.drain(Y4MFile(path: clip.path, pacing: .maximum))
      }
      broken = whole
      broken[header.byteCount + index] = byte.utf8.first ?? 0
      let first = try Clip(broken)
      #expect(throws: Y4MError.marker(frame: 1, offset: Int64(header.byteCount))) { try Y4MFile(path: first.path) }
    }
    func parameters(_ text: String) -> [UInt8] {
      whole[..<(second + 5)] + Array(text.utf8) + whole[(second + 5)...]
    }
    let annotated = try Clip(parameters(" Ippp Xsomething"))
    #expect(try Self.timestamps(of: Y4MFile(path: annotated.path, pacing: .maximum, loops: 2)).count == 6)
    let longest = try Clip(parameters(" X" + String(repeating: "x", count: 256 - 6 - 2)))
    #expect(try Self.timestamps(of: Y4MFile(path: longest.path, pacing: .maximum, loops: 1)).count == 3)
    let tooLong = try Clip(parameters(" X" + String(repeating: "x", count: 256 - 6 - 1)))
    #expect(throws: Y4MError.frameHeaderTooLong(frame: 2, offset: Int64(second), limit: 256)) {
      try Self.drain(Y4MFile(path: tooLong.path, pacing: .maximum))
    }
  }

  @Test func `a file that shrinks while it is looped is an error, not a crash`() throws {
    let whole = try testClip(Self.small, "yuv420p", frames: 3)
    let header = try Y4MHeader(whole.span)
    let clip = try Clip(whole)
    let interrupt = try Interrupt()
    let file = try Y4MFile(path: clip.path, pacing: .maximum, loops: nil)
    try file.start()
    for _ in 0..<4 { _ = try file.next(interrupt: interrupt) }
    truncate(clip.path, header.byteCount)
    #expect(throws: Y4MError.empty) {
      for _ in 0..<10 { _ = try file.next(interrupt: interrupt) }
    }
  }

  @Test func `what is no clip is refused with its reason`() throws {
    let clip = try Clip()
    #expect(throws: Y4MError.open(path: "/nonexistent/a.y4m", errorNumber: ENOENT)) {
      try Y4MFile(path: "/nonexistent/a.y4m")
    }
    #expect(throws: Y4MError.notAFile(path: clip.folder)) { try Y4MFile(path: clip.folder) }
    #expect(throws: Y4MError.notAFile(path: "/dev/null")) { try Y4MFile(path: "/dev/null") }
    #expect(Y4MError.open(path: "a", errorNumber: EACCES).kind == .noPermission)
    #expect(Y4MError.open(path: "a", errorNumber: ENOENT).description == "a: No such file or directory")
  }

  @Test func `a pipe is played once, picture for picture`() throws {
    let whole = try Clip(testClip(PictureSize(width: 642, height: 362), "yuv422p", frames: 5))
    let pipe = "\(whole.folder)/pipe.y4m"
    try #require(mkfifo(pipe, 0o600) == 0)
    #expect(throws: Y4MError.pipeCannotLoop(path: pipe)) { try Y4MFile(path: pipe) }
    #expect(throws: Y4MError.pipeCannotLoop(path: pipe)) { try Y4MFile(path: pipe, loops: 2) }
    let interrupt = try Interrupt()
    for pacing in [Y4MFile.Pacing.maximum, .realtime] {
      // The writer comes late and in two parts.
      let (head, tail) = ("head -c 700000 \(whole.path)", "tail -c +700001 \(whole.path)")
      try #require(system("(sleep 0.2; exec >\(pipe); \(head); sleep 0.2; \(tail)) &") == 0)
      let file = try Y4MFile(path: pipe, pacing: pacing, loops: 1)
      let reference = try Y4MFile(path: whole.path, pacing: .maximum, loops: 1)
      try file.start()
      try reference.start()
      var times: [MediaTime] = []
      for index in 0..<5 {
        guard case .frame(let frame) = try file.next(interrupt: interrupt),
          case .frame(let other) = try reference.next(interrupt: interrupt)
        else {
          Issue.record("no frame \(index)")
          return
        }
        let (left, right) = (packed(frame.planes), packed(other.planes))
        #expect(left.luma == right.luma && left.chroma == right.chroma)
        if let last = times.last { #expect(frame.timestamp > last) }
        times.append(frame.timestamp)
      }
      guard case .ended = try file.next(interrupt: interrupt) else {
        Issue.record("not ended")
        return
      }
    }
  }

  @Test func `a pipe whose writer stalls can be interrupted`() throws {
    let whole = try Clip(testClip(Self.small, "yuv420p", frames: 2))
    let pipe = "\(whole.folder)/pipe.y4m"
    try #require(mkfifo(pipe, 0o600) == 0)
    // One and a half pictures, and then nothing while somebody still could write.
    try #require(system("(exec >\(pipe); head -c 7000 \(whole.path); sleep 3) &") == 0)
    let bell = try Bell()
    let file = try Y4MFile(path: pipe, pacing: .maximum, loops: 1)
    try file.start()
    guard case .frame = try file.next(interrupt: bell.interrupt) else {
      Issue.record("no frame")
      return
    }
    var thread = pthread_t()
    pthread_create(
      &thread, nil,
      { context in
        guard let context else { return nil }
        usleep(50_000)
        Unmanaged<Bell>.fromOpaque(context).takeRetainedValue().interrupt.fire()
        return nil
      }, Unmanaged.passRetained(bell).toOpaque())
    guard case .idle = try file.next(interrupt: bell.interrupt) else {
      Issue.record("not interrupted")
      return
    }
    pthread_join(thread, nil)
    // Half a picture is gone, and there is no way on from the middle of it.
    guard case .ended = try file.next(interrupt: bell.interrupt) else {
      Issue.record("not ended")
      return
    }
  }
}

/// An interrupt that two threads hold.
final class Bell: Sendable {
  let interrupt: Interrupt

  init() throws {
    interrupt = try Interrupt()
  }
}

/// A frame that another thread lets go.
final class LateReturn: @unchecked Sendable {
  // Sendable: written by one thread, and read after that one was joined.
  private var frame: Frame?
  private(set) var isReleased = false

  init(_ frame: consuming Frame) {
    self.frame = consume frame
  }

  func release() {
    isReleased = true
    frame = nil
  }
}

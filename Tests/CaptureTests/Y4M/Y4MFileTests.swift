import Capture
import Glibc
import Media
import Platform
import TestSupport
import Testing

@Suite struct Y4MFileTests {
  static let small = PictureSize(width: 64, height: 48)

  /// All events of a clip until it ends, at full speed.
  static func timestamps(of file: Y4MFile, limit: Int = 1000) throws -> [Instant] {
    let interrupt = try Interrupt()
    try file.start()
    var result: [Instant] = []
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

  @Test(arguments: pairs(formats, sizes))
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
      let before = Instant.now()
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
    let expected = (0..<12).map { Instant.zero + rate.time(ofFrame: $0) }
    #expect(try Self.timestamps(of: file) == expected)
    // Anew after a stop.
    file.stop()
    file.stop()
    #expect(try Self.timestamps(of: file) == expected)
    #expect(try Self.timestamps(of: Y4MFile(path: clip.path, pacing: .maximum), limit: 50).count == 50)
    #expect(throws: Y4MError.loops(0)) { try Y4MFile(path: clip.path, loops: 0) }
    #expect(throws: Y4MError.capacity(0)) { try Y4MFile(path: clip.path, capacity: 0) }
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

  @Test func `a file that is no clip is refused with the reason`() throws {
    let clip = try Clip()
    #expect(throws: Y4MError.open(path: "/nonexistent/a.y4m", errorNumber: ENOENT)) {
      try Y4MFile(path: "/nonexistent/a.y4m")
    }
    #expect(throws: Y4MError.notAFile(path: clip.folder)) { try Y4MFile(path: clip.folder) }
    #expect(throws: Y4MError.notAFile(path: "/dev/null")) { try Y4MFile(path: "/dev/null") }
    #expect(Y4MError.open(path: "a", errorNumber: EACCES).kind == .noPermission)
    #expect(Y4MError.open(path: "a", errorNumber: ENOENT).description == "a: No such file or directory")
  }
}

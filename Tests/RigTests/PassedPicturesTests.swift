import Foundation
import TestSupport
import Testing

/// The JPEGs of a USB webcam, handed on by `--http` as they are.
@Suite(.serialized, .enabled(if: Vivid.isHere)) struct PassedPicturesTests {
  /// The JPEGs in concatenated ones, SOI to EOI: no JPEG has a marker of either within its coded data.
  private static func pictures(in clip: Data) -> [Data] {
    var pictures: [Data] = []
    var start = clip.startIndex
    while let end = clip[start...].firstRange(of: Data([0xff, 0xd9])) {
      pictures.append(Data(clip[start..<end.upperBound]))
      start = end.upperBound
    }
    return pictures
  }

  /// Where the Huffman tables of a JPEG stand, before its coded data.
  private static func tables(in jpeg: Data) -> [Range<Int>] {
    let bytes = [UInt8](jpeg)
    var (ranges, index): ([Range<Int>], Int) = ([], 2)
    while index + 4 <= bytes.count, bytes[index] == 0xff, bytes[index + 1] != 0xda {
      let end = index + 2 + Int(bytes[index + 2]) << 8 + Int(bytes[index + 3])
      if bytes[index + 1] == 0xc4 { ranges.append(index..<end) }
      index = end
    }
    return ranges
  }

  private static func withoutTables(_ jpeg: Data) -> Data {
    var bytes = [UInt8](jpeg)
    for range in tables(in: jpeg).reversed() { bytes.removeSubrange(range) }
    return Data(bytes)
  }

  /// A clip as of a camera that leaves the standard tables out, and what its pictures were with them.
  private func bareClip(in directory: TemporaryDirectory) throws -> String {
    let (whole, bare) = (directory.path("whole.mjpeg"), directory.path("bare.mjpeg"))
    let result = try Subprocess.run(
      [
        "ffmpeg", "-nostdin", "-v", "error", "-f", "lavfi", "-i", "testsrc2=s=640x480:r=30", "-frames:v", "16",
        "-pix_fmt", "yuvj422p", "-c:v", "mjpeg", "-huffman", "default", "-q:v", "4", "-f", "mjpeg", whole,
      ], in: directory)
    try #require(result.status == 0, "\(result.error)")
    let pictures = Self.pictures(in: try Data(contentsOf: URL(fileURLWithPath: whole)))
    try #require(pictures.count == 16 && !Self.tables(in: pictures[0]).isEmpty)
    try Data(pictures.map(Self.withoutTables).joined()).write(to: URL(fileURLWithPath: bare))
    return bare
  }

  private func start(_ camera: UVCCamera, _ size: String, in directory: TemporaryDirectory) throws -> Subprocess {
    let process = try Subprocess(
      [
        nightjarPath, "stream", "--source", try #require(camera.node), "--format", "mjpeg", "--size", size, "--fps",
        "30",
        "--http", "127.0.0.1:8080", "--rtsp", "127.0.0.1:8554", "--control", directory.path("control"),
      ], in: directory)
    try #require(
      eventually { !process.log.values(of: "http").isEmpty || !process.isRunning } && process.isRunning,
      "\(process.errorSoFar)")
    return process
  }

  private func snapshot(in directory: TemporaryDirectory) throws -> Data {
    let file = directory.path("snapshot-\(UUID().uuidString).jpg")
    let result = try Subprocess.run(
      ["curl", "-sSf", "--max-time", "60", "-o", file, "http://127.0.0.1:8080/snapshot.jpg"], in: directory)
    try #require(result.status == 0, "\(result.error)")
    return try Data(contentsOf: URL(fileURLWithPath: file))
  }

  private func figures(in directory: TemporaryDirectory) throws -> [String: Int] {
    let result = try Subprocess.run(
      [nightjarPath, "ctl", "--socket", directory.path("control"), "status", "--json", "--camera", "camera"],
      in: directory)
    let status = try #require(JSONSerialization.jsonObject(with: result.output) as? [String: Any])
    return try #require(status["pictures"] as? [String: Int])
  }

  @Test func `the camera's own JPEGs are sent unchanged, and rotated ones are coded here`() throws {
    let directory = try TemporaryDirectory()
    let camera = try UVCCamera(jpegs: ["640x480"], in: directory)
    let clip = Self.pictures(
      in: try Data(contentsOf: URL(fileURLWithPath: NumberedPictures.clip(of: "640x480", in: directory))))
    #expect(clip.count == NumberedPictures.clipLength)
    let process = try start(camera, "640x480", in: directory)
    defer { process.send(SIGTERM) }
    for _ in 0..<5 { #expect(clip.contains(try snapshot(in: directory))) }

    let stream = directory.path("stream.mjpg")
    _ = try Subprocess.run(
      ["curl", "-sS", "--max-time", "5", "-o", stream, "http://127.0.0.1:8080/stream.mjpg"], in: directory)
    var rest = try Data(contentsOf: URL(fileURLWithPath: stream))
    var count = 0
    while let begin = rest.firstRange(of: Data([0xff, 0xd8])),
      let end = rest.firstRange(
        of: Data("\r\n--nightjar\r\n".utf8)
      ), begin.lowerBound < end.lowerBound
    {
      #expect(clip.contains(Data(rest[begin.lowerBound..<end.lowerBound])), "picture \(count)")
      count += 1
      rest = Data(rest[end.upperBound...])
    }
    #expect(count >= 5, "\(count)")
    let passed = try figures(in: directory)
    #expect(passed["coded"] == 0 && passed["passed"] ?? 0 >= 5 + count, "\(passed)")

    let turned = try Subprocess.run(
      [nightjarPath, "ctl", "--socket", directory.path("control"), "rotate", "180"], in: directory)
    #expect(turned.status == 0, "\(turned.error)")
    #expect(!clip.contains(try snapshot(in: directory)))
    #expect(try figures(in: directory)["coded"] == 1)
  }

  @Test func `a camera that leaves out the Huffman tables gets them, and a damaged picture is not handed on`() throws {
    let directory = try TemporaryDirectory()
    let file = try bareClip(in: directory)
    let clip = Self.pictures(in: try Data(contentsOf: URL(fileURLWithPath: file)))
    let camera = try UVCCamera(jpegs: [], clips: [file], in: directory)
    let process = try start(camera, "640x480", in: directory)
    defer { process.send(SIGTERM) }
    func count(_ words: String) -> Int { process.errorSoFar.components(separatedBy: words).count - 1 }
    func isWhole(_ picture: Data) -> Bool {
      Self.tables(in: picture).count == 1 && clip.contains(Self.withoutTables(picture))
    }
    for round in 1...5 {
      let (losses, coded) = (count("camera lost"), try figures(in: directory)["coded"])
      var pictures: [Data] = []
      for index in 0..<12 {
        // Less than what makes a camera lost.
        if index == 3 { try camera.command("corrupt 20 truncated") }
        pictures.append(try snapshot(in: directory))
      }
      #expect(try eventually { try camera.state().corrupted == 20 * round })
      // Unless the machine is so slow that they last for two seconds, and there is a placeholder.
      if round < 5, !pictures.allSatisfy(isWhole), eventually(within: 10, { count("camera lost") > losses }) {
        #expect(eventually { count("camera is back after") == count("camera lost") }, "\(process.errorSoFar)")
        continue
      }
      for (index, picture) in pictures.enumerated() { #expect(isWhole(picture), "\(index)") }
      #expect(try figures(in: directory)["coded"] == coded)
      #expect(coded == 0 || round > 1)
      break
    }
  }
}

import Foundation
import Media
import TestSupport
import Testing

/// The program `nightjar-watch`, on streams of `nightjar`.
@Suite struct WatchTests {
  // Not beside `nightjarPath`: the program that `NIGHTJAR` names may have no viewer beside it.
  static let path = builtPath("nightjar-watch")

  static func watch(
    _ arguments: [String], in directory: TemporaryDirectory, environment: [String: String] = [:]
  ) throws -> Subprocess.Result {
    let program = try Subprocess([path] + arguments, in: directory, environment: environment)
    return try program.wait(limit: 120)
  }

  /// Streams colour bars by RTSP: eight fields that a mistake in the colours would show.
  static func bars(_ size: String, in directory: TemporaryDirectory) throws -> (Subprocess, clip: String, url: String) {
    let clip = directory.path("bars.y4m")
    let made = try Subprocess.run(
      [
        "ffmpeg", "-v", "error", "-nostdin", "-f", "lavfi", "-i", "smptebars=size=\(size):rate=25", "-frames:v", "5",
        "-pix_fmt", "yuv420p", clip,
      ], in: directory)
    #expect(made.status == 0, "\(made.error)")
    let port = try TCPPort.free()
    let program = try Subprocess(
      [
        nightjarPath, "stream", "--source", "file:\(clip)", "--control", "none", "--bitrate", "4M", "--rtsp",
        "127.0.0.1:\(port)",
      ], in: directory)
    #expect(eventually { program.errorSoFar.contains("rtsp://") || !program.isRunning })
    return (program, clip, "rtsp://127.0.0.1:\(port)/camera")
  }

  /// Streams the synthetic camera by RTSP.
  static func camera(_ options: [String] = [], in directory: TemporaryDirectory) throws -> (Subprocess, String) {
    let port = try TCPPort.free()
    let program = try Subprocess(
      [
        nightjarPath, "stream", "--source", "test", "--size", "320x192", "--fps", "25", "--control", "none", "--rtsp",
        "127.0.0.1:\(port)",
      ] + options, in: directory)
    #expect(eventually { program.errorSoFar.contains("rtsp://") || !program.isRunning })
    return (program, "rtsp://127.0.0.1:\(port)/camera")
  }

  /// The bytes of a picture of 320x192 pixels in YUV4MPEG2.
  private static let pictureBytes = 320 * 192 * 3 / 2

  /// The size of a file; 0 where there is none.
  private static func size(of path: String) -> Int {
    (try? FileManager.default.attributesOfItem(atPath: path)[.size] as? Int) ?? 0
  }

  /// The pictures of a file of YUV4MPEG2 with 320x192 pixels, as far as they are whole.
  private static func pictures(_ path: String) throws -> [Data] {
    let file = try Data(contentsOf: URL(fileURLWithPath: path))
    let (head, size) = (Data("FRAME\n".utf8), pictureBytes)
    guard var position = file.firstIndex(of: 0x0a) else { return [] }
    position += 1
    var pictures: [Data] = []
    while position + head.count + size <= file.count, file[position..<(position + head.count)] == head {
      position += head.count
      pictures.append(file.subdata(in: position..<(position + size)))
      position += size
    }
    return pictures
  }

  /// The number of IDR slices of a file of H.264.
  private static func keyFrames(_ path: String) throws -> Int {
    var count = 0
    try Data(contentsOf: URL(fileURLWithPath: path)).withUnsafeBytes { bytes in
      AnnexB.forEachNALUnit(in: bytes) { unit in
        if unit.type == .idrSlice { count += 1 }
      }
    }
    return count
  }

  @Test func `exit codes tell whether the stream is as expected`() throws {
    let directory = try TemporaryDirectory()
    let (program, url) = try Self.camera(in: directory)
    defer { program.send(SIGTERM) }
    // A slow host may miss pictures, and stand still for seconds: the limits are far from what comes in ten.
    let good = try Self.watch([url, "--for", "5s", "--expect-fps", "2.5", "--max-freeze", "10s"], in: directory)
    #expect(good.status == 0, "\(good.error)")
    #expect(good.log.values(of: "playing").first?.hasPrefix("RTSP from 127.0.0.1 port ") == true, "\(good.error)")
    #expect(good.log.values(of: "summary").count == 1, "\(good.error)")
    let slow = try Self.watch([url, "--for", "2s", "--expect-fps", "900"], in: directory)
    let tooSlow = slow.log.values(of: "failed").map { $0.hasSuffix(" pictures a second; 900.00 were expected") }
    #expect(slow.status == 1 && tooSlow == [true], "\(slow.error)")
    let frozen = try Self.watch([url, "--for", "2s", "--max-freeze", "1ms"], in: directory)
    let freezes = frozen.log.values(of: "failed").map { $0.hasPrefix("a freeze of ") && $0.hasSuffix(" s are allowed") }
    #expect(frozen.status == 1 && freezes == [true], "\(frozen.error)")
    #expect(try Self.watch(["http://127.0.0.1/"], in: directory).status == 64)
    #expect(try Self.watch([url, "--for", "soon"], in: directory).status == 64)
    let absent = try Self.watch(
      ["rtsp://127.0.0.1:\(try TCPPort.free())/camera", "--once", "--for", "60s"], in: directory)
    #expect(absent.status == 75, "\(absent.error)")
    program.send(SIGTERM)
    _ = try program.wait()
  }

  @Test func `the end of the stream ends it`() throws {
    let directory = try TemporaryDirectory()
    let (program, url) = try Self.camera(in: directory)
    let watching = try Subprocess([Self.path, url, "--once"], in: directory)
    defer { watching.send(SIGKILL) }
    #expect(eventually { watching.errorSoFar.contains("playing") })
    program.send(SIGTERM)
    let result = try watching.wait()
    let reason = "nightjar-watch: the server ended the stream"
    #expect(result.status == 75 && result.log.count(of: reason) == 1, "\(result.error)")
  }

  @Test func `pictures go to files that others read`() throws {
    let directory = try TemporaryDirectory()
    let (program, clip, url) = try Self.bars("320x192", in: directory)
    defer { program.send(SIGTERM) }
    let (png, y4m) = (directory.path("now.png"), directory.path("all.y4m"))
    let result = try Self.watch([url, "--for", "3s", "--png", png, "--y4m", y4m], in: directory)
    #expect(result.status == 0, "\(result.error) \(program.errorSoFar)")
    // ffmpeg reads both, and finds the clip's picture in them.
    for file in [png, y4m] {
      let compared = try Subprocess.run(
        [
          "ffmpeg", "-v", "info", "-nostdin", "-i", file, "-i", clip, "-frames:v", "1", "-lavfi",
          "[0:v]format=gbrp[a];[1:v]format=gbrp[b];[a][b]psnr", "-f", "null", "-",
        ], in: directory)
      let value = compared.error.components(separatedBy: "average:").last.flatMap { text in
        Double(text.prefix { $0.isNumber || $0 == "." })
      }
      #expect((value ?? 0) > 28, "\(file): \(compared.error.suffix(400))")
    }
  }

  /// Returns the number of pictures that the only viewer of a kind has missed, by the control socket at `path`.
  private static func missed(of kind: String, by path: String, in directory: TemporaryDirectory) throws -> Int {
    let answer = try Subprocess.run([nightjarPath, "ctl", "viewers", "--json", "--socket", path], in: directory)
    let list = try JSONSerialization.jsonObject(with: answer.output) as? [String: Any]
    let viewers = try #require(list?["viewers"] as? [[String: Any]], "\(answer.error)")
    return try #require(viewers.first { $0["kind"] as? String == kind }?["frames_dropped"] as? Int, "\(viewers)")
  }

  @Test func `with every twentieth datagram lost, what is shown is whole`() throws {
    let directory = try TemporaryDirectory()
    let (port, server) = (try UDPPort.free(), try TCPPort.free())
    // Small packets are many, of which enough are lost in any run.
    let relay = try LossyRelay(to: port, loss: 0.05, seed: 25)
    let sdp = directory.path("stream.sdp")
    let program = try Subprocess(
      [
        nightjarPath, "stream", "--source", "test", "--size", "320x192", "--fps", "25", "--control",
        directory.path("control"), "--to", "rtp://127.0.0.1:\(relay.port)?rtcp=mux&audio=none&mtu=300", "--sdp", sdp,
        "--rtsp", "127.0.0.1:\(server)",
      ], in: directory)
    defer { program.send(SIGTERM) }
    #expect(eventually { (try? String(contentsOfFile: sdp, encoding: .utf8))?.contains("m=video") == true })
    let text = try String(contentsOfFile: sdp, encoding: .utf8)
    // With feedback, by which the receiver asks for what is lost. The test writes another file, because the program writes its own
    // again with each change of its encoder.
    let received = directory.path("received.sdp")
    try text.replacingOccurrences(of: "m=video \(relay.port) RTP/AVP ", with: "m=video \(port) RTP/AVPF ")
      .write(toFile: received, atomically: true, encoding: .utf8)
    // ffmpeg by TCP, which only copies and so loses nothing, has the same coded pictures before, meanwhile and after.
    let (coded, whole, shown) = (directory.path("whole.h264"), directory.path("whole.y4m"), directory.path("shown.y4m"))
    let witness = try Subprocess(
      [
        "ffmpeg", "-nostdin", "-v", "error", "-rtsp_transport", "tcp", "-i", "rtsp://127.0.0.1:\(server)/camera",
        "-map", "0:v", "-c", "copy", "-flush_packets", "1", "-f", "h264", coded,
      ], in: directory)
    defer { witness.send(SIGKILL) }
    #expect(eventually { (try? Data(contentsOf: URL(fileURLWithPath: coded)).count) ?? 0 > 0 }, "\(witness.errorSoFar)")
    let lost = relay.counts.lost
    let watching = try Subprocess([Self.path, received, "--y4m", shown], in: directory)
    defer { watching.send(SIGKILL) }
    // Enough of both, however slow the host is.
    let isEnough = eventually(within: 300) {
      (Self.size(of: shown) > 100 * (Self.pictureBytes + 100) && relay.counts.lost > lost + 40) || !watching.isRunning
    }
    #expect(isEnough && watching.isRunning, "\(watching.errorSoFar) \(program.errorSoFar)")
    watching.send(SIGINT)
    let result = try watching.wait()
    #expect(result.status == 0, "\(result.error) \(program.errorSoFar)")
    // Its parser ends a picture where the next one begins, and a busy host holds ffmpeg up: the last pictures come later.
    let keyFrames = try Self.keyFrames(coded)
    #expect(try eventually { try Self.keyFrames(coded) > keyFrames + 1 }, "\(witness.errorSoFar)")
    // A busy host holds ffmpeg up so long that it misses pictures, which nightjar counts.
    let missed = try Self.missed(of: "rtsp", by: directory.path("control"), in: directory)
    witness.send(SIGINT)
    _ = try witness.wait()
    let decoded = try Subprocess.run(
      ["ffmpeg", "-nostdin", "-v", "error", "-i", coded, "-fps_mode", "passthrough", "-pix_fmt", "yuv420p", whole],
      in: directory)
    #expect(decoded.status == 0, "\(decoded.error)")
    let (possible, seen) = (Set(try Self.pictures(whole)), try Self.pictures(shown))
    let strange = seen.indices.filter { !possible.contains(seen[$0]) }
    #expect(
      seen.count >= 100 && strange.count <= missed,
      "\(strange) of \(seen.count), beside \(possible.count), \(missed) missed")
    let recovered = result.error.components(separatedBy: " recovered").first?.split(separator: " ").last.flatMap {
      Int($0)
    }
    #expect((recovered ?? 0) > 5, "\(result.error)")
  }

  @Test func `the manual page says what the program says, in roff that mandoc reads`() throws {
    let directory = try TemporaryDirectory()
    let script = packageRoot.appendingPathComponent("scripts/man-pages").path
    let made = try Subprocess.run([script, Self.path, directory.url.path], in: directory)
    #expect(made.status == 0, "\(made.error)")
    let page = try String(contentsOfFile: directory.path("nightjar-watch.1"), encoding: .utf8)
    for word in ["\\-\\-play", "\\-\\-max\\-freeze", "Exit codes", ".BR nightjar (1)"] {
      #expect(page.contains(word), "\(word)")
    }
    #expect(!page.contains("nightjar.toml"))
    guard FileManager.default.isExecutableFile(atPath: "/usr/bin/mandoc") else { return }
    let checked = try Subprocess.run(
      ["mandoc", "-Tlint", "-Wwarning", directory.path("nightjar-watch.1")], in: directory)
    #expect(checked.status == 0 && checked.outputText.isEmpty, "\(checked.outputText)")
  }

  @Test(.enabled(if: StrictVADriver.isBuilt, "needs the tests' VA-API driver"))
  func `a driver that does not decode is told with its reason, and software decodes`() throws {
    let directory = try TemporaryDirectory()
    let (program, url) = try Self.camera(in: directory)
    defer { program.send(SIGTERM) }
    // The tests' driver encodes, and has no decoder.
    let node = try directory.write([], as: "renderD128")
    let result = try Self.watch(
      [url, "--render-node", node, "--for", "5s", "--expect-fps", "2.5"], in: directory,
      environment: StrictVADriver.environment(node: node, log: directory.path("driver.log")))
    let decoder = result.log.values(of: "decoder").first ?? ""
    #expect(result.status == 0 && decoder.hasSuffix(" (the driver does not decode this stream)"), "\(result.error)")
    let missing = directory.path("none")
    let absent = try Self.watch([url, "--render-node", missing, "--for", "30s"], in: directory)
    let reason = "nightjar-watch: \(missing) has no VA-API driver that opens: "
    #expect(absent.status == 69 && absent.log.lines.count { $0.hasPrefix(reason) } == 1, "\(absent.error)")
  }
}

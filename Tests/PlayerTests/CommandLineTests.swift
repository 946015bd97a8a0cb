import Foundation
import TestSupport
import Testing

/// Messages for a person who asks for something that is not to be had.
@Suite struct CommandLineTests {
  private struct Refusal: CustomTestStringConvertible {
    let arguments: [String]
    let status: Int32
    let words: String

    init(_ arguments: String, _ status: Int32, _ words: String) {
      self.arguments = arguments.split(separator: " ").map(String.init)
      self.status = status
      self.words = words
    }

    var testDescription: String { arguments.joined(separator: " ") }
  }

  #if X264 || X265
    private static let x264Answer = "ultrafast"
    private static let x265Answer = "--x264-preset is for --encoder auto and x265 only"
  #else
    private static let x264Answer = "this build has neither x264 nor x265"
    private static let x265Answer = x264Answer
  #endif

  private static let refusals = [
    Refusal("--source nowhere", 64, "choose auto, test"),
    Refusal("--source /dev/video250", 66, "there is no /dev/video250"),
    Refusal("--source /dev/null", 66, "not a video device"),
    Refusal("--source /dev/video250 --wait --on-loss exit", 64, "exclude each other"),
    Refusal("--source test --wait", 64, "for cameras only: leave them out"),
    Refusal("--source test --on-loss exit", 64, "for cameras only"),
    Refusal("--source /dev/video250 --on-loss perhaps", 64, "placeholder"),
    Refusal("--source file:/nonexistent.y4m", 66, "/nonexistent.y4m"),
    Refusal("--source test --size 1281x720", 64, "nearest is 1280x720"),
    Refusal("--source test --size 99999x720", 64, "16384"),
    Refusal("--source test --fps 0", 64, "0.1 to 240"),
    Refusal("--source test --fps 1e3", 64, "0.1 to 240"),
    Refusal("--source test --bitrate 10", 64, "50k to 400M"),
    Refusal("--source test --bitrate -3M", 64, "bitrate"),
    Refusal("--source test --keyframe-interval 0s", 64, "seconds"),
    Refusal("--source test --threads 99", 64, "1 to 16"),
    Refusal("--source test --x264-preset warp", 64, x264Answer),
    Refusal("--source test --encoder x264 --hang-limit 3", 64, "--hang-limit is for --encoder auto and vaapi"),
    Refusal("--source test --encoder vaapi --threads 2", 64, "--threads is for --encoder auto and x264"),
    Refusal("--source test --codec av1", 64, "hevc"),
    Refusal("--source test --codec hevc --encoder x264", 64, "choose x265 or auto for HEVC"),
    Refusal("--source test --codec hevc --encoder vaapi --x264-preset fast", 64, x265Answer),
    Refusal("--source test --codec hevc --encoder x265 --vaapi-quality 2", 64, "is for --encoder auto and vaapi only"),
    Refusal("--source test --encoder x265", 64, "choose x264 or auto for H.264"),
    Refusal("--source test --codec hevc --slices 4", 64, "--slices is for --codec h264 only"),
    Refusal("--source test --codec hevc --profile main", 64, "--profile is for --codec h264 only"),
    Refusal("--source test --codec hevc --to rtp://127.0.0.1:5004?payload=h264", 64, "leave payload= out"),
    Refusal("--source test --rate-control cqp --bitrate 1M", 64, "--bitrate is for cbr and vbr"),
    Refusal("--source test --quantizer 20", 64, "--rate-control cqp"),
    Refusal("--source test --rate-control cqp --quantizer 52", 64, "choose 1 to 51"),
    Refusal("--source test --slices 0", 64, "choose 1 to 32"),
    Refusal("--source test --slice-size 99", 64, "choose mtu, or 100 to 65535 bytes"),
    Refusal("--source test --slice-size packet", 64, "choose mtu"),
    Refusal("--source test --vaapi-quality 0", 64, "choose auto, or 1 (best) to 65535"),
    Refusal("--source test --vaapi-quality best", 64, "choose auto, or 1 (best) to 65535"),
    Refusal("--source test --slice-size mtu --slices 2", 64, "--slice-size and --slices exclude each other"),
    Refusal("--source test --slice-size mtu --encoder vaapi", 64, "--slice-size is for --encoder auto and x264"),
    Refusal("--source test --preset fastest", 64, "ultra-low-latency"),
    Refusal("--source test --profile extended", 64, "baseline"),
    Refusal("--source test --encoder vaapi --vaapi-device /dev/null", 69, "not a render node"),
    Refusal("--source test --encoder vaapi --vaapi-device /nonexistent", 69, "no render node /nonexistent"),
    Refusal("--source test --encoder nvenc", 64, "auto"),
    Refusal("--source test --format nv12", 64, "for cameras only"),
    Refusal("--source test --rate max", 64, "for --source file: only"),
    Refusal("--source test --loop 2", 64, "for --source file: only"),
    Refusal("--source test --to http://127.0.0.1:5004", 64, "rtp://HOST:PORT"),
    Refusal("--source test --to rtp://127.0.0.1", 64, "no port"),
    Refusal("--source test --to rtp://127.0.0.1:99999", 64, "'99999' is not a port"),
    Refusal("--source test --to rtp://::1:5004", 64, "brackets"),
    Refusal("--source test --to rtp://127.0.0.1:5004?payload=vp8", 64, "h264 or hevc or mp2t"),
    // Sound is no stream by itself.
    Refusal("--source test --to rtp://127.0.0.1:5004?payload=opus", 64, "h264 or hevc or mp2t"),
    Refusal("--source test --to rtp://127.0.0.1:5004?mtu=20", 64, "packet size"),
    Refusal("--source test --to rtp://127.0.0.1:5004?ttl=0", 64, "TTL"),
    Refusal("--source test --to rtp://127.0.0.1:5004?color=red", 64, "no parameter 'color'"),
    Refusal("--source test --to rtp://127.0.0.1:5004 --to rtp://127.0.0.1:5004", 64, "given twice"),
    Refusal("--source test --to rtp://host.invalid:5004", 68, "host.invalid"),
    Refusal("--source test --rtsp --rtsp-sessions 0", 64, "choose 1 to 8192"),
    Refusal("--source test --rtsp-sessions 200", 64, "for --rtsp and --rtsps only"),
    Refusal("--source test --sdp /nonexistent/camera.sdp", 73, "cannot write /nonexistent/camera.sdp"),
    Refusal("--source test --stats-json /nonexistent/s.json", 73, "cannot write /nonexistent/s.json"),
  ]

  @Test(arguments: refusals)
  private func `is refused in one line, with an exit code that says why`(refusal: Refusal) throws {
    let directory = try TemporaryDirectory()
    let result = try Subprocess.run(
      [nightjarPath, "stream", "--duration", "1s"] + refusal.arguments, in: directory)
    #expect(result.status == refusal.status, "\(result.error)")
    #expect(result.error.contains(refusal.words), "\(result.error)")
    #expect(!result.error.contains("Fatal error"))
  }

  @Test(arguments: [
    "YUV4MPEG2 W64 H64\n", "", "RIFF....", "YUV4MPEG2 W64 H64 F30:1 C420p10\n", "YUV4MPEG2 W63 H64 F30:1\n",
  ])
  func `a corrupt clip is refused`(header: String) throws {
    let directory = try TemporaryDirectory()
    let path = directory.path("bad.y4m")
    try Data(header.utf8).write(to: URL(fileURLWithPath: path))
    let result = try Subprocess.run(
      [nightjarPath, "stream", "--source", "file:\(path)", "--loop", "1", "--sdp", directory.path("x.sdp")],
      in: directory)
    #expect(result.status == 65, "\(result.error)")
    #expect(result.error.hasPrefix("nightjar: ") && result.error.split(separator: "\n").count == 1, "\(result.error)")
    #expect(!FileManager.default.fileExists(atPath: directory.path("x.sdp")))
  }

  @Test func `of several destinations each has a description, by the name that the help says`() throws {
    let directory = try TemporaryDirectory()
    let help = try Subprocess.run([nightjarPath, "stream", "--help"], in: directory)
    #expect(help.outputText.contains("FILE.sdp") && help.outputText.contains("FILE-2.sdp"))
    let running = try Subprocess(
      [
        nightjarPath, "stream", "--control", "none", "--source", "test", "--size", "320x240", "--to",
        "rtp://127.0.0.1:\(UDPPort.free())", "--to", "rtp://127.0.0.1:\(UDPPort.free())", "--sdp",
        directory.path("FILE.sdp"),
      ], in: directory)
    #expect(eventually { running.log.isStreaming })
    running.send(SIGTERM)
    let program = try running.wait()
    #expect(program.status == 0, "\(program.error)")
    for name in ["FILE.sdp", "FILE-2.sdp"] {
      #expect(FileManager.default.fileExists(atPath: directory.path(name)), "\(name)")
    }
  }

  @Test(arguments: [
    // Documentation addresses (RFC 5737, RFC 3849): whether anything leaves does not matter.
    ("192.0.2.1", "", "write it with --sdp FILE", "-i FILE"),
    ("239.1.2.3", "camera.sdp", "camera.sdp to where the player is", "-i camera.sdp"),
    ("[2001:db8::1]", "camera.sdp", "camera.sdp to where the player is", "-i camera.sdp"),
    ("127.0.0.1", "camera.sdp", "", "/camera.sdp"), ("[::1]", "camera.sdp", "", "/camera.sdp"),
  ])
  func `a player elsewhere is told of the description that it lacks`(
    host: String, name: String, words: String, file: String
  ) throws {
    let directory = try TemporaryDirectory()
    let result = try Subprocess.run(
      [
        nightjarPath, "stream", "--source", "test", "--size", "320x240", "--duration", "300ms", "--to",
        "rtp://\(host):\(try UDPPort.free())",
      ] + (name.isEmpty ? [] : ["--sdp", directory.path(name)]), in: directory)
    #expect(result.status == 0, "\(result.error)")
    let command = try #require(result.log.commands(for: "ffplay").first)
    #expect(command.hasSuffix(file), "\(command)")
    #expect(result.error.contains(words.isEmpty ? "ffplay: " : words), "\(result.error)")
    let (start, end) = ("  ffplay needs the session description: ", " to where the player is")
    let steps = result.log.lines.filter { $0.hasPrefix(start) || $0.hasSuffix(end) }
    #expect(steps.count == (words.isEmpty ? 0 : 1), "\(result.error)")
    #expect(steps.allSatisfy { $0.hasPrefix(start) && $0.hasSuffix(end) }, "\(result.error)")
  }

  @Test(arguments: [SIGINT, SIGTERM])
  func `a signal ends it cleanly, with a summary and nothing left behind`(signal: Int32) throws {
    let directory = try TemporaryDirectory()
    let port = try UDPPort.free()
    let program = try Subprocess(
      [nightjarPath, "stream", "--source", "test", "--size", "320x240", "--to", "rtp://127.0.0.1:\(port)"],
      in: directory, environment: ["XDG_RUNTIME_DIR": directory.url.path])
    #expect(eventually { program.log.isStreaming })
    let description = directory.path("nightjar-\(program.identifier).sdp")
    #expect(FileManager.default.fileExists(atPath: description))
    program.send(signal)
    let result = try program.wait()
    #expect(result.status == 0)
    // 0:01: 30 frames captured, …
    let summary = /[0-9:]+: [0-9]+ frames captured, [0-9]+ encoded \([0-9]+ key frames\), [0-9]+ sent, [0-9]+ dropped/
    #expect(result.log.lines.count { $0.wholeMatch(of: summary) != nil } == 1, "\(result.error)")
    #expect(!FileManager.default.fileExists(atPath: description))
  }

  @Test(arguments: [SIGINT, SIGTERM])
  func `a signal ends it at once while it still starts`(signal: Int32) throws {
    let directory = try TemporaryDirectory()
    let pipe = directory.path("clip.y4m")
    try #require(mkfifo(pipe, 0o600) == 0)
    // Nobody writes to the pipe: it waits for the clip's header.
    let program = try Subprocess(
      [nightjarPath, "stream", "--source", "file:\(pipe)", "--loop", "1", "--sdp", directory.path("x.sdp")],
      in: directory)
    #expect(eventually { (try? openFiles(of: program.identifier).contains(pipe)) ?? false })
    let begin = Date()
    program.send(signal)
    let result = try program.wait()
    #expect(result.status == signal)
    // It would give up by itself after 10 s.
    #expect(Date().timeIntervalSince(begin) < 8)
    #expect(result.error.isEmpty, "\(result.error)")
    #expect(!FileManager.default.fileExists(atPath: directory.path("x.sdp")))
  }

  private func openFiles(of process: Int32) throws -> [String] {
    let directory = "/proc/\(process)/fd"
    return try FileManager.default.contentsOfDirectory(atPath: directory).compactMap {
      try? FileManager.default.destinationOfSymbolicLink(atPath: "\(directory)/\($0)")
    }
  }

  @Test(arguments: [(SIGHUP, "HUP"), (SIGINT, "INT")])
  func `a signal that it was told to ignore does not end it`(signal: Int32, name: String) throws {
    let directory = try TemporaryDirectory()
    let port = try UDPPort.free()
    let program = try Subprocess(
      [
        "sh", "-c", "trap '' \(name); exec \"$0\" stream --source test --size 320x240 --to rtp://127.0.0.1:\(port)",
        nightjarPath,
      ], in: directory)
    #expect(eventually { program.log.isStreaming })
    program.send(signal)
    // Long enough for a program that does end.
    usleep(1_000_000)
    #expect(program.isRunning)
    program.send(SIGTERM)
    #expect(try program.wait().status == 0)
  }

  @Test func `devices says what to do where there is no camera, and is JSON on request`() throws {
    let directory = try TemporaryDirectory()
    let text = try Subprocess.run([nightjarPath, "devices"], in: directory)
    #expect(text.status == 0)
    let cameras = text.outputText.split(separator: "\n").filter { $0.hasPrefix("/dev/video") }
    let lacks = text.listing.count(of: "no camera found; nightjar stream then uses its built-in synthetic camera")
    #expect(lacks == (cameras.isEmpty ? 1 : 0), "\(text.outputText)")
    let json = try Subprocess.run([nightjarPath, "devices", "--json"], in: directory)
    #expect(json.status == 0)
    let document = try #require(try JSONSerialization.jsonObject(with: json.output) as? [String: Any])
    #expect(document["cameras"] is [Any])
    #expect(document["encoders"] is [String: Any])
  }
}

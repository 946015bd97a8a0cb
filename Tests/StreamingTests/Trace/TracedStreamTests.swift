import Foundation
import TestSupport
import Testing

/// `nightjar stream --trace`: what the file tells, and what becomes of it.
@Suite struct TracedStreamTests {
  private static let plain = ["stream", "--source", "test", "--size", "320x240", "--control", "none"]

  private func stream(_ arguments: [String], in directory: TemporaryDirectory) throws -> Subprocess {
    try Subprocess(
      [nightjarPath] + Self.plain + ["--to", "rtp://127.0.0.1:\(UDPPort.free())"] + arguments, in: directory)
  }

  /// The number of a process's frames whose way ended as `name` says, in a trace that is still written.
  private func ends(_ name: String, of process: Int = 1, in path: String) -> Int {
    guard let text = try? String(contentsOfFile: path, encoding: .utf8) else { return 0 }
    return text.components(separatedBy: "\"\(name)\",\"cat\":\"frame\",\"pid\":\(process),").count - 1
  }

  private func mode(of path: String) throws -> Int? {
    try FileManager.default.attributesOfItem(atPath: path)[.posixPermissions] as? Int
  }

  @Test func `every frame is followed from the camera to its last packet`() throws {
    let directory = try TemporaryDirectory()
    let path = directory.path("trace.json")
    let program = try stream(["--trace", path, "--stats-json", directory.path("s.json")], in: directory)
    defer { program.send(SIGKILL) }
    #expect(eventually { ends("sent", in: path) > 80 }, "\(program.errorSoFar)")
    program.send(SIGTERM)
    let result = try program.wait()
    #expect(result.status == 0, "\(result.error)")
    #expect(result.error.contains("ui.perfetto.dev"))
    #expect(try mode(of: path) == 0o600)
    let trace = try TraceFile(path)
    #expect(trace.faults == [])
    #expect(trace.processes == [1: "camera"])
    #expect(trace.threads(of: 1) == ["nj-capture", "nj-encode", "nj-send"])

    let figures = try #require(
      try JSONSerialization.jsonObject(with: Data(contentsOf: URL(fileURLWithPath: directory.path("s.json"))))
        as? [String: Any])
    let frames = try #require(figures["frames"] as? [String: Any])
    let dropped = try #require(frames["dropped"] as? Int)
    let sent = trace.slices("sent")
    #expect(sent.count == frames["sent"] as? Int && sent.count > 80)
    #expect(trace.slices("capture").count == frames["captured"] as? Int)
    #expect(trace.slices("encode").count == frames["encoded"] as? Int)
    #expect(trace.slices("dropped").reduce(0) { $0 + ($1.arguments["count"] as? Int ?? 0) } == dropped)
    let keyFrames = trace.slices("encode").reduce(0) { $0 + ($1.arguments["key_frames"] as? Int ?? 0) }
    #expect(keyFrames == frames["key_frames"] as? Int)

    // Of each, in order of time, and by the same number on every thread.
    let byFrame = Dictionary(grouping: trace.events.filter { $0.phase == "X" && $0.frame >= 0 }, by: \.frame)
    let points = Dictionary(
      grouping: trace.events.filter { ["s", "t", "f", "b", "e"].contains($0.phase) }, by: \.identifier)
    for end in sent {
      let way = try #require(byFrame[end.frame]).sorted { $0.time < $1.time }.map(\.name)
      let expected = ["capture", "convert", "encode", "packetize", "send", "sent"]
      // A large frame's packets leave in several goes.
      var without = way
      while without.count > expected.count, let extra = without.lastIndex(of: "send") { without.remove(at: extra) }
      #expect(without == expected, "\(way)")
      let latency = try #require(end.arguments["latency_us"] as? Double)
      let identifier = "0x" + String(1 << 56 | UInt64(end.frame), radix: 16)
      let own = try #require(points[identifier])
      #expect(own.filter { $0.phase == "s" || $0.phase == "f" }.count == 2)
      let begin = try #require(own.first { $0.phase == "b" }), finish = try #require(own.first { $0.phase == "e" })
      #expect(abs(finish.time - begin.time - latency) < 1)
    }
  }

  @Test(arguments: [SIGTERM, SIGKILL])
  func `the recorded part is readable after a signal`(signal: Int32) throws {
    let directory = try TemporaryDirectory()
    let path = directory.path("trace.json")
    let program = try stream(["--trace", path], in: directory)
    defer { program.send(SIGKILL) }
    func size() -> Int { (try? Data(contentsOf: URL(fileURLWithPath: path)))?.count ?? 0 }
    #expect(eventually { size() > 20_000 && ends("sent", in: path) > 12 }, "\(program.errorSoFar)")
    program.send(signal)
    _ = try program.wait()
    let trace = try TraceFile(path, isWhole: signal == SIGTERM)
    if signal == SIGTERM { #expect(trace.faults == []) }
    #expect(trace.slices("sent").count > 10)
  }

  @Test func `recording ends at its limit, and the stream does not`() throws {
    let directory = try TemporaryDirectory()
    let path = directory.path("trace.json")
    let program = try stream(["--fps", "240", "--trace", path, "--trace-limit", "1M"], in: directory)
    defer { program.send(SIGKILL) }
    func ends() -> [Substring] {
      program.log.lines.compactMap { $0.wholeMatch(of: /the trace is full at ([0-9]+) bytes and ends here; .*/)?.1 }
    }
    #expect(eventually(within: 120) { ends().count == 1 }, "\(program.errorSoFar)")
    usleep(500_000)
    program.send(SIGTERM)
    #expect(try program.wait().status == 0)
    let size = try #require(try FileManager.default.attributesOfItem(atPath: path)[.size] as? Int)
    #expect((900_000...1_000_000).contains(size))
    #expect(try TraceFile(path).slices("sent").count > 100)
  }

  @Test func `a file that was there is replaced, where a link leads too, for its owner alone`() throws {
    let directory = try TemporaryDirectory()
    let (path, link) = (directory.path("trace.json"), directory.path("link"))
    try Data("another's".utf8).write(to: URL(fileURLWithPath: path))
    try FileManager.default.setAttributes([.posixPermissions: 0o644], ofItemAtPath: path)
    try FileManager.default.createSymbolicLink(atPath: link, withDestinationPath: "trace.json")
    let result = try stream(["--duration", "1s", "--trace", link], in: directory).wait()
    #expect(result.status == 0, "\(result.error)")
    #expect(try FileManager.default.attributesOfItem(atPath: link)[.type] as? FileAttributeType == .typeSymbolicLink)
    #expect(try mode(of: path) == 0o600)
    #expect(try TraceFile(path).faults == [])
    #expect(
      try FileManager.default.contentsOfDirectory(atPath: directory.url.path).filter { $0.hasSuffix(".new") } == [])
  }

  @Test func `a disk that is full is told once, and ends no stream`() throws {
    let directory = try TemporaryDirectory()
    // By way of a link, so that a program that replaced it would do no harm to the machine.
    let link = directory.path("full")
    try FileManager.default.createSymbolicLink(atPath: link, withDestinationPath: "/dev/full")
    let result = try stream(["--duration", "3s", "--trace", link], in: directory).wait()
    #expect(result.status == 0, "\(result.error)")
    #expect(result.error.components(separatedBy: "and ends here; the stream continues").count == 2, "\(result.error)")
    let refused = try stream(["--trace", "/nonexistent/trace.json"], in: directory).wait()
    #expect(refused.status == 73 && refused.error.contains("/nonexistent/trace.json"), "\(refused.error)")
  }

  @Test func `a file that may grow no further can be read`() throws {
    let directory = try TemporaryDirectory()
    let path = directory.path("trace.json")
    let program = try Subprocess(
      [
        "sh", "-c", "ulimit -f 20; exec \"$@\"", "sh", nightjarPath, "stream", "--source", "test", "--size", "320x240",
        "--control", "none", "--to", "rtp://127.0.0.1:\(try UDPPort.free())", "--trace", path,
      ], in: directory)
    defer { program.send(SIGKILL) }
    #expect(
      eventually { program.errorSoFar.contains("and ends here; the stream continues") }, "\(program.errorSoFar)")
    // Time to say so again.
    usleep(500_000)
    program.send(SIGTERM)
    let result = try program.wait()
    #expect(result.status == 0, "\(result.error)")
    #expect(result.error.components(separatedBy: "and ends here; the stream continues").count == 2, "\(result.error)")
    let events = try JSONSerialization.jsonObject(with: Data(contentsOf: URL(fileURLWithPath: path))) as? [Any]
    #expect(events?.count ?? 0 > 10)
  }

  @Test func `a reader that does not read delays no end, and the missing part is reported`() throws {
    let directory = try TemporaryDirectory()
    let path = directory.path("trace")
    #expect(mkfifo(path, 0o600) == 0)
    // Nobody reads it, and opening it for both ends waits for nobody.
    let reader = open(path, O_RDWR | O_NONBLOCK | O_CLOEXEC)
    defer { close(reader) }
    let result = try stream(["--duration", "5s", "--fps", "60", "--trace", path], in: directory).wait()
    #expect(result.status == 0, "\(result.error)")
    #expect(result.error.components(separatedBy: "the trace is incomplete").count == 2, "\(result.error)")
  }

  @Test(arguments: ["--stats-json", "--sdp"])
  func `the trace and another output cannot share a file`(option: String) throws {
    let directory = try TemporaryDirectory()
    let path = directory.path("file")
    let result = try stream(["--trace", path, option, path], in: directory).wait()
    let pair = option == "--sdp" ? "--sdp and --trace" : "--trace and --stats-json"
    #expect(result.status == 64 && result.log.failures == ["\(pair) are the same file, \(path)"], "\(result.error)")
  }

  @Test func `each camera is a process of its own in it`() throws {
    let directory = try TemporaryDirectory()
    let path = directory.path("trace.json")
    let configuration = URL(fileURLWithPath: directory.path("nightjar.toml"))
    let cameras = try ["nursery", "garden"].map {
      "[[camera]]\nname = \"\($0)\"\nsource = \"test\"\nto = [\"rtp://127.0.0.1:\(try UDPPort.free())\"]\n"
    }
    try Data("trace = \"\(path)\"\nsize = \"320x240\"\ncontrol = \"none\"\n\(cameras.joined())".utf8)
      .write(to: configuration)
    let program = try Subprocess([nightjarPath, "stream", "--config", configuration.path], in: directory)
    defer { program.send(SIGKILL) }
    let isEnough = eventually { ends("sent", of: 1, in: path) > 10 && ends("sent", of: 2, in: path) > 10 }
    #expect(isEnough, "\(program.errorSoFar)")
    program.send(SIGTERM)
    #expect(try program.wait().status == 0)
    let trace = try TraceFile(path)
    #expect(trace.faults == [])
    #expect(trace.processes == [1: "nursery", 2: "garden"])
    for process in 1...2 { #expect(trace.threads(of: process) == ["nj-capture", "nj-encode", "nj-send"]) }
  }

  @Test func `a placeholder's frames and a clip's, at full speed too, are followed as well`() throws {
    let directory = try TemporaryDirectory()
    let clip = directory.path("clip.y4m")
    var bytes = Data("YUV4MPEG2 W64 H64 F30:1 C420jpeg\n".utf8)
    for frame in 0..<20 {
      bytes += Data("FRAME\n".utf8) + Data(repeating: UInt8(frame * 5), count: 64 * 64 * 3 / 2)
    }
    try bytes.write(to: URL(fileURLWithPath: clip))
    for (name, source, frames) in [
      ("placeholder", ["--source", directory.path("camera"), "--wait"], nil),
      // Six seconds: a machine that is held up leaves frames out.
      ("clip", ["--source", "file:\(clip)", "--loop", "9"], nil),
      ("quick", ["--source", "file:\(clip)", "--loop", "2", "--rate", "max"], 40),
    ] as [(String, [String], Int?)] {
      let path = directory.path(name)
      let program = try Subprocess(
        [nightjarPath, "stream", "--control", "none", "--to", "rtp://127.0.0.1:\(UDPPort.free())", "--trace", path]
          + source,
        in: directory)
      defer { program.send(SIGKILL) }
      // A clip ends by itself.
      if name == "placeholder" {
        #expect(eventually { ends("sent", in: path) > 10 }, "\(program.errorSoFar)")
        program.send(SIGTERM)
      }
      let result = try program.wait()
      #expect(result.status == 0, "\(result.error)")
      let trace = try TraceFile(path)
      #expect(trace.faults == [], "\(name)")
      let (begun, ended) = (trace.events.filter { $0.phase == "b" }, trace.events.filter { $0.phase == "e" })
      let least = name == "clip" ? 30 : 10
      #expect(
        begun.count == ended.count && begun.count == trace.slices("capture").count && begun.count > least, "\(name)")
      if let frames { #expect(trace.slices("sent").count == frames) }
      #expect((name == "placeholder") == trace.slices("convert").isEmpty)
    }
  }

  @Test func `frames that nobody watches are told as such`() throws {
    let directory = try TemporaryDirectory()
    let path = directory.path("trace.json")
    let program = try Subprocess(
      [nightjarPath] + Self.plain + ["--rtsp", "127.0.0.1:\(UDPPort.free())", "--trace", path], in: directory)
    defer { program.send(SIGKILL) }
    #expect(eventually { ends("skipped", in: path) > 10 }, "\(program.errorSoFar)")
    program.send(SIGTERM)
    let result = try program.wait()
    #expect(result.status == 0, "\(result.error)")
    let trace = try TraceFile(path)
    #expect(trace.faults == [])
    let skipped = trace.slices("skipped")
    #expect(skipped.count > 10 && skipped.allSatisfy { $0.arguments["reason"] as? String == "unwatched" })
    #expect(trace.slices("encode").isEmpty)
  }
}

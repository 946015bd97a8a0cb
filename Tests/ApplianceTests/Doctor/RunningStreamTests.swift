#if X264
  import Foundation
  import TestSupport
  import Testing

  /// `nightjar doctor` beside a stream that runs.
  @Suite(.serialized) struct RunningStreamTests {
    private static let small = ["--source", "test", "--size", "320x240", "--fps", "30"]
    private let directory: TemporaryDirectory

    init() throws {
      directory = try TemporaryDirectory()
      // For nobody too.
      #expect(chmod(directory.url.path, 0o777) == 0)
    }

    private func stream(_ socket: String, _ options: [String], before: [String] = []) throws -> Subprocess {
      let program = try Subprocess(
        before + [nightjarPath, "stream", "--config", "none", "--control", socket] + Self.small + options,
        in: directory)
      // The socket is there before anybody may connect to it, and its line before the threads whose priority and load the
      // doctor asks for.
      func isReady() -> Bool {
        let log = program.log
        return !log.values(of: "control").isEmpty && (log.isStreaming || !options.contains("--to"))
      }
      #expect(eventually { isReady() || !program.isRunning }, "\(program.errorSoFar)")
      return program
    }

    /// Ends a stream, and waits until no doctor can find it.
    private static func kill(_ program: Subprocess) {
      program.send(SIGKILL)
      _ = try? program.wait(limit: 30)
    }

    @Test func `an encoder at work is measured though nothing follows its load, and one that rests is not`() throws {
      let socket = directory.path("control")
      let own = ["--socket", socket]
      let quiet = ["--thermal", "off", "--no-load-adaptation"]
      do {
        let program = try stream(socket, quiet + ["--to", "rtp://127.0.0.1:\(try UDPPort.free())"])
        defer { Self.kill(program) }
        // Its figures are those of two seconds, for which a busy machine may let it stand still.
        var found: DoctorReport.Finding?
        _ = try eventually {
          let report = try DoctorReport(Self.small + quiet, own: own, in: directory)
          found = report.findings.first { $0.key.hasPrefix("encoder") }
          return found?.text.contains("rests") == false
        }
        let encoder = try #require(found)
        #expect(!encoder.text.contains("rests") && encoder.figures["headroom_percent"] ?? 100 < 100, "\(encoder)")
      }
      let other = directory.path("other")
      let program = try stream(other, quiet + ["--rtsp", "127.0.0.1:\(try TCPPort.free())"])
      defer { Self.kill(program) }
      let report = try DoctorReport(Self.small + quiet, own: ["--socket", other], in: directory)
      let resting = try #require(report["encoder"], "\(report.findings)")
      #expect(resting.text.hasSuffix(": rests while nobody watches, so its load is unknown") && resting.figures == [:])
    }

    @Test(.enabled(if: DoctorTests.isRoot))
    func `root sees the stream that another user may not ask, with the same options`() throws {
      let folder = directory.path("closed")
      try FileManager.default.createDirectory(atPath: folder, withIntermediateDirectories: true)
      #expect(chmod(folder, 0o700) == 0)
      let socket = "\(folder)/control"
      let program = try stream(socket, ["--rtsp", "127.0.0.1:\(try TCPPort.free())"])
      defer { Self.kill(program) }
      let own = ["--config", "none", "--socket", socket]
      let report = try DoctorReport(Self.small, own: own, before: DoctorTests.nobody, in: directory)
      let closed = try #require(report["stream-closed"], "\(report.findings)")
      let again = try #require(closed.commands.first)
      #expect(again.hasPrefix("sudo "))
      let told = try runMend(again, in: directory)
      let lines = told.outputText.split(separator: "\n")
      func said(_ subject: String) -> [Substring] {
        lines.filter { $0.hasPrefix("ok       \(subject) ") }.map { $0.dropFirst(26) }
      }
      let stream = "nightjar stream runs (process \(program.identifier)), 1 camera, for "
      #expect(said("stream").allSatisfy { $0.hasPrefix(stream) }, "\(again): \(told.outputText)")
      #expect(said("stream").count == 1 && said("camera").count == 1, "\(told.outputText)")
      #expect(said("camera").allSatisfy { $0.hasSuffix(", in the running stream") }, "\(told.outputText)")
    }

    @Test(.enabled(if: DoctorTests.isRoot))
    func `the limit is mended of the user who streams, whoever looks`() throws {
      let socket = directory.path("control")
      let limits = { (limit: Int) in ["prlimit", "--rtprio=\(limit):\(limit)"] }
      do {
        let program = try stream(
          socket, ["--to", "rtp://127.0.0.1:\(try UDPPort.free())"], before: limits(0) + DoctorTests.nobody)
        defer { Self.kill(program) }
        let report = try DoctorReport(Self.small, own: ["--socket", socket], in: directory)
        let none = try #require(report["realtime-none"], "\(report.findings)")
        #expect(none.text == "the limit of the running stream on real-time priority is 0")
        #expect(none.commands == ["echo 'nobody - rtprio 10' > /etc/security/limits.d/nightjar.conf"], "\(none)")
      }
      let own = ["--socket", directory.path("none")]
      let login = try DoctorReport(Self.small, own: own, before: limits(0) + DoctorTests.nobody, in: directory)
      #expect(
        login["realtime-none"]?.text == "the limit of this login on real-time priority is 0", "\(login.findings)")
      // As a login has it after that; a container's root may not give it.
      guard try Subprocess.run(limits(10) + ["true"], in: directory).status == 0 else { return }
      let mended = try DoctorReport(Self.small, own: own, before: limits(10) + DoctorTests.nobody, in: directory)
      #expect(
        mended["realtime"]?.text == "capture and send get it: the limit of this login is 10", "\(mended.findings)")
    }
  }
#endif

import Foundation
import TestSupport
import Testing

/// Multicast groups, in a network of their own.
@Suite(.enabled(if: OwnNetwork.isPossible, "needs user namespaces, ip and nsenter"))
struct WatchGroupTests {
  /// A network, and a program in it that sends to groups.
  private struct Sender {
    let directory: TemporaryDirectory
    let holder: Subprocess
    let program: Subprocess

    /// Starts `command` in a new network, and waits until `isReady`.
    init(_ command: [String], in directory: TemporaryDirectory, isReady: (Subprocess) -> Bool) throws {
      self.directory = directory
      holder = try Subprocess(OwnNetwork.holder, in: directory)
      let holder = holder
      #expect(eventually { holder.outputSoFar.contains("ready") })
      let program = try Subprocess(OwnNetwork.entering(holder) + command, in: directory)
      #expect(eventually { isReady(program) || !program.isRunning }, "\(program.errorSoFar)")
      self.program = program
    }

    func end() {
      program.send(SIGKILL)
      holder.send(SIGKILL)
    }

    func watch(_ arguments: [String]) throws -> Subprocess.Result {
      try Subprocess.run(
        OwnNetwork.entering(holder) + [WatchTests.path] + arguments + ["--once"], in: directory, limit: 120)
    }
  }

  private static let camera = [
    nightjarPath, "stream", "--source", "test", "--size", "320x192", "--fps", "25", "--control", "none", "--audio",
    "test",
  ]

  /// Expects pictures, and sound without a loss.
  private static func expectBoth(_ result: Subprocess.Result, sourceLocation: SourceLocation = #_sourceLocation) {
    #expect(result.status == 0, "\(result.error)", sourceLocation: sourceLocation)
    let sound = result.error.components(separatedBy: "\nsound      ").last ?? ""
    let packets = Int(sound.prefix { $0.isNumber }) ?? 0
    #expect(packets > 50, "\(result.error)", sourceLocation: sourceLocation)
  }

  @Test func `the group of an RTSP server`() throws {
    let directory = try TemporaryDirectory()
    let sender = try Sender(
      Self.camera + ["--rtsp", "127.0.0.1:8554", "--rtsp-multicast", "239.1.2.3:5004"], in: directory
    ) { $0.errorSoFar.contains("rtsp://") }
    defer { sender.end() }
    let url = "rtsp://127.0.0.1:8554/camera"
    let result = try sender.watch([url, "--transport", "multicast", "--for", "5s", "--expect-fps", "2.5"])
    Self.expectBoth(result)
    let way = "RTSP from 127.0.0.1 port 8554, a group at port 5004"
    #expect(result.log.values(of: "playing") == [way], "\(result.error)")
    // Without a group, its server says so.
    let alone = try Sender(Self.camera + ["--rtsp", "127.0.0.1:8554"], in: directory) {
      $0.errorSoFar.contains("rtsp://")
    }
    defer { alone.end() }
    let refused = try alone.watch([url, "--transport", "multicast", "--for", "30s"])
    #expect(refused.status == 69 && refused.error.contains("461"), "\(refused.error)")
  }

  @Test func `the encrypted group of an RTSP server`() throws {
    let directory = try TemporaryDirectory()
    let certificate = try TestCertificate(in: directory)
    let sender = try Sender(
      Self.camera + [
        "--rtsps", "127.0.0.1:8322", "--tls-cert", certificate.certificate, "--tls-key", certificate.key,
        "--require-encryption", "--rtsp-multicast", "239.1.2.3:5004",
      ], in: directory
    ) { $0.errorSoFar.contains("rtsps://") }
    defer { sender.end() }
    let digits = certificate.fingerprint.map { String(format: "%02x", $0) }.joined()
    let result = try sender.watch([
      "rtsps://127.0.0.1:8322/camera", "--fingerprint", digits, "--transport", "multicast", "--for", "5s",
      "--expect-fps", "2.5",
    ])
    Self.expectBoth(result)
    let way = "RTSP from 127.0.0.1 port 8322, SRTP to a group at port 5004"
    #expect(result.log.values(of: "playing") == [way], "\(result.error)")
  }

  @Test(arguments: [
    "rtp://239.1.2.3:5004?loop=1", "srtp://239.1.2.3:5004?loop=1&rtcp=mux", "rtp://232.1.2.3:5004?loop=1",
  ])
  func `a group of a session description`(destination: String) throws {
    let directory = try TemporaryDirectory()
    let sdp = directory.path("stream.sdp")
    // 232.0.0.0/8 is for one sender each; the description names it.
    let sender = try Sender(
      Self.camera + ["--to", destination + "&interface=lo", "--sdp", sdp], in: directory
    ) { _ in (try? String(contentsOfFile: sdp, encoding: .utf8))?.contains("m=audio") == true }
    defer { sender.end() }
    let text = try String(contentsOfFile: sdp, encoding: .utf8)
    #expect(text.contains("a=source-filter") == destination.contains("232."))
    #expect(try PlayableMedia.of(text).map(\.codec) == ["H264", "OPUS"])
    let result = try sender.watch([sdp, "--interface", "lo", "--for", "5s", "--expect-fps", "2.5"])
    Self.expectBoth(result)
    let wrong = try sender.watch([sdp, "--interface", "no-such", "--for", "30s"])
    let reason = "nightjar-watch: there is no interface no-such"
    #expect(wrong.status == 75 && wrong.log.count(of: reason) == 1, "\(wrong.error)")
  }

  @Test func `a group that ffmpeg sends to`() throws {
    let directory = try TemporaryDirectory()
    let sdp = directory.path("stream.sdp")
    let sender = try Sender(
      [
        "ffmpeg", "-v", "error", "-nostdin", "-re", "-f", "lavfi", "-i", "testsrc=size=320x192:rate=25", "-c:v",
        "libx264", "-pix_fmt", "yuv420p", "-preset", "ultrafast", "-tune", "zerolatency", "-g", "25", "-f", "rtp",
        "-sdp_file", sdp,
        "rtp://239.1.2.4:5004?ttl=1&localaddr=127.0.0.1",
      ], in: directory
    ) { _ in (try? String(contentsOfFile: sdp, encoding: .utf8))?.contains("m=video") == true }
    defer { sender.end() }
    let result = try sender.watch([sdp, "--interface", "lo", "--for", "5s", "--expect-fps", "2.5"])
    #expect(result.status == 0, "\(result.error) \(sender.program.errorSoFar)")
  }
}

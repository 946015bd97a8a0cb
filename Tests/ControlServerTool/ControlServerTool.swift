import Control
import Glibc
import Media

/// Serves the control API of a target that only tells what it is asked:
/// `ControlServerTool PATH [REQUEST-SECONDS [CONNECTIONS]]`, until SIGTERM.
@main
struct ControlServerTool {
  static func main() {
    // Blocked before any thread begins, so that only `sigwait` takes it.
    var signals = sigset_t()
    sigemptyset(&signals)
    sigaddset(&signals, SIGTERM)
    pthread_sigmask(SIG_BLOCK, &signals, nil)
    let arguments = CommandLine.arguments
    var limits = ControlServer.Limits()
    if arguments.count > 2, let seconds = Double(arguments[2]) { limits.requestTime = MediaTime(seconds: seconds) }
    if arguments.count > 3, let count = Int(arguments[3]) { limits.connections = count }
    do {
      let path = arguments.count > 1 && arguments[1] != "default" ? arguments[1] : ControlSocket.defaultPath
      let server = try ControlServer(path: path, limits: limits, target: Witness())
      say("listening")
      var number: CInt = 0
      sigwait(&signals, &number)
      server.stop()
      say("stopped")
    } catch {
      say("\(error.kind): \(error)")
      exit(1)
    }
  }

  /// A line on standard output, at once.
  static func say(_ line: String) {
    let bytes = Array((line + "\n").utf8)
    _ = write(STDOUT_FILENO, bytes, bytes.count)
  }
}

/// Writes down what it is asked. It can do anything but 270 degrees and a million bits a second.
private struct Witness: ControlTarget {
  struct Unable: Failure {
    let description: String
    let kind: FailureKind
  }

  func status() -> StreamStatus {
    StreamStatus(
      source: .init(name: "test", width: 1280, height: 720, fps: 30000.0 / 1001),
      orientation: .init(degrees: 90, mirrored: true, width: 720, height: 1280, switches: 3),
      encoder: .init(name: "x264", bitrate: 2_500_000, failovers: 1),
      frames: .init(
        captured: 100, encoded: 98, keyFrames: 4, thinned: 1, sent: 97,
        droppedByCause: ["encoder_late": 2, "network": 1]),
      adaptation: .init(
        thermalState: "serious", temperature: 81.5, zone: "cpu-thermal", load: 0.25, maximumSize: nil, maximumFps: 25,
        x264Preset: nil, bitrateShare: 0.7, changes: 2),
      destinations: [.init(url: "rtp://127.0.0.1:5004", packets: 700, bytes: 840_000, packetsLost: 5)],
      uptimeSeconds: 3723.5)
  }

  func rotate(to orientation: Orientation) throws {
    if orientation.rotation == .threeQuarters {
      throw Unable(description: "the camera is gone: plug it in", kind: .unavailable)
    }
    ControlServerTool.say("rotate \(orientation)")
  }

  func requestKeyFrame() { ControlServerTool.say("key frame") }

  func changeBitrate(_ bitsPerSecond: Int) throws {
    if bitsPerSecond == 1_000_000 { throw Unable(description: "a broken heart", kind: .software) }
    ControlServerTool.say("bitrate \(bitsPerSecond)")
  }

  func addDestination(_ url: String) async throws -> String {
    if url.contains("taken") { throw Unable(description: "\(url) is taken", kind: .usage) }
    ControlServerTool.say("add \(url)")
    return "v=0\r\n"
  }

  func removeDestination(_ url: String) throws {
    if url.contains("unknown") { throw Unable(description: "there is no \(url)", kind: .noInput) }
    ControlServerTool.say("remove \(url)")
  }
}

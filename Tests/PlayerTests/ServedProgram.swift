import CLinux
import Foundation
import TestSupport
import Testing

/// The program, serving a synthetic camera by RTSP.
final class ServedProgram {
  let directory: TemporaryDirectory
  let port: Int
  let process: Subprocess
  private let control: String
  private var isEnded = false

  /// Starts it and waits until it serves.
  ///
  /// - Parameters:
  ///   - option: `--rtsp` or `--rtsps`.
  ///   - network: The words before the program, for a network of its own.
  init(
    _ arguments: [String] = [], option: String = "--rtsp", address: String = "127.0.0.1", network: [String] = [],
    users: [String: String] = [:]
  ) throws {
    directory = try TemporaryDirectory()
    port = try TCPPort.free()
    control = directory.path("control")
    let arguments = arguments + (try UsersFile.options(users, in: directory))
    let bracketed = address.contains(":") ? "[\(address)]" : address
    process = try Subprocess(
      network + [
        nightjarPath, "stream", "--source", "test", "--size", "320x240", "--keyframe-interval", "10s", "--control",
        control, option, "\(bracketed):\(port)",
      ] + arguments, in: directory, environment: ["STATE_DIRECTORY": directory.path("state")])
    let process = process
    try #require(
      eventually(within: 120) { !process.log.values(of: "rtsp").isEmpty || !process.isRunning } && process.isRunning,
      "\(process.errorSoFar)")
  }

  deinit {
    if !isEnded { _ = try? end() }
  }

  /// Ends it by SIGTERM.
  func end() throws -> Subprocess.Result {
    isEnded = true
    process.send(SIGTERM)
    return try process.wait()
  }

  /// The camera's URL.
  func url(_ host: String = "127.0.0.1", scheme: String = "rtsp", user: String = "") -> String {
    "\(scheme)://\(user)\(host):\(port)/camera"
  }

  /// Runs `nightjar ctl`; what it says.
  func control(_ arguments: String...) throws -> String {
    let result = try Subprocess.run([nightjarPath, "ctl"] + arguments + ["--socket", control], in: directory)
    #expect(result.status == 0, "\(result.error)")
    return result.outputText
  }

  /// Starts ffmpeg, which decodes so many pictures and ends; it fails at the first fault.
  func ffmpeg(
    _ url: String, transport: String? = "tcp", frames: Int = 20, options: [String] = [], network: [String] = []
  ) throws -> Subprocess {
    try Subprocess(
      network + ["ffmpeg", "-nostdin", "-v", "info", "-err_detect", "explode"]
        + FFmpegTransport.options(transport) + options
        + ["-i", url, "-frames:v", "\(frames)", "-f", "null", "-"], in: directory)
  }

  /// Starts GStreamer, which decodes 20 pictures and ends; `elements` read the packets and decode them.
  func gstreamer(
    _ url: String, protocols: String, options: String = "", network: [String] = [],
    elements: String = "rtph264depay ! avdec_h264"
  ) throws -> Subprocess {
    try Subprocess(
      network + [
        "sh", "-c",
        "exec gst-launch-1.0 rtspsrc location=\(url) protocols=\(protocols) latency=100 \(options) ! "
          + "\(elements) ! \(countingSink(20))",
      ], in: directory)
  }
}

/// Expects that ffmpeg has decoded pictures of that size without a complaint. It gets a second for a picture, of up to 300.
func expectDecoded(_ process: Subprocess, size: String = "320x240") throws {
  let result = try process.wait(limit: 300)
  #expect(result.status == 0, "\(result.error.suffix(2000))")
  #expect(result.error.contains(size), "\(result.error.suffix(2000))")
  for complaint in ["error while decoding", "non-existing PPS", "concealing", "RTP: missed", "Frame num gap"] {
    #expect(!result.error.contains(complaint), "\(result.error.suffix(2000))")
  }
}

/// Expects that GStreamer has got its pictures, or what each of several counters counts.
func expectPlayed(_ process: Subprocess, counters: Int = 1) throws {
  let result = try process.wait(limit: 60)
  #expect(result.hasPlayed && result.finishedCounters == counters, "\(result.outputText)\(result.error)")
}

/// Another program at a TCP port of this machine.
final class TCPListener {
  let port: Int
  private let descriptor: Int32

  init() throws {
    let listener = try loopbackListener(backlog: 1)
    (descriptor, port) = (listener.socket, Int(listener.port))
  }

  deinit {
    close(descriptor)
  }
}

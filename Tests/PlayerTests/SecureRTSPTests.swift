import Foundation
import TestSupport
import Testing

/// SRTP by rtsps, and announcements, as players see them.
@Suite(.serialized) struct SecureRTSPTests {
  private static let login = "tls-validation-flags=0 user-id=alice user-pw=\"looking glass\""

  @Test func `GStreamer plays SRTP over UDP and TCP, and ffmpeg goes on within the connection`() throws {
    let program = try ServedProgram(
      ["--require-encryption"], option: "--rtsps", users: ["alice": "looking glass"])
    let user = "alice:looking%20glass@"
    let ffmpeg = try program.ffmpeg(program.url(scheme: "rtsps", user: user))
    let overUDP = try program.gstreamer(program.url(scheme: "rtsps"), protocols: "udp", options: Self.login)
    let overTCP = try program.gstreamer(program.url(scheme: "rtsps"), protocols: "tcp", options: Self.login)
    try expectPlayed(overUDP)
    try expectPlayed(overTCP)
    try expectDecoded(ffmpeg)
    // Once more, with a key of its own.
    try expectPlayed(try program.gstreamer(program.url(scheme: "rtsps"), protocols: "udp", options: Self.login))
    let result = try program.end()
    #expect(result.status == 0, "\(result.error)")
  }

  /// Expects that GStreamer decodes 20 pictures and a second of sound.
  private func expectBothPlayed(
    _ program: ServedProgram, protocols: String, options: String, network: [String] = []
  ) throws {
    // By TCP, a counter that has got all ends the other branch too. So these do not end, and say each buffer.
    // No caps stand behind "s.": gst-launch links a track to the filter before it links the filter onwards, and a packet that comes
    // meanwhile ends the track for good.
    func sink(_ name: String) -> String { "fakesink name=\(name) sync=false silent=false" }
    func count(_ name: String, _ output: String) -> Int {
      output.split(separator: "\n").count { $0.contains("= chain ") && $0.contains("(\(name):sink)") }
    }
    let command =
      network + [
        "sh", "-c",
        "exec gst-launch-1.0 -v rtspsrc location=\(program.url(scheme: "rtsps")) protocols=\(protocols) latency=100 "
          + "\(options) name=s s. ! rtph264depay ! queue ! avdec_h264 ! "
          + "\(sink("pictures")) s. ! rtpopusdepay ! queue ! opusdec ! "
          + sink("sounds"),
      ]
    let player = try Subprocess.branches(command, in: program.directory) {
      count("pictures", $0.outputSoFar) >= 20 && count("sounds", $0.outputSoFar) >= 50
    }
    player.send(SIGINT)
    let result = try player.wait(limit: 60)
    let output = result.outputText
    #expect(count("pictures", output) >= 20 && count("sounds", output) >= 50, "\(output)\(result.error)")
  }

  @Test(arguments: ["AES_CM_128_HMAC_SHA1_80", "AEAD_AES_128_GCM"])
  func `GStreamer decrypts picture and sound over UDP and TCP, each track with its key`(suite: String) throws {
    let program = try ServedProgram(
      ["--require-encryption", "--rtsps-suite", suite, "--audio", "test"], option: "--rtsps",
      users: ["alice": "looking glass"])
    for transport in ["udp", "tcp"] { try expectBothPlayed(program, protocols: transport, options: Self.login) }
    // Where the machine pauses, a beep is missing, and the next one comes.
    let ffmpeg = try Subprocess.run(
      ["ffmpeg", "-nostdin", "-v", "info", "-rtsp_transport", "tcp", "-t", "8", "-i"]
        + [program.url(scheme: "rtsps", user: "alice:looking%20glass@"), "-map", "0:v", "-f", "null", "-"]
        + ["-map", "0:a", "-ac", "1", "-f", "s16le", program.directory.path("sound")], in: program.directory)
    #expect(ffmpeg.status == 0, "\(ffmpeg.error.suffix(2000))")
    #expect(HeardSamples(file: program.directory.path("sound")).beeps(channels: 1) >= 4)
  }

  @Test func `the printed GStreamer pipeline plays`() throws {
    let program = try ServedProgram(["--require-encryption"], option: "--rtsps")
    // It comes behind the URL that was waited for.
    var line: String?
    _ = eventually {
      line = program.process.log.commands(for: "GStreamer, picture only").first
      return line?.hasSuffix(" ! autovideosink sync=false") == true
    }
    let command = try #require(line).replacingOccurrences(of: "autovideosink sync=false", with: countingSink(20))
    #expect(!command.contains("protocols"))
    try expectPlayed(try Subprocess(["sh", "-c", command], in: program.directory))
  }

  @Test func `where SRTP is not offered GStreamer plays within the connection`() throws {
    let program = try ServedProgram(["--rtsps-suite", "none", "--require-encryption"], option: "--rtsps")
    try expectPlayed(
      try program.gstreamer(program.url(scheme: "rtsps"), protocols: "tcp+udp", options: "tls-validation-flags=0"))
  }

  @Test(.enabled(if: OwnNetwork.isPossible, "needs user namespaces, ip and nsenter"))
  func `players share an encrypted group by its key`() throws {
    let directory = try TemporaryDirectory()
    let holder = try Subprocess(OwnNetwork.holder, in: directory)
    defer { holder.send(SIGKILL) }
    #expect(eventually { holder.outputSoFar.contains("ready") })
    let network = OwnNetwork.entering(holder)
    let program = try ServedProgram(
      ["--rtsp-multicast", "239.1.2.3:5004", "--require-encryption", "--audio", "test"], option: "--rtsps",
      network: network)
    let url = program.url(scheme: "rtsps")
    let options = "tls-validation-flags=0"
    let first = try program.gstreamer(url, protocols: "udp-mcast", options: options, network: network)
    let alone = try program.gstreamer(url, protocols: "udp", options: options, network: network)
    try expectPlayed(first)
    try expectPlayed(alone)
    // The sound of the group has ports and keys of its own.
    try expectBothPlayed(program, protocols: "udp-mcast", options: options, network: network)
    try expectBothPlayed(program, protocols: "udp", options: options, network: network)
    // Once more, after all have left.
    try expectPlayed(try program.gstreamer(url, protocols: "udp-mcast", options: options, network: network))
    // ffmpeg asks for RTP/AVP, is refused the group, and takes the connection.
    try expectDecoded(try program.ffmpeg(url, transport: "udp_multicast", network: network))
  }

  @Test(.enabled(if: OwnNetwork.isPossible, "needs user namespaces, ip and nsenter"))
  func `ffmpeg finds an announced group`() throws {
    let directory = try TemporaryDirectory()
    let holder = try Subprocess(OwnNetwork.holder, in: directory)
    defer { holder.send(SIGKILL) }
    #expect(eventually { holder.outputSoFar.contains("ready") })
    let network = OwnNetwork.entering(holder)
    let player = try Subprocess(
      network + [
        "ffmpeg", "-nostdin", "-v", "info", "-protocol_whitelist", "sap,udp,rtp", "-i", "sap://239.255.255.255",
        "-frames:v", "20", "-f", "null", "-",
      ], in: directory)
    // It listens once it has begun: at port 9875, by the table of its network.
    let table = "/proc/\(player.identifier)/net/udp"
    func listens() -> Bool {
      let sockets = ((try? KernelFile.text(table)) ?? "").split(separator: "\n").map { $0.split(separator: " ") }
      return sockets.contains { $0.count > 1 && $0[1].hasSuffix(":2693") }
    }
    _ = eventually(within: 60) { listens() || !player.isRunning }
    let program = try Subprocess(
      network + [
        nightjarPath, "stream", "--control", "none", "--source", "test", "--size", "320x240", "--keyframe-interval",
        "1s", "--to", "rtp://239.255.2.3:5004?sap=1&loop=1&interface=lo",
      ], in: directory)
    defer { program.send(SIGTERM) }
    let result = try player.wait(limit: 60)
    #expect(result.status == 0 && result.error.contains("320x240"), "\(result.error)")
  }

  @Test(arguments: [
    ["--rtsp", "--rtsps-suite", "none"], ["--rtsps", "--rtsps-suite", "RC4"], ["--rtsps-suite", "none"],
    ["--rtsps-suite", "AES_CM_128_HMAC_SHA1_80"],
    ["--rtsps", "--require-encryption", "--rtsps-suite", "none", "--rtsp-multicast", "239.1.2.3:5004"],
    ["--to", "srtp://239.1.2.3:5004?sap=1"], ["--to", "rtp://127.0.0.1:5004?sap=1"],
  ])
  func `options without a meaning are refused`(arguments: [String]) throws {
    let directory = try TemporaryDirectory()
    let result = try Subprocess.run(
      [nightjarPath, "stream", "--source", "test", "--size", "320x240", "--control", "none", "--duration", "1s"]
        + arguments, in: directory, limit: 60)
    #expect(result.status == 64, "\(result.error)")
  }
}

import Foundation
import TestSupport
import Testing

/// `srtp://` as ffmpeg and GStreamer see it.
@Suite(.serialized) struct ProtectedStreamTests {
  private static func mode(of path: String) throws -> Int {
    let attributes = try FileManager.default.attributesOfItem(atPath: path)
    return (attributes[.posixPermissions] as? NSNumber)?.intValue ?? -1
  }

  private static func crypto(_ path: String) throws -> String {
    let text = try String(contentsOfFile: path, encoding: .utf8)
    let line = text.split(whereSeparator: \.isNewline).first { $0.hasPrefix("a=crypto:") }
    return String(try #require(line, "\(text)"))
  }

  private static func keyFile(_ content: String, mode: Int = 0o600, in directory: TemporaryDirectory) throws -> String {
    let path = directory.path("key")
    try content.write(toFile: path, atomically: false, encoding: .utf8)
    try FileManager.default.setAttributes([.posixPermissions: mode], ofItemAtPath: path)
    return path
  }

  /// The heading of the command for GStreamer.
  private static let gstreamer = "GStreamer (its key shows in that host's list of processes)"

  private static let key = "AES_CM_128_HMAC_SHA1_80 inline:PS1uQCVeeCFCanVmcjkpPywjNWhcYD0mXXtxaVBR"

  private func expectProtected(_ reception: Reception) throws {
    #expect(try Self.mode(of: reception.description) == 0o600)
    #expect(!reception.log.contains("PS1uQCVe"), "the key is shown")
    #expect(!reception.receiverLog.contains("HMAC"), "\(reception.receiverLog.prefix(500))")
  }

  @Test func `ffmpeg decodes every frame by the session description`() throws {
    let directory = try TemporaryDirectory()
    let key = try Self.keyFile(Self.key, in: directory)
    let reception = try Reception.ofH264(
      ["--control", "none", "--source", "test", "--size", "640x360"], size: (640, 360), scheme: "srtp",
      options: "?key-file=\(key)", until: 11, in: directory)
    try expectProtected(reception)
    #expect(reception.isWhole && reception.pictureCount > 10, "\(reception.receiverLog)")
  }

  /// A clip of noise, which takes all the bits that it is given.
  private static func noise(in directory: TemporaryDirectory) throws -> String {
    let clip = directory.path("noise.y4m")
    let made = try Subprocess.run(
      [
        "ffmpeg", "-v", "error", "-f", "lavfi", "-i", "color=gray:size=320x240:rate=30,noise=alls=100:allf=t",
        "-frames:v", "15", "-pix_fmt", "yuv420p", "-y", clip,
      ], in: directory)
    try #require(made.status == 0, "\(made.error)")
    return clip
  }

  @Test func `ffmpeg goes on beyond 65,536 packets`() throws {
    let directory = try TemporaryDirectory()
    let key = try Self.keyFile(Self.key, in: directory)
    // In packets that are as small as can be.
    let reception = try Reception.ofClip(
      Self.noise(in: directory), ["--control", "none", "--bitrate", "12M"], size: (320, 240), times: 22, losses: 33,
      scheme: "srtp", options: "?key-file=\(key)&mtu=230", in: directory)
    try #require(reception.figure("packets") > 65_536, "\(reception.figure("packets"))")
    try expectProtected(reception)
    #expect(reception.figure("frames", "sent") == 330)
    // It sees another source, more than once.
    #expect(reception.receiverLog.contains("bad cseq 0000"), "\(reception.receiverLog.prefix(500))")
    #expect(reception.pictureCount >= 330 * 9 / 10, "\(reception.pictureCount): \(reception.receiverLog.suffix(500))")
  }

  @Test func `the printed commands play for who comes after 65,536 packets, and beyond another source`() throws {
    let directory = try TemporaryDirectory()
    let port = try UDPPort.free()
    let control = directory.path("control")
    // In packets that are as small as can be.
    let program = try Subprocess(
      [
        nightjarPath, "stream", "--control", control, "--source", "file:\(Self.noise(in: directory))",
        "--bitrate", "6M",
        "--keyframe-interval", "1s", "--to", "srtp://127.0.0.1:\(port)?mtu=216&rtcp=mux", "--sdp",
        directory.path("s.sdp"),
      ], in: directory)
    defer { program.send(SIGTERM) }
    func packets() throws -> Int {
      let status = try Subprocess.run([nightjarPath, "ctl", "status", "--json", "--socket", control], in: directory)
      let json = try? JSONSerialization.jsonObject(with: status.output) as? [String: Any]
      let camera = (json?["cameras"] as? [[String: Any]])?.first ?? json
      return ((camera?["destinations"] as? [[String: Any]])?.first?["packets"] as? NSNumber)?.intValue ?? 0
    }
    try #require(try eventually(within: 120) { try packets() > 65_536 }, "\(program.errorSoFar)")
    let ffplay = try #require(program.log.commands(for: "ffplay").first)
    let gstreamer = try #require(program.log.commands(for: Self.gstreamer).first)
    // No display here: the same, counting pictures instead of showing them; long enough for two more sources.
    for command in [
      ffplay.replacingOccurrences(of: "ffplay ", with: "ffmpeg -nostdin -v warning -threads 1 ")
        + " -frames:v 300 -fps_mode passthrough -f framecrc -",
      gstreamer.replacingOccurrences(of: "autovideosink sync=false", with: countingSink(300)),
    ] {
      let before = try packets()
      let viewer = try Subprocess.run(["sh", "-c", command], in: directory, limit: 120)
      #expect(viewer.status == 0, "\(command.prefix(20)): \(viewer.error)")
      #expect(!viewer.error.contains("HMAC") && !viewer.error.contains("not-linked"), "\(viewer.error.prefix(500))")
      let pictures = viewer.outputText.split(separator: "\n").filter { !$0.hasPrefix("#") }.count
      #expect(viewer.hasPlayed || pictures == 300, "\(viewer.error.suffix(500))")
      #expect(try packets() - before > 25_000)
    }
  }

  @Test(arguments: ["AES_CM_128_HMAC_SHA1_80", "AEAD_AES_128_GCM", "AEAD_AES_256_GCM"], ["", "&payload=mp2t"])
  func `the printed GStreamer pipeline decodes pictures`(suite: String, options: String) throws {
    let directory = try TemporaryDirectory()
    let port = try UDPPort.free()
    let program = try Subprocess(
      [
        nightjarPath, "stream", "--control", "none", "--source", "test", "--size", "320x240", "--keyframe-interval",
        "1s", "--to", "srtp://127.0.0.1:\(port)?suite=\(suite)\(options)", "--sdp", directory.path("g s.sdp"),
      ], in: directory)
    defer { program.send(SIGTERM) }
    #expect(eventually { !program.log.commands(for: Self.gstreamer).isEmpty })
    let hasFFplay = !program.log.commands(for: "ffplay").isEmpty
    #expect(hasFFplay == (suite == "AES_CM_128_HMAC_SHA1_80" && options.isEmpty))
    let line = try #require(program.log.commands(for: Self.gstreamer).first)
    // No display here: the same pipeline, counting pictures instead of showing them.
    let command = line.replacingOccurrences(of: "autovideosink sync=false", with: countingSink(20))
    let viewer = try Subprocess.run(["sh", "-c", command], in: directory, limit: 60)
    #expect(viewer.hasPlayed, "\(viewer.outputText)\(viewer.error)")
  }

  @Test func `each start makes a key of its own, for its owner's eyes alone`() throws {
    let directory = try TemporaryDirectory()
    let description = directory.path("k.sdp")
    // A file that everybody could read does not stay so.
    _ = FileManager.default.createFile(atPath: description, contents: nil, attributes: [.posixPermissions: 0o644])
    var keys: Set<String> = []
    for _ in 0..<2 {
      let running = try Subprocess(
        [
          nightjarPath, "stream", "--control", "none", "--source", "test", "--size", "320x240", "--to",
          "srtp://127.0.0.1:\(UDPPort.free())?rtcp=mux", "--sdp", description,
        ], in: directory)
      #expect(eventually { running.log.isStreaming })
      running.send(SIGTERM)
      let program = try running.wait()
      #expect(program.status == 0, "\(program.error)")
      #expect(try Self.mode(of: description) == 0o600)
      let crypto = try Self.crypto(description)
      keys.insert(crypto)
      let key = try #require(crypto.split(separator: ":").last)
      #expect(key.count == 40 && !program.error.contains(key))
      #expect(try String(contentsOfFile: description, encoding: .utf8).contains("a=rtcp-mux\r\n"))
    }
    #expect(keys.count == 2)
  }

  @Test(arguments: [
    (key, 0o644, "", 77, "chmod 600"), ("AES_CM_128_HMAC_SHA1_80 inline:AAAA", 0o600, "", 65, "3 bytes"),
    ("RC4 inline:AAAA", 0o600, "", 65, "not a known suite"), ("", 0o600, "", 65, "0 lines"),
    (key, 0o600, "&suite=AEAD_AES_128_GCM", 64, "another file"), (key, 0o600, "&suite=RC4", 64, "AEAD_AES_128_GCM"),
  ])
  func `a bad key is refused before anything is sent`(
    content: String, mode: Int, options: String, status: Int32, reason: String
  ) throws {
    let directory = try TemporaryDirectory()
    let path = try Self.keyFile(content, mode: mode, in: directory)
    let recorder = try DatagramRecorder()
    let program = try Subprocess.run(
      [
        nightjarPath, "stream", "--control", "none", "--source", "test", "--size", "320x240", "--duration", "1s",
        "--to",
        "srtp://127.0.0.1:\(recorder.port)?key-file=\(path)\(options)",
      ], in: directory)
    #expect(program.status == status, "\(program.error)")
    #expect(program.error.contains(reason), "\(program.error)")
    #expect(!program.error.contains("PS1uQCVe"))
    #expect(recorder.finish().isEmpty)
  }
}

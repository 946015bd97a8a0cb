import Foundation
import Platform
import Receiving
import TestSupport
import Testing

/// Encrypted packets of real senders: this program, GStreamer's server and ffmpeg.
@Suite struct SecureStreamTests {
  private static func configuration(
    _ transport: StreamReceiver.Transport = .udp, _ certificate: TestCertificate? = nil
  ) -> StreamReceiver.Configuration {
    var configuration = StreamOutcome.configuration(transport)
    configuration.certificateFingerprint = certificate?.fingerprint
    return configuration
  }

  /// Serves the synthetic camera by rtsps.
  private static func camera(
    _ options: [String], _ certificate: TestCertificate, in directory: TemporaryDirectory
  ) throws -> (Subprocess, String) {
    let port = try TCPPort.free()
    let program = try Subprocess(
      [
        nightjarPath, "stream", "--source", "test", "--size", "320x192", "--fps", "25", "--rtsps", "127.0.0.1:\(port)",
        "--tls-cert", certificate.certificate, "--tls-key", certificate.key, "--control", "none", "--audio", "test",
      ] + options, in: directory)
    #expect(eventually { program.errorSoFar.contains("rtsps://") || !program.isRunning })
    return (program, "rtsps://127.0.0.1:\(port)/camera")
  }

  @Test(arguments: ["AES_CM_128_HMAC_SHA1_80", "AEAD_AES_128_GCM", "AEAD_AES_256_GCM"])
  func `this program's rtsps over UDP, by each suite`(suite: String) async throws {
    let directory = try TemporaryDirectory()
    let certificate = try TestCertificate(in: directory)
    let (program, url) = try Self.camera(["--rtsps-suite", suite, "--require-encryption"], certificate, in: directory)
    defer { program.send(SIGTERM) }
    let outcome = try await StreamOutcome.of(
      .rtsp(StreamURL(url)), Self.configuration(.udp, certificate), pictures: 20, seconds: 1.5)
    #expect(outcome.pictures >= 20 && outcome.errors.isEmpty, "\(outcome.errors) \(program.errorSoFar)")
    try expectTone(outcome, suite)
    #expect(outcome.statistics.packetsRefused == 0)
  }

  @Test func `rtsps sends nothing in the clear over UDP`() async throws {
    let directory = try TemporaryDirectory()
    let certificate = try TestCertificate(in: directory)
    let (program, url) = try Self.camera(["--rtsps-suite", "none"], certificate, in: directory)
    defer { program.send(SIGTERM) }
    let refused = try await StreamOutcome.of(
      .rtsp(StreamURL(url)), Self.configuration(.udp, certificate), pictures: 1)
    let reason = "the server encrypts no packets over UDP, and rtsps sends none in the clear: use TCP"
    #expect(refused.pictures == 0 && refused.failure == .unsupported(reason), "\(refused)")
    let within = try await StreamOutcome.of(
      .rtsp(StreamURL(url)), Self.configuration(.automatic, certificate), pictures: 5)
    #expect(within.pictures >= 5 && within.errors.isEmpty, "\(within.errors)")
  }

  @Test(arguments: [StreamReceiver.Transport.udp, .tcp])
  func `GStreamer's server that has SRTP alone`(way: StreamReceiver.Transport) async throws {
    let directory = try TemporaryDirectory()
    let certificate = try TestCertificate(in: directory)
    let port = try TCPPort.free()
    let script = packageRoot.appendingPathComponent("Tests/ReceivingTests/Servers/rtsp-server.py").path
    let server = try Subprocess(
      [
        "/usr/bin/python3", script, "\(port)", "--certificate", certificate.certificate, certificate.key, "--secure",
      ], in: directory)
    defer { server.send(SIGKILL) }
    #expect(await comesTrue { server.outputSoFar.contains("ready") })
    let outcome = try await StreamOutcome.of(
      .rtsp(StreamURL("rtsps://127.0.0.1:\(port)/camera")), Self.configuration(way, certificate), pictures: 20,
      seconds: 1.5)
    #expect(outcome.pictures >= 20 && outcome.errors.isEmpty, "\(outcome.errors) \(server.errorSoFar)")
    try expectTone(outcome, "\(way)")
  }

  /// Sends the synthetic camera to a port, and returns its session description.
  private static func sender(
    _ url: String, sdp: String, in directory: TemporaryDirectory
  ) throws -> (Subprocess, String) {
    let program = try Subprocess(
      [
        nightjarPath, "stream", "--source", "test", "--size", "320x192", "--fps", "25", "--control", "none",
        "--audio", "test", "--to", url, "--sdp", sdp,
      ], in: directory)
    func text() -> String { (try? String(contentsOfFile: sdp, encoding: .utf8)) ?? "" }
    #expect(eventually { text().contains("m=audio") || !program.isRunning }, "\(program.errorSoFar)")
    return (program, text())
  }

  /// Returns the first of eight free ports in a row; it is even.
  private static func ports() throws -> UInt16 {
    for _ in 0..<200 {
      let port = try UDPPort.free() & ~7
      if port < 65_000, try (0..<8).allSatisfy({ try isFree(port + $0) }) { return port }
    }
    throw CocoaError(.fileNoSuchFile)
  }

  private static func isFree(_ port: UInt16) throws -> Bool {
    guard let socket = try? loopbackSocket(port: port) else { return false }
    close(socket)
    return true
  }

  @Test(arguments: ["rtp", "srtp", "srtp-mux"])
  func `picture and sound by a session description with two media`(scheme: String) async throws {
    let directory = try TemporaryDirectory()
    let port = try Self.ports()
    let name = scheme.prefix { $0 != "-" }
    let url = "\(name)://127.0.0.1:\(port)\(scheme == name ? "" : "?rtcp=mux")"
    let (program, description) = try Self.sender(url, sdp: directory.path("stream.sdp"), in: directory)
    defer { program.send(SIGTERM) }
    #expect(description.contains("a=crypto:") == (name == "srtp"))
    #expect(try PlayableMedia.of(description).map(\.codec) == ["H264", "OPUS"])
    let outcome = try await StreamOutcome.of(
      .sessionDescription(description), Self.configuration(), pictures: 20, seconds: 1.5)
    // The stream may have begun before the receiver: what comes before the first key frame is marked as damaged.
    #expect(outcome.earlyDamage == outcome.early, "\(outcome.errors)")
    #expect(
      outcome.pictures >= 20 && outcome.errors.count == outcome.early, "\(outcome.errors) \(program.errorSoFar)")
    try expectTone(outcome, scheme)
  }

  @Test func `another key, and a description without a key, are told apart`() async throws {
    let directory = try TemporaryDirectory()
    let port = try Self.ports()
    let (program, description) = try Self.sender(
      "srtp://127.0.0.1:\(port)", sdp: directory.path("stream.sdp"), in: directory)
    defer { program.send(SIGTERM) }
    var configuration = Self.configuration()
    configuration.silenceTimeout = .seconds(1)
    func reason(_ description: String) async throws -> ReceiverError? {
      let receiver = try StreamReceiver(.sessionDescription(description), configuration: configuration)
      let units = receiver.accessUnits()
      try receiver.start()
      for await _ in units { Issue.record("a picture of a stream with another key") }
      return receiver.statistics.lastFailure
    }
    let inline = try #require(description.components(separatedBy: "inline:").dropFirst().first?.prefix(40))
    let other = Data((0..<30).map { UInt8($0) }).base64EncodedString()
    let wrong = try await reason(description.replacingOccurrences(of: inline, with: other))
    guard case .forged? = wrong else {
      Issue.record("\(String(describing: wrong))")
      return
    }
    let lines = description.components(separatedBy: "\r\n")
    let without = try await reason(lines.filter { !$0.hasPrefix("a=crypto") }.joined(separator: "\r\n"))
    #expect(without == .key("the picture is encrypted (RTP/SAVP), and the session description has no key for it"))
    for key in ["inline:AAAA", "inline:\(other)|2^20", "inline:!", ""] {
      let text = lines.map { $0.hasPrefix("a=crypto") ? "a=crypto:1 AES_CM_128_HMAC_SHA1_80 \(key)" : $0 }
      guard case .key(let words)? = try await reason(text.joined(separator: "\r\n")) else {
        Issue.record("\(key)")
        return
      }
      #expect(!words.contains(other) && !words.contains(inline))
    }
  }

  @Test func `packets that ffmpeg encrypts`() async throws {
    let suite = "AES_CM_128_HMAC_SHA1_80"
    let directory = try TemporaryDirectory()
    let port = try Self.ports()
    let key = Data((0..<30).map { UInt8(7 * $0) }).base64EncodedString()
    let description = """
      v=0\r\no=- 1 1 IN IP4 127.0.0.1\r\ns=-\r\nc=IN IP4 127.0.0.1\r\nt=0 0\r
      m=video \(port) RTP/SAVP 96\r\na=rtpmap:96 H264/90000\r\na=fmtp:96 packetization-mode=1\r
      a=crypto:1 F8_128_HMAC_SHA1_80 inline:\(key)\r\na=crypto:2 \(suite) inline:\(key)\r\n
      """
    // The receiver listens first: what comes before would be missing, and the first pictures damaged.
    async let received = StreamOutcome.of(.sessionDescription(description), Self.configuration(), pictures: 20)
    #expect(try await comesTrue { try UDPPort.isBound(port) })
    let sender = try Subprocess(
      [
        "ffmpeg", "-v", "error", "-nostdin", "-re", "-f", "lavfi", "-i", "testsrc=size=320x192:rate=25", "-c:v",
        "libx264", "-pix_fmt", "yuv420p", "-preset", "ultrafast", "-tune", "zerolatency", "-g", "25", "-payload_type",
        "96", "-f", "rtp",
        "-srtp_out_suite", suite, "-srtp_out_params", key, "srtp://127.0.0.1:\(port)",
      ], in: directory)
    defer { sender.send(SIGKILL) }
    let outcome = try await received
    #expect(outcome.pictures >= 20 && outcome.errors.isEmpty, "\(outcome.errors) \(sender.errorSoFar)")
  }
}

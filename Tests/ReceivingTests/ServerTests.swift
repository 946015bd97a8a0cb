import Adaptors
import Decoding
import Foundation
import Platform
import RTP
import Receiving
import TestSupport
import Testing

/// Streams of real servers: this program's own, and GStreamer's.
@Suite struct ServerTests {
  private static func receive(
    _ url: String, _ configuration: StreamReceiver.Configuration, pictures count: Int, seconds: Double = 0
  ) async throws -> StreamOutcome {
    try await StreamOutcome.of(.rtsp(StreamURL(url)), configuration, pictures: count, seconds: seconds)
  }

  @Test func `this program's RTSP server, by TCP, UDP and TLS, with a password`() async throws {
    let directory = try TemporaryDirectory()
    let users = directory.path("users")
    let added = try Subprocess.run(
      ["sh", "-c", #"echo 'secret word' | exec "$0" user add alice --users "$1""#, nightjarPath, users], in: directory)
    #expect(added.status == 0, "\(added.error)")
    let certificate = try TestCertificate(in: directory)
    let fingerprint = certificate.fingerprint
    let ports = (plain: try TCPPort.free(), secure: try TCPPort.free())
    let program = try Subprocess(
      [
        nightjarPath, "stream", "--source", "test", "--size", "320x192", "--fps", "25", "--rtsp",
        "127.0.0.1:\(ports.plain)", "--rtsps", "127.0.0.1:\(ports.secure)", "--users", users, "--tls-cert",
        certificate.certificate, "--tls-key", certificate.key, "--control", "none", "--audio", "test",
      ], in: directory)
    defer { program.send(SIGTERM) }
    #expect(await comesTrue { program.errorSoFar.contains("rtsps://") })
    var configuration = StreamOutcome.configuration(.tcp)
    let plain = "rtsp://alice:secret%20word@127.0.0.1:\(ports.plain)/camera"
    for way in [StreamReceiver.Transport.tcp, .udp] {
      configuration.transport = way
      let outcome = try await Self.receive(plain, configuration, pictures: 20, seconds: 1.5)
      #expect(outcome.pictures >= 20 && outcome.errors.isEmpty, "\(way): \(outcome.errors)")
      try expectTone(outcome, "\(way)")
      #expect(outcome.statistics.packets >= 20 && outcome.statistics.accessUnitsDamaged == 0)
      // One clock: what is left is the time from the camera to here, and never before it.
      if let delay = outcome.statistics.delay { #expect(delay > .milliseconds(-50) && delay < .seconds(30)) }
    }
    configuration.transport = .automatic
    configuration.certificateFingerprint = fingerprint
    let secure = "rtsps://alice:secret%20word@127.0.0.1:\(ports.secure)/camera"
    let outcome = try await Self.receive(secure, configuration, pictures: 20, seconds: 1.5)
    #expect(outcome.pictures >= 20 && outcome.errors.isEmpty, "\(outcome.errors)")
    try expectTone(outcome, "TLS")
    // Only the picture, if nobody listens.
    configuration.receivesSound = false
    let silent = try await Self.receive(secure, configuration, pictures: 5)
    #expect(silent.pictures >= 5 && silent.errors.isEmpty && silent.statistics.sound == nil)
    configuration.receivesSound = true
    configuration.certificateFingerprint = fingerprint.reversed()
    let wrong = try await Self.receive(secure, configuration, pictures: 1)
    let reason = "the server has another certificate than the one whose fingerprint was given"
    #expect(wrong.pictures == 0 && wrong.failure == .encryption(reason), "\(wrong)")
    configuration.certificateFingerprint = nil
    let unknown = try await Self.receive(secure, configuration, pictures: 1)
    // OpenSSL's own words follow.
    let untrusted = "the server's certificate is not trusted: "
    #expect(unknown.pictures == 0 && unknown.errors.first?.hasPrefix(untrusted) == true, "\(unknown)")
    configuration.transport = .tcp
    let refused = try await Self.receive(
      "rtsp://alice:wrong@127.0.0.1:\(ports.plain)/camera", configuration, pictures: 1)
    #expect(refused.pictures == 0 && refused.errors == ["the server refuses the user name or the password"])
  }

  @Test func `GStreamer's RTSP server, by TCP and UDP`() async throws {
    let directory = try TemporaryDirectory()
    let port = try TCPPort.free()
    let script = packageRoot.appendingPathComponent("Tests/ReceivingTests/Servers/rtsp-server.py").path
    // Debian's Python has GStreamer's bindings; another may come first in the path.
    let server = try Subprocess(["/usr/bin/python3", script, "\(port)"], in: directory)
    defer { server.send(SIGKILL) }
    #expect(await comesTrue { server.outputSoFar.contains("ready") })
    for way in [StreamReceiver.Transport.tcp, .udp] {
      let configuration = StreamOutcome.configuration(way)
      let outcome = try await Self.receive("rtsp://127.0.0.1:\(port)/camera", configuration, pictures: 20, seconds: 1.5)
      #expect(outcome.pictures >= 20 && outcome.errors.isEmpty, "\(way): \(outcome.errors) \(server.errorSoFar)")
      try expectTone(outcome, "\(way)")
    }
  }
}

/// Expects sound of one frequency in its place.
func expectTone(
  _ outcome: StreamOutcome, _ way: String, sourceLocation: SourceLocation = #_sourceLocation
) throws {
  let sound = try #require(outcome.statistics.sound, "\(way)", sourceLocation: sourceLocation)
  #expect(sound.packets >= 40 && sound.counts.payloadsRefused == 0, "\(way)", sourceLocation: sourceLocation)
  // A host that is busy may lose a packet: what is concealed is no tone, and little.
  let frequency = try #require(outcome.frequency, "\(way): silence", sourceLocation: sourceLocation)
  #expect((900...1100).contains(frequency), "\(way): \(frequency) Hz", sourceLocation: sourceLocation)
  for (one, next) in zip(outcome.sound, outcome.sound.dropFirst()) where next.position - one.position < 48_000 {
    #expect(next.position == one.position + Int64(one.length), "\(way)", sourceLocation: sourceLocation)
  }
}

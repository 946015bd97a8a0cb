import CLinux
import Foundation
import Media
import Platform
import TLS
import TestSupport
import Testing

/// DTLS and the keys of SRTP, by openssl's program over UDP.
@Suite struct DTLSTests {
  /// The outcome of one handshake.
  private struct Outcome {
    var client = ""
    var state = TLSConnection.State.handshaking
    var profile: SRTPProtectionProfile?
    var keys: [UInt8] = []
    var fingerprint: [UInt8]?
    var plaintext: [UInt8] = []
    /// Bytes of each datagram.
    var sent: [Int] = []
    var receivedBeforeAnswer = 0
    var retransmissions = 0
    /// Seconds from the first datagram to the keys.
    var seconds = 0.0
  }

  /// Serves one client: openssl with these options.
  ///
  /// - Parameters:
  ///   - losesFlight: whether the first answer gets lost, and all that the client says before it was repeated.
  ///   - loss: the part of all datagrams that get lost in each direction, 0 to 1, as the seed says.
  private func serve(
    _ options: String, profiles: [SRTPProtectionProfile] = SRTPProtectionProfile.allCases.reversed(),
    names: [String] = ["localhost"], asksForCertificate: Bool = false, losesFlight: Bool = false,
    loss: Double = 0, seed: UInt64 = 0, in directory: TemporaryDirectory
  ) throws -> Outcome {
    let key = try PrivateKey()
    let certificate = try Certificate.server(
      .init(commonName: "WebRTC", names: names, addresses: [], validity: 1_700_000_000...4_000_000_000), key: key)
    let context = try ServerContext(
      datagramsWith: [certificate], key: key, profiles: profiles, asksForCertificate: asksForCertificate)
    let port = try UDPPort.free()
    let descriptor = try loopbackSocket(port: port)
    defer { close(descriptor) }
    let process = try Subprocess(
      [
        "sh", "-c",
        """
        cd \(directory.url.path); touch out
        (i=0; until grep -q 'Verify return code' out || [ $((i += 1)) -gt 300 ]; do sleep 0.1; done; echo hello) |
          openssl s_client -dtls1_2 -connect 127.0.0.1:\(port) \(options) > out 2>&1
        cat out
        """,
      ], in: directory)

    var outcome = Outcome()
    var isAnswered = false
    var begun: Instant?
    var generator = SeededGenerator(seed: seed)
    func isLost() -> Bool { Double.random(in: 0..<1, using: &generator) < loss }
    let connection = try TLSConnection(context) { bytes in
      outcome.sent.append(bytes.count)
      isAnswered = true
      guard !losesFlight || outcome.retransmissions > 0, !isLost() else { return }
      send(descriptor, bytes.baseAddress, bytes.count, 0)
    }
    var memory = [UInt8](repeating: 0, count: 2048)
    while true {
      // What the client has said before its end is still in the socket.
      let isRunning = process.isRunning
      let wait = connection.retransmissionTime.map { Int32($0.nanoseconds / 1_000_000) + 1 } ?? 100
      var descriptors = [pollfd(fd: descriptor, events: Int16(POLLIN), revents: 0)]
      guard poll(&descriptors, 1, isRunning ? min(wait, 100) : 0) > 0 else {
        guard isRunning else { break }
        if let rest = connection.retransmissionTime, rest <= .zero {
          outcome.retransmissions += 1
          try connection.retransmit()
        }
        continue
      }
      var peer = sockaddr_in()
      var size = socklen_t(MemoryLayout<sockaddr_in>.size)
      let count = withUnsafeMutablePointer(to: &peer) { pointer in
        pointer.withMemoryRebound(to: sockaddr.self, capacity: 1) {
          recvfrom(descriptor, &memory, memory.count, 0, $0, &size)
        }
      }
      guard count > 0, !isLost() else { continue }
      begun = begun ?? .now()
      withUnsafePointer(to: peer) { pointer in
        pointer.withMemoryRebound(to: sockaddr.self, capacity: 1) { _ = connect(descriptor, $0, size) }
      }
      if !isAnswered { outcome.receivedBeforeAnswer += 1 }
      if losesFlight, isAnswered, outcome.retransmissions == 0 { continue }
      try memory[..<count].withUnsafeBytes { bytes in
        try connection.receive(bytes) { outcome.plaintext += $0 }
      }
      if outcome.state == .handshaking, connection.state == .established, let begun {
        outcome.seconds = (Instant.now() - begun).seconds
      }
      outcome.state = connection.state
    }
    outcome.client = try process.wait(limit: 10).outputText
    outcome.profile = connection.protectionProfile
    outcome.keys = connection.keyingMaterial ?? []
    outcome.fingerprint = connection.peerFingerprint
    return outcome
  }

  /// Returns the text behind `name` in a line of openssl's; nil if no line begins so.
  private func value(of name: String, in output: String) -> Substring? {
    output.split(whereSeparator: \.isNewline).map { $0.drop { $0 == " " } }.first { $0.hasPrefix(name) }?
      .dropFirst(name.count)
  }

  private func hex(_ bytes: [UInt8]) -> String {
    bytes.map { ($0 < 16 ? "0" : "") + String($0, radix: 16, uppercase: true) }.joined()
  }

  @Test(arguments: [
    ("SRTP_AEAD_AES_128_GCM:SRTP_AES128_CM_SHA1_80", SRTPProtectionProfile.aeadAES128GCM, 56),
    ("SRTP_AES128_CM_SHA1_80", .aes128CounterHMAC80, 60),
  ])
  func `both sides have the same keys for the profile that both know`(
    offered: String, profile: SRTPProtectionProfile, count: Int
  ) throws {
    let directory = try TemporaryDirectory()
    let outcome = try serve(
      "-use_srtp \(offered) -keymatexport EXTRACTOR-dtls_srtp -keymatexportlen \(count)", in: directory)
    #expect(outcome.profile == profile && outcome.keys.count == count)
    let chosen = try #require(offered.split(separator: ":").first)
    #expect(value(of: "SRTP Extension negotiated, profile=", in: outcome.client) == chosen, "\(outcome.client)")
    #expect(value(of: "Keying material: ", in: outcome.client) == hex(outcome.keys)[...], "\(outcome.client)")
    #expect(outcome.plaintext == Array("hello\n".utf8))
    // Within the time of the first one none is due.
    #expect(outcome.retransmissions == 0 || outcome.seconds > 0.15, "\(outcome.seconds) s")
  }

  @Test func `large flights go in datagrams that fit, and a ClientHello may come in several`() throws {
    let long = (0..<6).map { _ in String(repeating: "a", count: 200) }.joined(separator: ",")
    let directory = try TemporaryDirectory()
    let outcome = try serve(
      "-use_srtp SRTP_AES128_CM_SHA1_80 -mtu 500 -alpn \(long)",
      names: (0..<60).map { "name-\($0)." + String(repeating: "x", count: 40) }, in: directory)
    #expect(outcome.profile == .aes128CounterHMAC80 && outcome.state == .established, "\(outcome.client)")
    #expect(outcome.receivedBeforeAnswer >= 3)
    #expect(outcome.sent.reduce(0, +) > 3000 && outcome.sent.allSatisfy { $0 <= TLSConnection.datagramBytes })
  }

  @Test func `a flight that was lost is sent again`() throws {
    let directory = try TemporaryDirectory()
    let outcome = try serve("-use_srtp SRTP_AES128_CM_SHA1_80", losesFlight: true, in: directory)
    #expect(outcome.retransmissions > 0)
    #expect(outcome.state == .established && !outcome.keys.isEmpty, "\(outcome.client)")
  }

  @Test func `a flight without an answer is repeated after 150 ms, and then after twice as long each time`() {
    var times: [UInt32] = [TLSConnection.retransmissionMicroseconds(after: 0)]
    for _ in 0..<11 { times.append(TLSConnection.retransmissionMicroseconds(after: times[times.count - 1])) }
    #expect(times.prefix(6) == [150_000, 300_000, 600_000, 1_200_000, 2_400_000, 4_800_000])
    // OpenSSL gives up after twelve; a session has 40 s.
    #expect(times.suffix(6).allSatisfy { $0 == 5_000_000 } && (38_000_000..<40_000_000).contains(times.reduce(0, +)))
  }

  @Test(arguments: 1...3 as ClosedRange<UInt64>)
  func `a handshake gets through where every fifth datagram is lost in each direction`(seed: UInt64) throws {
    let directory = try TemporaryDirectory()
    let outcome = try serve("-use_srtp SRTP_AES128_CM_SHA1_80", loss: 0.2, seed: seed, in: directory)
    #expect(outcome.state == .established && !outcome.keys.isEmpty, "\(outcome.client)")
    // The goal is 5 s, though openssl's own client first waits a second each time.
    #expect(outcome.seconds < 50, "\(outcome.seconds)")
  }

  @Test func `a client shows the certificate whose fingerprint it has`() throws {
    let directory = try TemporaryDirectory()
    let key = try PrivateKey()
    let certificate = try SecureServer.certificate(key)
    let path = try directory.write(Array((try key.pem + certificate.pem).utf8), as: "client.pem")
    let outcome = try serve(
      "-use_srtp SRTP_AEAD_AES_128_GCM -cert \(path) -key \(path)", asksForCertificate: true, in: directory)
    #expect(outcome.state == .established, "\(outcome.client)")
    #expect(try outcome.fingerprint == HashFunction.sha256.digest(of: certificate.der))
  }

  @Test(arguments: ["", "-use_srtp SRTP_AES128_CM_SHA1_32"])
  func `without a common profile there are no keys`(options: String) throws {
    let directory = try TemporaryDirectory()
    let outcome = try serve(options, in: directory)
    #expect(outcome.state == .established, "\(outcome.client)")
    #expect(outcome.profile == nil && outcome.keys.isEmpty)
  }
}

import Foundation
import RTP
import SRTP
import Streaming
import TestSupport
import Testing

/// A pipeline's SRTP and SRTCP, over sockets of the test's own.
@Suite(.serialized) struct ProtectedExchangeTests {
  private static func destination(_ port: UInt16, isMuxed: Bool = false) -> StreamDestination {
    StreamDestination(host: "127.0.0.1", port: port, multiplexesRTCP: isMuxed, protection: .init())
  }

  private func isRTCP(_ bytes: [UInt8]) -> Bool { bytes.count > 1 && (200...207).contains(bytes[1]) }

  /// The key that the session description of the first destination gives.
  private func key(_ pipeline: Pipeline) throws -> SRTPKey {
    let description = try #require(pipeline.sessionDescription(for: pipeline.destinations[0].id, sessionID: 1))
    let port = pipeline.destinations[0].destination.port
    #expect(DescriptionLines(description.text)["m"] == ["video \(port) RTP/SAVP 96"])
    return try CryptoAttribute(parsing: description.media[0].cryptography[0]).key
  }

  private func protect(_ datagram: [UInt8], by protector: PacketProtector) throws -> [UInt8] {
    var memory = datagram + [UInt8](repeating: 0, count: PacketProtector.controlRoom)
    let count = try memory.withUnsafeMutableBytes { try protector.protectControl($0, count: datagram.count) }
    return Array(memory[..<count])
  }

  @Test(arguments: [false, true])
  func `a viewer is heard with the key, and refused and counted without it`(isMuxed: Bool) throws {
    let (media, control) = try TestSocket.pair()
    let encoder = try SizedEncoder(keyBytes: 3000, bytes: 500)
    let running = try RunningPipeline(encoder, to: [Self.destination(media.port, isMuxed: isMuxed)])
    defer { running.end() }
    let heard = isMuxed ? media : control
    let report = try #require(heard.first(where: isRTCP))
    let source = report.bytes.number(at: 4, bytes: 4)
    let key = try key(running.pipeline)
    func figures() -> DestinationStatistics { running.pipeline.statistics.destinations[0] }
    #expect(figures().isProtected)
    sleep(1)
    let before = encoder.keyFrames.count
    // A PLI (RFC 4585 section 6.3.1), with the report before it that a compound packet begins with.
    let word = (0..<4).map { UInt8(truncatingIfNeeded: source >> (24 - 8 * UInt64($0))) }
    let loss: [UInt8] = [0x80, 201, 0, 1, 0, 0, 0xab, 0xcd, 0x81, 206, 0, 2, 0, 0, 0xab, 0xcd] + word

    heard.send(loss, to: report.port)
    #expect(eventually { figures().refused.forged == 1 })
    let stranger = try protect(loss, by: PacketProtector(SRTPKey(random: key.suite)))
    heard.send(stranger, to: report.port)
    #expect(eventually { figures().refused.forged == 2 })
    // The pipeline's own report, sent back.
    heard.send(report.bytes, to: report.port)
    #expect(eventually { figures().refused.reflected == 1 })
    usleep(700_000)
    #expect(encoder.keyFrames.count == before && figures().lastHeard == nil && figures().feedback.datagrams == 0)

    let genuine = try protect(loss, by: PacketProtector(key))
    heard.send(genuine, to: report.port)
    #expect(eventually { encoder.keyFrames.count == before + 1 })
    heard.send(genuine, to: report.port)
    #expect(eventually { figures().refused.replayed == 1 })
    usleep(700_000)
    #expect(encoder.keyFrames.count == before + 1)
    #expect(figures().feedback.pictureLosses == 1 && figures().lastHeard != nil)
  }

  @Test func `protected packets keep the packet size, and show nothing of the picture`() throws {
    let (media, control) = try TestSocket.pair()
    let (plainMedia, _) = try TestSocket.pair()
    let running = try RunningPipeline(
      try SizedEncoder(keyBytes: 20_000, bytes: 5000),
      to: [Self.destination(media.port), StreamDestination(host: "127.0.0.1", port: plainMedia.port)])
    #expect(eventually { running.pipeline.statistics.sent > 5 })
    running.end()
    let packets = media.drain().map(\.bytes)
    #expect(packets.count > 20)
    #expect(packets.allSatisfy { $0.count <= StreamDestination.defaultMaximumPacketSize })
    #expect(packets[0].rtpSequenceNumber < 0x8000)
    // No run of bytes that the same pictures in the clear have.
    var pieces: Set<[UInt8]> = []
    for packet in plainMedia.drain().map(\.bytes) {
      for start in stride(from: 12, to: packet.count - 8, by: 1) { pieces.insert(Array(packet[start..<start + 8])) }
    }
    #expect(pieces.count > 200)
    for packet in packets {
      for start in 12..<packet.count - 8 where pieces.contains(Array(packet[start..<start + 8])) {
        Issue.record("bytes in the clear at \(start)")
        return
      }
    }
    // The name in RTCP is no one's business either.
    for report in control.drain() {
      #expect(!String(decoding: report.bytes, as: UTF8.self).contains("nightjar"))
    }
  }

  @Test func `viewers with one key file get one stream, encrypted once`() throws {
    let directory = try TemporaryDirectory()
    let path = directory.path("key")
    try "\(SRTPSuite.aes256GCM.rawValue) inline:\(SRTPKey(random: .aes256GCM).inlineText)"
      .write(toFile: path, atomically: false, encoding: .utf8)
    try FileManager.default.setAttributes([.posixPermissions: 0o600], ofItemAtPath: path)
    let sockets = try (0..<3).map { _ in try TestSocket.pair() }
    let shared = sockets.prefix(2).map {
      StreamDestination(host: "127.0.0.1", port: $0.media.port, protection: .init(keyFile: path))
    }
    let running = try RunningPipeline(
      try SizedEncoder(keyBytes: 3000, bytes: 500), to: shared + [Self.destination(sockets[2].media.port)])
    #expect(eventually { running.pipeline.statistics.sent > 5 })
    running.end()
    let received = sockets.map { $0.media.drain().map(\.bytes) }
    #expect(received[0].count > 5)
    #expect(received[0] == received[1])
    #expect(received[2][0].rtpSource != received[0][0].rtpSource)
    let error = #expect(throws: StreamDestinationError.self) {
      try running.pipeline.add(
        StreamDestination(host: "127.0.0.1", port: 9, protection: .init(suite: .aes128GCM, keyFile: path)))
    }
    #expect(
      error?.description
        == "the key in \(path) is for AEAD_AES_256_GCM, not for AEAD_AES_128_GCM: leave suite= out, or choose another "
        + "file")
  }

  @Test(arguments: [
    ("srtp://h:5004", "srtp://h:5004"), ("srtp://h:5004?suite=AEAD_AES_128_GCM&mtu=500", nil),
    ("srtp://h:5004?key-file=/etc/key&rtcp=mux", nil),
  ])
  func `a protected destination is read and written`(url: String, expected: String?) throws {
    let destination = try StreamDestination(url: url)
    #expect(destination.protection != nil)
    #expect(try StreamDestination(url: destination.description) == destination)
    if let expected { #expect(destination.description == expected) }
  }

  @Test(arguments: [
    ("rtp://h:5004?suite=AEAD_AES_128_GCM", "srtp://"), ("rtp://h:5004?key-file=k", "srtp://"),
    ("srtp://h:5004?suite=AES_CM_128_HMAC_SHA1_32", "AEAD_AES_256_GCM"), ("srtp://h:5004?suite=", "suite"),
    ("srtp://h:5004?key-file=", "key-file"), ("srtp://h:5004?suite=AEAD_AES_128_GCM&mtu=215", "mtu=216"),
    ("srtp://h:5004?key=abc", "key-file"),
  ])
  func `a protected destination that makes no sense is refused`(url: String, reason: String) {
    let error = #expect(throws: StreamDestinationError.self) { try StreamDestination(url: url) }
    #expect(error?.description.contains(reason) == true, "\(String(describing: error))")
  }
}

import Foundation
import Media
import RTP
import SRTP
import Streaming
import TestSupport
import Testing

/// Protected streams beyond 65,536 packets, and who comes then.
@Suite(.serialized) struct RolloverTests {
  @Test func `a viewer that joins after a rollover decrypts only with the announced counter`() throws {
    // Some 58 packets a picture, the largest that fits: 5 to 10 s.
    let running = try RunningPipeline(
      try SizedEncoder(keyBytes: 68_000, bytes: 68_000), to: [], frameRate: try #require(FrameRate(120, 1)))
    defer { running.end() }
    let pipeline = running.pipeline
    let stream = pipeline.reserve(SRTPKey(random: .aes128CounterHMAC80))
    #expect(stream.rolloverCounter == 0)
    func admit(_ socket: TestSocket) throws -> ViewerID {
      try pipeline.admit(
        .datagrams(to: SocketAddress(host: "127.0.0.1", port: socket.port), control: nil, timeToLive: nil),
        name: "viewer", stream: stream
      ) { _ in }
    }
    let early = try TestSocket.pair().media
    let first = try admit(early)
    let receiver = try SecureReceiver(stream.key, ssrc: stream.ssrc)
    // From the first packet on, through the rollover.
    var (opened, refused, last, isOver) = (0, 0, 0, false)
    let deadline = ContinuousClock.now + .seconds(240)
    // Without the pauses of `eventually`: what comes in these is more than the socket holds.
    while !isOver, .now < deadline {
      for packet in early.drain(quiet: 0.01, limit: 500) where !(200...207).contains(packet.bytes[1]) {
        if receiver.open(Data(packet.bytes)) == nil { refused += 1 } else { opened += 1 }
        last = Int(packet.bytes.rtpSequenceNumber)
      }
      isOver = stream.rolloverCounter == 1 && last > 500 && last < 0x8000
    }
    try #require(isOver, "\(opened) opened, \(refused) refused, counter \(stream.rolloverCounter)")
    #expect(opened > 10_000 && refused == 0, "\(refused) of \(opened + refused)")

    let late = try TestSocket.pair().media
    let counter = stream.rolloverCounter
    #expect(pipeline.statistics.destinations.map(\.rolloverCounter) == [1])
    let second = try admit(late)
    let told = try SecureReceiver(stream.key, ssrc: stream.ssrc, rolloverCounter: counter)
    let untold = try SecureReceiver(stream.key, ssrc: stream.ssrc)
    var packets: [Data] = []
    #expect(
      eventually(within: 60) {
        packets += late.drain(quiet: 0, limit: 500).map { Data($0.bytes) }.filter { !(200...207).contains($0[1]) }
        return packets.count > 200
      })
    #expect(packets.prefix(200).allSatisfy { untold.open($0) == nil })
    #expect(packets.prefix(200).allSatisfy { told.open($0) != nil })

    #expect(pipeline.statistics.streams == 1)
    pipeline.remove(first)
    pipeline.remove(second)
    // It is kept until it is released.
    #expect(eventually { pipeline.statistics.destinations.isEmpty })
    #expect(pipeline.statistics.streams == 1)
    pipeline.release(stream)
    #expect(eventually { pipeline.statistics.streams == 0 })
  }

  @Test func `no source is given out twice, and a process that starts a second later begins beyond eight of them`() {
    let sources = (0..<20_000).map { _ in SourceNumbers.next() }
    #expect(Set(sources).count == sources.count)
    #expect(
      SourceNumbers.number(at: timespec(tv_sec: 1_800_000_001, tv_nsec: 0))
        == SourceNumbers.number(at: timespec(tv_sec: 1_800_000_000, tv_nsec: 0)) &+ 8)
  }

  @Test func `destinations that are removed leave no stream behind, and one that comes again has a source of its own`()
    throws
  {
    let directory = try TemporaryDirectory()
    let path = directory.path("key")
    try "\(SRTPSuite.aes128GCM.rawValue) inline:\(SRTPKey(random: .aes128GCM).inlineText)"
      .write(toFile: path, atomically: false, encoding: .utf8)
    try FileManager.default.setAttributes([.posixPermissions: 0o600], ofItemAtPath: path)
    let running = try RunningPipeline(try SizedEncoder(keyBytes: 20_000, bytes: 5000), to: [], pacing: 0.9)
    defer { running.end() }
    let pipeline = running.pipeline
    var sources: Set<UInt64> = []
    for round in 0..<6 {
      let socket = try TestSocket.pair().media
      let isProtected = round.isMultiple(of: 2)
      let id = try pipeline.add(
        StreamDestination(
          host: "127.0.0.1", port: socket.port, maximumPacketSize: 1000 + round,
          protection: isProtected ? .init(keyFile: path) : nil))
      let packet = try #require(socket.first { $0.count > 12 && !(200...207).contains($0[1]) })
      sources.insert(packet.bytes.number(at: 8, bytes: 4))
      #expect(pipeline.statistics.streams == 1)
      #expect(pipeline.remove(id))
      #expect(eventually { pipeline.statistics.streams == 0 })
    }
    #expect(sources.count == 6)
  }
}

import Foundation
import Media
import Platform
import RTP
import SRTP
import Sound
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

  /// A source of sound that has ended: its track gets what the test puts into it.
  private final class EndedSource: SoundSource {
    var condition: SoundCondition { SoundCondition() }
    func fill(_ timeline: SoundTimeline, patience: Duration) -> Bool { false }
    func takeEvents() -> [SoundEvent] { [] }
    func stop() {}
    func end() {}
  }

  /// Puts 50 Opus packets into a track: a second of sound.
  private static func put(into track: Track) throws {
    for _ in 0..<50 {
      try #require(track.reserve())
      // CELT of 20 ms, whose content nobody looks at on the way.
      [UInt8](repeating: 0xf8, count: 60).withUnsafeBytes { bytes in
        guard let packet = NALUnit(bytes) else { return }
        withUnsafePointer(to: packet) { packet in
          let unit = AccessUnit(
            nalUnits: UnsafeBufferPointer(start: packet, count: 1), isKeyFrame: true, timestamp: .now(),
            captured: .now())
          track.take(unit)
        }
      }
    }
  }

  @Test(arguments: [SRTPSuite.aes128CounterHMAC80, .aes128GCM])
  func `sound has another source before its number wraps, for which the description is right too`(
    suite: SRTPSuite
  ) throws {
    let (pictures, sound) = (try DatagramPair(), try DatagramPair())
    let destination = try StreamDestination(
      url: "srtp://127.0.0.1:\(pictures.port)?audio=\(sound.port)&suite=\(suite.rawValue)")
    let running = try RunningPipeline(
      try SizedEncoder(keyBytes: 300, bytes: 300), to: [destination], sound: (EndedSource(), SoundSettings()))
    defer { running.end() }
    let pipeline = running.pipeline
    let id = try #require(pipeline.destinations.first?.id)
    func description() throws -> DescriptionLines {
      DescriptionLines(try #require(pipeline.sessionDescription(for: id, sessionID: 1)).text)
    }
    let before = try description()
    let attribute = try #require(before.attributes("crypto").last)
    let key = try CryptoAttribute(parsing: attribute).key
    #expect(key.suite == suite)

    func source(_ packet: Data?) -> UInt64? { packet.map { Array($0.prefix(12)).number(at: 8, bytes: 4) } }
    var packets: [Data] = []
    // As fast as they are sent, and on for as long as the number would need to wrap.
    var seconds = 0
    while seconds < 0x10000 / 50, source(packets.last) == source(packets.first) {
      seconds += 1
      try Self.put(into: pipeline.tracks[1])
      packets += sound.drain()
    }
    let (first, second) = (try #require(source(packets.first)), try #require(source(packets.last)))
    for _ in 0..<4 { try Self.put(into: pipeline.tracks[1]) }
    let isHeard = eventually {
      packets += sound.drain()
      return source(packets.dropLast(100).last) == second
    }
    try #require(isHeard && first != second, "\(seconds) s with one source")
    let change = try #require(packets.firstIndex { source($0) == second })
    #expect(change < 0x8000 && change > 0x4000)
    #expect(packets[change...].allSatisfy { source($0) == second })
    #expect(Array(packets[change]).rtpSequenceNumber == 0)
    // Whoever comes knows the key alone, and takes it that no number has wrapped.
    for (source, heard) in [(first, packets[..<change].suffix(1000)), (second, packets[change...].dropFirst(20))] {
      let receiver = try SecureReceiver(key, ssrc: UInt32(source))
      #expect(heard.count > 50 && heard.allSatisfy { receiver.open($0) != nil }, "\(heard.count) of \(source)")
    }
    let after = try description()
    #expect(after.attributes("crypto") == before.attributes("crypto") && after["m"] == before["m"])
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

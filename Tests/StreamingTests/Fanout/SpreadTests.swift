import Foundation
import Media
import Platform
import RTP
import Streaming
import TestSupport
import Testing

/// The spreading of the packets of large frames, by the clock of the kernel that received them.
///
/// A host that is held up only delays packets. So a paced packet is judged by the time before which it may not leave, and a frame
/// that leaves at once by the number of its messages.
@Suite(.serialized) struct SpreadTests {
  /// A frame of many packets, as it arrived.
  private struct LargeFrame {
    /// The times from the making of the picture to the arrival of each packet. The packets of one message, which the
    /// kernel splits, have the same.
    let arrivals: [Duration]
    /// The time from the making of the picture to that of the next one, which ends the pacing of this one.
    let next: Duration
    /// The version of its parameter sets.
    let version: UInt8?

    var span: Duration { (arrivals.max() ?? .zero) - (arrivals.min() ?? .zero) }
    var messages: Int { Set(arrivals).count }

    /// The packets that left before their time, if they are to leave evenly within `spread`.
    func early(_ spread: Duration) -> [Int] {
      arrivals.indices.filter { packet in
        // With the first one of its message, of up to eight.
        let due = spread.seconds * Double(packet - 7) / Double(arrivals.count)
        return arrivals[packet].seconds < min(due, next.seconds)
      }
    }
  }

  /// The frames with more than fifty packets, as they arrive until `isEnough` says so, or for a minute.
  private static func run(
    pacing: Double, changesEvery: Int? = nil, until isEnough: ([LargeFrame]) -> Bool
  ) throws -> [LargeFrame] {
    let (media, _) = try TestSocket.pair()
    // A hundred packets a key frame, against 7 of the usual frame at 1 Mbit/s.
    let encoder = try SizedEncoder(keyBytes: 60_000, bytes: 500, changesEvery: changesEvery)
    let running = try RunningPipeline(
      encoder, to: [StreamDestination(host: "127.0.0.1", port: media.port, maximumPacketSize: 600)], pacing: pacing,
      keyFrameInterval: 0.5)
    // All the time, since no socket keeps so much.
    let end = Date(timeIntervalSinceNow: 60)
    var datagrams: [TestSocket.Datagram] = []
    repeat {
      let pause = Date(timeIntervalSinceNow: 1)
      while Date() < pause, let datagram = media.next() { datagrams.append(datagram) }
    } while !isEnough(large(frames(of: datagrams), encoder.pictureTimes)) && Date() < end
    running.end()
    datagrams += media.drain()
    let figures = running.pipeline.statistics
    #expect(figures.destinations[0].lost == 0 && figures.destinations[0].framesDropped == 0)
    let frames = frames(of: datagrams)
    #expect(frames.allSatisfy { $0.last?.bytes[1] == 0x80 | 96 }, "whole frames, each ends with the marker")
    try #require(frames.count == encoder.pictureTimes.count, "each picture is told from the others by its place")
    return large(frames, encoder.pictureTimes)
  }

  private static func frames(of datagrams: [TestSocket.Datagram]) -> [[TestSocket.Datagram]] {
    var frames: [[TestSocket.Datagram]] = []
    for datagram in datagrams {
      if frames.last?.last?.bytes.rtpTimestamp == datagram.bytes.rtpTimestamp {
        frames[frames.count - 1].append(datagram)
      } else {
        frames.append([datagram])
      }
    }
    return frames
  }

  /// The large ones of `frames`, the first of all pictures, which were made at `times`. The last one of all, whose pacing
  /// ends with the stream, is left out.
  private static func large(_ frames: [[TestSocket.Datagram]], _ times: [Int64]) -> [LargeFrame] {
    zip(frames, zip(times, times.dropFirst())).filter { $0.0.count > 50 }.map { frame, times in
      let (made, next) = times
      // The STAP-A before the picture: its header, the length of the SPS and the SPS, whose last byte is the version.
      let first = frame[0].bytes
      let version = first.count > 20 && first[12] & 31 == 24 ? first[19] : nil
      return LargeFrame(
        arrivals: frame.map { Duration(nanoseconds: $0.arrival - made) }, next: Duration(nanoseconds: next - made),
        version: version)
    }
  }

  /// The key frames that begin with the parameter sets of the one before, and those that bring others. The first one is
  /// neither.
  private static func kinds(_ frames: [LargeFrame]) -> (usual: [LargeFrame], changes: [LargeFrame]) {
    var (usual, changes): ([LargeFrame], [LargeFrame]) = ([], [])
    for (former, frame) in zip(frames, frames.dropFirst()) {
      if frame.version == former.version { usual.append(frame) } else { changes.append(frame) }
    }
    return (usual, changes)
  }

  /// Checks that each of `frames` left at once.
  private static func expectBursts(_ frames: [LargeFrame]) {
    for frame in frames {
      // The parameter sets, and then messages of 64 packets, where a paced frame has such of 8.
      #expect(frame.messages <= 1 + (frame.arrivals.count + 63) / 64, "\(frame.arrivals)")
    }
    // Being held up only lengthens what leaves at once: the shortest shows that nothing else does.
    let spans = frames.map(\.span)
    #expect(spans.min() ?? .seconds(1) < .milliseconds(8), "\(spans)")
  }

  @Test func `paced, a key frame takes its part of the frame interval, but for the first of another encoder`() throws {
    let frames = try Self.run(pacing: 0.5, changesEvery: 40) {
      let (usual, changes) = Self.kinds($0)
      return usual.count >= 9 && changes.count >= 7
    }
    let (usual, changes) = Self.kinds(frames)
    try #require(usual.count >= 9 && changes.count >= 7, "\(frames)")
    let spread = Duration(seconds: FrameRate.thirty.interval.seconds * 0.5)
    for frame in usual {
      #expect(frame.messages >= frame.arrivals.count / 8)
      #expect(frame.early(spread).isEmpty, "\(frame.arrivals), next after \(frame.next)")
    }
    // The first packets do not wait for the last. A machine that is late sends what is due at once, so that not every frame shows it.
    #expect(usual.contains { $0.span > .milliseconds(8) }, "\(usual.map(\.span))")
    Self.expectBursts(changes)
  }

  @Test func `without pacing they leave at once`() throws {
    let frames = try Self.run(pacing: 0) { $0.count >= 6 }
    try #require(frames.count >= 4)
    // The kernel may begin to note times a little after it was asked to.
    Self.expectBursts(Array(frames.dropFirst()))
  }

  @Test(arguments: [0, 0.5])
  func `a large frame is offered whole where it is not paced, else in parts`(pacing: Double) throws {
    let transport = ScriptedTransport()
    let bench = try SendStageBench(heldLimit: 4, pacing: pacing, packetSize: 200)
    defer { bench.end() }
    let figures = bench.add(transport, number: 1)
    for count in 1...5 {
      bench.write(packets: 100)
      try #require(eventually { figures.current.frames == count })
    }
    bench.end()
    #expect(transport.wholeFrames == 5)
    // The first packets at once, and the others later: in one part where the machine is late.
    #expect(pacing == 0 ? transport.attempts == 5 : transport.attempts >= 10, "\(transport.attempts)")
  }
}

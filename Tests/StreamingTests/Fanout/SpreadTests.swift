import Foundation
import Media
import Platform
import RTP
import Streaming
import TestSupport
import Testing

/// The spreading of the packets of large frames, by the clock of the kernel that received them.
@Suite(.serialized) struct SpreadTests {
  /// A frame of many packets: the time from its first packet to its last, and the version of its parameter sets.
  private typealias Frame = (span: Duration, version: UInt8?, packets: Int)

  /// The frames with more than fifty packets, as they arrive until `isEnough` says so, or for a minute.
  private static func run(
    pacing: Double, changesEvery: Int? = nil, until isEnough: ([Frame]) -> Bool
  ) throws -> [Frame] {
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
    } while !isEnough(large(frames(of: datagrams))) && Date() < end
    running.end()
    datagrams += media.drain()
    let figures = running.pipeline.statistics
    #expect(figures.destinations[0].lost == 0 && figures.destinations[0].framesDropped == 0)
    let frames = frames(of: datagrams)
    #expect(frames.allSatisfy { $0.last?.bytes[1] == 0x80 | 96 }, "whole frames, each ends with the marker")
    return large(frames)
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

  private static func large(_ frames: [[TestSocket.Datagram]]) -> [Frame] {
    frames.filter { $0.count > 50 }.map { frame in
      let times = frame.map(\.arrival)
      // The STAP-A before the picture: its header, the length of the SPS and the SPS, whose last byte is the version.
      let first = frame[0].bytes
      let version = first.count > 20 && first[12] & 31 == 24 ? first[19] : nil
      return (Duration(nanoseconds: (times.max() ?? 0) - (times.min() ?? 0)), version, frame.count)
    }
  }

  /// The times of the key frames that begin with the parameter sets of the one before, and of those that bring others.
  /// The first one is neither.
  private static func spans(_ frames: [Frame]) -> (usual: [Duration], changes: [Duration]) {
    var (usual, changes): ([Duration], [Duration]) = ([], [])
    for (former, frame) in zip(frames, frames.dropFirst()) {
      if frame.version == former.version { usual.append(frame.span) } else { changes.append(frame.span) }
    }
    return (usual.sorted(), changes.sorted())
  }

  @Test func `paced, a key frame takes its part of the frame interval, but for the first of another encoder`() throws {
    func measure() throws -> (usual: [Duration], changes: [Duration]) {
      let frames = try Self.run(pacing: 0.5, changesEvery: 40) {
        let (usual, changes) = Self.spans($0)
        return usual.count >= 9 && changes.count >= 7
      }
      let (usual, changes) = Self.spans(frames)
      try #require(usual.count >= 9 && changes.count >= 7, "\(frames)")
      return (usual, changes)
    }
    var (usual, changes) = try measure()
    // A machine that holds up what leaves at once is asked again.
    for _ in 0..<2 where changes[changes.count / 3] * 2 >= usual[usual.count * 2 / 3] {
      (usual, changes) = try measure()
    }
    // Half of 33 ms. A machine that is late sends what is due at once, so that not every frame shows it; a third must. One that is
    // held up within a frame shows it without pacing, too, but not in every third frame.
    let paced = usual[usual.count * 2 / 3]
    #expect(paced > .milliseconds(8), "\(usual)")
    #expect(changes[changes.count / 3] * 2 < paced, "\(changes) \(usual)")
  }

  @Test func `without pacing they leave at once`() throws {
    func measure() throws -> [Duration] {
      let spans = try Self.run(pacing: 0) { $0.count >= 6 }.map(\.span).sorted()
      try #require(spans.count >= 4)
      return spans
    }
    var spans = try measure()
    // A machine that holds half of them up is asked again.
    for _ in 0..<2 where spans[spans.count / 2] >= .milliseconds(8) { spans = try measure() }
    #expect(spans[spans.count / 2] < .milliseconds(8), "\(spans)")
  }
}

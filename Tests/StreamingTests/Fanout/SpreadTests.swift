import Foundation
import Media
import Platform
import RTP
import TestSupport
import Testing

@testable import Streaming

/// The spreading of the packets of large frames, by the clock of the kernel that received them.
@Suite(.serialized) struct SpreadTests {
  /// The frames with more than `packets` packets that arrived within three seconds, each as the time from its first
  /// packet to its last, and whether it is a key frame.
  private static func run(
    pacing: Double, changesAt: Int? = nil
  ) throws -> [(span: Duration, version: UInt8?, packets: Int)] {
    let (media, _) = try TestSocket.pair()
    // A hundred packets a key frame, against 7 of the usual frame at 1 Mbit/s.
    let encoder = try SizedEncoder(keyBytes: 60_000, bytes: 500, changesAt: changesAt)
    let running = try RunningPipeline(
      encoder, to: [StreamDestination(host: "127.0.0.1", port: media.port, maximumPacketSize: 600)], pacing: pacing,
      keyFrameInterval: 0.5)
    // All the time, since no socket keeps so much.
    let end = Date(timeIntervalSinceNow: 3)
    var datagrams: [TestSocket.Datagram] = []
    while Date() < end, let datagram = media.next() { datagrams.append(datagram) }
    running.end()
    datagrams += media.drain()
    let figures = running.pipeline.statistics
    #expect(figures.destinations[0].lost == 0 && figures.destinations[0].framesDropped == 0)
    var frames: [[TestSocket.Datagram]] = []
    for datagram in datagrams {
      if frames.last?.last?.bytes.rtpTimestamp == datagram.bytes.rtpTimestamp {
        frames[frames.count - 1].append(datagram)
      } else {
        frames.append([datagram])
      }
    }
    #expect(frames.allSatisfy { $0.last?.bytes[1] == 0x80 | 96 }, "whole frames, each ends with the marker")
    return frames.filter { $0.count > 50 }.map { frame in
      let times = frame.map(\.arrival)
      // The STAP-A before the picture: its header, the length of the SPS and the SPS, whose last byte is the version.
      let first = frame[0].bytes
      let version = first.count > 20 && first[12] & 31 == 24 ? first[19] : nil
      return (Duration(nanoseconds: (times.max() ?? 0) - (times.min() ?? 0)), version, frame.count)
    }
  }

  @Test func `paced, a key frame takes its part of the frame interval, but for the first of another encoder`() throws {
    let frames = try Self.run(pacing: 0.5, changesAt: 40)
    try #require(frames.count >= 4)
    let change = try #require(frames.firstIndex { $0.version == 2 })
    // Half of 33 ms. A machine that is late sends what is due at once, so that not every frame shows it.
    let spans = frames.indices.filter { $0 != change && $0 > 0 }.map { frames[$0].span }
    let longest = try #require(spans.max())
    #expect(longest > .milliseconds(8), "\(spans)")
    #expect(frames[change].span < longest)
  }

  @Test func `without pacing they leave at once`() throws {
    let spans = try Self.run(pacing: 0).map(\.span).sorted()
    try #require(spans.count >= 4)
    #expect(spans[spans.count / 2] < .milliseconds(8), "\(spans)")
  }
}

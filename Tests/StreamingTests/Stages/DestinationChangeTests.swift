import Capture
import Foundation
import Media
import Platform
import RTP
import Streaming
import TestSupport
import Testing

/// Destinations that come and go while a pipeline runs.
@Suite(.serialized) struct DestinationChangeTests {
  @Test func `an added destination starts with a key frame, and a removed one gets BYE`() throws {
    let first = try TestSocket.pair()
    let second = try TestSocket.pair()
    let running = try RunningPipeline(
      try SizedEncoder(keyBytes: 3000, bytes: 500), to: [StreamDestination(host: "127.0.0.1", port: first.media.port)])
    let pipeline = running.pipeline
    #expect(eventually { pipeline.statistics.sent > 5 })
    // No key frame is due for a long time: it is asked for.
    let id = try pipeline.add(StreamDestination(host: "127.0.0.1", port: second.media.port))
    #expect(pipeline.destinations.map(\.destination.port) == [first.media.port, second.media.port])
    let begin = try #require(second.media.next())
    #expect(begin.bytes[12] & 31 == 24, "the parameter sets of a key frame")
    #expect(eventually { pipeline.statistics.destinations.last?.frames ?? 0 > 10 })
    #expect(pipeline.remove(id))
    #expect(!pipeline.remove(id))
    #expect(pipeline.statistics.destinations.count == 1)
    let last = try #require(second.control.first { $0.rtcpPackets.contains { $0.type == 203 } })
    let rest = second.media.drain()
    #expect((rest.last?.bytes[1] ?? 0) & 0x80 != 0, "the last packet of a frame")
    #expect(second.media.drain().isEmpty && second.control.drain().isEmpty)
    #expect(last.bytes.number(at: 4, bytes: 4) == UInt64(begin.bytes.rtpSource))
    running.end()
    let numbers = first.media.drain().map(\.bytes.rtpSequenceNumber)
    #expect(numbers.count > 15)
    #expect(zip(numbers, numbers.dropFirst()).allSatisfy { $1 == $0 &+ 1 })
  }

  @Test func `a destination in conflict with another is refused, and nothing changes`() throws {
    let port = try UDPPort.free()
    let pipeline = try Pipeline(
      source: try SyntheticCamera(size: PictureSize(width: 64, height: 64), frameRate: .thirty),
      encoder: try SizedEncoder(keyBytes: 10, bytes: 10),
      destinations: [StreamDestination(host: "127.0.0.1", port: port)], keyFrameInterval: Duration(seconds: 1))
    let refused: [(StreamDestination, String)] = [
      // The same, and the same by another name, of another kind.
      (StreamDestination(host: "127.0.0.1", port: port), "the same address"),
      (StreamDestination(host: "127.1", port: port, payload: .mp2t, multiplexesRTCP: true), "the same address"),
      // Its packets would come where the other's RTCP does, or its RTCP where the other's packets do.
      (StreamDestination(host: "127.0.0.1", port: port + 1), "RTCP of"),
      (StreamDestination(host: "127.0.0.1", port: port + 1, multiplexesRTCP: true), "RTCP of"),
      (StreamDestination(host: "127.0.0.1", port: port - 1), "RTCP of"),
    ]
    for (destination, text) in refused {
      let error = #expect(throws: StreamDestinationError.self, "\(destination)") { try pipeline.add(destination) }
      #expect(error?.kind == .usage && error?.description.contains(text) == true, "\(error?.description ?? "")")
    }
    #expect(pipeline.destinations.count == 1 && pipeline.statistics.destinations.count == 1)
    var taken = [
      StreamDestination(host: "127.0.0.1", port: port - 1, multiplexesRTCP: true),
      StreamDestination(host: "127.0.0.2", port: port),
    ]
    if hasIPv6 { taken.append(StreamDestination(host: "::1", port: port)) }
    let ids = try taken.map { try pipeline.add($0) }
    #expect(Set(ids).count == taken.count && pipeline.destinations.count == taken.count + 1)
    // Free again.
    for id in ids { #expect(pipeline.remove(id)) }
    for destination in taken { try pipeline.add(destination) }
  }

  @Test func `a stream has room for all sessions of RTSP, beside its destinations`() throws {
    // Not started: nothing is sent.
    let pipeline = try Pipeline(
      source: try SyntheticCamera(size: PictureSize(width: 64, height: 64), frameRate: .thirty),
      encoder: try SizedEncoder(keyBytes: 10, bytes: 10),
      destinations: [StreamDestination(host: "127.0.0.1", port: try UDPPort.free())],
      keyFrameInterval: Duration(seconds: 1))
    let transport = try InterleavedTransport(media: 0, control: 1) { _ in }
    // The most that --rtsp-sessions takes.
    let ids = try (0..<8192).map { try pipeline.admit(.interleaved(transport), name: "\($0)") { _ in } }
    try pipeline.add(StreamDestination(host: "127.0.0.2", port: try UDPPort.free()))
    // Each one's figures are its own, also where others have left before it.
    for number in stride(from: 0, to: ids.count, by: 3) { #expect(pipeline.remove(ids[number])) }
    let wrong = ids.indices.filter {
      pipeline.statistics(of: ids[$0])?.name != ($0.isMultiple(of: 3) ? nil : "\($0)")
    }
    #expect(wrong.isEmpty, "\(wrong.count), the first \(wrong.prefix(5))")
    let expected = 2 + ids.indices.count { !$0.isMultiple(of: 3) }
    #expect(pipeline.statistics.destinations.count == expected)
  }

  @Test func `packets that are too large for the way arrive whatever segmentation the kernel has`() throws {
    // 65,507 bytes are the most that UDP carries; they are fragments even on the loopback interface.
    for size in [200, 1400, 30_000, 65_507] {
      let (media, control) = try TestSocket.pair()
      let running = try RunningPipeline(
        try SizedEncoder(keyBytes: 70_000, bytes: 40_000),
        to: [StreamDestination(host: "127.0.0.1", port: media.port, maximumPacketSize: size)])
      var datagrams: [TestSocket.Datagram] = []
      let end = Date(timeIntervalSinceNow: 20)
      while datagrams.filter({ $0.bytes[1] & 0x80 != 0 }).count < 10, Date() < end, let next = media.next() {
        datagrams.append(next)
      }
      running.end()
      datagrams += media.drain()
      _ = control.drain()
      let numbers = datagrams.map(\.bytes.rtpSequenceNumber)
      let missing = zip(numbers, numbers.dropFirst()).reduce(0) { $0 + Int($1.1 &- $1.0 &- 1) }
      let figures = running.pipeline.statistics.destinations[0]
      #expect(figures.lost == 0 && figures.framesDropped == 0, "\(size)")
      // What this socket had no room for, while this test had no processor, was sent too.
      let dropped = try UDPPort.droppedDatagrams(media.port)
      #expect(missing <= dropped, "\(size): \(missing) missing, \(dropped) dropped")
      #expect(figures.packets == datagrams.count + dropped, "\(size): \(dropped) dropped")
      // Fragments are made no larger than their number needs.
      let largest = datagrams.map(\.bytes.count).max() ?? 0
      #expect(largest <= size && largest > min(size, 40_000) / 2)
    }
  }
}

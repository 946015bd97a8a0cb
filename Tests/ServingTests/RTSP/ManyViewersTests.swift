#if X264
  import Capture
  import Foundation
  import Media
  import Platform
  import Serving
  import Streaming
  import TestSupport
  import Testing

  /// As many viewers as a large house never has, in a process of their own: `make check-long`.
  @Suite(.serialized, .enabled(if: runsLong, "takes all processors: make check-long")) struct ManyViewersTests {
    /// One of those who watch, by UDP or within the connection.
    private final class Watcher {
      private let client: RTSPClient
      private let ports: DatagramPair?
      private var last: UInt16?
      /// Packets that came, and that are missing between them.
      private(set) var received = 0
      private(set) var missing = 0

      init(_ camera: ServedCamera, from address: String, overTCP: Bool) throws {
        // What this process does not get round to reading has room.
        client = try camera.client(from: address, receiveBuffer: 1 << 20)
        ports = overTCP ? nil : try DatagramPair(address)
        _ = try client.play(ports?.transport ?? PlayTests.interleaved)
      }

      func begin() { (received, missing) = (0, 0) }

      func drain() {
        client.pump(0)
        for packet in ports?.drain() ?? client.take(0) where packet.count > 4 {
          let number = UInt16(packet[2]) << 8 | UInt16(packet[3])
          if let last { missing += Int(number &- last &- 1) }
          last = number
          received += 1
        }
      }
    }

    /// A descriptor for each viewer's connection, two for its ports, and as many for the server's.
    private static func allowDescriptors(_ count: UInt) throws {
      var limit = rlimit()
      try #require(getrlimit(CInt(RLIMIT_NOFILE.rawValue), &limit) == 0)
      guard limit.rlim_cur < count else { return }
      limit.rlim_cur = min(count, limit.rlim_max)
      try #require(setrlimit(CInt(RLIMIT_NOFILE.rawValue), &limit) == 0)
      try #require(limit.rlim_cur == count, "this process may have \(limit.rlim_cur) descriptors")
    }

    @Test func `three hundred viewers by UDP and fifty within their connections play at once`() throws {
      try Self.allowDescriptors(4096)
      let directory = try TemporaryDirectory()
      let clip = try Y4MFile(path: try SlowReaderTests.noise(in: directory))
      let camera = try ServedCamera(source: clip, bitrate: 2_000_000) {
        $0.limit(sessions: 1000)
        // Nobody gives a sign of life here.
        $0.sessionSeconds = 600
      }
      var (overUDP, overTCP): ([Watcher], [Watcher]) = ([], [])
      for index in 0..<350 {
        let isOverTCP = index % 7 == 6
        // Each of ten addresses has 35 of them.
        let viewer = try Watcher(camera, from: "127.0.0.\(index % 10 + 1)", overTCP: isOverTCP)
        if isOverTCP { overTCP.append(viewer) } else { overUDP.append(viewer) }
        for viewer in overUDP + overTCP { viewer.drain() }
      }
      #expect(overUDP.count == 300 && overTCP.count == 50)
      #expect(try camera.server.statistics().playing == 350)
      for viewer in overUDP + overTCP { viewer.begin() }
      let missedBefore = camera.pipeline.missedFrames
      let begin = Instant.now()
      while (Instant.now() - begin).seconds < 10 {
        for viewer in overUDP + overTCP { viewer.drain() }
        usleep(2000)
      }
      let seconds = (Instant.now() - begin).seconds
      let missed = camera.pipeline.missedFrames - missedBefore
      func sums(_ viewers: [Watcher]) -> (received: Int, missing: Int) {
        viewers.reduce((0, 0)) { ($0.0 + $1.received, $0.1 + $1.missing) }
      }
      let (datagrams, interleaved) = (sums(overUDP), sums(overTCP))
      print(
        """
        in \(seconds) s, \(datagrams.received) packets by UDP, \(datagrams.missing) missing; \(interleaved.received) by TCP, \
        \(interleaved.missing) missing; \(missed) frames not sent in time
        """)
      let all = overUDP + overTCP
      #expect(all.allSatisfy { $0.received > 100 }, "\(all.map(\.received).min() ?? 0) packets at least")
      // The receivers are one thread here: what its sockets have no room for is theirs.
      #expect(datagrams.missing < datagrams.received / 100)
      #expect(missed < camera.pipeline.statistics.sent * 350 / 100)
      #expect(try camera.server.statistics().playing == 350)
    }
  }
#endif

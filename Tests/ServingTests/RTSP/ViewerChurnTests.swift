#if X264
  import Foundation
  import Media
  import Platform
  import Serving
  import Streaming
  import TestSupport
  import Testing

  /// RTSP viewers that come and go for minutes, in a process of their own: `make check-long`.
  @Suite(.serialized, .enabled(if: runsLong, "takes five minutes: make check-long")) struct ViewerChurnTests {
    /// One of a hundred who may watch.
    private final class Place {
      let address: String
      let ports: DatagramPair?
      private var client: RTSPClient?
      private var session: String?
      private(set) var received = 0
      private(set) var gaps = 0
      private var last: UInt16?

      init(_ index: Int) throws {
        // Ten of each address, which is below the limit.
        address = "127.0.0.\(index % 10 + 1)"
        ports = index % 2 == 0 ? try DatagramPair(address) : nil
      }

      var isPresent: Bool { client != nil }

      func join(_ port: Int) throws {
        let client = try RTSPClient(port: port, from: address)
        _ = ports?.drain()
        last = nil
        session = try client.play(ports?.transport ?? PlayTests.interleaved).setup.session
        self.client = client
      }

      /// Leaves as is proper, by closing alone, or by a reset.
      func leave(_ manner: Int) throws {
        guard let client, let session else { return }
        drain()
        // Over UDP, a session whose connection ends goes on until its time-out: its client may come back.
        if manner == 0 || ports != nil {
          #expect(try client.request("TEARDOWN", nil, ["Session: \(session)"]).status == 200)
        } else if manner == 1 {
          client.reset()
        }
        self.client = nil
      }

      func drain() {
        guard let client else { return }
        client.pump(0)
        for packet in ports?.drain() ?? client.take(0) where packet.count > 4 {
          let number = UInt16(packet[2]) << 8 | UInt16(packet[3])
          if let last, number != last &+ 1 { gaps += 1 }
          last = number
          received += 1
        }
      }
    }

    @Test func `a hundred viewers join and leave for five minutes, and nothing grows`() throws {
      let seconds = ProcessInfo.processInfo.environment["NIGHTJAR_LONG_SECONDS"].flatMap { Double($0) } ?? 300
      let camera = try ServedCamera()
      let places = try (0..<100).map { try Place($0) }
      var generator = SeededGenerator(seed: 6)
      var changes = 0
      var watch = GrowthWatch()
      let begin = Instant.now()
      var next = begin + Duration(seconds: 5)
      // Each round is 20 ms at least, so that there is an end to them.
      for _ in 0..<Int(seconds * 50) where (Instant.now() - begin).seconds < seconds {
        let place = places[Int.random(in: places.indices, using: &generator)]
        if place.isPresent {
          try place.leave(Int.random(in: 0..<3, using: &generator))
        } else {
          try place.join(camera.port)
        }
        changes += 1
        for place in places { place.drain() }
        usleep(20_000)
        guard Instant.now() >= next else { continue }
        next = .now() + Duration(seconds: 5)
        // With the same number of viewers each time: none.
        let latency = camera.pipeline.recentLatency().median
        let present = places.filter(\.isPresent)
        for place in present { try place.leave(0) }
        #expect(try camera.settles(sessions: 0))
        #expect(try eventually { try camera.server.statistics().connections == 0 })
        usleep(200_000)
        try watch.look(latency: latency)
        for place in present { try place.join(camera.port) }
      }
      let statistics = camera.pipeline.statistics
      let (received, gaps) = places.reduce((0, 0)) { ($0.0 + $1.received, $0.1 + $1.gaps) }

      let growth = try #require(watch.growth)
      print(
        """
        \(changes) joins and leaves in \((Instant.now() - begin).seconds) s, \(received) packets received, \(gaps) \
        gaps, \(statistics.sent) frames sent, \(statistics.dropped) dropped; \(growth)
        """)
      #expect(received > 0)
      #expect(growth.residentKiB.late - growth.residentKiB.early < 4096, "\(growth)")
      #expect(Set(growth.descriptors).count == 1, "\(growth.descriptors)")
      // Ten times as wide as what would be noticed: the machine has other work.
      #expect(growth.latency.late < growth.latency.early * 5 + 20_000, "\(growth)")
    }
  }
#endif

#if X264
  import Encoding
  import Foundation
  import Media
  import Platform
  import TestSupport
  import Testing

  import Capture
  import Streaming

  /// Viewers that come and go for minutes, in a process of their own: `make check-long`.
  @Suite(.serialized, .enabled(if: runsLong, "takes five minutes: make check-long")) struct DestinationChurnTests {
    /// A hundred places for viewers: three of four are there and read, the others refuse what comes.
    private final class Places {
      let destinations: [StreamDestination]
      private var sockets: [CInt] = []

      init(count: Int) throws {
        var destinations: [StreamDestination] = []
        while destinations.count < count {
          let port = try UDPPort.free()
          let shares = destinations.count % 5 == 0
          guard !destinations.contains(where: { $0.port == port }) else { continue }
          destinations.append(
            StreamDestination(
              host: "127.0.0.1", port: port, payload: destinations.count % 7 == 0 ? .mp2t : .h264,
              maximumPacketSize: destinations.count % 3 == 0 ? 1400 : 1200, multiplexesRTCP: shares))
          guard destinations.count % 4 != 0 else { continue }
          sockets.append(try loopbackSocket(port: port))
          if !shares { sockets.append(try loopbackSocket(port: port + 1)) }
        }
        self.destinations = destinations
      }

      deinit {
        for socket in sockets { close(socket) }
      }

      /// Takes what has arrived; how many datagrams.
      func drain() -> Int {
        var byte: UInt8 = 0
        var count = 0
        for socket in sockets {
          for _ in 0..<256 {
            guard recv(socket, &byte, 1, CInt(MSG_DONTWAIT)) >= 0 else { break }
            count += 1
          }
        }
        return count
      }
    }

    @Test func `a hundred viewers come and go for five minutes, and nothing grows`() throws {
      let duration = Duration(seconds: 300)
      let places = try Places(count: 100)
      let size = PictureSize(width: 640, height: 360)
      let camera = try SyntheticCamera(size: size, frameRate: .thirty)
      let configuration = EncoderSettings().configuration(
        size: size, frameRate: .thirty, bitrate: 1_000_000, color: .bt709, processors: 1)
      let encoder = try EncoderSelector.select(.x264, configuration, node: nil).encoder
      let pipeline = try Pipeline(
        source: camera, encoder: encoder, destinations: [], keyFrameInterval: Duration(seconds: 2), pacing: 0.25)
      try pipeline.start()
      var generator = SeededGenerator(seed: 5)
      var present: [Int: ViewerID] = [:]
      var (changes, received) = (0, 0)
      var watch = GrowthWatch()
      let begin = Instant.now()
      var next = begin + Duration(seconds: 5)

      // Each round is 20 ms at least, so that there is an end to them.
      for _ in 0..<Int(duration.seconds * 50) where Instant.now() - begin < duration {
        let index = Int.random(in: places.destinations.indices, using: &generator)
        if let id = present.removeValue(forKey: index) {
          #expect(pipeline.remove(id))
        } else {
          present[index] = try pipeline.add(places.destinations[index])
        }
        changes += 1
        received += places.drain()
        usleep(20_000)
        guard Instant.now() >= next else { continue }
        next = .now() + Duration(seconds: 5)
        // With the same number of viewers each time: none.
        for id in present.values { #expect(pipeline.remove(id)) }
        let latency = pipeline.recentLatency().median
        usleep(200_000)
        try watch.look(latency: latency)
        for index in present.keys { present[index] = try pipeline.add(places.destinations[index]) }
      }
      pipeline.stop()
      let outcome = pipeline.waitUntilEnd()
      guard case .stopped = outcome else {
        Issue.record("\(outcome)")
        return
      }

      let growth = try #require(watch.growth)
      let statistics = pipeline.statistics
      print(
        """
        \(changes) changes in \((Instant.now() - begin).seconds) s, \(received) datagrams received, \
        \(statistics.sent) frames sent, \(statistics.dropped) dropped; \(growth)
        """)
      #expect(received > 0)
      #expect(growth.residentKiB.late - growth.residentKiB.early < 4096, "\(growth)")
      #expect(Set(growth.descriptors).count == 1, "\(growth.descriptors)")
      // Ten times as wide as what would be noticed: the machine has other work.
      #expect(growth.latency.late < growth.latency.early * 5 + 20_000, "\(growth)")
    }
  }
#endif

#if X264
  import Foundation
  import Media
  import RTSPServer
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

    /// What is watched for growth, at one time.
    private struct Sample {
      let residentBytes: Int
      let descriptors: Int
      let latency: LatencySummary
    }

    private static func residentBytes() throws -> Int {
      let text = try String(contentsOfFile: "/proc/self/statm", encoding: .utf8)
      return try #require(Int(text.split(separator: " ")[1])) * Int(sysconf(CInt(_SC_PAGESIZE)))
    }

    private static func descriptors() throws -> Int {
      try FileManager.default.contentsOfDirectory(atPath: "/proc/self/fd").count
    }

    private static func median(_ values: some Collection<Int>) -> Int { values.sorted()[values.count / 2] }

    @Test func `a hundred viewers join and leave for five minutes, and nothing grows`() throws {
      let seconds = ProcessInfo.processInfo.environment["NIGHTJAR_LONG_SECONDS"].flatMap { Double($0) } ?? 300
      let camera = try ServedCamera()
      let places = try (0..<100).map { try Place($0) }
      var generator = SeededGenerator(seed: 6)
      var changes = 0
      var samples: [Sample] = []
      let begin = MediaTime.now()
      var next = begin + MediaTime(seconds: 5)
      // Each round is 20 ms at least, so that there is an end to them.
      for _ in 0..<Int(seconds * 50) where (MediaTime.now() - begin).seconds < seconds {
        let place = places[Int.random(in: places.indices, using: &generator)]
        if place.isPresent {
          try place.leave(Int.random(in: 0..<3, using: &generator))
        } else {
          try place.join(camera.port)
        }
        changes += 1
        for place in places { place.drain() }
        usleep(20_000)
        guard MediaTime.now() >= next else { continue }
        next = .now() + MediaTime(seconds: 5)
        // With the same number of viewers each time: none.
        let latency = camera.pipeline.recentLatency()
        let present = places.filter(\.isPresent)
        for place in present { try place.leave(0) }
        #expect(try camera.settles(sessions: 0))
        #expect(try eventually { try camera.server.statistics().connections == 0 })
        usleep(200_000)
        samples.append(
          Sample(residentBytes: try Self.residentBytes(), descriptors: try Self.descriptors(), latency: latency))
        for place in present { try place.join(camera.port) }
      }
      let statistics = camera.pipeline.statistics
      let (received, gaps) = places.reduce((0, 0)) { ($0.0 + $1.received, $0.1 + $1.gaps) }

      // The first fifth warms up: the heap, the sockets' memory, the encoder.
      let settled = samples.dropFirst(samples.count / 5)
      try #require(settled.count >= 8)
      let (early, late) = (settled.prefix(settled.count / 3), settled.suffix(settled.count / 3))
      let resident = (Self.median(early.map(\.residentBytes)), Self.median(late.map(\.residentBytes)))
      let latency = (
        Self.median(early.map { Int($0.latency.median.nanoseconds / 1000) }),
        Self.median(late.map { Int($0.latency.median.nanoseconds / 1000) })
      )
      print(
        """
        \(changes) joins and leaves in \((MediaTime.now() - begin).seconds) s, \(received) packets received, \(gaps) \
        gaps, \(statistics.sent) frames sent, \(statistics.dropped) dropped; first and last third of \(settled.count) \
        samples: resident memory \(resident.0 / 1024) and \(resident.1 / 1024) KiB, median latency \(latency.0) and \
        \(latency.1) µs; descriptors \(settled.map(\.descriptors).min() ?? 0) to \
        \(settled.map(\.descriptors).max() ?? 0)
        """)
      #expect(received > 0)
      #expect(resident.1 - resident.0 < 4 << 20, "\(settled.map { $0.residentBytes / 1024 })")
      #expect(Set(settled.map(\.descriptors)).count == 1, "\(settled.map(\.descriptors))")
      // Ten times as wide as what would be noticed: the machine has other work.
      #expect(latency.1 < latency.0 * 5 + 20_000, "\(settled.map { $0.latency.median.milliseconds })")
    }
  }
#endif

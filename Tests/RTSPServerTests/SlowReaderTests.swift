#if X264
  import Foundation
  import Media
  import RTSPServer
  import Streaming
  import TestSupport
  import Testing

  /// One viewer that takes far less than it gets, among others.
  @Suite(.serialized) struct SlowReaderTests {
    private static func residentBytes() throws -> Int {
      let text = try String(contentsOfFile: "/proc/self/statm", encoding: .utf8)
      return try #require(Int(text.split(separator: " ")[1])) * Int(sysconf(CInt(_SC_PAGESIZE)))
    }

    @Test func `a reader of 1 kB/s costs nine others nothing, and in the end itself`() throws {
      // Some hundred kB a second: what the kernel keeps for the slow one is soon full.
      let camera = try ServedCamera(size: PictureSize(width: 640, height: 360), rateControl: .constantQuantizer(4)) {
        $0.stallTime = MediaTime(seconds: 3)
      }
      var (overTCP, overUDP): ([RTSPClient], [(client: RTSPClient, ports: DatagramPair)]) = ([], [])
      for index in 0..<9 {
        let client = try camera.client()
        if index % 2 == 0 {
          _ = try client.play(PlayTests.interleaved)
          overTCP.append(client)
        } else {
          let ports = try DatagramPair()
          _ = try client.play(ports.transport)
          overUDP.append((client, ports))
        }
      }
      let slow = try camera.client(receiveBuffer: 4096)
      _ = try slow.play(PlayTests.interleaved)
      let name = "rtsp tcp"
      let id = try #require(camera.pipeline.statistics.destinations.last { $0.name.hasPrefix(name) }).id
      let before = try Self.residentBytes()
      var received = overUDP.map { _ in [Data]() }
      var most = 0
      var (isDropped, isGone) = (false, false)
      let begin = MediaTime.now()
      var nextRead = begin
      // Twelve seconds; each round is 2 ms at least.
      for _ in 0..<6000 where (MediaTime.now() - begin).seconds < 12 {
        for client in overTCP { client.pump(0) }
        for index in overUDP.indices { received[index] += overUDP[index].ports.drain() }
        usleep(2000)
        guard MediaTime.now() >= nextRead else { continue }
        nextRead = .now() + MediaTime(nanoseconds: 100_000_000)
        slow.pump(0, limit: 100)
        most = max(most, try Self.residentBytes() - before)
        let figures = camera.pipeline.statistics(of: id)
        isGone = figures == nil
        if let figures, figures.framesDropped > 0 { isDropped = true }
      }
      let bytes = camera.pipeline.statistics.destinations.map(\.bytes)
      #expect(isDropped || isGone, "\(bytes)")
      for client in overTCP {
        let stream = try ReceivedStream(client.take(0))
        #expect(stream.gaps == 0)
        #expect(stream.types.count > 60)
      }
      for packets in received {
        let stream = try ReceivedStream(packets)
        #expect(stream.gaps == 0)
        #expect(stream.types.count > 60)
      }
      for viewer in camera.pipeline.statistics.destinations where viewer.id != id {
        #expect(viewer.framesDropped == 0 && viewer.lost == 0, "\(viewer)")
      }
      // What the test itself keeps, some of it in arrays twice as large as it is.
      let kept = 3 * camera.pipeline.statistics.destinations.reduce(0) { $0 + $1.bytes }
      #expect(most < kept + 16 << 20, "\(most >> 10) KiB, of which \(kept >> 10) may be the test's")
    }
  }
#endif

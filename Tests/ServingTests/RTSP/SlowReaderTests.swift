#if X264
  import Capture
  import Foundation
  import Media
  import Platform
  import RTP
  import Serving
  import Streaming
  import TestSupport
  import Testing

  /// One viewer that takes far less than it gets, among others.
  @Suite(.serialized) struct SlowReaderTests {
    /// A clip whose pictures take all the bits that there are.
    static func noise(in directory: TemporaryDirectory) throws -> String {
      let (width, height) = (320, 240)
      var generator = SeededGenerator(seed: 7)
      var data = Data("YUV4MPEG2 W\(width) H\(height) F30:1 Ip C420jpeg\n".utf8)
      for _ in 0..<10 {
        data += Data("FRAME\n".utf8) + generator.bytes(width * height) + Data(repeating: 128, count: width * height / 2)
      }
      try data.write(to: directory.url.appending(path: "noise.y4m"))
      return directory.path("noise.y4m")
    }

    @Test func `a reader of 1 kB/s costs nine others nothing, and in the end itself`() throws {
      for _ in 0..<2 where try expectNoCost(isLast: false) { return }
      #expect(try expectNoCost(isLast: true))
    }

    /// Reads as ten viewers, one of them slowly. Returns `false`, with nothing judged, where the others missed too much: in this run, a
    /// machine may have held a thread of the server up for two of four seconds. The last run is judged in any case.
    private func expectNoCost(isLast: Bool) throws -> Bool {
      // A quarter of a megabyte a second: what the kernel keeps for the slow one is soon full.
      let directory = try TemporaryDirectory()
      let clip = try Y4MFile(path: try Self.noise(in: directory))
      let camera = try ServedCamera(source: clip, bitrate: 2_000_000) {
        $0.stallTime = Duration(seconds: 3)
      }
      var (overTCP, overUDP): ([RTSPClient], [(client: RTSPClient, ports: DatagramPair)]) = ([], [])
      for index in 0..<9 {
        // What this process does not get round to reading has room.
        let client = try camera.client(receiveBuffer: 4 << 20)
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
      let before = try Footprint.residentBytes()
      var received = overUDP.map { _ in [Data]() }
      var most = 0
      var (isDropped, isGone) = (false, false)
      let begin = Instant.now()
      var nextRead = begin
      // The slow one has lost frames or its connection, and the others have seen more than enough; each round is 2 ms at least.
      func isOver() -> Bool { (isDropped || isGone) && (Instant.now() - begin).seconds > 4 }
      for _ in 0..<15_000 where !isOver() {
        for client in overTCP { client.pump(0) }
        for index in overUDP.indices { received[index] += overUDP[index].ports.drain() }
        usleep(2000)
        guard Instant.now() >= nextRead else { continue }
        nextRead = .now() + Duration.milliseconds(100)
        slow.pump(0, limit: 100)
        most = max(most, try Footprint.residentBytes() - before)
        let figures = camera.pipeline.statistics(of: id)
        isGone = figures == nil
        if let figures, figures.framesDropped > 0 { isDropped = true }
      }
      let viewers = camera.pipeline.statistics.destinations
      let others = viewers.filter { $0.id != id }
      let isHeldUp = others.contains { $0.name.hasPrefix(name) && $0.framesDropped > $0.frames / 4 }
      if isHeldUp || others.count < 9, !isLast { return false }
      #expect(isDropped || isGone, "\(viewers.map(\.bytes))")
      #expect(others.count == 9)
      // What a machine does not let the server write to a connection in time is told, and is not much.
      for viewer in others {
        let limit = viewer.name.hasPrefix("rtsp tcp") ? viewer.frames / 4 : 0
        #expect(viewer.framesDropped <= limit && viewer.lost == 0, "\(viewer)")
      }
      let missed = others.map(\.framesDropped).max() ?? 0
      for packets in overTCP.map({ $0.take(0) }) {
        #expect(packets.count > 60)
        #expect(try ReceivedStream(packets).gaps <= missed)
      }
      for packets in received {
        #expect(packets.count > 60)
        #expect(try ReceivedStream(packets).gaps == 0)
      }
      // What the test itself keeps, some of it in arrays twice as large as it is.
      let kept = 3 * viewers.reduce(0) { $0 + $1.bytes }
      #expect(most < kept + 16 << 20, "\(most >> 10) KiB, of which \(kept >> 10) may be the test's")
      return true
    }

    /// All that waits for a viewer is delay: no more than three frames, wherever in this machine they are, and what the
    /// viewer itself has taken.
    @Test func `a viewer that reads nothing for a while has few frames to catch up with`() throws {
      let directory = try TemporaryDirectory()
      let camera = try ServedCamera(source: try Y4MFile(path: try Self.noise(in: directory)), bitrate: 2_000_000)
      let client = try camera.client(receiveBuffer: 4096)
      _ = try client.play(PlayTests.interleaved)
      #expect(client.take(5).count >= 5)
      let id = try #require(camera.pipeline.statistics.destinations.first).id
      // Two seconds of pictures that find no room.
      #expect(eventually { (camera.pipeline.statistics(of: id)?.framesDropped ?? 0) > 60 })
      var times: [UInt32] = []
      let deadline = Date(timeIntervalSinceNow: 30)
      // From the first picture on that came after the gap, all that waited has been read.
      func gap() -> Int? { times.indices.dropFirst().first { times[$0] &- times[$0 - 1] > 90_000 } }
      while gap() == nil, Date() < deadline {
        for packet in client.take(1) {
          let time = packet.dropFirst(4).prefix(4).reduce(UInt32(0)) { $0 << 8 | UInt32($1) }
          if times.last != time { times.append(time) }
        }
      }
      let waited = try #require(gap(), "\(times)")
      #expect(waited <= 9, "\(waited) frames of \(times)")
    }

    /// Returns the TCP port that `name` tells, which is `getsockname` or `getpeername` of a socket; nil where it tells none.
    private static func port(
      _ name: (UnsafeMutablePointer<sockaddr>, UnsafeMutablePointer<socklen_t>) -> Int32
    ) -> Int? {
      var address = sockaddr_in()
      var length = socklen_t(MemoryLayout<sockaddr_in>.size)
      let result = withUnsafeMutablePointer(to: &address) {
        $0.withMemoryRebound(to: sockaddr.self, capacity: 1) { name($0, &length) }
      }
      return result == 0 && address.sin_family == AF_INET ? Int(UInt16(bigEndian: address.sin_port)) : nil
    }

    /// The pictures that the kernel holds for a viewer are delay. tcp(7) has the mark that limits them.
    @Test func `the kernel is asked to hold no more than one picture that it has not sent`() throws {
      let camera = try ServedCamera()
      let client = try camera.client()
      #expect(try client.request("OPTIONS").status == 200)
      // The server's end of the connection is this process's, too.
      let sockets = try FileManager.default.contentsOfDirectory(atPath: "/proc/self/fd").compactMap { Int32($0) }
      let accepted = sockets.filter { socket in
        Self.port { getsockname(socket, $0, $1) } == camera.port && Self.port { getpeername(socket, $0, $1) } != nil
      }
      #expect(accepted.count == 1)
      let socket = try #require(accepted.first)
      var (mark, size) = (Int32(0), socklen_t(MemoryLayout<Int32>.size))
      #expect(getsockopt(socket, Int32(IPPROTO_TCP), TCP_NOTSENT_LOWAT, &mark, &size) == 0)
      #expect(mark == 16_384)
    }

    @Test func `bytes that TLS holds back for a slow viewer count as waiting`() throws {
      let directory = try TemporaryDirectory()
      let secure = try SecureCamera(source: try Y4MFile(path: try Self.noise(in: directory)), bitrate: 2_000_000)
      let client = try secure.client()
      _ = try client.play(PlayTests.interleaved)
      #expect(client.take(5).count >= 5)
      let pipeline = secure.camera.pipeline
      let id = try #require(pipeline.statistics.destinations.first).id
      #expect(eventually(within: 60) { (pipeline.statistics(of: id)?.framesDropped ?? 0) > 60 })
    }

    @Test func `to a viewer that reads late, the answer to PAUSE comes after the last picture, which is whole`() throws
    {
      let directory = try TemporaryDirectory()
      let clip = try Y4MFile(path: try Self.noise(in: directory))
      let camera = try ServedCamera(source: clip, bitrate: 20_000_000)
      let client = try camera.client(receiveBuffer: 4096)
      let session = "Session: \(try #require(try client.play(PlayTests.interleaved).setup.session))"
      let pipeline = camera.pipeline
      let id = try #require(pipeline.statistics.destinations.first).id
      // It reads nothing, and misses pictures.
      try #require(eventually(within: 60) { (pipeline.statistics(of: id)?.framesDropped ?? 0) > 0 })
      client.send((client.text("GET_PARAMETER", nil, [session]) + client.text("PAUSE", nil, [session])).utf8)
      let replies = [try client.reply(), try client.reply()]
      #expect(replies.map(\.status) == [200, 200])
      // This is answered after whatever was sent before it.
      _ = try client.request("OPTIONS")
      let count = replies[1].packetsBefore
      #expect(client.packets.dropFirst(count).allSatisfy { $0.channel != 0 })
      let last = try #require(client.packets.prefix(count).last { $0.channel == 0 }).bytes
      let isWhole = try last.withUnsafeBytes { try RTPPacket(parsing: $0).header.marker }
      #expect(isWhole)
    }

    @Test(arguments: [false, true])
    func `a viewer that takes nothing goes, whatever it sends, and the log has it once`(overTLS: Bool) throws {
      let directory = try TemporaryDirectory()
      // What lies between the server and a client of TLS takes more to fill.
      let bitrate = overTLS ? 8_000_000 : 2_000_000
      let secure = try SecureCamera(source: try Y4MFile(path: try Self.noise(in: directory)), bitrate: bitrate) {
        $0.stallTime = Duration(seconds: 2)
      }
      let camera = secure.camera
      let port = camera.server.listeners[1].port
      let client = try overTLS ? secure.client() : RTSPClient(port: port, receiveBuffer: 4096)
      let session = try #require(try client.play(PlayTests.interleaved).setup.session)
      // One that takes what comes stays.
      let other = try RTSPClient(port: port, receiveBuffer: 4 << 20)
      _ = try other.play(PlayTests.interleaved)
      let report: [UInt8] = [0x80, 201, 0, 1, 1, 2, 3, 4]
      var rounds = 0
      #expect(
        try eventually(within: 60) {
          // All that has come, also where a round takes long.
          for _ in 0..<32 { other.pump(0) }
          rounds += 1
          if rounds % 25 == 0 {
            client.send(client.text("GET_PARAMETER", nil, ["Session: \(session)"]).utf8, within: 0.1)
            client.send(channel: 1, report)
          }
          return try camera.server.statistics().connections == 1
        })
      #expect(try other.request("OPTIONS").status == 200)
      let told = camera.server.events.take()
      let counts = told.compactMap { event in
        if case .closed(_, "a viewer that reads nothing", let count) = event { count } else { nil }
      }
      #expect(counts == [1], "\(told)")
      #expect(
        RTSPServerEvent.closed(address: "a", reason: "a viewer that reads nothing", count: 1).description
          == "a connection from a closed: a viewer that reads nothing")
    }
  }
#endif

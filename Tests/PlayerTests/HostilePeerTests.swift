#if X264
  import CLinux
  import Foundation
  import Platform
  import TestSupport
  import Testing

  /// Packets that anybody on the network can send to the browsers' port, beside somebody who watches and must not
  /// notice.
  @Suite(.serialized) struct HostilePeerTests {
    private let program: WatchedProgram
    private let port: UInt16

    init() throws {
      port = try UDPPort.free()
      program = try WatchedProgram(["--webrtc-port", "\(port)"])
    }

    /// The output of peer.py.
    private struct Told: Decodable {
      let frames: [String: Int]
      /// The packets that got lost, but for those that the peer's own sockets had no room for while it got no
      /// processor.
      let lost: Int?
      let gap: Double
    }

    /// Watches by aiortc for six seconds and 21 pictures while `attack` runs again and again, and until it returns true.
    private func watch(_ attack: () throws -> Bool) throws -> Told {
      let enough = program.directory.path("enough")
      let script = URL(fileURLWithPath: #filePath).deletingLastPathComponent().path + "/Clients/peer.py"
      let peer = try Subprocess(
        ["/usr/bin/python3", script, program.url("/whep"), "seconds=6", "video=21", "until=\(enough)"],
        in: program.directory)
      defer { peer.send(SIGKILL) }
      // The viewer's checks and handshake are in the flood as well.
      while peer.isRunning {
        if try attack() { _ = try program.directory.write([], as: "enough") }
      }
      let result = try peer.wait(limit: 60)
      #expect(result.status == 0, "\(result.error.suffix(3000)) \(program.process.errorSoFar)")
      return try JSONDecoder().decode(Told.self, from: result.output)
    }

    private func check(_ told: Told) {
      #expect(told.lost == 0 && told.frames["video", default: 0] > 20, "\(told) \(program.process.errorSoFar)")
      #expect(program.process.isRunning)
    }

    /// A check for a user name, whose integrity is none.
    private static func check(_ name: String, _ generator: inout SeededGenerator) -> [UInt8] {
      func attribute(_ type: UInt16, _ value: [UInt8]) -> [UInt8] {
        let head = [UInt8(type >> 8), UInt8(type & 255), UInt8(value.count >> 8), UInt8(value.count & 255)]
        return head + value + [UInt8](repeating: 0, count: (4 - value.count % 4) % 4)
      }
      let body =
        attribute(0x0006, Array(name.utf8)) + attribute(0x0024, [1, 2, 3, 4]) + attribute(0x802a, generator.bytes(8))
        + attribute(0x0025, []) + attribute(0x0008, generator.bytes(20))
      return [0, 1, UInt8(body.count >> 8), UInt8(body.count & 255), 0x21, 0x12, 0xa4, 0x42] + generator.bytes(12)
        + body
    }

    /// Posts offers of a browser that never sends a packet; the statuses, and the last answer.
    private func offers(_ count: Int) throws -> (statuses: [Int: Int], answer: String) {
      let file = program.directory.path("offer")
      try String(contentsOf: Self.offer, encoding: .utf8).write(toFile: file, atomically: false, encoding: .utf8)
      let answer = program.directory.path("answer")
      let result = try Subprocess.run(
        [
          "curl", "-sSk", "--max-time", "100", "-H", "Content-Type: application/sdp", "--data-binary", "@\(file)", "-o",
          answer, "-w", "%{http_code}\n", program.url("/whep") + "?[1-\(count)]",
        ], in: program.directory)
      let statuses = result.outputText.split(separator: "\n").compactMap { Int($0) }
      return (
        Dictionary(statuses.map { ($0, 1) }, uniquingKeysWith: +), try String(contentsOfFile: answer, encoding: .utf8)
      )
    }

    private static let offer = URL(fileURLWithPath: #filePath).deletingLastPathComponent()
      .deletingLastPathComponent().appending(path: "WebRTCTests/Offers/chromium.sdp")

    @Test func `a flood of checks, of handshakes and of noise keeps nobody from watching`() throws {
      // HTTPS is there a moment before the browsers' port is.
      var answered: Substring?
      _ = try eventually {
        answered = try offers(1).answer.firstMatch(of: /a=ice-ufrag:(\S+)/)?.output.1
        return answered != nil
      }
      let fragment = try #require(answered, "\(program.process.errorSoFar)")
      var generator = SeededGenerator(seed: 7)
      let kinds: [[UInt8]] = [
        Self.check("nobodyis:here", &generator), Self.check("\(fragment):mQ1c", &generator),
        [22, 254, 253, 0, 0, 0, 0, 0, 0, 0, 0, 0, 100] + generator.bytes(100), [0x80, 200] + generator.bytes(60),
        [0, 1] + generator.bytes(30), generator.bytes(1400), [],
      ]
      let socket = socket(AF_INET, Int32(SOCK_DGRAM.rawValue), 0)
      defer { close(socket) }
      var sent = 0
      let begun = Instant.now()
      let told = try watch {
        for _ in 0..<200 {
          send(kinds[sent % kinds.count], by: socket)
          sent += 1
        }
        // Forty a millisecond. A flood without a pause overflows the socket of a program that is held up, whatever it
        // does.
        usleep(5000)
        return true
      }
      check(told)
      let rate = Double(sent) / (Instant.now() - begun).seconds
      #expect(rate > 1000, "\(rate) datagrams a second")
    }

    @Test func `half-open sessions in numbers cost bounded memory, and other connections nothing`() throws {
      func resident() throws -> Int {
        let text = try KernelFile.text("/proc/\(program.process.identifier)/status")
        return try #require(text.firstMatch(of: /VmRSS:\s+(\d+) kB/).flatMap { Int($0.output.1) })
      }
      var (statuses, before, after): ([Int: Int], Int, Int) = ([:], 0, 0)
      var rounds = 0
      var (first, last) = (Instant.zero, Instant.zero)
      let told = try watch {
        // The viewer has the same address, whose half-open sessions are limited.
        guard rounds < 2, try program.viewerKinds().contains("webrtc") else {
          usleep(100_000)
          return rounds == 2
        }
        defer { rounds += 1 }
        // The first round warms the program up.
        if rounds == 0 { first = .now() } else { before = try resident() }
        for (status, count) in try offers(rounds == 0 ? 50 : 500).statuses { statuses[status, default: 0] += count }
        (after, last) = (try resident(), .now())
        return rounds == 1
      }
      check(told)
      // A session of which nothing is heard leaves its place to another after 20 s: a busy host takes longer for all offers.
      let places = 16 * (1 + Int((last - first).seconds / 20))
      #expect((16...places).contains(statuses[201, default: 0]), "\(statuses), places: \(places)")
      #expect(statuses[429, default: 0] + statuses[201, default: 0] == 550, "\(statuses)")
      #expect(after - before < 20_000, "\(before) KiB before, \(after) KiB after")
    }

    @Test func `TCP connections with noise, with too much, or without a word end, and leave the others alone`() throws {
      var generator = SeededGenerator(seed: 9)
      let noise: [[UInt8]] = [
        [], [0], [0xff, 0xff] + generator.bytes(100), [0, 4, 1, 2, 3, 4],
        [0, 80] + Self.check("nobodyis:here", &generator),
        Array("GET / HTTP/1.1\r\n\r\n".utf8), [0, 100] + generator.bytes(50),
      ]
      var (opened, ended) = (0, 0)
      let told = try watch {
        for bytes in noise {
          guard let socket = loopbackConnection(port: port) else { continue }
          opened += 1
          _ = Foundation.send(socket, bytes, bytes.count, Int32(MSG_NOSIGNAL))
          var item = pollfd(fd: socket, events: Int16(POLLIN), revents: 0)
          // Nothing is ever answered.
          if poll(&item, 1, 20) > 0 {
            var byte: UInt8 = 0
            #expect(recv(socket, &byte, 1, 0) <= 0)
            ended += 1
          }
          close(socket)
        }
        return opened > 0 && ended > 0
      }
      check(told)
      #expect(opened > 0 && ended > 0)
      // Silent ones are limited in number and in time.
      let silent = (0..<100).compactMap { _ in loopbackConnection(port: port) }
      defer { for socket in silent { close(socket) } }
      func open() -> Int {
        silent.count { socket in
          var byte: UInt8 = 0
          return recv(socket, &byte, 1, Int32(MSG_DONTWAIT)) < 0 && errno == EAGAIN
        }
      }
      #expect(eventually { open() <= 32 }, "\(open())")
      #expect(eventually(within: 100) { open() == 0 }, "\(open())")
    }

    private func send(_ bytes: [UInt8], by socket: Int32) {
      _ = withLoopbackAddress(port) { sendto(socket, bytes, bytes.count, 0, $0, $1) }
    }
  }
#endif

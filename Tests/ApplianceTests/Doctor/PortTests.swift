import Appliance
import Foundation
import TestSupport
import Testing

/// The program in the way at a port: by address and family, not by the port alone.
@Suite(.serialized) struct PortTests {
  private static let small = ["--source", "test", "--size", "320x240", "--fps", "15"]
  private let directory: TemporaryDirectory

  init() throws { directory = try TemporaryDirectory() }

  /// A program that listens at one address, and the port, which is the test's own. What starts it has signals blocked, which it
  /// would inherit.
  private func listener(
    _ address: String, port: String? = nil, family: String = "AF_INET", before: String = ""
  ) throws -> (program: Subprocess, port: String) {
    let port = try port ?? "\(TCPPort.free())"
    let program = try Subprocess(
      [
        "python3", "-c",
        """
        import signal,socket,sys,time
        signal.pthread_sigmask(signal.SIG_SETMASK,[])
        s=socket.socket(socket.\(family)); \(before)
        s.bind((sys.argv[1],int(sys.argv[2]))); s.listen(); print(s.getsockname()[1],flush=True); time.sleep(600)
        """, address, port,
      ], in: directory)
    #expect(eventually { program.outputSoFar.contains("\n") || !program.isRunning }, "\(program.errorSoFar)")
    return (program, program.outputSoFar.trimmingCharacters(in: .newlines))
  }

  private func doctor(rtsp: String, own: [String] = []) throws -> DoctorReport {
    try DoctorReport(Self.small + ["--rtsp", rtsp], own: own, in: directory)
  }

  private static let lastPorts: [String] =
    ["127.0.0.1:65535", "127.0.0.1:65534"] + (hasIPv6 ? ["[::1]:65535"] : [])

  @Test(arguments: lastPorts)
  func `the last port has another below it`(place: String) throws {
    #expect(try doctor(rtsp: place).has("port"))
    let isIPv4 = !place.hasPrefix("[")
    let port = String(place.suffix(5))
    let holder = try listener(isIPv4 ? "127.0.0.1" : "::1", port: port, family: isIPv4 ? "AF_INET" : "AF_INET6")
    defer { holder.program.send(SIGKILL) }
    let held = try #require(try doctor(rtsp: place)["port-held"])
    let advice = try #require(held.mends.last?.advice)
    let other = try #require(advice.firstMatch(of: /rtsp = "([^"]+)"/)?.output.1, "\(held)")
    #expect(other != place)
    #expect(try doctor(rtsp: String(other)).has("port"))
  }

  @Test func `a program that listens at another address is left alone`() throws {
    let one = try listener("127.0.0.2")
    defer { one.program.send(SIGKILL) }
    let two = try listener("127.0.0.3", port: one.port)
    defer { two.program.send(SIGKILL) }
    let held = try #require(try doctor(rtsp: "127.0.0.2:\(one.port)")["port-held"])
    #expect(held.commands == ["kill \(one.program.identifier)"], "\(held)")
    // Another family too.
    if hasIPv6 { #expect(try doctor(rtsp: "[::1]:\(one.port)").has("port")) }
    #expect(try runMend(held.commands[0], in: directory).status == 0)
    #expect(try one.program.wait(limit: 30).status == SIGTERM)
    #expect(try doctor(rtsp: "127.0.0.2:\(one.port)").has("port"))
  }

  @Test(.enabled(if: hasIPv6, "needs IPv6"))
  func `all addresses of IPv6 are those of IPv4 too, unless the socket says otherwise`() throws {
    let both = try listener("::", family: "AF_INET6", before: "s.setsockopt(41,26,0)")
    defer { both.program.send(SIGKILL) }
    let held = try #require(try doctor(rtsp: "127.0.0.1:\(both.port)")["port-held"])
    #expect(held.commands == ["kill \(both.program.identifier)"], "\(held)")
    let only = try listener("::", family: "AF_INET6", before: "s.setsockopt(41,26,1)")
    defer { only.program.send(SIGKILL) }
    #expect(try doctor(rtsp: "127.0.0.1:\(only.port)").has("port"))
    #expect(try doctor(rtsp: "[::1]:\(only.port)").has("port-held"))
  }

  @Test func `the browsers' port is examined for UDP and for TCP`() throws {
    let port = try UDPPort.free()
    func held(by kind: String) throws -> DoctorReport.Finding? {
      let (program, place) = try listener(
        "127.0.0.1", port: "\(port)",
        before: kind == "UDP port" ? "s=type('U',(socket.socket,),{'listen':lambda s:0})(type=2)" : "")
      defer { program.send(SIGKILL) }
      #expect(place == "\(port)", "\(program.errorSoFar)")
      let report = try DoctorReport(
        Self.small + ["--https", "127.0.0.1:\(port + 1)", "--webrtc-port", "\(port)"], in: directory)
      let found = report["port-held"]
      #expect(
        found?.text
          == "webrtc-port at 127.0.0.1 \(kind) \(port): python3 (process \(program.identifier)) listens there",
        "\(report.findings)")
      return found
    }
    for kind in ["UDP port", "port"] {
      let found = try #require(try held(by: kind))
      let advice = try #require(found.mends.last?.advice)
      #expect(advice.firstMatch(of: /webrtc-port = \d+$/) != nil, "\(advice)")
    }
  }

  @Test func `an address that this host lacks is reported`() throws {
    let users = directory.path("users")
    let hash = String(repeating: "a", count: 64)
    try Data("bob:SHA-256=\(hash)\n".utf8).write(to: URL(fileURLWithPath: users))
    #expect(chmod(users, 0o600) == 0)
    // Of RFC 5737, and nobody's.
    let options = Self.small + ["--users", users, "--rtsp"]
    let report = try DoctorReport(options + ["192.0.2.1:18554"], in: directory)
    let absent = try #require(report["port-address"], "\(report.findings)")
    #expect(absent.status == "warning")
    #expect(try runMend(try #require(absent.commands.first), in: directory).outputText.contains("127.0.0.1"))
    #expect(try !DoctorReport(options + ["127.0.0.1:18554"], in: directory).has("port-address"))
  }

  #if X264
    @Test func `a program beside the running stream is none of the stream's`() throws {
      let foreign = try listener("127.0.0.2")
      defer { foreign.program.send(SIGKILL) }
      let socket = directory.path("control")
      let stream = try Subprocess(
        [nightjarPath, "stream", "--config", "none", "--control", socket] + Self.small
          + ["--rtsp", "127.0.0.4:\(foreign.port)"], in: directory)
      defer { stream.send(SIGKILL) }
      #expect(eventually { stream.errorSoFar.contains("rtsp://") || !stream.isRunning }, "\(stream.errorSoFar)")
      let own = ["--socket", socket]
      let running = try doctor(rtsp: "127.0.0.4:\(foreign.port)", own: own)
      #expect(
        running["port"]?.text == "rtsp at 127.0.0.4 port \(foreign.port): the running stream's", "\(running.findings)")
      let held = try #require(try doctor(rtsp: "127.0.0.2:\(foreign.port)", own: own)["port-held"])
      #expect(held.commands == ["kill \(foreign.program.identifier)"], "\(held)")
    }
  #endif

  @Test func `sockets that listen are found in the kernel's table, and no others`() throws {
    let (ipv4, ipv6) = (directory.path("tcp"), directory.path("tcp6"))
    let rest = "00000000:00000000 00:00000000 00000000     0        0"
    try Data(
      """
        sl  local_address rem_address   st tx_queue rx_queue tr tm->when retrnsmt   uid  timeout inode
         0: 0100007F:216A 00000000:0000 0A \(rest) 4711 1 0000 100 0 0 10 0
         1: 0100007F:216A 0100007F:9C40 01 \(rest) 4712 1 0000 100 0 0 10 0
         2: 0100007F:216B 00000000:0000 0A \(rest) 4713 1 0000 100 0 0 10 0
      nonsense

      """.utf8
    ).write(to: URL(fileURLWithPath: ipv4))
    let none = String(repeating: "0", count: 32)
    try Data(
      """
         0: \(none):216A \(none):0000 0A \(rest) 5711 1 0000 100 0 0 10 0
         1: 0000000000000000FFFF00000200007F:216A \(none):0000 0A \(rest) 5712 1 0000 100 0 0 10 0

      """.utf8
    ).write(to: URL(fileURLWithPath: ipv6))
    func inodes(_ address: String, _ port: Int = 8554) throws -> [String] {
      let address = try #require(ListeningAddress(address))
      return SocketTableEntry.inTheWay(of: address, port: port, tables: [ipv4, ipv6, directory.path("none")])
        .map(\.inode)
    }
    #expect(try inodes("127.0.0.1") == ["4711"] && inodes("127.0.0.2") == ["5712"] && inodes("127.0.0.3") == ["5711"])
    #expect(try inodes("0.0.0.0") == ["4711", "5712"] && inodes("::1") == ["5711"] && inodes("::") == ["5711"])
    #expect(try inodes("127.0.0.1", 8555) == ["4713"] && inodes("127.0.0.1", 8556).isEmpty)
    #expect(ListeningAddress("127.0.0.1:1") == nil && ListeningAddress("") == nil)
  }
}

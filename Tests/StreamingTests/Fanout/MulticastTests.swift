import CLinux
import Foundation
import Glibc
import Media
import Platform
import RTP
import Streaming
import TestSupport
import Testing

/// Groups on the loopback interface, with a receiver of the test's own.
@Suite(.serialized) struct MulticastTests {
  /// A member of a group, at one port.
  final class Member {
    private let socket: FileDescriptor
    private var descriptor: Int32 { socket.number }
    private let group: SocketAddress
    private let interface: UInt32

    init(_ group: String, port: UInt16, source: String? = nil) throws {
      interface = if_nametoindex(MulticastTests.interface(for: group))
      self.group = try SocketAddress(host: group, port: port).with(interface: interface)
      let family = self.group.family
      socket = try FileDescriptor(from: "socket") { Glibc.socket(family, Int32(SOCK_DGRAM.rawValue), 0) }
      let descriptor = socket.number
      var one: Int32 = 1
      setsockopt(descriptor, SOL_SOCKET, SO_REUSEADDR, &one, 4)
      let level = Int32(self.group.isIPv6 ? IPPROTO_IPV6 : IPPROTO_IP)
      let address = self.group
      func fill(_ storage: inout sockaddr_storage, _ address: SocketAddress) {
        withUnsafeMutableBytes(of: &storage) { memory in
          address.withPointer {
            memory.copyMemory(from: UnsafeRawBufferPointer(start: $0, count: Int(address.length)))
          }
        }
      }
      if let source {
        var request = group_source_req()
        request.gsr_interface = interface
        fill(&request.gsr_group, address)
        fill(&request.gsr_source, try SocketAddress(host: source, port: 0))
        let size = socklen_t(MemoryLayout<group_source_req>.size)
        try #require(setsockopt(descriptor, level, MCAST_JOIN_SOURCE_GROUP, &request, size) == 0)
      } else {
        var request = group_req()
        request.gr_interface = interface
        fill(&request.gr_group, address)
        let size = socklen_t(MemoryLayout<group_req>.size)
        try #require(setsockopt(descriptor, level, MCAST_JOIN_GROUP, &request, size) == 0)
      }
      // Before it has joined, the kernel gives a bound socket what any other member of the group gets, from every source.
      try #require(address.withPointer { bind(descriptor, $0, address.length) } == 0)
      try MulticastOptions(interface: interface, loopsBack: true).apply(to: socket, isIPv6: address.isIPv6)
    }

    func next(within seconds: Double = 20) -> [UInt8]? {
      var item = pollfd(fd: descriptor, events: Int16(POLLIN), revents: 0)
      guard poll(&item, 1, Int32(seconds * 1000)) == 1 else { return nil }
      var bytes = [UInt8](repeating: 0, count: 65_536)
      let count = recv(descriptor, &bytes, bytes.count, 0)
      return count < 0 ? nil : Array(bytes[..<count])
    }

    /// Says something to the group.
    func send(_ bytes: [UInt8]) {
      _ = group.withPointer { sendto(descriptor, bytes, bytes.count, 0, $0, group.length) }
    }
  }

  /// An interface with a way to an IPv6 group; nil where there is none. The groups here do not leave the machine.
  private static let ip6Interface: String? = {
    guard let group = try? SocketAddress(host: "ff11::1", port: 9), let list = if_nameindex() else { return nil }
    defer { if_freenameindex(list) }
    var entry = list
    while let name = entry.pointee.if_name {
      let socket = FileDescriptor(owning: Glibc.socket(AF_INET6, Int32(SOCK_DGRAM.rawValue), 0))
      let options = MulticastOptions(interface: entry.pointee.if_index)
      if (try? options.apply(to: socket, isIPv6: true)) != nil,
        group.withPointer({ connect(socket.number, $0, group.length) }) == 0
      {
        return String(cString: name)
      }
      entry += 1
    }
    return nil
  }()

  static func interface(for group: String) -> String { group.contains(":") ? ip6Interface ?? "lo" : "lo" }

  static func groups(_ ip4: String, _ ip6: String) -> [String] { ip6Interface == nil ? [ip4] : [ip4, ip6] }

  static func destination(_ group: String, _ port: UInt16, _ options: String) throws -> StreamDestination {
    let host = group.contains(":") ? "[\(group)]" : group
    return try StreamDestination(url: "rtp://\(host):\(port)?interface=\(interface(for: group))\(options)")
  }

  @Test(arguments: groups("239.195.7.9", "ff11::7:9"), [false, true])
  func `receivers of a group get the stream, and are heard`(group: String, isMuxed: Bool) throws {
    let port = try UDPPort.free()
    let media = try Member(group, port: port)
    let control = try isMuxed ? media : Member(group, port: port + 1)
    let encoder = try SizedEncoder(keyBytes: 3000, bytes: 500)
    let running = try RunningPipeline(
      encoder, to: [try Self.destination(group, port, "&loop=1" + (isMuxed ? "&rtcp=mux" : ""))])
    defer { running.end() }
    var report: [UInt8]?
    while report == nil, let datagram = control.next() { if datagram[1] == 200 { report = datagram } }
    let source = try #require(report).number(at: 4, bytes: 4)
    #expect(try #require(media.next()).count > 12)
    func figures() -> DestinationStatistics { running.pipeline.statistics.destinations[0] }
    sleep(1)
    // What it says itself does not count as heard, though it comes back.
    #expect(figures().lastHeard == nil && figures().feedback.datagrams == 0)
    let before = encoder.keyFrames.count
    let word = (0..<4).map { UInt8(truncatingIfNeeded: source >> (24 - 8 * UInt64($0))) }
    control.send([0x81, 206, 0, 2, 0, 0, 0xab, 0xcd] + word)
    #expect(eventually { encoder.keyFrames.count == before + 1 })
    #expect(eventually { figures().feedback.pictureLosses == 1 && figures().lastHeard != nil })
  }

  // What leaves by the loopback interface comes back in any case.
  @Test(.enabled(if: ip6Interface != nil && ip6Interface != "lo"))
  func `without loop=1 nothing stays on this host`() throws {
    let group = "ff11::7:10"
    let port = try UDPPort.free()
    let media = try Member(group, port: port)
    let running = try RunningPipeline(
      try SizedEncoder(keyBytes: 3000, bytes: 500), to: [try Self.destination(group, port, "")])
    #expect(eventually { running.pipeline.statistics.destinations[0].packets > 20 })
    running.end()
    #expect(media.next(within: 0.5) == nil)
  }

  @Test(arguments: [true, false])
  func `an IPv4 socket has interface and loopback as they were asked for`(loopsBack: Bool) throws {
    let group = try SocketAddress(host: "239.195.7.12", port: 5004)
    let index = if_nametoindex("lo")
    let socket = try ConnectedSocket(
      to: group, timeToLive: 1, .control, from: LocalPorts(family: AF_INET),
      multicast: MulticastOptions(interface: index, loopsBack: loopsBack))
    var value: CInt = -1
    var size = socklen_t(MemoryLayout<CInt>.size)
    let descriptor = socket.fileDescriptor
    #expect(getsockopt(descriptor, CInt(IPPROTO_IP), IP_MULTICAST_LOOP, &value, &size) == 0)
    #expect((value != 0) == loopsBack)
  }

  @Test(arguments: groups("232.7.7.7", "ff31::8000:7") + ["239.195.7.11?"])
  func `receivers of a source-specific group are told the source, and get the stream by it`(group: String) throws {
    let port = try UDPPort.free()
    // Outside of the groups that are so by themselves, because it was asked for.
    let isAsked = group.hasSuffix("?")
    let group = isAsked ? String(group.dropLast()) : group
    let destination = try Self.destination(group, port, "&loop=1" + (isAsked ? "&ssm=1" : ""))
    let running = try RunningPipeline(try SizedEncoder(keyBytes: 3000, bytes: 500), to: [destination])
    defer { running.end() }
    let id = running.pipeline.destinations[0].id
    let text = try #require(running.pipeline.sessionDescription(for: id, sessionID: 1)).text
    let family = group.contains(":") ? "IP6" : "IP4"
    let prefix = "a=source-filter: incl IN \(family) \(group) "
    let line = try #require(text.split(whereSeparator: \.isNewline).first { $0.hasPrefix(prefix) }, "\(text)")
    let source = String(line.dropFirst(prefix.count))
    #expect(DescriptionLines(text)["o"] == ["- 1 1 IN \(family) \(source)"], "\(text)")
    #expect(try #require(Member(group, port: port, source: source).next()).count > 12)
    // Whoever joins for another sender gets nothing.
    let other = group.contains(":") ? "2001:db8::9" : "198.51.100.9"
    #expect(try Member(group, port: port, source: other).next(within: 0.5) == nil)
  }

  @Test(arguments: [
    ("rtp://127.0.0.1:5004?interface=lo", "interface="), ("rtp://127.0.0.1:5004?loop=1", "loop="),
    ("rtp://[::1]:5004?ssm=1", "ssm="), ("rtp://239.1.2.3:5004?interface=none0", "'none0'"),
    ("rtp://239.1.2.3:5004?interface=", "''"), ("rtp://239.1.2.3:5004?loop=0", "loop=1"),
    ("rtp://239.1.2.3:5004?ssm=yes", "ssm=1"), ("rtp://239.1.2.3:5004?interface=abcdefghijklmnop", "abcdefghijklmnop"),
  ])
  func `options that make no sense are refused with the reason`(url: String, reason: String) throws {
    let running = try RunningPipeline(try SizedEncoder(keyBytes: 3000, bytes: 500), to: [])
    let error = #expect(throws: StreamDestinationError.self) {
      try running.pipeline.add(try StreamDestination(url: url))
    }
    #expect(error?.description.contains(reason) == true, "\(String(describing: error))")
    #expect(running.pipeline.destinations.isEmpty)
  }
}

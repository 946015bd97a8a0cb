import CLinux
import Foundation
import Media
import Platform
import Streaming
import TestSupport
import Testing

@Suite struct LocalPortsTests {
  @Test(arguments: hasIPv6 ? [AF_INET, AF_INET6] : [AF_INET])
  func `RTP has an even port and RTCP the next, over and over`(family: CInt) throws {
    var all: [LocalPorts] = []
    for _ in 0..<100 { all.append(try LocalPorts(family: family)) }
    #expect(all.allSatisfy { $0.port.isMultiple(of: 2) })
    #expect(Set(all.map(\.port)).count == 100)
    // Nobody else has them, or may take them.
    for port in all.prefix(10).flatMap({ [$0.port, $0.port + 1] }) {
      #expect(throws: (any Error).self) { try TestSocket(port: port, family: family) }
    }
  }

  @Test func `ports are free again after their last user, and no descriptor stays open`() throws {
    func descriptors() throws -> Int { try FileManager.default.contentsOfDirectory(atPath: "/proc/self/fd").count }
    // Once before, for what is opened once a process.
    _ = try LocalPorts(family: AF_INET)
    let before = try descriptors()
    var port: UInt16 = 0
    for _ in 0..<500 { port = try LocalPorts(family: AF_INET).port }
    // Other tests open and close files meanwhile.
    #expect(try descriptors() < before + 200)
    #expect(port.isMultiple(of: 2))
  }

  @Test func `datagrams of unknown senders are discarded and counted, a limited number at a time`() throws {
    let ports = try LocalPorts(family: AF_INET)
    for _ in 0..<5 { try UDPPort.send([1, 2, 3], to: "127.0.0.1", port: ports.port) }
    for _ in 0..<3 { try UDPPort.send([0x80, 200], to: "127.0.0.1", port: ports.port + 1) }
    #expect(ports.discardStrangers(limit: 6) == 6)
    #expect(ports.discardStrangers(limit: 6) == 2)
    #expect(ports.discardStrangers(limit: 6) == 0)
  }
}

@Suite struct DescriptorSetTests {
  @Test func `descriptors that are ready are returned until they are no longer ready`() throws {
    let set = try DescriptorSet(.input)
    let interrupts = [try InterruptBox(), try InterruptBox(), try InterruptBox()]
    for (index, interrupt) in interrupts.enumerated() {
      try set.insert(interrupt.descriptor, token: UInt64(index) + 100)
    }
    #expect(ready(set).tokens == [])
    #expect(!isReadable(set.fileDescriptor))
    interrupts[0].fire()
    interrupts[2].fire()
    #expect(isReadable(set.fileDescriptor))
    #expect(ready(set).tokens == [100, 102])
    #expect(ready(set).tokens == [100, 102], "nobody has answered")
    interrupts[0].clear()
    #expect(ready(set).tokens == [102])
    set.remove(interrupts[2].descriptor)
    #expect(ready(set).tokens == [])
    #expect(!isReadable(set.fileDescriptor))
    set.remove(interrupts[2].descriptor)
    #expect(throws: SystemFailure.self) { try set.insert(interrupts[0].descriptor, token: 7) }
    #expect(throws: SystemFailure.self) { try set.insert(-1, token: 7) }
  }

  @Test func `more descriptors than fit are returned in turns`() throws {
    let set = try DescriptorSet(.input, capacity: 4)
    let interrupts = try (0..<10).map { _ in try InterruptBox() }
    for (index, interrupt) in interrupts.enumerated() {
      try set.insert(interrupt.descriptor, token: UInt64(index))
      interrupt.fire()
    }
    var seen: Set<UInt64> = []
    for _ in 0..<10 {
      let (tokens, isAll) = ready(set)
      #expect(tokens.count == 4 && !isAll)
      seen.formUnion(tokens)
    }
    #expect(seen.count == 10)
    for interrupt in interrupts.dropFirst(3) { interrupt.clear() }
    #expect(ready(set).isAll)
  }

  @Test func `room is told of a descriptor that has some`() throws {
    let set = try DescriptorSet(.output)
    var ends: [CInt] = [0, 0]
    let result = pipe(&ends)
    try #require(result == 0)
    for end in ends { _ = fcntl(end, F_SETFL, O_NONBLOCK) }
    defer { for end in ends { close(end) } }
    try set.insert(ends[1], token: 3)
    #expect(ready(set).tokens == [3])
    let block = [UInt8](repeating: 0, count: 65_536)
    while write(ends[1], block, block.count) > 0 {}
    #expect(ready(set).tokens == [])
    var sink = block
    while read(ends[0], &sink, sink.count) > 0 {}
    #expect(ready(set).tokens == [3])
  }

  private func ready(_ set: DescriptorSet) -> (tokens: [UInt64], isAll: Bool) {
    var tokens: [UInt64] = []
    let isAll = set.takeReady { tokens.append($0) }
    return (tokens.sorted(), isAll)
  }

  private func isReadable(_ descriptor: CInt) -> Bool {
    var item = pollfd(fd: descriptor, events: Int16(POLLIN), revents: 0)
    return poll(&item, 1, 0) == 1
  }
}

/// A ``Interrupt`` in an array.
private final class InterruptBox {
  private let interrupt: Interrupt
  init() throws { interrupt = try Interrupt() }
  var descriptor: CInt { interrupt.fileDescriptor }
  func fire() { interrupt.fire() }
  func clear() { interrupt.clear() }
}

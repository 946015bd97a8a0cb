import Foundation
import Media
import TestSupport
import Testing
import Threading

@testable import Streaming

@Suite struct LocalPortsTests {
  @Test(arguments: [AF_INET, AF_INET6])
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

  @Test func `they are free again when nobody needs them, and nothing is left open`() throws {
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

  @Test func `what strangers send is taken and counted, a bounded number at a time`() throws {
    let ports = try LocalPorts(family: AF_INET)
    for _ in 0..<5 { try UDPPort.send([1, 2, 3], to: "127.0.0.1", port: ports.port) }
    for _ in 0..<3 { try UDPPort.send([0x80, 200], to: "127.0.0.1", port: ports.port + 1) }
    #expect(ports.discardStrangers(limit: 6) == 6)
    #expect(ports.discardStrangers(limit: 6) == 2)
    #expect(ports.discardStrangers(limit: 6) == 0)
  }
}

@Suite struct DescriptorSetTests {
  @Test func `those that are ready are told, until they are no longer`() throws {
    let set = try DescriptorSet(.input)
    let bells = [try InterruptBox(), try InterruptBox(), try InterruptBox()]
    for (index, bell) in bells.enumerated() { try set.insert(bell.descriptor, token: UInt64(index) + 100) }
    #expect(ready(set).tokens == [])
    #expect(!isReadable(set.fileDescriptor))
    bells[0].fire()
    bells[2].fire()
    #expect(isReadable(set.fileDescriptor))
    #expect(ready(set).tokens == [100, 102])
    #expect(ready(set).tokens == [100, 102], "nobody has answered")
    bells[0].clear()
    #expect(ready(set).tokens == [102])
    set.remove(bells[2].descriptor)
    #expect(ready(set).tokens == [])
    #expect(!isReadable(set.fileDescriptor))
    set.remove(bells[2].descriptor)
    #expect(throws: SystemFailure.self) { try set.insert(bells[0].descriptor, token: 7) }
    #expect(throws: SystemFailure.self) { try set.insert(-1, token: 7) }
  }

  @Test func `more than fit at a time take turns`() throws {
    let set = try DescriptorSet(.input, capacity: 4)
    let bells = try (0..<10).map { _ in try InterruptBox() }
    for (index, bell) in bells.enumerated() {
      try set.insert(bell.descriptor, token: UInt64(index))
      bell.fire()
    }
    var seen: Set<UInt64> = []
    for _ in 0..<10 {
      let (tokens, isAll) = ready(set)
      #expect(tokens.count == 4 && !isAll)
      seen.formUnion(tokens)
    }
    #expect(seen.count == 10)
    for bell in bells.dropFirst(3) { bell.clear() }
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
  private let bell: Interrupt
  init() throws { bell = try Interrupt() }
  var descriptor: CInt { bell.fileDescriptor }
  func fire() { bell.fire() }
  func clear() { bell.clear() }
}

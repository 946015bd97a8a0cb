import Platform
import Testing
import WebRTC

/// All sessions of one port: their limits, and to whom a datagram belongs.
@Suite struct PeerTableTests {
  private let start = Instant(nanoseconds: 100_000_000_000)

  private func path(_ port: UInt16) -> PeerPath { PeerPath(address: IPAddressFixture.v4, port: port) }

  /// A table at the time of the tests: `#expect` takes no value that cannot be copied.
  private final class Table {
    private var table = PeerTable()
    private let start: Instant

    init(at start: Instant) { self.start = start }

    var count: Int { table.count }
    var counts: PeerTable.Counts { table.counts }
    var nextDeadline: Instant? { table.nextDeadline }
    func knows(_ path: PeerPath) -> Bool { table.knows(path) }
    func state(of identity: PeerTable.Identity) -> PeerSession.State? { table[identity]?.state }

    func add(_ peer: TestPeer, from network: [UInt8] = [1]) -> PeerTable.Identity? {
      table.add(peer.session, from: network)
    }

    /// Adds a session of which nothing follows. Returns `false` if there is no room.
    func addSilent(from network: [UInt8]) throws -> Bool { add(try TestPeer(at: start), from: network) != nil }

    func receive(
      _ bytes: [UInt8], from path: PeerPath, after seconds: Double = 0
    ) -> (PeerTable.Reception, [(PeerTable.Identity, PeerSession.Output)]) {
      var outputs: [(PeerTable.Identity, PeerSession.Output)] = []
      let reception = bytes.withUnsafeBytes { bytes in
        table.receive(bytes, from: path, at: start + Duration(seconds: seconds)) { outputs.append(($0, $1)) }
      }
      return (reception, outputs)
    }

    /// The reasons for which sessions end at a time.
    func expire(after seconds: Double) -> [PeerEnd] {
      var ended: [PeerEnd] = []
      table.expire(at: start + Duration(seconds: seconds)) { if case .end(let reason) = $1 { ended.append(reason) } }
      return ended
    }

    func end(_ identity: PeerTable.Identity) -> Bool { table.end(identity) { _, _ in } }
    func forget(_ path: PeerPath) { table.forget(path) { _, _ in } }
  }

  /// A session that is watching.
  private func established(_ table: Table, from path: PeerPath) throws -> PeerTable.Identity? {
    let peer = try TestPeer(at: start)
    guard let identity = table.add(peer) else { return nil }
    #expect(table.receive(peer.check.bytes(), from: path).0 == .proved)
    while !peer.client.datagrams.isEmpty {
      for case (_, .send(let bytes, _)) in table.receive(peer.client.datagrams.removeFirst(), from: path).1 {
        peer.client.receive(bytes)
      }
    }
    #expect(peer.session.state == .established)
    return identity
  }

  @Test func `half-open sessions are limited, in all and of one network, and make room after their time`() throws {
    let table = Table(at: start)
    for _ in 0..<16 { #expect(try table.addSilent(from: [1])) }
    #expect(try !table.addSilent(from: [1]))
    for number in 0..<UInt8(48) { #expect(try table.addSilent(from: [2, number])) }
    #expect(try table.count == 64 && !table.addSilent(from: [3]))
    #expect(table.nextDeadline == start + Duration(seconds: 20))
    #expect(table.expire(after: 20) == [PeerEnd](repeating: .unreached, count: 64) && table.count == 0)
    #expect(try table.addSilent(from: [1]))
  }

  @Test func `sessions that watch are limited to 128, and leave the half-open ones their own limit`() throws {
    let table = Table(at: start)
    var first: PeerTable.Identity?
    for number in 0..<UInt16(128) {
      let identity = try established(table, from: path(5000 + number))
      try #require(identity != nil, "\(number)")
      first = first ?? identity
    }
    #expect(try !table.addSilent(from: [2]))
    #expect(table.end(try #require(first)) && !table.knows(path(5000)) && table.knows(path(5001)))
    #expect(try table.addSilent(from: [2]))
  }

  @Test func `what nobody known has sent is counted and gets no answer`() throws {
    let table = Table(at: start)
    let peer = try TestPeer(at: start)
    let identity = try #require(table.add(peer))
    var forged = peer.check
    forged.password = String(repeating: "x", count: 24)
    let stranger = CheckMaker(ICECredentials(), from: peer.own)
    for bytes in [forged.bytes(), stranger.bytes(), [0, 1], [UInt8](repeating: 0, count: 100)] {
      let (reception, outputs) = table.receive(bytes, from: path(1))
      #expect(reception == .refused && outputs.isEmpty)
    }
    #expect(table.receive(Array(peer.check.bytes().dropLast(4)), from: path(1)).0 == .refused)
    #expect(table.counts.refusedChecks == 4 && table.counts.malformed == 1)
    #expect(table.receive([22, 254, 253] + [UInt8](repeating: 0, count: 20), from: path(1)).0 == .refused)
    #expect(table.counts.unknown == 1 && table.state(of: identity) == .waiting)
  }

  @Test func `a check does not take the path of another session that is alive`() throws {
    let table = Table(at: start)
    let (one, two) = (try TestPeer(at: start), try TestPeer(at: start))
    let owner = try #require(table.add(one))
    let other = try #require(table.add(two, from: [2]))
    #expect(table.receive(one.check.bytes(), from: path(1)).0 == .proved)
    #expect(table.receive(two.check.bytes(), from: path(1), after: 5).0 == .refused)
    #expect(one.session.agent.knows(path(1)) && !two.session.agent.knows(path(1)))
    // What comes there goes to the owner.
    #expect(table.receive(one.client.datagrams[0], from: path(1), after: 5).1.allSatisfy { $0.0 == owner })
    // Behind a NAT, another browser gets the port of one that has gone without a word.
    var forged = two.check
    forged.password = String(repeating: "x", count: 24)
    #expect(table.receive(forged.bytes(), from: path(1), after: 11).0 == .refused)
    #expect(one.session.agent.knows(path(1)))
    let (reception, outputs) = table.receive(two.check.bytes(), from: path(1), after: 11)
    #expect(reception == .proved && outputs.allSatisfy { $0.0 == other })
    #expect(!one.session.agent.knows(path(1)) && two.session.agent.knows(path(1)))
  }

  @Test func `the paths of a session are limited in the table as well`() throws {
    let table = Table(at: start)
    let peer = try TestPeer(at: start)
    _ = table.add(peer)
    let ports = UInt16(1)...UInt16(100)
    for port in ports { #expect(table.receive(peer.check.bytes(), from: path(port)).0 == .proved) }
    #expect(ports.count { table.knows(path($0)) } == ICELiteAgent.pathLimit)
    #expect(ports.allSatisfy { table.knows(path($0)) == peer.session.agent.knows(path($0)) })
    table.forget(path(100))
    #expect(!table.knows(path(100)) && !peer.session.agent.knows(path(100)))
  }
}

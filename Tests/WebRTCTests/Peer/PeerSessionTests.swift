import Glibc
import Platform
import SRTP
import Testing
import WebRTC

/// One session from its answer to its end, by OpenSSL's client in the browser's place.
@Suite struct PeerSessionTests {
  private let start = Instant(nanoseconds: 100_000_000_000)
  private let path = PeerPath(address: IPAddressFixture.v4, port: 5000)
  private let other = PeerPath(address: IPAddressFixture.v4, port: 6000, carrier: .connection(3))

  private func outputs(_ body: ((PeerSession.Output) -> Void) throws -> Void) rethrows -> [PeerSession.Output] {
    var list: [PeerSession.Output] = []
    try body { list.append($0) }
    return list
  }

  private func check(_ peer: TestPeer, from path: PeerPath, after seconds: Double = 0) throws -> [PeerSession.Output] {
    let message = try peer.check.message()
    return outputs { output in
      let isTaken = peer.session.receive(check: message, from: path, at: start + Duration(seconds: seconds), output)
      #expect(isTaken)
    }
  }

  private func connect(_ peer: TestPeer, from path: PeerPath) -> [PeerSession.Output] {
    peer.shakeHands { datagram in
      outputs { output in
        datagram.withUnsafeBytes { peer.session.receive($0, from: path, at: start, output) }
      }
    }
  }

  /// SRTCP of the peer, which shows that it has finished the handshake.
  private func hear(_ peer: TestPeer) {
    let report: [UInt8] = [0x80, 201] + [UInt8](repeating: 0, count: 30)
    report.withUnsafeBytes { peer.session.receive($0, from: path, at: start) { _ in } }
  }

  private func expire(_ peer: TestPeer, after seconds: Double) -> [PeerSession.Output] {
    outputs { peer.session.expire(at: start + Duration(seconds: seconds), $0) }
  }

  private func end(_ outputs: [PeerSession.Output]) -> PeerEnd? {
    guard case .end(let end)? = outputs.last else { return nil }
    return end
  }

  @Test func `checks, handshake and keys lead to media, and goodbye ends them`() throws {
    let peer = try TestPeer(at: start)
    #expect(peer.session.state == .waiting)
    let answers = try check(peer, from: path)
    #expect(answers.count == 1 && peer.session.state == .handshaking)
    let begun = connect(peer, from: path)
    guard case .begin(let keys, let way)? = begun.first else {
      Issue.record("\(begun)")
      return
    }
    #expect(begun.count == 1 && way == path && peer.session.state == .established)
    // Both sides have the same keys, which RFC 5764 section 4.2 divides.
    let material = peer.client.keyingMaterial(bytes: 56)
    #expect(keys.receiving.bytes == Array(material[..<16] + material[32..<44]))
    #expect(keys.sending.bytes == Array(material[16..<32] + material[44...]))
    #expect(keys.sending.suite == .aes128GCM)
    peer.client.close()
    #expect(end(connect(peer, from: path)) == .peer && peer.session.deadline == nil)
  }

  @Test func `datagrams from a path without a check mean nothing`() throws {
    let peer = try TestPeer(at: start)
    #expect(connect(peer, from: path).isEmpty && peer.session.state == .waiting)
  }

  @Test func `a certificate other than the offer's ends the session by that reason`() throws {
    let peer = try TestPeer(fingerprint: [UInt8](repeating: 1, count: 32), at: start)
    _ = try check(peer, from: path)
    #expect(end(connect(peer, from: path)) == .fingerprint)
  }

  @Test func `a session ends without a check after 20 s, without a handshake after 40 s, without consent after 30 s`()
    throws
  {
    let silent = try TestPeer(at: start)
    #expect(silent.session.deadline == start + Duration(seconds: 20))
    #expect(expire(silent, after: 19.9).isEmpty && end(expire(silent, after: 20)) == .unreached)

    let halfOpen = try TestPeer(at: start)
    for second in stride(from: 0.0, to: 40, by: 5) { _ = try check(halfOpen, from: path, after: second) }
    #expect(expire(halfOpen, after: 39.9).isEmpty && end(expire(halfOpen, after: 40)) == .handshakeTime)

    let watching = try TestPeer(at: start)
    _ = try check(watching, from: path)
    _ = connect(watching, from: path)
    hear(watching)
    _ = try check(watching, from: path, after: 12)
    #expect(watching.session.deadline == start + Duration(seconds: 42))
    let ended = expire(watching, after: 42)
    #expect(end(ended) == .consent)
    // The browser is told by close_notify, should it hear it.
    guard case .send(_, path)? = ended.first else {
      Issue.record("\(ended)")
      return
    }
  }

  @Test func `media move with the nomination, and when a connection closes`() throws {
    let peer = try TestPeer(at: start)
    _ = try check(peer, from: other)
    _ = connect(peer, from: other)
    #expect(peer.session.path == other)
    var better = peer.check
    better.priority = 0x7e00_01ff
    let message = try better.message()
    let moved = outputs { output in _ = peer.session.receive(check: message, from: path, at: start, output) }
    guard case .move(path)? = moved.last else {
      Issue.record("\(moved)")
      return
    }
    let back = outputs { peer.session.forget(path, $0) }
    guard case .move(other)? = back.last else {
      Issue.record("\(back)")
      return
    }
    // Without any path the browser has its time to come again.
    #expect(outputs { peer.session.forget(other, $0) }.isEmpty && peer.session.state == .established)
    #expect(peer.session.deadline == start + Duration(seconds: 30))
  }

  @Test func `a flight without an answer is repeated soon, and a lost datagram delays the handshake little`() throws {
    let peer = try TestPeer(at: start)
    _ = try check(peer, from: path)
    let flight = outputs { output in
      peer.client.datagrams.removeFirst().withUnsafeBytes { peer.session.receive($0, from: path, at: start, output) }
    }
    #expect(!flight.isEmpty)
    // The whole flight is lost. OpenSSL's own time would be a second.
    let deadline = try #require(peer.session.deadline)
    #expect(deadline - start < Duration(seconds: 0.5), "\(deadline - start)")
    // The library goes by the host's clock.
    usleep(300_000)
    let again = outputs { peer.session.expire(at: start + Duration(seconds: 0.5), $0) }
    // In one datagram, which gets through more often than five do.
    #expect(again.count == 1)
    for case .send(let bytes, _) in again { peer.client.receive(bytes) }
    guard case .begin? = connect(peer, from: path).first else {
      Issue.record("the repeated flight is of no use")
      return
    }
  }

  @Test func `the last flight is repeated until the peer is heard, or has it five times`() throws {
    let peer = try TestPeer(at: start)
    _ = try check(peer, from: path)
    // All that the server sends after its keys are made gets lost.
    var lost: [[UInt8]] = []
    while !peer.client.datagrams.isEmpty {
      let datagram = peer.client.datagrams.removeFirst()
      let answers = outputs { output in
        datagram.withUnsafeBytes { peer.session.receive($0, from: path, at: start, output) }
      }
      for case .send(let bytes, _) in answers {
        if peer.session.state == .established { lost.append(bytes) } else { peer.client.receive(bytes) }
      }
    }
    #expect(peer.session.state == .established && lost.count == 1)
    var times: [Double] = []
    while let deadline = peer.session.deadline, deadline < start + Duration(seconds: 20) {
      let again = outputs { peer.session.expire(at: deadline, $0) }
      times.append((deadline - start).seconds)
      guard case .send(let bytes, path)? = again.first, again.count == 1 else {
        Issue.record("\(again)")
        return
      }
      #expect(bytes == lost[0])
      peer.client.receive(bytes)
    }
    #expect(times.count == 5 && times[0] < 0.2 && times[4] < 5, "\(times)")
    // The client has finished by what was repeated.
    #expect(peer.client.isComplete)
    #expect(peer.session.deadline == start + Duration(seconds: 30))

    let heard = try TestPeer(at: start)
    _ = try check(heard, from: path)
    _ = connect(heard, from: path)
    hear(heard)
    #expect(heard.session.deadline == start + Duration(seconds: 30))
  }

  @Test func `a last flight without a path comes to its end, and sends nothing`() throws {
    let peer = try TestPeer(at: start)
    _ = try check(peer, from: path)
    _ = connect(peer, from: path)
    _ = outputs { peer.session.forget(path, $0) }
    #expect(peer.session.state == .established && peer.session.path == nil)
    var last = start
    while let deadline = peer.session.deadline, deadline < start + Duration(seconds: 30) {
      try #require(deadline > last)
      #expect(outputs { peer.session.expire(at: deadline, $0) }.isEmpty)
      last = deadline
    }
    #expect(last > start && last < start + Duration(seconds: 10))
  }

  @Test func `SRTCP is passed on up to its limit, and only of an established session`() throws {
    let peer = try TestPeer(at: start)
    let report: [UInt8] = [0x80, 201] + [UInt8](repeating: 0, count: 30)
    func receive(_ bytes: [UInt8]) -> Int {
      outputs { output in bytes.withUnsafeBytes { peer.session.receive($0, from: path, at: start, output) } }.count
    }
    _ = try check(peer, from: path)
    #expect(receive(report) == 0)
    _ = connect(peer, from: path)
    #expect(receive(report) == 1)
    #expect(receive(report + [UInt8](repeating: 0, count: PeerSession.controlLimit)) == 0)
  }
}

import Platform
import Testing
import WebRTC

/// The lite agent's answers, and the pair that it takes.
@Suite struct ICELiteAgentTests {
  private let peer = ICECredentials()
  private var agent: ICELiteAgent
  private let start = Instant(nanoseconds: 100_000_000_000)

  init() { agent = ICELiteAgent(remote: peer) }

  private func path(_ last: UInt8, port: UInt16 = 5000, at local: IPAddress? = nil) -> PeerPath {
    PeerPath(address: IPAddress(bytes: [192, 0, 2, last]).unsafelyUnwrapped, port: port, local: local)
  }

  private func check() -> CheckMaker { CheckMaker(agent.local, from: peer) }

  private mutating func answer(_ check: CheckMaker, from path: PeerPath, after seconds: Int64 = 0) throws
    -> STUNMessage?
  {
    let time = start + Duration(seconds: Double(seconds))
    return try agent.answer(check.message(), from: path, at: time).map(STUNTests.message)
  }

  @Test mutating func `a check is answered, and the nominated path taken`() throws {
    #expect(try answer(check(), from: path(1))?.messageClass == .success)
    #expect(agent.selected == path(1) && agent.knows(path(1)) && !agent.knows(path(2)))
    #expect(agent.lastCheck == start)
  }

  @Test mutating func `who does not know the password gets nothing`() throws {
    var wrong = check()
    wrong.password = String(repeating: "x", count: 24)
    var other = CheckMaker(ICECredentials(), from: peer)
    other.password = agent.local.password
    var stranger = CheckMaker(agent.local, from: ICECredentials())
    stranger.password = agent.local.password
    for check in [wrong, other, stranger] { #expect(try answer(check, from: path(1)) == nil) }
    #expect(agent.paths.isEmpty && agent.lastCheck == nil)
  }

  @Test mutating func `unknown attributes and the wrong role are refused by a proved answer`() throws {
    var unknown = check()
    unknown.more = [(0x7ffe, [1])]
    let refusal = try #require(try answer(unknown, from: path(1)))
    #expect(refusal.messageClass == .error && refusal.hasIntegrity(key: Array(agent.local.password.utf8)))
    var controlled = check()
    controlled.role = .controlled(tieBreaker: 1)
    #expect(try answer(controlled, from: path(1))?.messageClass == .error)
    #expect(agent.paths.isEmpty)
  }

  @Test mutating func `of several nominated paths the best is taken, and another once it is silent`() throws {
    var low = check()
    low.priority = 10
    #expect(try answer(check(), from: path(1))?.messageClass == .success)
    #expect(try answer(low, from: path(2)) != nil && agent.selected == path(1))
    var unnamed = check()
    unnamed.nominates = false
    #expect(try answer(unnamed, from: path(3)) != nil && agent.selected == path(1))
    #expect(try answer(low, from: path(2), after: 4) != nil && agent.selected == path(2))
    #expect(agent.lastCheck == start + Duration(seconds: 4))
    #expect(try answer(check(), from: path(1), after: 5) != nil && agent.selected == path(1))
    agent.forget(path(1))
    #expect(agent.selected == path(2) && !agent.knows(path(1)))
  }

  @Test mutating func `a peer that nominates another path and the former no longer is followed`() throws {
    #expect(try answer(check(), from: path(1)) != nil && agent.selected == path(1))
    var (former, other) = (check(), check())
    (former.nominates, other.priority) = (false, 10)
    #expect(try answer(other, from: path(2), after: 1) != nil && agent.selected == path(1))
    #expect(try answer(former, from: path(1), after: 1) != nil && agent.selected == path(1))
    #expect(try answer(other, from: path(2), after: 2) != nil && agent.selected == path(2))
    // Checks on a path that was never nominated are no consent to get media there.
    #expect(try answer(former, from: path(3), after: 9) != nil && agent.selected == path(2))
    #expect(agent.lastCheck == start + Duration(seconds: 2))
  }

  @Test func `the priority of a pair is that of RFC 8445 section 6.1.2.3`() {
    #expect(ICELiteAgent.pairPriority(controlling: 1, controlled: 2) == 0x1_0000_0004)
    #expect(ICELiteAgent.pairPriority(controlling: 2, controlled: 1) == 0x1_0000_0005)
    // A priority has 31 bits; anybody may claim more.
    #expect(ICELiteAgent.pairPriority(controlling: .max, controlled: .max) == 0x7fff_ffff << 32 + 0xffff_fffe)
  }

  /// Firefox nominates every pair at an ICE-lite peer, and then checks only its own choice, without nominating it again.
  @Test mutating func `of pairs that are all nominated, the one of the highest priority of both sides is taken`() throws
  {
    let (first, second) = (IPAddressFixture.v4, IPAddressFixture.v6)
    let candidates = [Candidate(address: first, port: 8189), Candidate(address: second, port: 8189)]
    let (best, worse) = (path(1, at: first), path(2, at: second))
    for order in [[best, worse], [worse, best]] {
      agent = ICELiteAgent(remote: peer, candidates: candidates)
      for path in order { #expect(try answer(check(), from: path) != nil) }
      // The peer's priorities are the same: this side's decide.
      #expect(agent.selected == best)
    }
    // The peer's own decides where it is the smaller one.
    agent = ICELiteAgent(remote: peer, candidates: candidates)
    var low = check()
    low.priority = 100
    #expect(try answer(low, from: best) != nil)
    #expect(try answer(check(), from: worse) != nil && agent.selected == worse)
    #expect(try answer(low, from: best) != nil && agent.selected == worse)
  }

  @Test mutating func `a nominated path that alone is still checked is taken, and keeps the session alive`() throws {
    var (high, low) = (check(), check())
    (high.priority, low.priority) = (0x7e00_00ff, 0x6e00_00ff)
    #expect(try answer(high, from: path(1)) != nil)
    #expect(try answer(low, from: path(2)) != nil)
    #expect(agent.selected == path(1))
    // The peer has chosen the other one, and checks it as RFC 7675 says, each 4 to 6 s.
    low.nominates = false
    #expect(try answer(low, from: path(2), after: 5) != nil && agent.selected == path(1))
    #expect(try answer(low, from: path(2), after: 10) != nil && agent.selected == path(2))
    #expect(agent.lastCheck == start + Duration(seconds: 10))
  }

  @Test mutating func `checks on both paths leave the better one chosen`() throws {
    var (high, low) = (check(), check())
    (high.priority, low.priority) = (0x7e00_00ff, 0x6e00_00ff)
    #expect(try answer(high, from: path(1)) != nil)
    #expect(try answer(low, from: path(2)) != nil)
    (high.nominates, low.nominates) = (false, false)
    for second in stride(from: Int64(5), to: 60, by: 5) {
      #expect(try answer(low, from: path(2), after: second) != nil && agent.selected == path(1))
      #expect(try answer(high, from: path(1), after: second) != nil && agent.selected == path(1))
    }
  }

  @Test mutating func `another address of the same candidate, as a NAT gives it, is followed at once`() throws {
    #expect(try answer(check(), from: path(1)) != nil)
    #expect(try answer(check(), from: path(1, port: 6000)) != nil)
    #expect(agent.selected == path(1, port: 6000))
  }

  @Test mutating func `where the chosen path closes, the best of the nominated ones takes its place`() throws {
    for (last, priority) in [(1, 30), (2, 10), (3, 20)] as [(UInt8, UInt32)] {
      var check = check()
      check.priority = priority
      #expect(try answer(check, from: path(last), after: Int64(last)) != nil && agent.selected == path(1))
    }
    agent.forget(path(1))
    #expect(agent.selected == path(3))
    agent.forget(path(3))
    agent.forget(path(2))
    // The peer may come back.
    #expect(agent.selected == nil && agent.lastCheck == start + Duration(seconds: 3))
  }

  @Test mutating func `the paths of one peer are limited, and the nominated one stays`() throws {
    #expect(try answer(check(), from: path(1)) != nil)
    var other = check()
    other.nominates = false
    for port in 0..<UInt16(100) { #expect(try answer(other, from: path(2, port: 6000 + port)) != nil) }
    #expect(agent.paths.count == ICELiteAgent.pathLimit && agent.selected == path(1) && agent.knows(path(1)))
  }
}

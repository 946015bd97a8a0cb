import Platform
import Testing

@testable import WebRTC

/// The lite agent's answers, and the pair that it takes.
@Suite struct ICELiteAgentTests {
  private let peer = ICECredentials()
  private var agent: ICELiteAgent
  private let start = Instant(nanoseconds: 100_000_000_000)

  init() { agent = ICELiteAgent(remote: peer) }

  private func path(_ last: UInt8, port: UInt16 = 5000) -> PeerPath {
    PeerPath(address: IPAddress(bytes: [192, 0, 2, last]).unsafelyUnwrapped, port: port)
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
    #expect(agent.selected == nil && !agent.knows(path(1)))
  }

  @Test mutating func `a peer that nominates another path and the former no longer is followed`() throws {
    #expect(try answer(check(), from: path(1)) != nil && agent.selected == path(1))
    var (former, other) = (check(), check())
    (former.nominates, other.priority) = (false, 10)
    #expect(try answer(other, from: path(2), after: 1) != nil && agent.selected == path(1))
    #expect(try answer(former, from: path(1), after: 1) != nil && agent.selected == path(1))
    #expect(try answer(other, from: path(2), after: 2) != nil && agent.selected == path(2))
    // Checks elsewhere are no consent to get media there.
    #expect(try answer(former, from: path(1), after: 9) != nil)
    #expect(agent.lastCheck == start + Duration(seconds: 2))
  }

  @Test mutating func `the paths of one peer are limited, and the nominated one stays`() throws {
    #expect(try answer(check(), from: path(1)) != nil)
    var other = check()
    other.nominates = false
    for port in 0..<UInt16(100) { #expect(try answer(other, from: path(2, port: 6000 + port)) != nil) }
    #expect(agent.paths.count == ICELiteAgent.pathLimit && agent.selected == path(1) && agent.knows(path(1)))
  }
}

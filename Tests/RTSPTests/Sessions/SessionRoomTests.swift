import Platform
import RTSP
import Testing

/// Room for sessions: which one ends to make room for another.
extension SessionTableTests {
  private static let setup = "SETUP rtsp://h/camera RTSP/1.0\nTransport: RTP/AVP;unicast;client_port=5000-5001"

  /// A server with room for two sessions, of connection 1 at time 0 and of connection 2 a second later.
  private static func full() throws -> (server: Server, first: SessionIdentifier, second: SessionIdentifier) {
    var server = Server()
    server.table.configuration.maximumSessions = 2
    let first = try server.setUp(connection: 1)
    server.time = at(1)
    let other = try server.setUp(connection: 2)
    return (server, first, other)
  }

  private static func at(_ seconds: Int64) -> Instant { Instant(nanoseconds: seconds * second) }

  @Test func `a session without a connection that is silent makes room, the longest silent first`() throws {
    let full = try Self.full()
    var server = full.server
    let (first, second) = (full.first, full.second)
    #expect(server.table.connectionClosed(1).isEmpty)
    #expect(server.table.connectionClosed(2).isEmpty)
    server.time = Self.at(14)
    #expect(try server.answer(Self.setup, connection: 3).refusal == .sessions(limit: 2))
    server.time = Self.at(15)
    let third = try server.answer(Self.setup, connection: 3)
    #expect(third.ended?.identifier == first && third.response.status == .ok)
    #expect(server.table[first] == nil && server.table[second] != nil)
    // The second has been silent for 14 s, and the third is there.
    #expect(try server.answer(Self.setup, connection: 4).refusal == .sessions(limit: 2))
    server.time = Self.at(16)
    #expect(try server.answer(Self.setup, connection: 4).ended?.identifier == second)
    server.time = Self.at(59)
    #expect(try server.answer(Self.setup, connection: 5).refusal == .sessions(limit: 2))
  }

  @Test func `a session makes no room while it is heard, or has a connection`() throws {
    let full = try Self.full()
    var server = full.server
    let (first, second) = (full.first, full.second)
    #expect(server.table.connectionClosed(2).isEmpty)
    // RTCP of the second, without a connection; the first is silent, and has one.
    server.table.keepAlive(second, at: Self.at(6))
    server.time = Self.at(20)
    #expect(try server.answer(Self.setup, connection: 3).refusal == .sessions(limit: 2))
    // The client of the first returns on another connection.
    #expect(try server.status("GET_PARAMETER * RTSP/1.0", session: first, connection: 4) == 200)
    #expect(server.table.connectionClosed(1).isEmpty)
    server.table.keepAlive(second, at: Self.at(30))
    server.time = Self.at(44)
    #expect(try server.answer(Self.setup, connection: 3).refusal == .sessions(limit: 2))
    #expect(server.table.connectionClosed(4).isEmpty)
    #expect(try server.answer(Self.setup, connection: 3).ended?.identifier == first)
    #expect(server.table[second] != nil)
  }

  @Test func `a session whose ports refuse packets makes room at once, unless it has a connection`() throws {
    let full = try Self.full()
    var server = full.server
    let (first, second) = (full.first, full.second)
    for session in [first, second] { server.table.note(session, isRefusing: true) }
    #expect(try server.answer(Self.setup, connection: 3).refusal == .sessions(limit: 2))
    // A request is a sign of life.
    #expect(try server.status("GET_PARAMETER * RTSP/1.0", session: first, connection: 1) == 200)
    #expect(server.table.connectionClosed(1).isEmpty)
    #expect(server.table.connectionClosed(2).isEmpty)
    #expect(try server.answer(Self.setup, connection: 3).ended?.identifier == second)
    #expect(try server.answer(Self.setup, connection: 4).refusal == .sessions(limit: 2))
    server.table.note(first, isRefusing: true)
    #expect(try server.answer(Self.setup, connection: 4).ended?.identifier == first)
  }

  @Test func `a session whose ports refuse packets makes room before one that is only silent`() throws {
    let full = try Self.full()
    var server = full.server
    let (silent, refusing) = (full.first, full.second)
    for connection in [1, 2] as [UInt64] { #expect(server.table.connectionClosed(connection).isEmpty) }
    server.time = Self.at(20)
    server.table.keepAlive(refusing, at: Self.at(18))
    // What is noted late takes nothing back.
    server.table.keepAlive(refusing, at: Self.at(3))
    #expect(server.table[refusing]?.deadline == Self.at(78))
    server.table.note(refusing, isRefusing: true)
    #expect(try server.answer(Self.setup, connection: 3).ended?.identifier == refusing)
    #expect(try server.answer(Self.setup, connection: 3).ended?.identifier == silent)
  }

  @Test func `a session needs the connection of its SETUP, then the latest one that has named it`() throws {
    var server = Server()
    let session = try server.setUp(connection: 1)
    for connection in [2, 3] as [UInt64] {
      #expect(try server.status("GET_PARAMETER * RTSP/1.0", session: session, connection: connection) == 200)
    }
    for (closed, carrier) in [(2, 1), (1, 3), (3, nil)] as [(UInt64, UInt64?)] {
      #expect(server.table.connectionClosed(closed).isEmpty)
      #expect(server.table[session]?.carrier == carrier)
    }
  }

  @Test func `who fills the share of an address costs no other address a session`() throws {
    var server = Server()
    server.table.configuration.maximumSessions = 3
    server.table.configuration.maximumSessionsPerAddress = 2
    let other = try server.setUp(connection: 1, from: "192.0.2.10")
    server.time = Self.at(1)
    let own = try server.setUp(connection: 2)
    _ = try server.setUp(connection: 3)
    for connection in [1, 2] as [UInt64] { #expect(server.table.connectionClosed(connection).isEmpty) }
    server.time = Self.at(40)
    #expect(try server.answer(Self.setup, connection: 3).ended?.identifier == own)
    #expect(try server.answer(Self.setup, connection: 3).refusal == .sessions(limit: 3))
    #expect(try server.answer(Self.setup, connection: 4, from: "192.0.2.11").ended?.identifier == other)
  }
}

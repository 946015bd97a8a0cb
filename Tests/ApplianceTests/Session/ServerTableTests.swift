import Appliance
import Foundation
import Platform
import Serving
import TestSupport
import Testing

/// A table of servers with a clock of its own. What a run would do for an effect is an event of the test.
private struct ServerDriver {
  var table: ServerTable
  var now = Instant(seconds: 100)
  /// The servers that run.
  private(set) var running: Set<ServerTable.Server> = []
  /// The effects since the last look.
  private(set) var effects: [ServerTable.Effect] = []
  /// The ports at which another program listens.
  var heldPorts: Set<Int> = []
  /// The servers that do not start, although the check finds their ports free.
  var broken: Set<ServerTable.Server> = []

  init(_ configurations: ServerTable.Configurations) {
    table = ServerTable(configurations, at: now)
    for server in ServerTable.Server.allCases where table.isWanted(server) {
      running.insert(server)
      carryOut(table.handle(.started(server, failure: nil), at: now))
    }
    _ = take()
  }

  mutating func handle(_ event: ServerTable.Event) { carryOut(table.handle(event, at: now)) }

  mutating func pass(_ seconds: Double) {
    now = now + Duration(seconds: seconds)
    handle(.tick)
  }

  /// Returns the effects since the last call.
  mutating func take() -> [ServerTable.Effect] {
    defer { effects = [] }
    return effects
  }

  private mutating func carryOut(_ effects: [ServerTable.Effect]) {
    for effect in effects {
      self.effects.append(effect)
      switch effect {
      case .check(let server, let listeners):
        let held = listeners.first { heldPorts.contains($0.port) }
        handle(.checked(server, failure: held.map { "port \($0.port) is held" }))
      case .start(let server):
        running.remove(server)
        let isHeld = listeners(of: server).contains { heldPorts.contains($0.port) }
        let failure: String? = broken.contains(server) ? "broken" : isHeld ? "held" : nil
        if failure == nil { running.insert(server) }
        handle(.started(server, failure: failure))
      case .stop(let server): running.remove(server)
      default: break
      }
    }
  }

  private func listeners(of server: ServerTable.Server) -> [TCPListener] {
    switch server {
    case .rtsp: table.configurations.rtsp?.listeners ?? []
    case .https: table.configurations.https?.listeners ?? []
    case .http: table.configurations.http?.listeners ?? []
    case .webRTC: []
    }
  }
}

@Suite struct ServerTableTests {
  private static func users(_ names: String...) throws -> UsersFile {
    var file = UsersFile()
    for name in names { _ = try file.set(UsersFile.User(name: UserName(name), password: "secret-\(name)")) }
    return file
  }

  private static func listener(_ port: Int) -> TCPListener { TCPListener(address: "127.0.0.1", port: port) }

  private static func rtsp(_ port: Int, _ users: UsersFile? = nil) -> RTSPServerConfiguration {
    var configuration = RTSPServerConfiguration(listeners: [listener(port)])
    configuration.users = users
    return configuration
  }

  private static func http(_ port: Int, _ users: UsersFile? = nil) -> HTTPServer.Configuration {
    .init(listeners: [listener(port)], users: users)
  }

  private static func https(
    _ port: Int, _ identity: TLSIdentity, _ users: UsersFile? = nil
  ) -> HTTPServer.Configuration { .init(listeners: [listener(port)], identity: identity, users: users) }

  private static func identity() throws -> TLSIdentity {
    let directory = try TemporaryDirectory()
    return try SelfSignedIdentity(
      directory: directory.path("state"), names: HostNames(names: ["cam.example"], addresses: []), at: 1_800_000_000
    ).identity
  }

  @Test func `a server whose users alone change stays, and gets them`() throws {
    let old = ServerTable.Configurations(rtsp: Self.rtsp(1000, try Self.users("anna")), http: Self.http(1001))
    var driver = ServerDriver(old)
    driver.handle(.configured(old))
    #expect(driver.take() == [])
    let users = try Self.users("anna", "berta")
    driver.handle(.configured(.init(rtsp: Self.rtsp(1000, users), http: Self.http(1001, users))))
    #expect(
      driver.take() == [
        .setAccess(.rtsp), .tell("users changed"), .setAccess(.http), .tell("users of HTTP changed"),
      ])
    #expect(driver.table.configurations.rtsp?.users?.users == users.users)
    #expect(driver.table.configurations.http?.users?.users == users.users)
  }

  @Test func `another address replaces a server, after a check of the new ports alone`() throws {
    var driver = ServerDriver(.init(rtsp: Self.rtsp(1000)))
    var new = Self.rtsp(1000)
    new.listeners.append(Self.listener(1002))
    // The present server holds its own port.
    driver.heldPorts = [1000]
    driver.handle(.configured(.init(rtsp: new)))
    #expect(driver.take().first == .check(.rtsp, [Self.listener(1002)]))
    driver.heldPorts = []
    driver.handle(.configured(.init(rtsp: Self.rtsp(1003))))
    #expect(
      driver.take().suffix(4) == [
        .check(.rtsp, [Self.listener(1003)]), .start(.rtsp), .tell("RTSP restarted"), .publish,
      ])
    driver.handle(.configured(.init()))
    #expect(driver.take() == [.stop(.rtsp), .tell("RTSP ended")])
    #expect(driver.running == [])
    driver.pass(100)
    #expect(driver.take() == [], "a server that nobody wants is not tried again")
  }

  @Test(arguments: [true, false])
  func `a server that cannot be replaced keeps its configuration, with the new users`(isHeld: Bool) throws {
    let old = try Self.users("anna")
    let new = try Self.users("berta")
    var driver = ServerDriver(.init(http: Self.http(1000, old)))
    if isHeld { driver.heldPorts = [1001] } else { driver.broken = [.http] }
    driver.handle(.configured(.init(http: Self.http(1001, new))))
    let effects = driver.take()
    #expect(effects.first == .setAccess(.http), "the new users apply in any case")
    let reason = isHeld ? "port 1001 is held" : "broken"
    #expect(effects.contains(.complain("HTTP is not changed: \(reason)", isNew: true)))
    #expect(driver.table.configurations.http?.listeners == [Self.listener(1000)])
    #expect(driver.table.configurations.http?.users?.users == new.users)
    #expect(driver.running == (isHeld ? [.http] : []), "a server that works does not end for one that cannot start")
    // The former one is tried again until it starts.
    driver.broken = []
    driver.pass(10)
    #expect(driver.running == [.http])
  }

  @Test func `a server that does not run is tried again every ten seconds, and the reason is told once`() throws {
    var driver = ServerDriver(.init())
    driver.heldPorts = [1000]
    driver.broken = [.webRTC]
    driver.handle(.configured(.init(rtsp: Self.rtsp(1000), webRTC: .init())))
    #expect(driver.running == [])
    _ = driver.take()
    driver.pass(9)
    #expect(driver.take() == [])
    driver.pass(1)
    #expect(
      driver.take() == [
        .start(.rtsp), .complain("held", isNew: true), .publish, .start(.webRTC), .complain("broken", isNew: false),
        .publish,
      ])
    driver.pass(9)
    #expect(driver.take() == [])
    driver.pass(1)
    #expect(driver.take().contains(.complain("held", isNew: false)))
    driver.heldPorts = []
    driver.broken = []
    driver.pass(10)
    #expect(driver.take() == [.start(.rtsp), .publish, .start(.webRTC), .publish])
    #expect(driver.running == [.rtsp, .webRTC])
    driver.pass(100)
    #expect(driver.take() == [])
  }

  @Test func `the server that answers a reload is replaced once clients have the answer`() throws {
    let identity = try Self.identity()
    let users = try Self.users("anna")
    var driver = ServerDriver(.init(https: Self.https(1000, identity)))
    driver.handle(.configured(.init(https: Self.https(1001, identity, users))))
    #expect(
      driver.take() == [.setAccess(.https), .check(.https, [Self.listener(1001)]), .tell("HTTPS restarts")],
      "the new users apply at once")
    driver.pass(20)
    #expect(driver.take() == [], "without the answer nothing happens")
    driver.handle(.answered(within: Duration(seconds: 0.3)))
    #expect(driver.table.isExchanging && driver.table.deadline == driver.now + Duration(seconds: 0.3))
    driver.pass(0.2)
    #expect(driver.take() == [])
    driver.pass(0.1)
    #expect(driver.take() == [.start(.https), .publish, .takeReloads])
    #expect(!driver.table.isExchanging && driver.running == [.https])
    // Another certificate needs another server.
    driver.handle(.configured(.init(https: Self.https(1001, try Self.identity(), users))))
    #expect(driver.take() == [.check(.https, []), .tell("HTTPS restarts")])
    // One that does not start leaves the former one.
    driver.broken = [.https]
    driver.handle(.answered(within: .zero))
    driver.pass(0)
    #expect(driver.take().contains(.complain("HTTPS is not changed: broken", isNew: true)))
    #expect(driver.table.configurations.https?.identity?.certificates == identity.certificates)
    driver.broken = []
    driver.pass(10)
    #expect(driver.running == [.https])
    // The end waits too.
    _ = driver.take()
    driver.handle(.configured(.init()))
    #expect(driver.take() == [.tell("HTTPS ended")])
    driver.handle(.answered(within: .zero))
    driver.pass(0)
    #expect(driver.take() == [.stop(.https), .publish, .takeReloads])
  }

  @Test func `browsers follow the page, and are told only of a server that they had`() throws {
    var driver = ServerDriver(.init(http: Self.http(1000)))
    driver.handle(.configured(.init(webRTC: .init(port: 2000), http: Self.http(1000))))
    #expect(driver.take() == [.check(.webRTC, []), .start(.webRTC), .publish])
    driver.handle(.configuredPeers(.init(port: 2001)))
    #expect(driver.take() == [.check(.webRTC, []), .start(.webRTC), .tell("WebRTC restarted"), .publish])
    driver.handle(.configuredPeers(.init(port: 2001)))
    #expect(driver.take() == [])
    driver.handle(.configured(.init()))
    #expect(driver.take() == [.stop(.webRTC), .tell("WebRTC ended"), .stop(.http), .tell("HTTP ended")])
  }
}

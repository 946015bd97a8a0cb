import Adaptors
import Foundation
import Platform
import Receiving
import TestSupport
import Testing

/// Servers that refuse, mislead, hang or break.
@Suite struct HostileServerTests {
  private static func configuration() -> StreamReceiver.Configuration {
    var configuration = StreamReceiver.Configuration(transport: .tcp, reconnects: false)
    configuration.answerTimeout = .seconds(60)
    return configuration
  }

  /// The reason for the end of a receiver.
  private static func end(
    of server: ScriptedServer, url: String? = nil, _ configuration: StreamReceiver.Configuration = configuration()
  ) async throws -> ReceiverError? {
    let receiver = try StreamReceiver(
      .rtsp(StreamURL(url ?? "rtsp://127.0.0.1:\(server.port)/camera")), configuration: configuration)
    let units = receiver.accessUnits()
    try receiver.start()
    for await _ in units {}
    server.end()
    return receiver.statistics.lastFailure
  }

  @Test func `a redirect is followed nowhere`() async throws {
    let elsewhere = try ScriptedServer { request, _ in Answers.playing(request) }
    let place = "rtsp://127.0.0.1:\(elsewhere.port)/camera"
    let server = try ScriptedServer { request, _ in
      Answers.response("302 Moved", to: request, ["Location: \(place)"])
    }
    #expect(try await Self.end(of: server) == .redirected(place))
    #expect(elsewhere.requests.isEmpty)
    elsewhere.end()
    // RFC 2326 section 10.10: a request of the server's.
    let asking = try ScriptedServer { request, _ in
      Answers.playing(request) + Array("REDIRECT rtsp://x/ RTSP/1.0\r\nCSeq: 1\r\nLocation: \(place)\r\n\r\n".utf8)
    }
    guard case .redirected? = try await Self.end(of: asking) else {
      Issue.record("it goes on")
      return
    }
  }

  @Test func `passwords are sent as Digest, and to nobody who wants them otherwise`() async throws {
    let basic = try ScriptedServer { request, _ in
      Answers.response("401 Unauthorized", to: request, ["WWW-Authenticate: Basic realm=\"camera\""])
    }
    guard case .credentials? = try await Self.end(of: basic, url: "rtsp://alice:secret@127.0.0.1:\(basic.port)/") else {
      Issue.record("it goes on")
      return
    }
    #expect(basic.requests.count == 1)
    #expect(basic.requests.allSatisfy { !$0.contains("secret") && !$0.contains("Authorization") })
    // A server that always has another nonce is not asked for ever.
    let stale = try ScriptedServer { request, _ in
      let nonce = UInt64.random(in: 0 ... .max)
      return Answers.response(
        "401 Unauthorized", to: request, ["WWW-Authenticate: Digest realm=\"c\", nonce=\"\(nonce)\", stale=true"])
    }
    guard case .credentials? = try await Self.end(of: stale, url: "rtsp://alice:secret@127.0.0.1:\(stale.port)/") else {
      Issue.record("it goes on")
      return
    }
    #expect(stale.requests.count == 3 && stale.requests.allSatisfy { !$0.contains("secret") })
  }

  @Test func `a server that is malformed, endless or mute is given up with its reason`() async throws {
    let endless = try ScriptedServer { request, _ in
      Array("RTSP/1.0 200 OK\r\nX: ".utf8) + [UInt8](repeating: 0x79, count: 1 << 20)
    }
    guard case .malformed? = try await Self.end(of: endless) else {
      Issue.record("endless")
      return
    }
    let unasked = try ScriptedServer { _, _ in Array("RTSP/1.0 200 OK\r\nCSeq: 999\r\n\r\n".utf8) }
    #expect(try await Self.end(of: unasked) == .malformed("the server answers a request that was not sent"))
    let large = try ScriptedServer { request, _ in
      Array("RTSP/1.0 200 OK\r\nCSeq: 1\r\nContent-Length: 1000000000\r\n\r\n".utf8)
    }
    guard case .malformed? = try await Self.end(of: large) else {
      Issue.record("large")
      return
    }
    let closing = try ScriptedServer { _, _ in nil }
    #expect(
      try await Self.end(of: closing) == .connection("the server closed the connection without an answer"))
    var configuration = Self.configuration()
    configuration.answerTimeout = .milliseconds(300)
    let mute = try ScriptedServer { _, _ in [] }
    guard case .time? = try await Self.end(of: mute, configuration) else {
      Issue.record("mute")
      return
    }
    configuration = Self.configuration()
    configuration.silenceTimeout = .milliseconds(300)
    let silent = try ScriptedServer { request, _ in Answers.playing(request) }
    guard case .silence? = try await Self.end(of: silent, configuration) else {
      Issue.record("silent")
      return
    }
    // The picture's track, not the sound's; and by the right names.
    #expect(
      silent.requests.map { $0.components(separatedBy: "\r\n")[0] }.prefix(4) == [
        "OPTIONS rtsp://127.0.0.1:\(silent.port)/camera RTSP/1.0",
        "DESCRIBE rtsp://127.0.0.1:\(silent.port)/camera RTSP/1.0",
        "SETUP rtsp://127.0.0.1:\(silent.port)/camera/trackID=1 RTSP/1.0",
        "PLAY rtsp://127.0.0.1:\(silent.port)/camera RTSP/1.0",
      ])
  }

  @Test func `a session is kept alive, and lost ones are begun again`() async throws {
    let server = try ScriptedServer { request, connection in
      // The first session is broken in mid-stream.
      if connection == 1, request.hasPrefix("GET_PARAMETER") { return nil }
      return Answers.playing(request)
    }
    var configuration = Self.configuration()
    configuration.reconnects = true
    configuration.silenceTimeout = .seconds(600)
    let receiver = try StreamReceiver(
      .rtsp(StreamURL("rtsp://127.0.0.1:\(server.port)/camera")), configuration: configuration)
    try receiver.start()
    // The session's timeout is two seconds: a request each second.
    #expect(await comesTrue { server.requests.filter { $0.hasPrefix("GET_PARAMETER") }.count >= 3 })
    // Where bytes of ours are on their way, the kernel ends the connection by a reset.
    let loss = try #require(receiver.statistics.lastFailure)
    #expect(receiver.statistics.attempts == 2 && loss.isTemporary, "\(loss)")
    #expect(server.requests.filter { $0.hasPrefix("PLAY") }.count == 2)
    let requests = server.requests.filter { $0.hasPrefix("GET_PARAMETER") }
    let sessions = requests.map { $0.components(separatedBy: "\r\n").filter { $0.hasPrefix("Session:") } }
    #expect(sessions.allSatisfy { $0 == ["Session: 77"] }, "\(requests)")
    receiver.stop()
    #expect(await comesTrue { server.requests.contains { $0.hasPrefix("TEARDOWN") } })
    server.end()
  }

  @Test func `hosts and ports without a server are told apart`() async throws {
    func reason(_ url: String) async throws -> ReceiverError? {
      let receiver = try StreamReceiver(.rtsp(StreamURL(url)), configuration: Self.configuration())
      let units = receiver.accessUnits()
      try receiver.start()
      for await _ in units {}
      return receiver.statistics.lastFailure
    }
    guard case .host? = try await reason("rtsp://no-such-host.invalid/") else {
      Issue.record("a host of the domain invalid")
      return
    }
    guard case .connection? = try await reason("rtsp://127.0.0.1:\(try TCPPort.free())/") else {
      Issue.record("a port without a server")
      return
    }
  }
}

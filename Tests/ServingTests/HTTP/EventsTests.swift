import Foundation
import Serving
import TestSupport
import Testing

/// The events, asked by curl and followed by the program.
@Suite struct EventsTests {
  /// The identifiers of the events in a stream of them, in their order. The last line may not be whole yet.
  private static func identifiers(in stream: String) -> [String] {
    stream.components(separatedBy: "\n").dropLast().filter { $0.hasPrefix("id: ") }.map { String($0.dropFirst(4)) }
  }

  /// The server has one alert: the event 1, which began.
  @Test func `the stream has the events after the last one that the client has`() throws {
    let served = try ServedControl()
    func stream(
      _ arguments: [String], _ query: String = "", until end: String = "\n\n"
    ) throws -> ServedControl.Answer {
      try served.stream(arguments, "/v1/events\(query)") { $0.contains(end) && $0.hasSuffix("\n\n") }
    }
    let answers = [
      try stream([], "?after=0", until: "data: "), try stream(["-H", "Last-Event-ID: 0"], until: "data: "),
      try stream([], "?after=77", until: "data: "),
    ]
    for answer in answers {
      #expect(answer.status == 200)
      #expect(HTTPFields(answer.headers)["content-type"] == "text/event-stream")
      #expect(HTTPFields(answer.headers)["cache-control"] == "no-store")
      let lines = answer.body.components(separatedBy: "\n")
      #expect(Array(lines.prefix(4)) == ["retry: 2000", "", "id: 1", "event: began"], "\(answer.body)")
      let data = try #require(lines.first { $0.hasPrefix("data: ") }).dropFirst(6)
      let event = try #require(JSONSerialization.jsonObject(with: Data(data.utf8)) as? [String: Any])
      #expect(event["kind"] as? String == "crying" && event["camera"] as? String == "camera")
      #expect(event["confidence"] as? Double == 0.83)
      #expect(event["pictures"] as? [String] == ["before", "after"])
    }
    for bad in ["?after=-1", "?after=x", "?after=", "?after=99999999999999999999999"] {
      #expect(try stream([], bad).status == 400, "\(bad)")
    }
    #expect(try stream(["-H", "Last-Event-ID: twelve"]).status == 400)
    #expect(try served.curl([], "/v1/events/history?limit=0").status == 400)
    #expect(try served.curl([], "/v1/events/history?limit=1001").status == 400)
  }

  @Test func `a client that has the last event, or wants none, gets the next one first`() throws {
    let served = try ServedControl()
    let clients = try ["?after=1", ""].map { query in
      try Subprocess(
        ["curl", "-sSN", "--unix-socket", served.socket, "http://localhost/v1/events\(query)"], in: served.directory)
    }
    defer { for client in clients { client.send(SIGKILL) } }
    for client in clients { try #require(eventually { client.outputSoFar.hasPrefix("retry: 2000\n\n") }) }
    #expect(try served.curl(["-d", "{}"], "/v1/events/ack").status == 200)
    for client in clients {
      try #require(eventually { client.outputSoFar.contains("data: ") })
      #expect(Self.identifiers(in: client.outputSoFar) == ["2"], "\(client.outputSoFar)")
    }
  }

  @Test func `nightjar events shows what happens, and an acknowledgement reaches it`() throws {
    let served = try ServedControl()
    func start(_ arguments: String...) throws -> Subprocess {
      try Subprocess([nightjarPath, "events", "--socket", served.socket] + arguments, in: served.directory)
    }
    func control(_ arguments: String...) throws -> Subprocess.Result {
      try Subprocess.run([nightjarPath, "ctl"] + arguments + ["--socket", served.socket], in: served.directory)
    }
    let words = try start("--after", "0")
    let json = try start("--after", "0", "--json")
    let new = try start()
    let other = try start("--after", "0", "--camera", "attic")
    defer { for one in [words, json, new, other] { one.send(SIGKILL) } }
    try #require(eventually { words.outputSoFar.contains("\n") && json.outputSoFar.contains("\n") })
    #expect(
      words.outputSoFar.hasSuffix(" camera: probably crying: 3 bursts (83.0 % sure), pictures: before, after\n"),
      "\(words.outputSoFar)")
    let listed = try control("events")
    #expect(listed.outputText == words.outputSoFar)
    // Until the last one follows too.
    try #require(try eventually { try served.curl([], "/v1/events/history").status == 200 })
    let acknowledged = try control("events", "ack", "1")
    #expect(acknowledged.status == 0, "\(acknowledged.error)")
    try #require(eventually { words.outputSoFar.hasSuffix(acknowledged.outputText) }, "\(words.outputSoFar)")
    #expect(words.outputSoFar.split(separator: "\n").count == 2)
    try #require(
      eventually { json.outputSoFar.split(separator: "\n").count == 2 && json.outputSoFar.hasSuffix("\n") })
    let events = try json.outputSoFar.split(separator: "\n").map {
      try #require(JSONSerialization.jsonObject(with: Data($0.utf8)) as? [String: Any])
    }
    #expect(events.map { $0["state"] as? String } == ["began", "acknowledged"])
    #expect(events[1]["of"] as? Int == 1)
    let text = try #require(events[1]["text"] as? String)
    #expect(text.hasPrefix("probably crying: acknowledged by "), "\(text)")
    #expect(acknowledged.outputText.hasSuffix(" camera: \(text) (event 1)\n"), "\(acknowledged.outputText)")
    #expect(other.outputSoFar == "")
    #expect(try control("events", "ack").outputText == "nothing to acknowledge\n")
    let unknown = try control("events", "ack", "2")
    #expect(unknown.status == 66)
    #expect(unknown.log.failures == ["no alert began with the event 2: nightjar ctl events lists them"])
    #expect(try control("events", "--limit", "0").status == 64)
  }

  @Test func `a client that leaves takes nothing with it, and streams have a limit`() throws {
    let served = try ServedControl(connections: 8)
    // Six of eight connections may be streams.
    let clients = try (0..<6).map { _ in
      try Subprocess(
        ["curl", "-sSN", "--unix-socket", served.socket, "http://localhost/v1/events?after=0"], in: served.directory)
    }
    defer { for client in clients { client.send(SIGKILL) } }
    for client in clients { try #require(eventually { Self.identifiers(in: client.outputSoFar) == ["1"] }) }
    #expect(try served.curl([], "/v1/events").status == 429)
    for client in clients.prefix(3) { client.send(SIGKILL) }
    #expect(
      try eventually {
        try Self.identifiers(in: served.curl(["--max-time", "1"], "/v1/events?after=0").body) == ["1"]
      })
  }

  @Test func `a program that waits for events goes on after a restart of the stream`() throws {
    let directory = try TemporaryDirectory()
    let first = try ServedControl(in: directory)
    let follower = try Subprocess([nightjarPath, "events", "--after", "0", "--socket", first.socket], in: directory)
    defer { follower.send(SIGKILL) }
    try #require(eventually { follower.outputSoFar.split(separator: " ").first == "1" })
    _ = try first.finish()
    let second = try ServedControl(in: directory)
    let acknowledged = try Subprocess.run(
      [nightjarPath, "ctl", "events", "ack", "1", "--socket", second.socket], in: directory)
    #expect(acknowledged.status == 0, "\(acknowledged.error)")
    #expect(
      eventually { follower.outputSoFar.contains("acknowledged") }, "\(follower.outputSoFar) \(follower.errorSoFar)")
  }

  @Test func `without a stream the program says so`() throws {
    let directory = try TemporaryDirectory()
    let none = directory.path("none")
    let result = try Subprocess.run([nightjarPath, "events", "--socket", none], in: directory)
    #expect(result.status == 69)
    #expect(result.log.failures == [ControlClientError.noSocket(path: none).description])
  }
}

import Foundation
import TestSupport
import Testing

/// Clients that ask too much. Times are ten times what they need.
@Suite struct ConnectionLimitTests {
  @Test(arguments: [[], ["-H", "Transfer-Encoding: chunked"], ["-H", "Expect: 100-continue"]])
  func `a body of a megabyte is refused, and the connection lives on`(_ headers: [String]) throws {
    let served = try ServedControl()
    let file = served.directory.url.appendingPathComponent("megabyte")
    try Data(repeating: UInt8(ascii: " "), count: 1_000_000).write(to: file)
    let answer = try served.curl(headers + ["-X", "PUT", "--data-binary", "@\(file.path)"], "/v1/bitrate")
    #expect(answer.status == 413)
    #expect(answer.curl == 0)
    #expect(answer["limit"] == "4096")
    let next = try served.curl([], "/v1/status")
    #expect(next.status == 200)
  }

  @Test func `a body without an end is cut off`() throws {
    let served = try ServedControl()
    let connection = try RawConnection(served.socket)
    defer { connection.end() }
    _ = connection.send("PUT /v1/bitrate HTTP/1.1\r\nHost: x\r\nContent-Length: 1000000000000\r\n\r\n")
    let block = String(repeating: "x", count: 65_536)
    var sent = 0
    while sent < 10_000, connection.send(block) { sent += 1 }
    #expect(sent < 1000, "65 MB were taken")
    let after = try served.curl([], "/v1/status")
    #expect(after.status == 200)
  }

  @Test(arguments: ["X-Long: ", "GET /"])
  func `headers without an end are cut off`(_ beginning: String) throws {
    // What sends on and reads no refusal is held until its time is over.
    let served = try ServedControl(requestSeconds: 4)
    let connection = try RawConnection(served.socket)
    defer { connection.end() }
    if beginning.hasPrefix("X") { _ = connection.send("GET /v1/status HTTP/1.1\r\nHost: x\r\n") }
    _ = connection.send(beginning)
    let block = String(repeating: "x", count: 65_536)
    var sent = 0
    while sent < 10_000, connection.send(block) { sent += 1 }
    #expect(sent < 1000, "65 MB were taken")
    // On a busy host curl itself may take longer for its request than there is time.
    #expect(try eventually { try served.curl([], "/v1/status").status == 200 })
  }

  @Test(arguments: ["", "GET /v1/sta", "PUT /v1/bitrate HTTP/1.1\r\nHost: x\r\nContent-Length: 20\r\n\r\n{"])
  func `a client that stops on the way is dropped`(_ beginning: String) throws {
    let served = try ServedControl(requestSeconds: 3)
    let connection = try RawConnection(served.socket)
    defer { connection.end() }
    if !beginning.isEmpty { #expect(connection.send(beginning)) }
    #expect(connection.read(within: 30) == "")
    #expect(try served.finish() == ["listening", "stopped"])
  }

  @Test(arguments: ["GET /v1/status HTTP/1.1\r\nX: ", "PUT /v1/bitrate HTTP/1.1\r\nContent-Length: 4000\r\n\r\n"])
  func `a client that drips is dropped`(_ beginning: String) throws {
    let served = try ServedControl(requestSeconds: 3)
    let connection = try RawConnection(served.socket)
    defer { connection.end() }
    #expect(connection.send(beginning))
    var drops = 0
    while drops < 300, connection.send("x") {
      drops += 1
      usleep(100_000)
    }
    #expect(drops < 300)
  }

  @Test(arguments: ["\r\n\r\n\r\n", "hello\r\n\r\n", "GET / HTTP/9.9\r\n\r\n", "\u{16}\u{3}\u{1}\u{2}\u{0}\u{1}"])
  func `bytes that are not HTTP end the connection, and other clients are served`(_ text: String) throws {
    // Empty lines before a request are none yet (RFC 9112 section 2.2), and end with the time of one.
    let isNothing = text.allSatisfy(\.isNewline)
    let served = try ServedControl(requestSeconds: isNothing ? 3 : 60)
    let connection = try RawConnection(served.socket)
    defer { connection.end() }
    #expect(connection.send(text))
    let answer = connection.read(within: 30)
    #expect(isNothing ? answer == "" : answer?.hasPrefix("HTTP/1.1 400") == true, "\(answer ?? "still open")")
    if !isNothing { try Self.expectRefusal(try #require(answer)) }
    // On a busy host curl itself may take longer for its request than three seconds.
    let attempts = isNothing ? 6 : 1
    #expect(try (0..<attempts).contains { _ in try served.curl([], "/v1/status").status == 200 })
  }

  @Test func `a header that is too large is refused in words, whatever came before on the connection`() throws {
    let served = try ServedControl()
    let connection = try RawConnection(served.socket)
    defer { connection.end() }
    #expect(connection.send("GET /v1/status HTTP/1.1\r\nHost: x\r\n\r\n"))
    #expect(connection.send("GET /v1/status HTTP/1.1\r\nHost: x\r\nX-Long: \(String(repeating: "x", count: 9000))"))
    let answers = try #require(connection.read(within: 30))
    #expect(answers.hasPrefix("HTTP/1.1 200"))
    let second = try #require(answers.range(of: "HTTP/1.1 400"))
    try Self.expectRefusal(String(answers[second.lowerBound...]))
  }

  /// Checks that `answer` is as long as it says, and JSON as all others.
  private static func expectRefusal(_ answer: String) throws {
    let parts = answer.components(separatedBy: "\r\n\r\n")
    try #require(parts.count == 2, "\(answer)")
    let fields = HTTPFields(parts[0])
    #expect(fields["content-type"] == "application/json")
    #expect(fields["content-length"] == "\(parts[1].utf8.count)")
    let object = try JSONSerialization.jsonObject(with: Data(parts[1].utf8)) as? [String: Any]
    #expect(object?["failure"] as? String == "usage")
    let limit = try #require(object?["limit"] as? String)
    #expect(
      object?["error"] as? String
        == "the request is not HTTP/1.1, or its header has more than \(limit) bytes: send one such as GET /v1/status")
  }

  @Test func `one connection too many is refused, and accepted when another has ended`() throws {
    let served = try ServedControl(connections: 2)
    // The one that found it listening has ended, but the server may not have seen it yet.
    #expect(try eventually { try served.curl([], "/v1/status").status == 200 })
    #expect(try eventually { try served.connections() == 0 })
    var held = [try Self.held(by: served), try Self.held(by: served)]
    let third = try served.curl([], "/v1/status")
    #expect(third.status == 503)
    #expect(third["error"] == "more than 2 connections at a time: try again in a moment")
    held.removeLast().end()
    #expect(try eventually { try served.curl([], "/v1/status").status == 200 })
    held.removeLast().end()
  }

  /// Returns a connection that has a place: one is refused while the server has not seen yet that curl's has ended.
  private static func held(by served: ServedControl) throws -> RawConnection {
    var connection = try RawConnection(served.socket)
    let hasPlace = try eventually {
      if connection.read(within: 1) == nil { return true }
      connection.end()
      connection = try RawConnection(served.socket)
      return false
    }
    try #require(hasPlace)
    return connection
  }

  @Test func `it ends while clients are connected`() throws {
    let served = try ServedControl()
    let connection = try RawConnection(served.socket)
    defer { connection.end() }
    #expect(connection.send("GET /v1/status HTTP/1.1\r\n"))
    #expect(try served.finish() == ["listening", "stopped"])
    #expect(connection.read(within: 1) == "")
  }

  /// Asks for a picture of six million bytes, takes so many each tenth of a second for `seconds`, and then what is left at once;
  /// how many came, and the longest pause of the reader in seconds.
  ///
  /// - Parameter half: `true` closes the client's side of the connection behind the request, and takes all that comes until the
  ///   server closes its side.
  private static func read(
    _ bytes: Int, for seconds: Int, from served: ServedControl, half: Bool = false
  ) throws -> (count: Int, pause: Double) {
    let script = """
      import socket, sys, time
      s = socket.socket(socket.AF_UNIX)
      s.connect(sys.argv[1])
      s.sendall(b"GET /snapshot.jpg HTTP/1.1\\r\\nHost: localhost\\r\\n\\r\\n")
      if sys.argv[4] == "true": s.shutdown(socket.SHUT_WR)
      count, pause, last = 0, 0.0, time.monotonic()
      end = last + int(sys.argv[3])
      s.settimeout(60)
      try:
          while sys.argv[4] == "true" or count < 6000000:
              now = time.monotonic()
              pause, last = max(pause, now - last), now
              is_slow = now < end
              part = s.recv(int(sys.argv[2]) if is_slow else 65536)
              if not part: break
              count += len(part)
              if is_slow: time.sleep(0.1)
      except ConnectionError: pass
      print(count, max(pause, time.monotonic() - last))
      """
    let result = try Subprocess.run(
      ["python3", "-c", script, served.socket, "\(bytes)", "\(seconds)", "\(half)"], in: served.directory)
    let words = result.outputText.split(whereSeparator: \.isWhitespace)
    let count = try #require(words.first.flatMap { Int($0) }, "\(result.error)")
    return (count, try #require(words.last.flatMap { Double($0) }, "\(result.outputText)"))
  }

  @Test func `who reads steadily gets all of it, however long that takes`() throws {
    let served = try ServedControl(requestSeconds: 4, cameras: ["large"])
    // Some nine seconds.
    var taken = try Self.read(70_000, for: 100, from: served)
    // A reader that the host holds up is none that reads steadily.
    for _ in 0..<4 where taken.count <= 6_000_000 && taken.pause > 2 {
      taken = try Self.read(70_000, for: 100, from: served)
    }
    #expect(taken.count > 6_000_000, "the longest pause was \(taken.pause) s")
  }

  @Test func `who has closed its side of the connection gets all of it too, and then its end`() throws {
    let served = try ServedControl(cameras: ["large"])
    let headers = try served.curl([], "/snapshot.jpg").headers
    let bytes = try #require(HTTPFields(headers)["content-length"].flatMap { Int($0) }, "\(headers)")
    #expect(bytes > 6_000_000)
    let count = try Self.read(70_000, for: 1, from: served, half: true).count
    #expect(count == headers.utf8.count + bytes)
  }

  @Test func `who has closed its side and reads nothing is dropped`() throws {
    let served = try ServedControl(requestSeconds: 4, cameras: ["large"])
    #expect(try eventually { try served.connections() == 0 })
    let connection = try RawConnection(served.socket)
    defer { connection.end() }
    #expect(connection.send("GET /snapshot.jpg HTTP/1.1\r\nHost: x\r\n\r\n"))
    connection.endOutput()
    #expect(eventually { served.process.outputSoFar.contains("look\n") })
    #expect(try eventually { try served.connections() == 0 })
  }

  @Test func `who takes a little now and then is dropped`() throws {
    let served = try ServedControl(requestSeconds: 2, cameras: ["large"])
    // 10 kB a second, where 64 kB are asked for; what lay in the socket comes still.
    let count = try Self.read(1000, for: 10, from: served).count
    #expect((1..<1_000_000).contains(count), "\(count)")
  }

  @Test func `streams leave room for whoever asks briefly`() throws {
    let served = try ServedControl(connections: 8)
    let streams = try (0..<6).map { _ in
      try Subprocess(
        ["curl", "-sS", "--unix-socket", served.socket, "-o", "/dev/null", "http://localhost/stream.mjpg"],
        in: served.directory)
    }
    defer { for stream in streams { stream.send(SIGKILL) } }
    let process = served.process
    #expect(eventually { process.outputSoFar.components(separatedBy: "look\n").count > 6 })
    func ask(_ route: String) throws -> ServedControl.Answer {
      // A request that is answered keeps its place until the server has seen that curl has ended.
      try #require(try eventually { try served.connections() == streams.count })
      return try served.curl([], route)
    }
    for _ in 0..<3 {
      let seventh = try ask("/stream.mjpg")
      #expect(seventh.status == 429 && seventh["limit"] == "6", "\(seventh)")
      #expect(HTTPFields(seventh.headers)["retry-after"] == "10")
      #expect(try ask("/healthz").status == 200)
    }
    for stream in streams { #expect(stream.isRunning) }
    streams[0].send(SIGKILL)
    #expect(try eventually { try served.curl(["--max-time", "1"], "/stream.mjpg").status == 200 })
  }

  @Test func `a picture that cannot be made is no fault of who asks`() throws {
    let served = try ServedControl(cameras: ["broken"])
    let answer = try served.curl([], "/snapshot.jpg")
    #expect(answer.status == 500 && answer["error"] == "the picture is damaged", "\(answer)")
  }
}

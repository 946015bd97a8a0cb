import Foundation
import TestSupport
import Testing

/// The control API over TCP, asked by curl. Times are ten times what they need.
@Suite struct NetworkControlTests {
  private static let right = ["-X", "PUT", "-d", #"{"degrees":90}"#]

  @Test func `a request with a password, a token or, to read, a token in the URL is served`() throws {
    let server = try NetworkControl()
    for login in [server.basic, server.bearer, ["-H", "Authorization: bearer  \(server.token)"]] {
      let status = try server.curl(login, "/v1/status")
      #expect(status.status == 200, "\(status.body)")
      #expect(status.curl == 0)
      let fields = HTTPFields(status.headers)
      for (name, value) in [
        "content-type": "application/json", "cache-control": "no-store", "x-content-type-options": "nosniff",
        "referrer-policy": "no-referrer", "cross-origin-resource-policy": "same-origin",
      ] { #expect(fields[name] == value, "\(name)") }
      #expect(try server.curl(login + Self.right, "/v1/orientation").status == 200)
    }
    #expect(try server.curl([], "/v1/status?token=\(server.token)").status == 200)
    #expect(try server.curl(["-I"], "/v1/viewers?token=\(server.token)").status == 200)
    let changing = try server.curl(Self.right, "/v1/orientation?token=\(server.token)")
    #expect(changing.status == 401)
    #expect(
      changing["error"] == "a token in the URL is for reading only: send it as Authorization: Bearer")
    let both = try server.curl(server.bearer, "/v1/status?token=\(server.token)")
    #expect(both.status == 400)
    let turned = ["alice", "token doorbell", "token doorbell"].flatMap { _ in ["rotate 90"] }
    let notes = ["alice", "token doorbell", "token doorbell"].map {
      "note: control: \($0) (role control) at 127.0.0.1: PUT /v1/orientation: 90 degrees"
    }
    #expect(try server.finish() == turned + notes + ["stopped"])
  }

  @Test func `without a login it says how to log in, and counts nothing`() throws {
    let server = try NetworkControl()
    let answer = try server.curl([], "/v1/status")
    #expect(answer.status == 401)
    #expect(answer["failure"] == "no_permission")
    let challenges = answer.headers.lowercased().components(separatedBy: "\r\n").filter {
      $0.hasPrefix("www-authenticate")
    }
    #expect(
      challenges == [
        #"www-authenticate: basic realm="nightjar", charset="utf-8""#, #"www-authenticate: bearer realm="nightjar""#,
      ])
    #expect(try server.curl([], "/v1/nothing").status == 401)
    #expect(try server.finish() == ["stopped"])
  }

  @Test func `a wrong login waits for its answer, each longer than the last, and is told`() throws {
    let server = try NetworkControl()
    var answered: [Double] = []
    let start = Date()
    for login in [
      ["-u", "alice:wrong horse"], ["-H", "Authorization: Bearer \(server.token)x"], ["-u", "mallory:correct horse"],
    ] {
      let answer = try server.curl(login, "/v1/status")
      answered.append(Date().timeIntervalSince(start))
      #expect(answer.status == 401)
      #expect(answer["error"] == "wrong name, password or token")
      #expect(answer.headers.contains("invalid_token") == (login[0] == "-H"))
    }
    // The first at once, and the others 1 and 2 s after the one before.
    #expect(answered[1] >= 1 && answered[2] >= 3, "\(answered)")
    // Who is right waits for as long as another guess would.
    #expect(try server.curl(server.basic, "/v1/status").status == 200)
    #expect(
      try server.finish() == [
        "warning: control: 3 logins from 127.0.0.1 failed: wrong name, password or token", "stopped",
      ])
  }

  @Test func `many guesses at once are not looked at, and the server is there for the others`() throws {
    let server = try NetworkControl(requestSeconds: 5)
    let guesses = try (0..<12).map { number in
      try Subprocess(
        [
          "curl", "-sk", "--max-time", "120", "-o", "/dev/null", "-w", "%{http_code}", "-u",
          "alice:guess number \(number)",
          "https://localhost:\(server.port)/v1/status",
        ], in: server.served.directory)
    }
    defer { for guess in guesses { guess.send(SIGKILL) } }
    // After 0, 1, 3 s …, and then none is looked at; the time for a request does not end those that wait, as the fourth does.
    func codes() -> [String] { guesses.map(\.outputSoFar).filter { !$0.isEmpty } }
    #expect(eventually(within: 100) { codes().contains("503") && codes().count { $0 == "401" } >= 4 }, "\(codes())")
    #expect(Set(codes()) == ["503", "401"], "\(codes())")
    #expect(try server.served.curl([], "/v1/status").status == 200)
  }

  @Test(arguments: [
    "Basic", "Basic !!!", "Basic bm9jb2xvbg==", "Basic /////w==", "Bearer", "Digest username=\"alice\"", "x", "",
    "Basic \(String(repeating: "QUFB", count: 500))",
  ])
  func `a login that cannot be read is a failed one`(_ value: String) throws {
    let server = try NetworkControl()
    let answer = try server.curl(["-H", value.isEmpty ? "Authorization;" : "Authorization: \(value)"], "/v1/status")
    #expect(answer.status == 401, "\(value)")
    #expect(try server.curl(server.bearer, "/v1/status").status == 200)
  }

  @Test func `without users and tokens this host may read, and change nothing`() throws {
    let server = try NetworkControl(letsIn: false)
    #expect(try server.curl([], "/v1/status").status == 200)
    let refused = try server.curl(Self.right, "/v1/orientation")
    #expect(refused.status == 403)
    #expect(
      refused["error"]
        == "without users and tokens only the control socket allows changes: add one with nightjar user add NAME, "
        + "or nightjar token add NAME")
    #expect(try server.finish() == ["stopped"])
  }

  @Test func `users and tokens are exchanged while it runs`() throws {
    let server = try NetworkControl()
    let directory = server.served.directory
    let old = server.token
    #expect(try server.curl(["-H", "Authorization: Bearer \(old)"], "/v1/status").status == 200)
    let new = try NetworkControl.makeToken("doorbell", ["--replace"], in: directory)
    #expect(new != old && new.utf8.count == 43)
    try NetworkControl.addUser("bob", "another horse", in: directory)
    try server.readAgain()
    #expect(try server.curl(["-H", "Authorization: Bearer \(new)"], "/v1/status").status == 200)
    #expect(try server.curl(["-u", "bob:another horse"], "/v1/status").status == 200)
    #expect(try server.curl(["-H", "Authorization: Bearer \(old)"], "/v1/status").status == 401)
    for file in ["tokens", "users"] { unlink(directory.path(file)) }
    try server.readAgain()
    #expect(try server.curl([], "/v1/status").status == 200)
    #expect(try server.curl(server.basic + Self.right, "/v1/orientation").status == 403)
  }

  @Test func `what a page of another site sends is refused, password or not`() throws {
    let server = try NetworkControl()
    let own = "Origin: https://localhost:\(server.port)"
    for headers in [
      ["Origin: https://evil.example"], ["Origin: null"], ["Sec-Fetch-Site: cross-site"], ["Sec-Fetch-Site: same-site"],
      ["Origin: http://localhost:\(server.port)"], [own, "Sec-Fetch-Site: cross-site"],
    ] {
      let answer = try server.curl(server.basic + Self.right + headers.flatMap { ["-H", $0] }, "/v1/orientation")
      #expect(answer.status == 403, "\(headers)")
    }
    let answer = try server.curl(
      server.basic + Self.right + ["-H", own, "-H", "Sec-Fetch-Site: same-origin"], "/v1/orientation")
    #expect(answer.status == 200)
    #expect(
      try server.finish() == [
        "rotate 90", "note: control: alice (role control) at 127.0.0.1: PUT /v1/orientation: 90 degrees",
        "warning: control: 6 requests were refused that came by another name, through a proxy or from another site's page",
        "stopped",
      ])
  }

  @Test func `a page of another site can read only with a token in the URL`() throws {
    let server = try NetworkControl()
    let site = ["-H", "Sec-Fetch-Site: cross-site", "-H", "Sec-Fetch-Mode: no-cors", "-H", "Sec-Fetch-Dest: image"]
    for route in ["/snapshot.jpg", "/v1/status"] {
      #expect(try server.curl(server.basic + site, route).status == 403, "\(route)")
      #expect(try server.curl(server.basic + ["-e", "https://evil.example/"], route).status == 403, "\(route)")
    }
    let image = try server.curl(site, "/snapshot.jpg?token=\(server.token)")
    #expect(image.status == 200 && HTTPFields(image.headers)["cross-origin-resource-policy"] == "cross-origin")
    let own = try server.curl(server.basic, "/snapshot.jpg")
    #expect(own.status == 200 && HTTPFields(own.headers)["cross-origin-resource-policy"] == "same-origin")
  }

  @Test func `without users and tokens nobody may ask through a proxy`() throws {
    let server = try NetworkControl(letsIn: false)
    for field in ["X-Forwarded-For: 192.0.2.9", "Forwarded: for=192.0.2.9", "Host: camera.example"] {
      #expect(try server.curl(["-H", field], "/v1/status").status == 403, "\(field)")
    }
    #expect(try server.curl([], "/v1/status").status == 200)
  }

  @Test func `files of the machine are named over the control socket alone`() throws {
    let server = try NetworkControl()
    let body = ["-X", "POST", "-d", #"{"url":"srtp://192.0.2.7:5004?KEY-FILE=/etc/shadow"}"#]
    #expect(try server.curl(server.basic + body, "/v1/destinations").status == 403)
    #expect(try server.served.curl(body, "/v1/destinations").status == 200)
  }

  @Test(arguments: [["-H", "Expect:"], ["-H", "Expect:", "-H", "Transfer-Encoding: chunked"], []])
  func `a body of a gigabyte is refused at once, and its connection ends`(_ headers: [String]) throws {
    let server = try NetworkControl()
    let file = server.served.directory.path("gigabyte")
    #expect(try Subprocess.run(["truncate", "-s", "1G", file], in: server.served.directory).status == 0)
    let upload = ["-X", "PUT", "-T", file, "-w", "%{http_code} %{size_upload}"] + headers
    for isNetwork in [true, false] {
      let answer =
        isNetwork
        ? try server.curl(server.basic + upload, "/v1/bitrate") : try server.served.curl(upload, "/v1/bitrate")
      let fields = HTTPFields(answer.headers)
      #expect(fields.version == "http/1.1" && fields.status == 413, "\(answer)")
    }
    #expect(try server.curl(server.basic, "/v1/status").status == 200)
  }

  @Test func `a connection that asks nothing, or idles longest, makes room for a new one`() throws {
    let server = try NetworkControl(connections: 3)
    // One has asked and idles, one has shaken hands, and one has sent nothing at all. Each new one costs one of them.
    let script = """
      import socket, ssl, sys
      context = ssl._create_unverified_context()
      def connect(): return socket.create_connection(("127.0.0.1", int(sys.argv[1])))
      def secure(): return context.wrap_socket(connect())
      def answer(one):
          one.sendall(b"GET / HTTP/1.1\\r\\nHost: localhost\\r\\n\\r\\n")
          head = b""
          while b"\\r\\n\\r\\n" not in head: head += one.recv(1)
          length = int(head.lower().split(b"content-length: ")[1].split(b"\\r\\n")[0])
          while length: length -= len(one.recv(length))
          return head.split()[1].decode()
      def closed(one):
          try: return one.recv(1) == b""
          except OSError: return True
      asked = secure()
      print(answer(asked), flush=True)
      shaken, silent = secure(), connect()
      for one in (asked, shaken, silent): one.settimeout(60)
      first = secure()
      print(answer(first), closed(shaken), flush=True)
      second = secure()
      print(answer(second), closed(silent), flush=True)
      print(answer(first), flush=True)
      third = secure()
      print(answer(third), closed(asked), answer(first), flush=True)
      """
    let client = try Subprocess.run(
      ["python3", "-c", script, "\(server.port)"], in: server.served.directory, limit: 100)
    #expect(client.outputText == "200\n200 True\n200 True\n200\n200 True 200\n", "\(client.error)")
  }

  @Test func `one address has a limit of connections, which requests in progress do not give up`() throws {
    let server = try NetworkControl(connections: 3)
    let arguments =
      ["curl", "-skS", "-o", "/dev/null"] + server.bearer + ["https://localhost:\(server.port)/stream.mjpg"]
    let streams = try (0..<3).map { _ in try Subprocess(arguments, in: server.served.directory) }
    defer { for stream in streams { stream.send(SIGKILL) } }
    let process = server.served.process
    try #require(eventually { process.outputSoFar.components(separatedBy: "look\n").count > 3 })
    let refused = try server.curl(server.bearer, "/v1/status")
    #expect(refused.status == 429 && HTTPFields(refused.headers)["retry-after"] == "10")
    #expect(refused["error"] == "more than 3 connections at a time from one address: try again in a moment")
    for stream in streams { #expect(stream.isRunning) }
    streams[0].send(SIGKILL)
    #expect(try eventually { try server.curl(server.bearer, "/v1/status").status == 200 })
  }

  @Test func `a client without TLS or a request is dropped`() throws {
    let server = try NetworkControl(requestSeconds: 2)
    let script = """
      import socket, sys
      address = ("127.0.0.1", int(sys.argv[1]))
      held = [socket.create_connection(address) for _ in range(3)]
      for connection in held:
          connection.settimeout(60)
          try: print(connection.recv(100) == b"")
          except ConnectionError: print(True)
      plain = socket.create_connection(address)
      plain.sendall(b"GET /v1/status HTTP/1.1\\r\\nHost: x\\r\\n\\r\\n")
      plain.settimeout(60)
      try:
          data = plain.recv(4096)
          while data and b"HTTP" not in data: data = plain.recv(4096)
          print(b"HTTP" not in data)
      except ConnectionError: print(True)
      """
    let holder = try Subprocess.run(
      ["python3", "-c", script, "\(server.port)"], in: server.served.directory, limit: 100)
    #expect(holder.outputText == "True\nTrue\nTrue\nTrue\n", "\(holder.error)")
    // On a busy host curl itself may take longer for its request than there is time.
    #expect(try eventually { try server.curl(server.bearer, "/v1/status").status == 200 })
  }

  @Test(arguments: [("h2,http/1.1", "ALPN protocol: http/1.1"), ("h2", "No ALPN negotiated")])
  func `of the versions that a client offers, HTTP 1_1 is chosen`(offered: String, line: String) throws {
    let server = try NetworkControl(letsIn: false)
    let result = try Subprocess.run(
      ["sh", "-c", "echo | openssl s_client -alpn \(offered) -connect 127.0.0.1:\(server.port)"],
      in: server.served.directory)
    #expect(result.outputText.contains("\n\(line)\n"), "\(result.outputText)\(result.error)")
  }

  @Test func `a port that is taken is one line`() throws {
    let server = try NetworkControl()
    let directory = server.served.directory
    let result = try Subprocess.run(
      [
        nightjarPath, "stream", "--source", "test", "--https", "127.0.0.1:\(server.port)", "--control", "none",
        "--tokens", directory.path("tokens"), "--users", directory.path("users"), "--duration", "1s",
      ], in: directory, environment: ["STATE_DIRECTORY": directory.url.path])
    #expect(result.status == 75, "\(result.error)")
    #expect(
      result.log.failures == [
        "cannot listen for the control API at 127.0.0.1 port \(server.port): another program listens there; choose "
          + "another port, or end that program (sudo ss -ltnp sport = :\(server.port) shows it)"
      ])
  }
}

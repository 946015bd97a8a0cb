import Foundation
import TestSupport
import Testing

/// The requests that each role may make over the network, asked by curl.
@Suite struct RoleTests {
  private static let roles = ["read", "view", "control"]

  /// A request of the document with its example of a body, and the role that it names.
  private struct Operation {
    let method: String
    let path: String
    let body: String?
    let role: String

    /// Returns `true` if the role is that of the document, or above it.
    func isFor(_ other: String) -> Bool {
      RoleTests.roles.drop { $0 != role }.contains(other)
    }
  }

  /// The operations by path, DELETE as the last one of each: what it removes has been added then.
  private static func operations() throws -> [Operation] {
    let data = try Data(contentsOf: packageRoot.appendingPathComponent("docs/openapi.json"))
    let document = try #require(JSONSerialization.jsonObject(with: data) as? [String: Any])
    let paths = try #require(document["paths"] as? [String: [String: Any]])
    return try paths.sorted { $0.key < $1.key }.flatMap { path, item in
      try item.sorted { $0.key > $1.key }.compactMap { method, operation in
        guard let operation = operation as? [String: Any] else { return nil }
        let security = try #require(operation["security"] as? [[String: [String]]], "\(method) \(path)")
        // A phone with a one-time code has no role yet.
        guard !security.isEmpty else { return nil }
        // The same for each way to log in; a token in the URL changes nothing.
        #expect(security.flatMap(\.keys).sorted() == ["basic", "bearer"] + (method == "get" ? ["query"] : []))
        let roles = Set(security.flatMap(\.values))
        try #require(roles.count == 1 && roles.first?.count == 1, "\(method) \(path)")
        return Operation(
          method: method.uppercased(),
          path: path.replacing("{camera}", with: "camera").replacing("{phone}", with: "anna")
            .replacing("{event}", with: "1"),
          body: try OpenAPITests.body(of: operation)?.text, role: try #require(roles.first?.first))
      }
    }
  }

  @Test(arguments: roles, ["user", "token"])
  func `every request is for the role that the document names and those above, and each change is told once`(
    role: String, kind: String
  ) throws {
    let server = try NetworkControl()
    let directory = server.served.directory
    let login: [String]
    if kind == "user" {
      try NetworkControl.addUser("someone", "another horse", role: role, in: directory)
      login = ["-u", "someone:another horse"]
    } else {
      let token = try NetworkControl.makeToken("someone", ["--role", role], in: directory)
      login = ["-H", "Authorization: Bearer \(token)"]
    }
    try server.readAgain()
    if role == "control" {
      // A phone to be shut out.
      let added = try server.served.curl(["-d", try OpenAPITests.introduction(server.served)], "/v1/phones")
      #expect(added["name"] == "anna", "\(added.body)")
    }
    let operations = try Self.operations()
    #expect(operations.count >= 30)
    // One curl for all; a stream has no end, so that it is asked for by HEAD, which is the same route but for its body.
    var arguments = ["curl"]
    for operation in operations {
      let method = OpenAPITests.isStream(operation.path) ? ["-I"] : ["-X", operation.method]
      arguments += arguments.count > 1 ? ["--next"] : []
      arguments +=
        ["-sSk", "--max-time", "60", "-o", "/dev/null", "-w", "%{http_code}\\n"] + login + method
        + (operation.body.map { ["-d", $0] } ?? []) + ["https://localhost:\(server.port)\(operation.path)"]
    }
    let result = try Subprocess.run(arguments, in: directory)
    let codes = result.outputText.split(separator: "\n")
    try #require(codes.count == operations.count, "\(result.error)")
    for (operation, code) in zip(operations, codes) {
      #expect(code == (operation.isFor(role) ? "200" : "403"), "\(operation) as \(role): \(code)")
    }
    let asked = try server.finish()
    let orders = asked.filter { $0 == "reload" || $0 == "key frame" }
    #expect(orders.count == (role == "control" ? 3 : 0), "\(asked)")
    // Whatever changes something is told once, with who did it; what was refused is not among it.
    let who = "note: control: \(kind == "user" ? "" : "token ")someone (role \(role)) at 127.0.0.1: "
    let told = asked.filter { $0.hasPrefix("note: control: ") && $0.contains("someone") }
    let changes = operations.filter { $0.method != "GET" && $0.isFor(role) }
    #expect(changes.isEmpty == (role == "read"))
    for change in changes {
      let order = "\(who)\(change.method) \(change.path)"
      let lines = told.filter { $0 == order || $0.hasPrefix("\(order): ") }
      #expect(lines.count == 1 && lines.first?.hasSuffix(", not done") == false, "\(change): \(told)")
    }
    #expect(told.count == changes.count, "\(told)")
  }

  @Test func `a refusal names the role that is needed and what gives it, however the path is written`() throws {
    let server = try NetworkControl()
    let directory = server.served.directory
    let token = try NetworkControl.makeToken("wall", ["--role", "view"], in: directory)
    try NetworkControl.addUser("eve", "another horse", role: "read", in: directory)
    try server.readAgain()
    let wall = ["-H", "Authorization: Bearer \(token)"]
    let add = ["--path-as-is", "-X", "POST", "-d", #"{"url":"rtp://192.0.2.7:5004"}"#]
    let refused = try server.curl(wall + add, "/v1/destinations")
    #expect(refused.status == 403)
    #expect(refused["limit"] == "control" && refused["value"] == "view" && refused["field"] == "role")
    #expect(
      refused["error"]
        == "token wall has the role view, and this needs control; nightjar token role wall control gives it")
    for path in [
      "//v1/destinations", "/v1//destinations", "/v1/destinations/", "/v1/%64estinations", "/v1/./destinations",
      "/v1/cameras/camera/destinations", "/v1/cameras/camera//destinations/", "/v1/status/../destinations",
    ] {
      #expect([403, 404].contains(try server.curl(wall + add, path).status), "\(path)")
    }
    let picture = try server.curl(["-u", "eve:another horse"], "/snapshot.jpg")
    #expect(picture.status == 403 && picture["limit"] == "view")
    #expect(
      picture["error"]
        == "eve has the role read, and this needs view; nightjar user role eve view gives it")
    for path in [
      "//snapshot.jpg", "/snapshot.jpg/", "/snapshot%2ejpg", "/cameras//camera/snapshot.jpg", "/SNAPSHOT.jpg",
    ] {
      let answer = try server.curl(["--path-as-is", "-u", "eve:another horse"], path)
      #expect([403, 404].contains(answer.status), "\(path)")
    }
    // A large body of somebody who may not is not read to the end.
    let told = try server.finish()
    #expect(!told.contains { $0.hasPrefix("add ") || $0 == "look" }, "\(told)")
    #expect(
      told.contains {
        $0.hasPrefix("warning: control: ")
          && $0.contains(" of token wall at 127.0.0.1 refused: ")
          // One request, or the last of several.
          && $0.contains(/POST \/[a-z0-9\/.%]*destinations\/?,? needs the role control$/)
      },
      "\(told)")
  }

  @Test func `a change is logged with user, address and values, and destinations with their address`() throws {
    let server = try NetworkControl()
    let url = "rtp://192.0.2.7:5004"
    let body = ["-d", #"{"url":"\#(url)"}"#]
    #expect(try server.curl(server.bearer + ["-X", "POST"] + body, "/v1/destinations").status == 200)
    #expect(try server.curl(server.basic + ["-X", "DELETE"] + body, "/v1/cameras/camera/destinations").status == 200)
    #expect(try server.served.curl(["-X", "POST"] + body, "/v1/destinations").status == 200)
    let bitrate = ["-X", "PUT", "-d", #"{"bits_per_second":1000000}"#]
    #expect(try server.curl(server.basic + bitrate, "/v1/bitrate").status == 500)
    let controls = ["-X", "PUT", "-d", #"{"controls":{"gain":null,"brightness":10}}"#]
    #expect(try server.curl(server.basic + controls, "/v1/controls").status == 200)
    let told = try server.finish().filter { $0.hasPrefix("note: ") }
    let alice = "note: control: alice (role control) at 127.0.0.1: "
    #expect(
      told.prefix(4) == [
        "note: control: token doorbell (role control) at 127.0.0.1: POST /v1/destinations: \(url)",
        alice + "DELETE /v1/cameras/camera/destinations: \(url)",
        alice + "PUT /v1/bitrate: 1000000 bit/s, not done",
        alice + "PUT /v1/controls: brightness=10 gain=as usual",
      ])
    let local = try #require(told.last)
    let words = "uid \(geteuid()), pid [0-9]+ \\(role control\\) at the control socket: POST /v1/destinations: \(url)"
    #expect(local.range(of: "^note: control: \(words)$", options: .regularExpression) != nil, "\(told)")
  }

  @Test func `a role that is taken away ends what it was for`() throws {
    let server = try NetworkControl()
    let directory = server.served.directory
    let token = try NetworkControl.makeToken("wall", ["--role", "view"], in: directory)
    try server.readAgain()
    let stream = try Subprocess(
      ["curl", "-sSk", "-o", "/dev/null", "https://localhost:\(server.port)/stream.mjpg?token=\(token)"], in: directory)
    let process = server.served.process
    try #require(eventually { process.outputSoFar.split(separator: "\n").contains { $0.hasPrefix("sent ") } })
    let changed = try Subprocess.run(
      [nightjarPath, "token", "role", "wall", "read", "--tokens", directory.path("tokens")], in: directory)
    #expect(changed.status == 0, "\(changed.error)")
    try server.readAgain()
    #expect(eventually { !stream.isRunning })
    #expect(try server.curl([], "/v1/status?token=\(token)").status == 200)
    #expect(try server.curl([], "/snapshot.jpg?token=\(token)").status == 403)
  }

  @Test func `streams whose token is taken away end, and are no failed logins`() throws {
    let server = try NetworkControl()
    let directory = server.served.directory
    let token = try NetworkControl.makeToken("wall", ["--role", "view"], in: directory)
    try server.readAgain()
    let files = (0..<3).map { directory.path("stream\($0)") }
    let streams = try files.map {
      try Subprocess(
        ["curl", "-sSkN", "-o", $0, "https://localhost:\(server.port)/stream.mjpg?token=\(token)"], in: directory)
    }
    try #require(eventually { files.allSatisfy { FileManager.default.contents(atPath: $0)?.isEmpty == false } })
    let removed = try Subprocess.run(
      [nightjarPath, "token", "remove", "wall", "--tokens", directory.path("tokens")], in: directory)
    #expect(removed.status == 0, "\(removed.error)")
    try server.readAgain()
    #expect(eventually { !streams.contains { $0.isRunning } })
    #expect(try server.curl([], "/v1/status?token=\(token)").status == 401)
    let failed = try server.finish().filter { $0.contains("failed") }
    #expect(failed == ["warning: control: a login from 127.0.0.1 failed: wrong name, password or token"])
  }

  @Test func `files of before there were roles let look, and a line names what gives a token its role`() throws {
    let server = try NetworkControl()
    let directory = server.served.directory
    for file in ["tokens", "users"] {
      let former = try Subprocess.run(["sed", "-i", "s/:role=.*//", directory.path(file)], in: directory)
      #expect(former.status == 0)
    }
    try server.readAgain()
    for login in [server.basic, server.bearer] {
      #expect(try server.curl(login, "/snapshot.jpg").status == 200)
      #expect(try server.curl(login + ["-X", "POST"], "/v1/keyframe").status == 403)
    }
    func stream() throws -> String {
      // The server is at another address, so that its port is free here.
      let result = try Subprocess.run(
        [
          nightjarPath, "stream", "--source", "test", "--size", "320x240", "--control", "none", "--https",
          "127.0.0.2:\(server.port)", "--tokens", directory.path("tokens"), "--users", directory.path("users"),
          "--duration", "300ms",
        ], in: directory, environment: ["STATE_DIRECTORY": directory.url.path])
      #expect(result.status == 0, "\(result.error)")
      return result.error
    }
    func warnings() throws -> [String] { ProgramLog(try stream()).warnings.filter { $0.hasPrefix("tokens ") } }
    let warned = try warnings()
    let match = try #require(
      warned.first?.wholeMatch(
        of: /tokens without a role read and watch, but change nothing: doorbell; give each one: nightjar (.*)/),
      "\(warned)")
    let mended = try Subprocess.run(["sh", "-c", "'\(nightjarPath)' \(match.1)"], in: directory)
    #expect(mended.status == 0, "\(mended.error)")
    #expect(try warnings() == [])
    try server.readAgain()
    #expect(try server.curl(server.bearer + ["-X", "POST"], "/v1/keyframe").status == 200)
  }

  @Test func `a user keeps the role with another password, and the password with another role`() throws {
    let directory = try TemporaryDirectory()
    let file = directory.path("users")
    func user(_ arguments: String, password: String = "long enough") throws -> Subprocess.Result {
      try Subprocess.run(
        ["sh", "-c", "echo '\(password)' | '\(nightjarPath)' user \(arguments) --users '\(file)'"], in: directory)
    }
    func told(_ result: Subprocess.Result) -> Substring? { result.outputText.split(separator: "\n").first }
    #expect(try told(user("add anna")) == "added anna in \(file), role view")
    let before = try String(contentsOfFile: file, encoding: .utf8)
    #expect(try user("role anna control").status == 0)
    #expect(try String(contentsOfFile: file, encoding: .utf8) == before.dropLast() + ":role=control\n")
    #expect(
      try told(user("add anna", password: "another one")) == "anna has a new password in \(file), role control")
    #expect(try user("add prom --role read").status == 0)
    #expect(try user("list").outputText == "anna\tcontrol\tSHA-256 MD5\nprom\tread\tSHA-256 MD5\n")
    #expect(try user("role bert view").status == 66)
    #expect(try user("role anna king").status == 64)
  }
}

import Foundation
import TestSupport
import Testing

/// The browsers that subscribe to alerts, by curl.
@Suite struct PushTests {
  private static let path = "/v1/push"

  private static func body(
    _ endpoint: String = "https://push.example.net/a", key: String = PushSubscriptionsTests.keys.p256dh,
    secret: String = PushSubscriptionsTests.keys.auth
  ) -> String {
    #"{"endpoint":"\#(endpoint)","keys":{"p256dh":"\#(key)","auth":"\#(secret)"}}"#
  }

  /// The endpoints in the file of the server.
  private static func endpoints(_ server: NetworkControl) throws -> [String] {
    let file = server.served.directory.path("control.sock.push/push-subscriptions")
    let text = (try? String(contentsOfFile: file, encoding: .utf8)) ?? ""
    return try text.split(separator: "\n").map { line in
      let object = try #require(try JSONSerialization.jsonObject(with: Data(line.utf8)) as? [String: String])
      return "\(object["owner"] ?? "") \(object["endpoint"] ?? "")"
    }
  }

  @Test func `a log-in that may watch adds its browsers and removes them, and no one else's`() throws {
    let server = try NetworkControl()
    let directory = server.served.directory
    let wall = try NetworkControl.makeToken("wall", ["--role", "view"], in: directory)
    try NetworkControl.addUser("eve", "another horse", role: "view", in: directory)
    try NetworkControl.addUser("ray", "another horse", role: "read", in: directory)
    try server.readAgain()
    let (eve, ray) = (["-u", "eve:another horse"], ["-u", "ray:another horse"])
    let token = ["-H", "Authorization: Bearer \(wall)"]
    for login in [ray, []] {
      for arguments in [[], ["-d", Self.body()], ["-X", "DELETE", "-d", #"{"endpoint":"https://a/"}"#]] {
        #expect(try server.curl(login + arguments, Self.path).status == (login.isEmpty ? 401 : 403))
      }
    }
    let key = try #require(try server.curl(eve, Self.path)["key"])
    #expect(key.utf8.count == 87)
    let added = try server.curl(eve + ["-d", Self.body()], Self.path)
    #expect(added.status == 200 && added["key"] == key && added["subscriptions"] == "1", "\(added.body)")
    #expect(
      try server.curl(token + ["-d", Self.body("https://push.example.net/b")], Self.path)["subscriptions"] == "1")
    #expect(try Self.endpoints(server) == ["eve https://push.example.net/a", "token wall https://push.example.net/b"])
    let others = ["-X", "DELETE", "-d", #"{"endpoint":"https://push.example.net/a"}"#]
    #expect(try server.curl(token + others, Self.path).status == 200)
    #expect(try Self.endpoints(server).count == 2)
    #expect(try server.curl(eve + others, Self.path)["subscriptions"] == "0")
    // Who may change things removes any.
    let last = ["-X", "DELETE", "-d", #"{"endpoint":"https://push.example.net/b"}"#]
    #expect(try server.curl(server.basic + last, Self.path).status == 200)
    #expect(try Self.endpoints(server).isEmpty)
    let lines = try server.finish()
    let changes = lines.filter { $0.hasPrefix("note: ") && $0.contains(Self.path) && !$0.hasSuffix(", not done") }
    #expect(
      changes == [
        "note: control: eve (role view) at 127.0.0.1: POST /v1/push: a browser at push.example.net",
        "note: control: token wall (role view) at 127.0.0.1: POST /v1/push: a browser at push.example.net",
        "note: control: eve (role view) at 127.0.0.1: DELETE /v1/push: a browser",
        "note: control: alice (role control) at 127.0.0.1: DELETE /v1/push: a browser",
      ], "\(lines)")
  }

  @Test func `what is no subscription is refused, and so are five hundred`() throws {
    let server = try NetworkControl()
    func status(_ body: String) throws -> Int {
      let file = server.served.directory.path("subscription")
      try Data(body.utf8).write(to: URL(fileURLWithPath: file))
      return try server.curl(server.basic + ["--data-binary", "@\(file)"], Self.path).status
    }
    let key = PushSubscriptionsTests.keys.p256dh
    for (body, expected) in [
      (Self.body("http://push.example.net/a"), 400), (Self.body("https://10.0.0.7/a"), 400),
      (Self.body("https://[fd00::1]/a"), 400), (Self.body("https://127.0.0.1:8443/v1/reload"), 400),
      (Self.body(key: String(key.dropLast(4))), 400), (Self.body(secret: "AAAA"), 400), (Self.body(key: ""), 400),
      (Self.body("https://a/" + String(repeating: "a", count: 2000)), 400),
      (Self.body("https://a/" + String(repeating: "a", count: 1 << 20)), 413), ("[]", 400), ("{}", 400),
      (#"{"endpoint":"https://a/b","keys":"x"}"#, 400), (#"{"endpoint":"https://a/b","keys":{}}"#, 400),
      (#"{"endpoint":null,"keys":null}"#, 400),
    ] {
      #expect(try status(body) == expected, "\(body.prefix(200))")
    }
    #expect(try Self.endpoints(server).isEmpty)
    // One curl for all of them.
    let file = server.served.directory.path("many")
    let url = "https://localhost:\(server.port)\(Self.path)"
    let requests = (0..<500).map { number in
      let data = Self.body("https://push.example.net/\(number)").replacing("\"", with: "\\\"")
      return """
        url = "\(url)"
        user = "alice:\(NetworkControl.password)"
        insecure
        silent
        output = "/dev/null"
        write-out = "%{http_code}\\n"
        data = "\(data)"
        """
    }
    try Data(requests.joined(separator: "\nnext\n").utf8).write(to: URL(fileURLWithPath: file))
    let result = try Subprocess.run(["curl", "--config", file], in: server.served.directory)
    let codes = result.outputText.split(separator: "\n")
    #expect(codes.count == 500 && codes.count { $0 == "200" } == 8 && codes.count { $0 == "429" } == 492)
    #expect(try Self.endpoints(server).count == 8)
    // Beyond the first ones nothing is looked at before its time, and the answer names it.
    let pattern = /retry-after: (\d+)/.ignoresCase()
    let delays = try (600..<604).compactMap { number in
      let refused = try server.curl(server.basic + ["-d", Self.body("https://push.example.net/\(number)")], Self.path)
      #expect(refused.status == 429)
      return refused.headers.firstMatch(of: pattern).flatMap { Int($0.1) }
    }
    #expect(!delays.isEmpty && delays.allSatisfy { (1...6).contains($0) }, "\(delays)")
    // A page that is opened again is not counted.
    for _ in 0..<20 {
      let again = try server.curl(server.basic + ["-d", Self.body("https://push.example.net/0")], Self.path)
      #expect(again.status == 200)
    }
  }

  @Test func `all browsers of a log-in are removed at once, and those of everyone by who has control`() throws {
    let server = try NetworkControl()
    try NetworkControl.addUser("eve", "another horse", role: "view", in: server.served.directory)
    try server.readAgain()
    let eve = ["-u", "eve:another horse"]
    for (login, number) in [(eve, 1), (eve, 2), (server.basic, 3), (server.basic, 4)] {
      let added = try server.curl(login + ["-d", Self.body("https://push.example.net/\(number)")], Self.path)
      #expect(added.status == 200)
    }
    func remove(_ login: [String], _ body: String) throws -> Int {
      try server.curl(login + ["-X", "DELETE", "-d", body], Self.path).status
    }
    #expect(try remove(eve, #"{"all":"everyone"}"#) == 403)
    for body in [#"{"all":"mine"}"#, #"{"all":true}"#, #"{"all":"own","endpoint":"https://a/b"}"#, "{}"] {
      #expect(try remove(eve, body) == 400, "\(body)")
    }
    #expect(try Self.endpoints(server).count == 4)
    #expect(try remove(eve, #"{"all":"own"}"#) == 200)
    #expect(
      try Self.endpoints(server) == ["alice https://push.example.net/3", "alice https://push.example.net/4"])
    #expect(try server.curl(eve + ["-d", Self.body()], Self.path).status == 200)
    #expect(try remove(server.basic, #"{"all":"everyone"}"#) == 200)
    #expect(try Self.endpoints(server).isEmpty)
  }

  @Test func `a phone that is shut out is told of nothing more, and kill -9 loses no browser and no key`() throws {
    let server = try NetworkControl()
    let made = try server.served.curl(["-d", #"{"role":"view"}"#], "/v1/phones/codes")
    let introduction = #"{"code":"\#(try #require(made["code"]))","name":"anna"}"#
    let login = try server.curl(["-d", introduction], "/v1/phones")
    let phone = ["-H", "Authorization: Bearer \(try #require(login["token"], "\(login.body)"))"]
    #expect(try server.curl(phone + ["-d", Self.body()], Self.path).status == 200)
    let answer = try server.curl(server.basic + ["-d", Self.body("https://push.example.net/b")], Self.path)
    #expect(try Self.endpoints(server).first == "phone anna https://push.example.net/a")
    #expect(try server.served.curl(["-X", "DELETE"], "/v1/phones/anna").status == 200)
    #expect(try Self.endpoints(server) == ["alice https://push.example.net/b"])
    server.served.process.send(SIGKILL)
    _ = try server.served.process.wait()
    let next = try ServedControl(in: server.served.directory)
    let kept = try next.curl([], Self.path)
    #expect(kept["key"] == answer["key"] && kept["key"] != nil)
    #expect(try Self.endpoints(server) == ["alice https://push.example.net/b"])
  }
}

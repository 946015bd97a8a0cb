import Alerts
import Delivery
import Foundation
import Platform
import TLS
import TestSupport
import Testing

/// Webhooks against a server that is not ours, and against hostile ones.
@Suite struct WebhookTests {
  private static let quick = Duration.seconds(5)

  private static func webhook(
    _ port: Int, key: WebhookKey? = nil, allowsPrivate: Bool = true, scheme: String = "http",
    host: String = "127.0.0.1", patience: Duration = .seconds(60)
  ) throws -> Webhook {
    let target = try #require(WebhookTarget("\(scheme)://\(host):\(port)/hook?room=1"))
    return try Webhook(target, key: key, allowsPrivate: allowsPrivate, agent: "nightjar/test", patience: patience)
  }

  private static func alert() -> Alert {
    Alert(
      id: 12, kind: .crying, camera: "nursery", state: .began, time: "2026-11-21T02:03:06Z",
      since: "2026-11-21T02:03:01Z", confidence: 0.83, text: "probably crying: \u{1F476}")
  }

  private static func deliver(_ webhook: Webhook) throws -> DeliveryOutcome {
    webhook.deliver(alert(), stop: try Interrupt())
  }

  private static func begin(_ kind: AlertKind, in history: AlertHistory) {
    let condition = AlertCondition(kind, camera: "a", since: .now(), text: "\(kind)")
    history.record([.begin(condition, suppressed: 0)], isQuiet: false)
  }

  @Test func `an event arrives as JSON, and OpenSSL's program computes the same signature`() throws {
    let server = try WebhookServer("ok")
    let directory = try TemporaryDirectory()
    let file = try directory.write("whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw\n".utf8, as: "key")
    try #require(chmod(file, 0o600) == 0)
    #expect(try Self.deliver(Self.webhook(server.port, key: WebhookKey(contentsOf: file))) == .delivered)
    let request = try #require(try server.requests().first)
    #expect(request.method == "POST" && request.path == "/hook?room=1")
    #expect(request.headers["content-type"] == "application/json")
    #expect(try JSONDecoder().decode(Alert.self, from: Data(request.body.utf8)) == Self.alert())
    let id = try #require(request.headers["webhook-id"])
    let seconds = try #require(request.headers["webhook-timestamp"])
    #expect(abs(try #require(Double(seconds)) - Date().timeIntervalSince1970) < 300)
    _ = try directory.write("\(id).\(seconds).\(request.body)".utf8, as: "signed")
    let script = """
      key=$(printf '%s\\n' MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw | openssl base64 -d | od -An -v -tx1 | tr -d ' \\n')
      openssl dgst -sha256 -mac HMAC -macopt "hexkey:$key" -binary "$0" | openssl base64
      """
    let judged = try Subprocess.run(["sh", "-c", script, directory.path("signed")], in: directory)
    let code = judged.outputText.trimmingCharacters(in: .whitespacesAndNewlines)
    #expect(code.count == 44 && request.headers["webhook-signature"] == "v1,\(code)", "\(judged.error)")
  }

  @Test func `the signature is that of the example of Standard Webhooks`() throws {
    // https://github.com/standard-webhooks/standard-webhooks, spec: the libraries' common test vector.
    let key = try #require(WebhookKey(text: "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"))
    let signature = key.signature(
      id: "msg_p5jXN8AQM9LWM0D4loKWxJek", seconds: 1_614_265_330, body: Array(#"{"test": 2432232314}"#.utf8))
    #expect(signature == "v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE=")
  }

  @Test func `a key that is short, or that others may read, is refused`() throws {
    #expect(WebhookKey(text: "short") == nil)
    #expect(WebhookKey(text: "whsec_AAAA") == nil)
    #expect(WebhookKey(text: "  sixteen bytes ok\n") != nil)
    let directory = try TemporaryDirectory()
    let file = try directory.write("0123456789abcdef".utf8, as: "key")
    chmod(file, 0o644)
    let error = #expect(throws: SecretFileError.self) { try WebhookKey(contentsOf: file) }
    #expect(error?.path == file && error?.cause == .file(.exposed(mode: 0o644), limit: 1024))
  }

  @Test func `an address of this host is refused unless it is allowed, by its number and by its name`() throws {
    let server = try WebhookServer("ok")
    for host in ["127.0.0.1", "localhost", "[::1]", "[::ffff:127.0.0.1]", "0.0.0.0", "2130706433", "0x7f.1", "127.1"] {
      let outcome = try Self.deliver(Self.webhook(server.port, allowsPrivate: false, host: host))
      guard case .failed(let reason) = outcome else {
        Issue.record("\(host) was taken")
        continue
      }
      // The C library takes other spellings of an address for one; a resolver may also refuse them.
      #expect(reason.contains("private") || reason.contains("name"), "\(host): \(reason)")
    }
    #expect(try server.requests().isEmpty)
  }

  @Test func `two webhooks of one host have one name in the log, and each its own place after a reload`() throws {
    let both = try ["a", "b"].map { path in
      let target = try #require(WebhookTarget("http://127.0.0.1/\(path)"))
      return try Webhook(target, key: nil, allowsPrivate: true, agent: "nightjar/test")
    }
    #expect(both[0].name == both[1].name && both[0].destination != both[1].destination)
  }

  @Test func `a redirect is not followed, to a file or to this host`() throws {
    let server = try WebhookServer("redirect")
    for _ in 0..<2 {
      guard case .refused(let reason) = try Self.deliver(Self.webhook(server.port)) else {
        Issue.record("a redirect was followed")
        return
      }
      #expect(reason.contains("302"))
    }
    #expect(try server.requests().map(\.path) == ["/hook?room=1", "/hook?room=1"])
  }

  @Test func `of a body of a gigabyte the beginning is read`() throws {
    let server = try WebhookServer("flood")
    #expect(try Self.deliver(Self.webhook(server.port)) == .delivered)
    let sent = server.directory.path("sent")
    try #require(eventually { (try? String(contentsOfFile: sent, encoding: .utf8))?.isEmpty == false })
    let count = try #require(Int(String(contentsOfFile: sent, encoding: .utf8)))
    // What the kernel's buffers of both sides hold, beside the 64 KiB that are read.
    #expect(count < 64 << 20)
  }

  @Test(arguments: [
    ("silent", "does not answer"), ("garbage", "not HTTP"), ("drip", "does not begin within 16384 bytes"),
  ])
  func `a server that accepts and answers nothing, or nonsense, costs its time and no more`(
    behaviour: String, words: String
  ) throws {
    let server = try WebhookServer(behaviour)
    let start = ContinuousClock.now
    let patience = behaviour == "silent" ? Self.quick : Duration.seconds(60)
    let outcome = try Self.deliver(Self.webhook(server.port, patience: patience))
    #expect(ContinuousClock.now - start < .seconds(20))
    guard case .failed(let reason) = outcome else {
      Issue.record("\(outcome)")
      return
    }
    #expect(reason.contains(words), "\(reason)")
    #expect(eventually { server.connections == 1 })
  }

  private final class Stop: Sendable {
    let interrupt: Interrupt

    init() throws { interrupt = try Interrupt() }
  }

  @Test func `a program that ends does not wait for a server that is silent`() throws {
    let server = try WebhookServer("silent")
    let (stop, webhook) = (try Stop(), try Self.webhook(server.port, patience: .seconds(600)))
    let call = try BlockingCall<DeliveryOutcome, Never>("webhook") {
      webhook.deliver(Self.alert(), stop: stop.interrupt)
    }
    try #require(eventually { server.connections == 1 })
    stop.interrupt.fire()
    let outcome = try #require(call.result(by: .now() + .seconds(60))).get()
    #expect(outcome == .failed("nightjar ends"))
  }

  @Test func `an event is sent again until it is taken, in order, and the log says so`() throws {
    let server = try WebhookServer("503,500,200")
    let history = AlertHistory()
    let reports = EventQueue<DeliveryReport>()
    let delays = Duration.milliseconds(10)...Duration.milliseconds(50)
    let sender = try EventSender(try Self.webhook(server.port), history, reports, delays: delays)
    defer { sender.stop() }
    for kind in [AlertKind.noise, .movement] {
      Self.begin(kind, in: history)
    }
    try #require(try eventually { try server.requests().count == 4 })
    let ids = try server.requests().map { $0.headers["webhook-id"]?.prefix(2) }
    #expect(ids == ["1-", "1-", "1-", "2-"])
    var lines: [String] = []
    #expect(
      eventually {
        lines += reports.take().map(\.text)
        return lines.count == 2
      })
    let name = "webhook 127.0.0.1:\(server.port)"
    #expect(lines == ["\(name): it answers 503; nightjar tries again", "\(name) takes events again"])
    #expect(eventually { sender.position == 2 })
  }

  @Test func `of more events than may wait the oldest are dropped, and the log says how many`() throws {
    let history = AlertHistory()
    var waiting = WaitingEvents(history, after: 0)
    for _ in 0..<150 {
      Self.begin(.noise, in: history)
    }
    #expect(waiting.first()?.id == 51)
    #expect(waiting.takeDropped() == 50)
    #expect(waiting.first()?.id == 51 && waiting.takeDropped() == 0)
    if let alert = waiting.first() { waiting.finish(alert) }
    #expect(waiting.first()?.id == 52)
    for _ in 0..<2000 {
      Self.begin(.noise, in: history)
    }
    #expect(waiting.first()?.id == 2051)
    // The events 52 to 2050.
    #expect(waiting.takeDropped() == 1999)
  }

  @Test func `another side that is encrypted needs a certificate that is trusted and has its name`() throws {
    let directory = try TemporaryDirectory()
    func make(_ name: String, _ subject: String) throws -> [String] {
      let paths = [directory.path("\(name).pem"), directory.path("\(name).key")]
      let made = try Subprocess.run(
        [
          "openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes", "-days", "2",
          "-subj", "/CN=test", "-addext", "subjectAltName=\(subject)", "-out", paths[0], "-keyout", paths[1],
        ], in: directory)
      try #require(made.status == 0, "\(made.error)")
      return paths
    }
    let (good, other) = (try make("good", "DNS:localhost,IP:127.0.0.1"), try make("other", "DNS:example.org"))
    let (right, wrong) = (try WebhookServer("ok", certificate: good), try WebhookServer("ok", certificate: other))
    func outcome(_ port: Int, _ host: String = "localhost", trusted: [String]) throws -> DeliveryOutcome {
      // OpenSSL reads the variable when a context is made. No other test makes one of a client.
      setenv("SSL_CERT_FILE", trusted[0], 1)
      defer { unsetenv("SSL_CERT_FILE") }
      return try Self.deliver(Self.webhook(port, scheme: "https", host: host))
    }
    #expect(try outcome(right.port, trusted: good) == .delivered)
    #expect(try outcome(right.port, "127.0.0.1", trusted: good) == .delivered)
    for (result, words) in [
      (try outcome(right.port, trusted: other), "self-signed certificate"),
      (try outcome(wrong.port, trusted: other), "hostname mismatch"),
      (try outcome(wrong.port, "127.0.0.1", trusted: other), "IP address mismatch"),
    ] {
      guard case .failed(let reason) = result else {
        Issue.record("\(result)")
        continue
      }
      #expect(reason == TLSConnectionError.certificate(words).description)
    }
    #expect(try right.requests().count == 2 && wrong.requests().isEmpty)
  }

  @Test(arguments: [
    "ftp://a", "https://", "https://user@host/", "https://host/#part", "https://host:0/", "https://host:70000/",
    "https://[::1", "https://[fe80::1%eth0]/", "https://a b/", "https://host/\u{E4}", "file:///etc/passwd", "",
    "https://host:80:90/", "https://host\r\nX: y/",
  ])
  func `a URL that is none for a webhook is refused`(text: String) {
    #expect(WebhookTarget(text) == nil)
  }
}

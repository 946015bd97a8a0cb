import Alerts
import Delivery
import Foundation
import Platform
import TestSupport
import Testing

/// Alerts to a browser, by a push service that is not ours.
@Suite struct WebPushTests {
  /// The subscriptions that `forget` was called with.
  private final class Forgotten: Sendable {
    let queue = EventQueue<PushSubscription>()
  }

  private static func subscription(_ json: String, owner: String = "anna") throws -> PushSubscription {
    let object = try #require(try JSONSerialization.jsonObject(with: Data(json.utf8)) as? [String: Any])
    let keys = try #require(object["keys"] as? [String: String])
    return try PushSubscription(
      endpoint: #require(object["endpoint"] as? String), publicKey: #require(keys["p256dh"]),
      secret: #require(keys["auth"]), owner: owner)
  }

  /// Makes a way to the browser of a service.
  private static func way(
    to service: PushService, contact: String? = nil, trusts: Bool = true, allowsPrivate: Bool = true
  ) throws -> (outlet: WebPush, history: AlertHistory, forgotten: Forgotten, key: VAPIDKey) {
    // OpenSSL reads the variable when a context is made. The tests of a suite run one after the other.
    if trusts { setenv("SSL_CERT_FILE", service.certificate, 1) }
    defer { unsetenv("SSL_CERT_FILE") }
    let (history, forgotten, key) = (AlertHistory(), Forgotten(), try VAPIDKey())
    var host = try WebPush.Host(key: key, contact: contact, agent: "nightjar/test")
    host.allowsPrivate = allowsPrivate
    let outlet = WebPush(try subscription(service.subscription), host, history) { forgotten.queue.add($0) }
    return (outlet, history, forgotten, key)
  }

  private static func begin(_ kind: AlertKind, in history: AlertHistory, isQuiet: Bool = false) throws -> Alert {
    let condition = AlertCondition(kind, camera: "nursery", since: .now(), confidence: 0.8, text: "secret words")
    return try #require(history.record([.begin(condition, suppressed: 0)], isQuiet: isQuiet).first)
  }

  @Test func `an alert arrives, encrypted and signed, with its title, camera, time and number, and nothing else`()
    throws
  {
    let service = try PushService("201")
    let (outlet, history, _, key) = try Self.way(to: service, contact: "mailto:anna@example.org")
    let alert = try Self.begin(.crying, in: history)
    #expect(outlet.wants(alert))
    #expect(outlet.deliver(alert, stop: try Interrupt()) == .delivered)
    let request = try #require(service.requests().first)
    #expect(request.faults == [] && request.key == key.publicText && request.path == "/push/0123456789abcdef")
    let message = try #require(request.message)
    #expect(message.id == 1 && message.kind == "crying" && message.state == "began" && message.camera == "nursery")
    #expect(message.title == "Probably crying" && message.time == alert.time)
    #expect(request.headers["urgency"] == "high")
    let life = try #require(request.headers["ttl"].flatMap { Int($0) })
    #expect((3000...3600).contains(life))
    // What the service sees: no words of the alert, and one length for all.
    #expect(request.length == 86 + 17 + 512)
    #expect(!"\(request.headers)".contains("crying") && !"\(request.headers)".contains("nursery"))
  }

  @Test func `alerts of one kind have one topic, which another browser's do not have`() throws {
    let services = try [PushService("201"), PushService("201")]
    for service in services {
      let (outlet, history, _, _) = try Self.way(to: service)
      for kind in [AlertKind.noise, .noise, .movement] {
        #expect(outlet.deliver(try Self.begin(kind, in: history), stop: try Interrupt()) == .delivered)
      }
    }
    let topics = try services.map { try $0.requests().map { $0.headers["topic"] ?? "" } }
    #expect(topics.allSatisfy { $0[0] == $0[1] && $0[0] != $0[2] })
    #expect(Set(topics.joined()).count == 4)
  }

  @Test func `quiet hours, ends and alerts of long ago wake nobody, and an acknowledgement follows what was sent`()
    throws
  {
    let service = try PushService("201")
    let (outlet, history, _, _) = try Self.way(to: service)
    #expect(!outlet.wants(try Self.begin(.noise, in: history, isQuiet: true)))
    var old = try Self.begin(.movement, in: history)
    old.time = "2020-01-01T00:00:00Z"
    #expect(!outlet.wants(old))
    let alert = try Self.begin(.crying, in: history)
    // Before the message has left, nobody needs it any more.
    let early = try #require(try history.acknowledge(alert.id, by: "anna").first)
    #expect(!outlet.wants(alert) && !outlet.wants(early))
    let next = try Self.begin(.crying, in: history)
    #expect(try outlet.wants(next) && outlet.deliver(next, stop: Interrupt()) == .delivered)
    let end = try #require(history.record([.end(next.subject, since: .now())], isQuiet: false).first)
    #expect(!outlet.wants(end))
    let late = try #require(try history.acknowledge(next.id, by: "anna").first)
    #expect(try outlet.wants(late) && outlet.deliver(late, stop: Interrupt()) == .delivered)
    let requests = try service.requests()
    #expect(
      requests.map(\.message?.state) == ["began", "acknowledged"] && requests.map(\.message?.id) == [next.id, next.id])
    #expect(requests.last?.message?.title == "Probably crying: somebody takes care of it")
    #expect(requests[0].headers["topic"] == requests[1].headers["topic"] && requests[1].headers["urgency"] == "normal")
  }

  @Test func `the acknowledgement of an older alert takes no newer one's place`() throws {
    let service = try PushService("201")
    let (outlet, history, _, _) = try Self.way(to: service)
    let older = try Self.begin(.crying, in: history)
    #expect(outlet.deliver(older, stop: try Interrupt()) == .delivered)
    let newer = try Self.begin(.crying, in: history)
    #expect(outlet.deliver(newer, stop: try Interrupt()) == .delivered)
    let early = try #require(try history.acknowledge(older.id, by: "anna").first)
    #expect(!outlet.wants(early))
    let late = try #require(try history.acknowledge(newer.id, by: "anna").first)
    #expect(outlet.wants(late))
  }

  @Test func `a browser with another owner or another secret is another destination`() throws {
    let service = try PushService("201")
    let (outlet, history, _, key) = try Self.way(to: service)
    let host = try WebPush.Host(key: key, contact: nil, agent: "nightjar/test")
    func destination(_ subscription: PushSubscription) -> [String] {
      WebPush(subscription, host, history) { _ in }.destination
    }
    let same = try Self.subscription(service.subscription)
    #expect(destination(same) == outlet.destination)
    #expect(try destination(Self.subscription(service.subscription, owner: "phone anna")) != outlet.destination)
    let renewed = try PushSubscription(
      endpoint: same.endpoint, publicKey: Base64URL.text(same.publicKey),
      secret: Base64URL.text(Array(same.secret.reversed())), owner: same.owner)
    #expect(destination(renewed) != outlet.destination)
  }

  @Test(arguments: ["404", "410"])
  func `a subscription that the browser has ended is removed`(answer: String) throws {
    let service = try PushService(answer)
    let (outlet, history, forgotten, _) = try Self.way(to: service)
    let outcome = outlet.deliver(try Self.begin(.noise, in: history), stop: try Interrupt())
    #expect(
      outcome == .refused("it answers \(answer): the browser has ended this subscription, which is removed"))
    #expect(forgotten.queue.take() == [try Self.subscription(service.subscription)])
  }

  @Test(arguments: [
    ("429:7", DeliveryOutcome.postponed("it answers 429", .seconds(7))),
    ("503:999999999", .postponed("it answers 503", .seconds(3600))),
    ("413:0", .postponed("it answers 413", .seconds(0))),
    ("500", .failed("it answers 500")), ("429", .failed("it answers 429")), ("429:-5", .failed("it answers 429")),
    ("503:soon", .failed("it answers 503")),
    ("302", .refused("it answers 302, and nightjar follows no redirect")), ("400", .refused("it answers 400")),
    ("403", .refused("it answers 403: set --web-push-contact, and look at the host's clock")),
  ])
  func `each answer of a push service has its meaning`(answer: String, outcome: DeliveryOutcome) throws {
    let service = try PushService(answer)
    let (outlet, history, forgotten, _) = try Self.way(to: service)
    #expect(outlet.deliver(try Self.begin(.noise, in: history), stop: try Interrupt()) == outcome)
    #expect(try service.requests().map(\.path) == ["/push/0123456789abcdef"] && forgotten.queue.take().isEmpty)
  }

  @Test func `a sender waits as long as it is told to, sends again, and says so once`() throws {
    let service = try PushService("429:2,503,201")
    let (outlet, history, _, _) = try Self.way(to: service)
    let reports = EventQueue<DeliveryReport>()
    let sender = try EventSender(
      outlet, history, reports, delays: .milliseconds(10)...Duration.milliseconds(50))
    defer { sender.stop() }
    _ = try Self.begin(.noise, in: history)
    _ = try Self.begin(.tooHot, in: history, isQuiet: true)
    try #require(eventually(within: 60) { sender.position == 2 })
    let requests = try service.requests()
    try #require(requests.count == 3)
    #expect(requests[1].at - requests[0].at > 1.9)
    #expect(requests.allSatisfy { $0.faults.isEmpty && $0.message?.id == 1 })
    let lines = reports.take().map(\.text)
    #expect(lines == ["\(outlet.name): it answers 429; nightjar tries again", "\(outlet.name) takes events again"])
  }

  @Test func `a service without a trusted certificate, or with a private address, gets nothing`() throws {
    let service = try PushService("201")
    for (trusts, allowsPrivate, words) in [(false, true, "not trusted"), (true, false, "is private")] {
      let (outlet, history, _, _) = try Self.way(to: service, trusts: trusts, allowsPrivate: allowsPrivate)
      guard case .failed(let reason) = outlet.deliver(try Self.begin(.noise, in: history), stop: try Interrupt()) else {
        Issue.record("it was taken")
        continue
      }
      #expect(reason.contains(words), "\(reason)")
    }
    #expect(try service.requests().isEmpty)
  }

  @Test(arguments: [
    ("Retry-After: 120\r\n\r\n", 120), ("X: y\r\nRETRY-AFTER:  7 \r\nZ: w\r\n\r\n", 7), ("retry-after:0\n\n", 0),
    ("Retry-After: 1234567890123\r\n\r\n", nil), ("Retry-After:\r\n\r\n", nil), ("Retry-After: soon\r\n\r\n", nil),
    ("Retry-After: Wed, 21 Oct 2015 07:28:00 GMT\r\n\r\n", 0), ("X-Retry-After: 9\r\n\r\n", nil),
    ("Content-Length: 3\r\n\r\nRetry-After: 9\r\n", nil),
  ])
  func `the time to wait is found in pieces of any size`(fields: String, seconds: Int?) throws {
    let answer = Array(
      "HTTP/1.1 100 Continue\r\nRetry-After: 1\r\n\r\nHTTP/1.1 429 Too Many Requests\r\n\(fields)".utf8)
    for pieces in 1...answer.count {
      var reader = HTTPStatusReader(limit: 4096, readsHead: true)
      for start in stride(from: 0, to: answer.count, by: pieces) {
        try reader.take(Array(answer[start..<min(start + pieces, answer.count)]))
      }
      #expect(reader.status == 429 && reader.isComplete && reader.retryAfter == seconds)
    }
  }

  @Test func `a date to wait for is counted from now, and a head without an end is bounded`() throws {
    let formatter = DateFormatter()
    formatter.locale = Locale(identifier: "en_US_POSIX")
    formatter.timeZone = TimeZone(identifier: "GMT")
    formatter.dateFormat = "EEE, dd MMM yyyy HH:mm:ss 'GMT'"
    var reader = HTTPStatusReader(limit: 4096, readsHead: true)
    let date = formatter.string(from: Date(timeIntervalSinceNow: 1000))
    try reader.take(Array("HTTP/1.1 503 no\r\nRetry-After: \(date)\r\n\r\n".utf8))
    #expect((900...1000).contains(try #require(reader.retryAfter)))
    var endless = HTTPStatusReader(limit: 4096, readsHead: true)
    try endless.take(Array("HTTP/1.1 503 no\r\n".utf8))
    while !endless.isComplete { try endless.take([UInt8](repeating: 0x41, count: 1000)) }
    #expect(endless.status == 503 && endless.retryAfter == nil)
  }
}

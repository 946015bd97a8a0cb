package import Delivery
import HTTPTypes
import Hummingbird
import Platform

/// The routes of browsers that want to be told of alerts while their page is closed (Web Push, https://w3c.github.io/push-api/).
///
/// | request | body | answer |
/// |---|---|---|
/// | `GET /v1/push` | | ``PushAnswer`` |
/// | `POST /v1/push` | `{"endpoint":"https://…","keys":{"p256dh":"…","auth":"…"}}` | ``PushAnswer`` |
/// | `DELETE /v1/push` | `{"endpoint":"https://…"}`, `{"all":"own"}` or `{"all":"everyone"}` | ``PushAnswer`` |
///
/// All need the role ``Role/view``. A browser is removed by the log-in that has added it, or by one with ``Role/control``.
/// A log-in adds a few browsers at once, and then one each ``PushSubscriptions/pause``.
struct PushAPI: Sendable {
  let api: ControlAPI

  /// The methods that the path allows.
  static let routes: [String: [HTTPRequest.Method]] = ["/v1/push": [.get, .head, .post, .delete]]

  func add(to version: RouterGroup<ControlAPI.Context>) {
    version.add(.get, "push", for: .view) { _, context in
      let subscriptions = try subscriptions()
      _ = try await onThread { try subscriptions.key() }
      return try Self.answer(subscriptions, context)
    }
    version.add(.post, "push", for: .view) { request, context in
      let subscriptions = try subscriptions()
      let asking = try await PushRequest(json: api.body(of: request))
      let subscription = try asking.subscription(of: Self.owner(context), login: context.requester.mark?.text)
      _ = try await onThread { try subscriptions.key() }
      // A page that is opened again says so again.
      if subscriptions.list.contains(subscription) { return try Self.answer(subscriptions, context) }
      if let delay = subscriptions.delay(of: subscription.owner, at: .now()) {
        throw HTTPRefusal.tooManyRequests(delay)
      }
      do {
        // The key first: the main thread, which tells this browser next, waits for no disk.
        try await onThread {
          _ = try subscriptions.key()
          try subscriptions.add(subscription)
        }
      } catch PushSubscriptionError.tooMany, PushSubscriptionError.tooManyOfOwner {
        throw HTTPRefusal.tooManyBrowsers(subscriptions.list.count >= PushSubscriptions.limit)
      }
      Self.tell(request, context, "a browser at \(subscription.target.host)")
      return try Self.answer(subscriptions, context)
    }
    version.add(.delete, "push", for: .view) { request, context in
      let subscriptions = try subscriptions()
      let asking = try await PushEndRequest(json: api.body(of: request))
      let (owner, mayAll) = (Self.owner(context), context.requester.role >= .control)
      if asking.meaning == .everyone { try context.require(.control, for: request) }
      // Others may add browsers meanwhile, so that the list does not tell the number.
      let gone = try await onThread {
        subscriptions.remove { one in
          switch asking.meaning {
          case .endpoint(let endpoint): one.endpoint == endpoint && (mayAll || one.owner == owner)
          case .own: one.owner == owner
          case .everyone: true
          }
        }
      }
      if gone > 0 { Self.tell(request, context, gone == 1 ? "a browser" : "\(gone) browsers") }
      return try Self.answer(subscriptions, context)
    }
  }

  private func subscriptions() throws(HTTPRefusal) -> PushSubscriptions {
    guard let subscriptions = api.target.push else { throw .noPush }
    return subscriptions
  }

  /// Returns the name by which a browser is kept. Who has not logged in uses the control socket.
  private static func owner(_ context: ControlContext) -> String {
    context.requester.hasLoggedIn ? context.requester.name : HTTPServer.Configuration.localOwner
  }

  private static func answer(_ subscriptions: PushSubscriptions, _ context: ControlContext) throws -> Response {
    ControlAPI.answer(
      PushAnswer(key: try subscriptions.key().publicText, subscriptions: subscriptions.count(of: owner(context))))
  }

  /// Tells a change, as those of the role control are told.
  private static func tell(_ request: Request, _ context: ControlContext, _ what: String) {
    context.events?.add(
      .changed(
        ControlChange(
          who: context.requester, from: context.place, method: request.method.rawValue, path: request.uri.path,
          what: String(what.prefix(ControlChange.limit)), isDone: true)))
  }
}

/// The answer to requests of `/v1/push`.
package struct PushAnswer: Codable, Sendable {
  /// The host's public key, for `applicationServerKey`.
  package let key: String
  /// The number of browsers that this log-in has added.
  package let subscriptions: Int
}

/// The body of `POST /v1/push`, as `PushSubscription.toJSON()` of a browser has it.
struct PushRequest: ControlRequest {
  /// The browser's keys.
  struct Keys: Codable {
    var p256dh: String
    var auth: String
  }

  var endpoint: String
  var keys: Keys

  static let fields = [
    (name: "endpoint", limit: "a URL https://HOST/PATH of \(PushSubscription.endpointLimit) bytes at most"),
    (name: "keys", limit: "p256dh, a point on P-256, and auth, 16 bytes, in Base64 for URLs"),
  ]
  static let example =
    #"{"endpoint":"https://push.example.net/abc","keys":{"p256dh":"BCVxsr7N…","auth":"BTBZMqHH6r4Tts7J_aSIgg"}}"#

  init(fields: KeyedDecodingContainer<FieldName>) throws {
    endpoint = try fields.decode(String.self, forKey: "endpoint")
    keys = try fields.decode(Keys.self, forKey: "keys")
  }

  /// Returns the subscription.
  ///
  /// - Throws: ``ControlFailure`` for an impossible one.
  func subscription(of owner: String, login: String?) throws(ControlFailure) -> PushSubscription {
    do throws(PushSubscription.Fault) {
      return try PushSubscription(
        endpoint: endpoint, publicKey: keys.p256dh, secret: keys.auth, owner: owner, login: login)
    } catch {
      let (field, text) =
        switch error {
        case .endpoint: (Self.fields[0], "the endpoint is no \(Self.fields[0].limit)")
        case .privateAddress: (Self.fields[0], "the endpoint has a private address: push services are in the internet")
        case .publicKey: (Self.fields[1], "keys.p256dh is no point on P-256 in Base64 for URLs")
        case .secret: (Self.fields[1], "keys.auth is no \(PushSubscription.secretBytes) bytes in Base64 for URLs")
        }
      throw ControlFailure(text, kind: .usage, field: field.name, limit: field.limit)
    }
  }
}

/// The body of `DELETE /v1/push`.
struct PushEndRequest: ControlRequest {
  /// The browsers that are removed.
  enum Meaning: Hashable {
    case endpoint(String)
    /// The browsers of this log-in.
    case own
    case everyone
  }

  var endpoint: String?
  var all: String?
  var meaning: Meaning { endpoint.map { .endpoint($0) } ?? (all == "own" ? .own : .everyone) }

  static let fields = [
    (name: "endpoint", limit: "the URL that the browser was added with"),
    (name: "all", limit: "own, or everyone with the role control; without an endpoint"),
  ]
  static let example = #"{"endpoint":"https://push.example.net/abc"}"#

  init(fields: KeyedDecodingContainer<FieldName>) throws {
    guard fields.contains("all") else {
      endpoint = try fields.decode(String.self, forKey: "endpoint")
      return
    }
    let word = try fields.decode(String.self, forKey: "all")
    guard !fields.contains("endpoint"), ["own", "everyone"].contains(word) else {
      let field = Self.fields[1]
      throw ControlFailure(
        "all is \(field.limit)", kind: .usage, field: field.name, value: String(word.prefix(40)), limit: field.limit)
    }
    all = word
  }
}

extension HTTPServer.Configuration {
  /// The owner of browsers that were added by the control socket.
  static let localOwner = "the control socket"

  /// Returns `true` if a browser may be told of alerts: its owner may watch, and has the password or token yet with which the
  /// browser was added.
  package func mayTell(_ browser: PushSubscription) -> Bool {
    if browser.owner == Self.localOwner { return true }
    guard let login = login(of: browser.owner) else { return false }
    return login.role >= .view && login.mark?.text == browser.login
  }

  /// Returns the log-in of this name, as requests of it have it; nil if there is none.
  private func login(of owner: String) -> Requester? {
    let words = owner.split(separator: " ", maxSplits: 1)
    guard let name = try? UserName(String(words.last ?? "")) else { return nil }
    return switch (words.first, words.count) {
    case ("token", 2): tokens?[name].map { .token($0) }
    case ("phone", 2): phones?[name].map { .phone($0) }
    case (_, 1): users?[name].map { .user($0) }
    default: nil
    }
  }
}

extension HTTPRefusal {
  fileprivate static var noPush: HTTPRefusal {
    HTTPRefusal(
      status: .serviceUnavailable,
      failure: ControlFailure(
        "no browser is told while its page is closed: --no-web-push is set, or the log of the start says why",
        kind: .unavailable, field: "web-push"))
  }

  fileprivate static func tooManyRequests(_ delay: Duration) -> HTTPRefusal {
    let seconds = max(1, Int(delay.seconds.rounded(.up)))
    let limit = "\(PushSubscriptions.burst) at once, and then one each \(Int(PushSubscriptions.pause.seconds)) s"
    return HTTPRefusal(
      status: .tooManyRequests,
      failure: ControlFailure(
        "this log-in adds browsers too fast: wait \(seconds) s", kind: .temporary, field: "endpoint", limit: limit),
      headers: [.retryAfter: "\(seconds)"])
  }

  fileprivate static func tooManyBrowsers(_ ofAll: Bool) -> HTTPRefusal {
    let error = ofAll ? PushSubscriptionError.tooMany : .tooManyOfOwner
    let limit = ofAll ? PushSubscriptions.limit : PushSubscriptions.ownerLimit
    return HTTPRefusal(
      status: .tooManyRequests,
      failure: ControlFailure("\(error)", kind: error.kind, field: "endpoint", limit: "\(limit)"))
  }
}

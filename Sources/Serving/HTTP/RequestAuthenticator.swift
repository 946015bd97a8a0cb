import HTTPTypes
import Hummingbird
import NIOCore
import Platform
import Synchronization

/// Decides which requests from the network are carried out: by Basic (RFC 7617), by a token as Bearer (RFC 6750), or
/// for reading by a token in the URL.
///
/// Each request is checked against the current users and tokens. Answers to failed logins, and to logins that follow
/// them, are delayed as ``FailedLogins`` describes.
final class RequestAuthenticator: Sendable {
  /// A request with its client.
  struct Question {
    let request: Request
    /// The client's address as text. `peer` is the address as it is counted.
    let client: String
    let peer: PeerAddress
    /// The connection's identity, unique as long as the connection lives.
    let connection: ObjectIdentifier

    /// `true` if the request comes from this machine and from nowhere else: not through a proxy or tunnel, and by no
    /// name but the machine's own.
    var isFromHere: Bool {
      peer.isLoopback && RequestOrigin.forwardingField(of: request) == nil && RequestOrigin.hasOwnName(request)
    }
  }

  /// The decision on a request.
  enum Answer {
    /// Carry the request out at this time, as far as the requester's role allows.
    case granted(Requester, at: Instant)
    /// Refuse the request at this time.
    case refused(HTTPRefusal, at: Instant)
  }

  fileprivate enum Login {
    case basic(BasicCredentials?)
    case token(String)
    case none
    /// More than one login at once, RFC 6750 section 2.
    case several
    /// A token in the URL of a request that changes something.
    case misplaced
  }

  fileprivate struct State {
    var users: UsersFile?
    var tokens: TokensFile?
    let phones: Phones?
    var failedLogins = FailedLogins()
    /// Connections with a successful login: only logins are delayed.
    var proven: Set<ObjectIdentifier> = []
  }

  private let state: Mutex<State>
  let events = ControlEvents()

  /// The methods that only read.
  private static let reading: Set<HTTPRequest.Method> = [.get, .head]

  /// - Parameter phones: the phones that are admitted beside users and tokens, as they are at each request.
  init(users: UsersFile?, tokens: TokensFile?, phones: Phones? = nil) {
    state = Mutex(State(users: users, tokens: tokens, phones: phones))
    self.phones = phones
  }

  private let phones: Phones?

  /// The number of changes to users and tokens.
  private let changes = Atomic(0)

  /// Sets the users and tokens that are admitted.
  func set(users: UsersFile?, tokens: TokensFile?) {
    state.withLock { ($0.users, $0.tokens) = (users, tokens) }
    changes.add(1, ordering: .releasing)
  }

  /// The number of changes to users, tokens and phones, for ``roleOfNow(for:_:since:)``.
  var changeCount: Int { changes.load(ordering: .acquiring) + (phones?.changeCount ?? 0) }

  /// Returns a closure that returns the current role of a client that ``check(_:at:)`` has admitted as `role`; nil if
  /// it has none.
  ///
  /// - Parameter count: the ``changeCount`` before that check.
  func roleOfNow(for question: Question, _ role: Role?, since count: Int) -> @Sendable () -> Role? {
    let last = Mutex((changes: count, role: role))
    return { [self] in
      let now = changeCount
      return last.withLock { last in
        guard last.changes != now else { return last.role }
        if case .granted(let requester, _) = check(question, at: .now(), isRepeated: true) {
          last = (now, requester.role)
        } else {
          last = (now, nil)
        }
        return last.role
      }
    }
  }

  /// Forgets a connection that has ended.
  func forget(_ connection: ObjectIdentifier) {
    state.withLock { _ = $0.proven.remove(connection) }
  }

  /// Checks one request; its body need not have been read.
  ///
  /// - Parameter isRepeated: `true` for a request that has been checked before, whose login may have been taken away
  ///   since. That is no failed login.
  func check(_ question: Question, at now: Instant, isRepeated: Bool = false) -> Answer {
    let isReading = Self.reading.contains(question.request.method) || WHEPAPI.isWatching(question.request)
    if PageAPI.isPublic(question.request) { return .granted(.unknown, at: now) }
    if !isReading, let refusal = Self.crossSite(question.request) {
      events.refusedCrossSite()
      return .refused(refusal, at: now)
    }
    if PhonesAPI.isIntroduction(question.request) { return .granted(.unknown, at: now) }
    let login = Self.login(of: question.request, isReading: isReading)
    // Any page may contain a token, if its author knows the token; a browser sends passwords by itself.
    if isReading, !login.isToken, RequestOrigin.isCrossSite(question.request) {
      events.refusedCrossSite()
      return .refused(.crossSiteReading, at: now)
    }
    let answer: Answer = state.withLock { state in
      guard state.hasAnybody else { return .init(Self.withoutAnybody(question, isReading: isReading), at: now) }
      let isProven = state.proven.contains(question.connection)
      if isProven || isRepeated || login.isNone || state.failedLogins.mayTry(from: question.peer, at: now) {
        return state.check(login, question, isProven: isProven, isRepeated: isRepeated, at: now)
      }
      return .refused(.tooManyLogins, at: now)
    }
    if case .refused(let refusal, _) = answer, refusal.status == .unauthorized, login.counts, !isRepeated {
      events.loginFailed(from: question.client)
    }
    return answer
  }

  /// Refuses requests while there are no users and tokens, except for those of this machine that only read.
  private static func withoutAnybody(_ question: Question, isReading: Bool) -> HTTPRefusal? {
    guard question.isFromHere else { return .nobodyIsLetIn("only this host may ask, directly and by its own name") }
    return isReading ? nil : .nobodyIsLetIn("only the control socket allows changes")
  }

  private static func login(of request: Request, isReading: Bool) -> Login {
    let header = request.headers[.authorization]
    let query = request.uri.queryParameters["token"].map(String.init)
    if header != nil, query != nil { return .several }
    if let query { return isReading ? .token(query) : .misplaced }
    guard let header else { return .none }
    let parts = header.split(separator: " ", maxSplits: 1)
    // RFC 9110 section 11.1: the scheme is case-insensitive.
    switch (parts.first?.lowercased(), parts.count) {
    case ("basic", 2): return .basic(BasicCredentials(encoded: parts[1].trimmingSpaces))
    case ("bearer", 2): return .token(String(parts[1].trimmingSpaces))
    default: return .basic(nil)
    }
  }

  /// Refuses a request that a browser sends for a page of another site: the browser adds a known password by itself.
  private static func crossSite(_ request: Request) -> HTTPRefusal? {
    if let site = request.field("Sec-Fetch-Site"), site != "same-origin", site != "none" { return .crossSite }
    guard let origin = request.headers[.origin] else { return nil }
    return origin.lowercased() == "https://\((request.head.authority ?? "").lowercased())" ? nil : .crossSite
  }
}

extension RequestAuthenticator.Answer {
  /// The user or token that has logged in; nil if there was no login.
  var user: String? {
    guard case .granted(let requester, _) = self, requester.hasLoggedIn else { return nil }
    return requester.name
  }

  fileprivate init(_ refusal: HTTPRefusal?, at now: Instant) {
    self = refusal.map { .refused($0, at: now) } ?? .granted(.unknown, at: now)
  }
}

extension RequestAuthenticator.Login {
  fileprivate var isNone: Bool {
    switch self {
    case .none, .several, .misplaced: true
    case .basic, .token: false
    }
  }

  /// `true` if the request tries to log in.
  fileprivate var counts: Bool { !isNone }
}

extension RequestAuthenticator.State {
  fileprivate var hasAnybody: Bool {
    users?.users.isEmpty == false || tokens?.names.isEmpty == false || phones?.isEmpty == false
  }

  fileprivate mutating func check(
    _ login: RequestAuthenticator.Login, _ question: RequestAuthenticator.Question, isProven: Bool, isRepeated: Bool,
    at now: Instant
  ) -> RequestAuthenticator.Answer {
    let challenges = (basic: users?.users.isEmpty == false, bearer: tokens?.names.isEmpty == false)
    let who: Requester?
    switch login {
    case .none: return .refused(.unauthorized("log in: by name and password, or by a token", challenges), at: now)
    case .several: return .refused(.badLogin("a token in the URL and a login in the header: send one of them"), at: now)
    case .misplaced:
      return .refused(
        .unauthorized("a token in the URL is for reading only: send it as Authorization: Bearer", challenges), at: now)
    case .basic(let credentials):
      who = credentials.flatMap { users?.user($0) }.flatMap { users?[$0] }.map { .user($0) }
    case .token(let token):
      who =
        tokens?.name(of: token).flatMap { tokens?[$0] }.map { .token($0) }
        ?? phones?.phone(token).map { .phone($0) }
    }
    guard let who else {
      proven.remove(question.connection)
      return .refused(
        .unauthorized("wrong name, password or token", challenges, isWrongToken: login.isToken),
        at: isRepeated ? now : failedLogins.noteFailure(from: question.peer, at: now))
    }
    if isRepeated { return .granted(who, at: now) }
    proven.insert(question.connection)
    return .granted(who, at: isProven ? now : failedLogins.noteSuccess(from: question.peer, at: now))
  }
}

extension RequestAuthenticator.Login {
  fileprivate var isToken: Bool { if case .token = self { true } else { false } }
}

extension Substring {
  fileprivate var trimmingSpaces: Substring {
    let text = drop { $0 == " " }
    return text.lastIndex { $0 != " " }.map { text[...$0] } ?? ""
  }
}

extension HTTPRefusal {
  fileprivate static func unauthorized(
    _ text: String, _ challenges: (basic: Bool, bearer: Bool), isWrongToken: Bool = false
  ) -> HTTPRefusal {
    var refusal = HTTPRefusal(
      status: .unauthorized, failure: ControlFailure(text, kind: .noPermission, field: "authorization"))
    // RFC 7617 section 2 and RFC 6750 section 3.
    if challenges.basic {
      refusal.headers.append(
        HTTPField(name: .wwwAuthenticate, value: "Basic realm=\"\(UsersFile.realm)\", charset=\"UTF-8\""))
    }
    if challenges.bearer {
      let error = isWrongToken ? ", error=\"invalid_token\"" : ""
      refusal.headers.append(HTTPField(name: .wwwAuthenticate, value: "Bearer realm=\"\(UsersFile.realm)\"\(error)"))
    }
    return refusal
  }

  /// The refusal of a login that was valid when its request arrived, but not when its answer was due.
  static var revoked: HTTPRefusal {
    HTTPRefusal(
      status: .forbidden,
      failure: ControlFailure(
        "this login was revoked while its answer waited: log in as another user, or by another token",
        kind: .noPermission, field: "authorization"))
  }

  fileprivate static func badLogin(_ text: String) -> HTTPRefusal {
    HTTPRefusal(status: .badRequest, failure: ControlFailure(text, kind: .usage, field: "authorization"))
  }

  static var tooManyLogins: HTTPRefusal {
    HTTPRefusal(
      status: .serviceUnavailable,
      failure: ControlFailure("too many failed logins from this address: try again in a minute", kind: .temporary),
      headers: [.retryAfter: "60"])
  }

  fileprivate static var crossSite: HTTPRefusal {
    HTTPRefusal(
      status: .forbidden,
      failure: ControlFailure(
        "a page of another site has sent this request: only this server's pages may", kind: .noPermission,
        field: "origin"))
  }

  /// The refusal of a request by a page of another site, wherever the page is served.
  static var crossSiteReading: HTTPRefusal {
    HTTPRefusal(
      status: .forbidden,
      failure: ControlFailure(
        "a page of another site has requested this: open it directly, or give the page a token, https://BOX:8443/…?token=TOKEN",
        kind: .noPermission, field: "origin"))
  }

  fileprivate static func nobodyIsLetIn(_ text: String) -> HTTPRefusal {
    HTTPRefusal(
      status: .forbidden,
      failure: ControlFailure(
        "without users and tokens \(text): add one with nightjar user add NAME, or nightjar token add NAME",
        kind: .noPermission))
  }
}

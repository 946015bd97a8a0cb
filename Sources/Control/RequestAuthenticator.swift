import Credentials
import HTTPTypes
import Hummingbird
import Media
import NIOCore
import Synchronization

/// Says who may have a request carried out that came over the network: by Basic (RFC 7617), by a token as Bearer
/// (RFC 6750), or for reading by a token in the URL.
///
/// Each request is checked anew against the users and tokens of now. It delays the answers to failed logins, and to
/// logins that come after them, as ``FailedLogins`` says.
final class RequestAuthenticator: Sendable {
  /// Who asks for what.
  struct Question {
    let request: Request
    /// The client's address, in text and as it is counted.
    let client: String
    let peer: PeerAddress
    /// What no other connection is called as long as it lives.
    let connection: ObjectIdentifier

    /// Whether it comes from this machine and from nowhere else: not by a proxy or tunnel that passes it on, and by no name
    /// but the machine's own.
    var isFromHere: Bool {
      peer.isLoopback && RequestOrigin.forwardingField(of: request) == nil && RequestOrigin.hasOwnName(request)
    }
  }

  /// What is to be done.
  enum Answer {
    /// Carry it out, as far as this one's role goes, at this time.
    case granted(Requester, at: MediaTime)
    /// Refuse it, at this time.
    case refused(Refusal, at: MediaTime)
  }

  fileprivate enum Login {
    case basic(BasicCredentials?)
    case token(String)
    case none
    /// More than one at once, RFC 6750 section 2.
    case several
    /// A token in the URL of a request that changes something.
    case misplaced
  }

  fileprivate struct State {
    var users: UsersFile?
    var tokens: TokensFile?
    var failedLogins = FailedLogins()
    /// Connections on which somebody has logged in: only logins are delayed.
    var proven: Set<ObjectIdentifier> = []
  }

  private let state: Mutex<State>
  let events = ControlEvents()

  /// What reads alone and changes nothing.
  private static let reading: Set<HTTPRequest.Method> = [.get, .head]

  init(users: UsersFile?, tokens: TokensFile?) {
    state = Mutex(State(users: users, tokens: tokens))
  }

  /// How often it was changed who may.
  private let changes = Atomic(0)

  /// From now on these may.
  func set(users: UsersFile?, tokens: TokensFile?) {
    state.withLock { ($0.users, $0.tokens) = (users, tokens) }
    changes.add(1, ordering: .releasing)
  }

  /// How often it was changed who may, for ``roleOfNow(for:_:since:)``.
  var changeCount: Int { changes.load(ordering: .acquiring) }

  /// Tells, as often as it is asked, what one whom ``check(_:at:)`` has let in as `role` may do now; nil for nothing.
  ///
  /// - Parameter count: the ``changeCount`` before that check.
  func roleOfNow(for question: Question, _ role: Role?, since count: Int) -> @Sendable () -> Role? {
    let last = Mutex((changes: count, role: role))
    return { [self] in
      let now = changes.load(ordering: .acquiring)
      return last.withLock { last in
        guard last.changes != now else { return last.role }
        if case .granted(let requester, _) = check(question, at: .now()) {
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

  /// Checks one request; no body of it need have been read.
  func check(_ question: Question, at now: MediaTime) -> Answer {
    let isReading = Self.reading.contains(question.request.method)
    if !isReading, let refusal = Self.crossSite(question.request) {
      events.refusedCrossSite()
      return .refused(refusal, at: now)
    }
    let login = Self.login(of: question.request, isReading: isReading)
    // Whoever knows a token may write it into any page; passwords a browser sends by itself.
    if isReading, !login.isToken, RequestOrigin.isCrossSite(question.request) {
      events.refusedCrossSite()
      return .refused(.crossSiteReading, at: now)
    }
    let answer: Answer = state.withLock { state in
      guard state.hasAnybody else { return .init(Self.withoutAnybody(question, isReading: isReading), at: now) }
      let isProven = state.proven.contains(question.connection)
      if isProven || login.isNone || state.failedLogins.mayTry(from: question.peer, at: now) {
        return state.check(login, question, isProven: isProven, at: now)
      }
      return .refused(.tooManyLogins, at: now)
    }
    if case .refused(let refusal, _) = answer, refusal.status == .unauthorized, login.counts {
      events.loginFailed(from: question.client)
    }
    return answer
  }

  /// Who may ask where nobody has been let in: this machine, and it may read.
  private static func withoutAnybody(_ question: Question, isReading: Bool) -> Refusal? {
    guard question.isFromHere else { return .nobodyIsLetIn("only this machine may ask, by no proxy and no other name") }
    return isReading ? nil : .nobodyIsLetIn("nothing can be changed this way, only over the control socket")
  }

  private static func login(of request: Request, isReading: Bool) -> Login {
    let header = request.headers[.authorization]
    let query = request.uri.queryParameters["token"].map(String.init)
    if header != nil, query != nil { return .several }
    if let query { return isReading ? .token(query) : .misplaced }
    guard let header else { return .none }
    let parts = header.split(separator: " ", maxSplits: 1)
    // RFC 9110 section 11.1: the scheme's case is nothing.
    switch (parts.first?.lowercased(), parts.count) {
    case ("basic", 2): return .basic(BasicCredentials(encoded: parts[1].trimmingSpaces))
    case ("bearer", 2): return .token(String(parts[1].trimmingSpaces))
    default: return .basic(nil)
    }
  }

  /// Refuses what a browser sends for a page of another site: it adds the password that it knows by itself.
  private static func crossSite(_ request: Request) -> Refusal? {
    if let site = request.field("Sec-Fetch-Site"), site != "same-origin", site != "none" { return .crossSite }
    guard let origin = request.headers[.origin] else { return nil }
    return origin.lowercased() == "https://\((request.head.authority ?? "").lowercased())" ? nil : .crossSite
  }
}

extension RequestAuthenticator.Answer {
  /// The user or token that has logged in; nil where nobody has.
  var user: String? {
    guard case .granted(let requester, _) = self, requester.hasLoggedIn else { return nil }
    return requester.name
  }

  fileprivate init(_ refusal: Refusal?, at now: MediaTime) {
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

  /// Whether it is a try to log in.
  fileprivate var counts: Bool { !isNone }
}

extension RequestAuthenticator.State {
  fileprivate var hasAnybody: Bool { users?.users.isEmpty == false || tokens?.names.isEmpty == false }

  fileprivate mutating func check(
    _ login: RequestAuthenticator.Login, _ question: RequestAuthenticator.Question, isProven: Bool, at now: MediaTime
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
      who = tokens?.name(of: token).flatMap { name in tokens?.role(of: name).map { .token(name, $0) } }
    }
    guard let who else {
      proven.remove(question.connection)
      return .refused(
        .unauthorized("wrong name, password or token", challenges, isWrongToken: login.isToken),
        at: failedLogins.noteFailure(from: question.peer, at: now))
    }
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

extension Refusal {
  fileprivate static func unauthorized(
    _ text: String, _ challenges: (basic: Bool, bearer: Bool), isWrongToken: Bool = false
  ) -> Refusal {
    var refusal = Refusal(
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

  /// For a login that held when it came, and no more once its answer was due.
  static var revoked: Refusal {
    Refusal(
      status: .forbidden,
      failure: ControlFailure(
        "this login was taken back while its answer waited: log in as another user, or by another token",
        kind: .noPermission, field: "authorization"))
  }

  fileprivate static func badLogin(_ text: String) -> Refusal {
    Refusal(status: .badRequest, failure: ControlFailure(text, kind: .usage, field: "authorization"))
  }

  static var tooManyLogins: Refusal {
    Refusal(
      status: .serviceUnavailable,
      failure: ControlFailure("too many failed logins from this address: try again in a minute", kind: .temporary),
      headers: [.retryAfter: "60"])
  }

  fileprivate static var crossSite: Refusal {
    Refusal(
      status: .forbidden,
      failure: ControlFailure(
        "another site's page has sent this: only this server's own may", kind: .noPermission, field: "origin"))
  }

  /// For what a page of another site asks for, wherever it is served.
  static var crossSiteReading: Refusal {
    Refusal(
      status: .forbidden,
      failure: ControlFailure(
        "another site's page has asked for this: open it by itself, or give the page a token, https://BOX:8443/…?token=TOKEN",
        kind: .noPermission, field: "origin"))
  }

  fileprivate static func nobodyIsLetIn(_ text: String) -> Refusal {
    Refusal(
      status: .forbidden,
      failure: ControlFailure(
        "without users and tokens \(text): add one with nightjar user add NAME, or nightjar token add NAME",
        kind: .noPermission))
  }
}

import Credentials
import HTTPTypes
import Hummingbird
import Media
import NIOCore
import Synchronization

/// Says who may read by plain HTTP: this machine; others by Digest (RFC 7616), which sends no password.
///
/// Nothing but ``paths`` can be had this way, and nothing be changed: a page in somebody's browser could ask for anything
/// that needs no login. Pages of other sites are refused (``RequestOrigin``). What a proxy passes on, and what comes by
/// another name than the machine's own, as from a tunnel or by DNS rebinding, logs in as from elsewhere. Failed logins wait
/// as at RTSP: ``FailedLogins``.
final class ReadingAuthenticator: Sendable {
  fileprivate struct State: ~Copyable {
    var authenticator: DigestAuthenticator?
    var failedLogins = FailedLogins()
    var lastNumber: UInt64 = 0
    /// Connections that have asked, by number.
    var connections: [ObjectIdentifier: UInt64] = [:]
    /// Who has logged in on which, by the hashes of then: only logins are delayed.
    var proven: [ObjectIdentifier: UsersFile.User] = [:]
  }

  private let state: Mutex<State>
  let events = ControlEvents()

  /// What can be read; behind `/cameras/{camera}` too.
  static let paths = ["/snapshot.jpg", "/stream.mjpg", "/camera.sdp", "/metrics", "/healthz"]

  init(users: UsersFile?) {
    state = Mutex(State(authenticator: users.map { DigestAuthenticator(users: $0, at: .now()) }))
  }

  /// Whether anybody may log in.
  var hasUsers: Bool { state.withLock { $0.authenticator != nil } }

  /// From now on these may.
  func set(users: UsersFile?) {
    state.withLock { state in
      state.proven = state.proven.filter { users?[$0.value.name]?.hashes == $0.value.hashes }
      guard let users else { return state.authenticator = nil }
      if state.authenticator == nil { state.authenticator = DigestAuthenticator(users: users, at: .now()) }
      state.authenticator?.users = users
    }
  }

  /// Forgets a connection that has ended.
  func forget(_ connection: ObjectIdentifier) {
    state.withLock {
      $0.proven[connection] = nil
      $0.connections[connection] = nil
    }
  }

  /// What one whom ``check(_:at:)`` has let in may do now; nil for nothing.
  func roleOfNow(for question: RequestAuthenticator.Question) -> Role? {
    if question.isFromHere { return Requester.unknown.role }
    return state.withLock { state in
      state.proven[question.connection].flatMap { state.authenticator?.users[$0.name]?.role }
    }
  }

  /// Checks one request; no body of it need have been read.
  func check(_ question: RequestAuthenticator.Question, at now: MediaTime) -> RequestAuthenticator.Answer {
    let request = question.request
    if let refusal = Self.refusal(of: request) { return .refused(refusal, at: now) }
    if RequestOrigin.isCrossSite(request) {
      events.refusedCrossSite()
      return .refused(.crossSiteReading, at: now)
    }
    if question.isFromHere { return .granted(.unknown, at: now) }
    let answer = state.withLock { $0.check(question, at: now) }
    if case .refused(let refusal, _) = answer {
      if refusal.isFailedLogin { events.loginFailed(from: question.client) }
      if refusal.status == .forbidden, question.peer.isLoopback { events.refusedCrossSite() }
    }
    return answer
  }

  private static func refusal(of request: Request) -> Refusal? {
    let path = request.uri.path
    let parts = path.split(separator: "/", omittingEmptySubsequences: false)
    let isNamed = parts.count == 4 && parts[1] == "cameras" && !parts[2].isEmpty
    guard paths.contains(isNamed ? "/\(parts[3])" : path) else { return .notForReading(path) }
    return request.method == .get || request.method == .head ? nil : .readingOnly(request.method)
  }
}

extension ReadingAuthenticator.State {
  fileprivate mutating func check(
    _ question: RequestAuthenticator.Question, at now: MediaTime
  ) -> RequestAuthenticator.Answer {
    guard authenticator != nil else { return .refused(.nobodyReads(question), at: now) }
    let value = question.request.headers[.authorization]
    let isLogin = value != nil && proven[question.connection] == nil
    guard !isLogin || failedLogins.mayTry(from: question.peer, at: now) else {
      return .refused(.tooManyLogins, at: now)
    }
    if connections[question.connection] == nil {
      lastNumber += 1
      connections[question.connection] = lastNumber
    }
    let outcome = authenticator?.authenticate(
      DigestAuthenticator.Request(
        method: question.request.method.rawValue, uri: question.request.head.path ?? "", authorization: value,
        peer: question.peer, connection: connections[question.connection] ?? 0), at: now)
    switch outcome {
    case .granted(let user):
      guard let user = authenticator?.users[user] else { return .refused(.unreadableLogin, at: now) }
      proven[question.connection] = user
      return .granted(
        .user(user), at: isLogin ? failedLogins.noteSuccess(from: question.peer, at: now) : now)
    case .challenge(let values, .credentials):
      proven[question.connection] = nil
      return .refused(
        .challenge(values, "wrong name or password", isFailedLogin: true),
        at: failedLogins.noteFailure(from: question.peer, at: now))
    case .challenge(let values, _): return .refused(.challenge(values, "log in by name and password"), at: now)
    case .badRequest, nil: return .refused(.unreadableLogin, at: now)
    }
  }
}

extension Refusal {
  fileprivate var isFailedLogin: Bool { status == .unauthorized && failure.value != nil }

  fileprivate static func challenge(_ values: [String], _ text: String, isFailedLogin: Bool = false) -> Refusal {
    var refusal = Refusal(
      status: .unauthorized,
      failure: ControlFailure(
        text, kind: .noPermission, field: "authorization", value: isFailedLogin ? "wrong" : nil))
    for value in values { refusal.headers.append(HTTPField(name: .wwwAuthenticate, value: value)) }
    return refusal
  }

  fileprivate static var unreadableLogin: Refusal {
    Refusal(
      status: .badRequest,
      failure: ControlFailure(
        "the Authorization header is no Digest login for this address: send one of RFC 7616", kind: .usage,
        field: "authorization"))
  }

  /// Why somebody is not let in where nobody could log in.
  fileprivate static func nobodyReads(_ question: RequestAuthenticator.Question) -> Refusal {
    let mend = "add a user with \(ServiceAccount.addingUser), and log in"
    let failure: ControlFailure
    if !question.peer.isLoopback {
      failure = ControlFailure("without users only this machine may look: \(mend)", kind: .noPermission)
    } else if let field = RequestOrigin.forwardingField(of: question.request) {
      failure = ControlFailure(
        "a proxy or tunnel has passed this on, by its field \(field.prefix(40)): \(mend)", kind: .noPermission,
        field: String(field.prefix(40)))
    } else {
      failure = ControlFailure(
        "this machine is asked by a name that is not its own: write http://localhost, or \(mend)",
        kind: .noPermission, field: "host")
    }
    return Refusal(status: .forbidden, failure: failure)
  }

  fileprivate static func notForReading(_ path: String) -> Refusal {
    let limit = ReadingAuthenticator.paths.joined(separator: ", ")
    let path = String(path.prefix(80))
    return Refusal(
      status: .notFound,
      failure: ControlFailure(
        "there is no \(path) by plain HTTP: choose one of \(limit), or ask by --https or nightjar ctl", kind: .usage,
        field: "path", value: path, limit: limit))
  }

  fileprivate static func readingOnly(_ method: HTTPRequest.Method) -> Refusal {
    let method = String(method.rawValue.prefix(20))
    var refusal = Refusal(
      status: .methodNotAllowed,
      failure: ControlFailure(
        "\(method) changes nothing by plain HTTP: use GET, or ask by --https or nightjar ctl", kind: .usage,
        field: "method", value: method, limit: "GET, HEAD"))
    refusal.headers[.allow] = "GET, HEAD"
    return refusal
  }
}

import HTTPTypes
import Hummingbird
import NIOCore
import Platform
import Synchronization

/// Decides who may read by plain HTTP: this machine, and others by Digest (RFC 7616), which sends no password.
///
/// Only ``paths`` can be read this way, and nothing can be changed: a page in a browser could request anything that
/// needs no login. This machine also gets the page, and watches by WebRTC (``WHEPAPI``), for which a browser asks no
/// page of another origin. Pages of other sites are refused (``RequestOrigin``). Requests through a proxy must log in like
/// those of other machines. So must requests by a name that is not the machine's own, as from a tunnel or by DNS
/// rebinding. Failed logins wait as they do for RTSP: ``FailedLogins``.
final class ReadingAuthenticator: Sendable {
  fileprivate struct State: ~Copyable {
    var authenticator: DigestAuthenticator?
    var failedLogins = FailedLogins()
    var lastNumber: UInt64 = 0
    /// Connections that have sent a request, each with its number.
    var connections: [ObjectIdentifier: UInt64] = [:]
    /// The user that has logged in on each connection, with the hashes of that time: only logins are delayed.
    var proven: [ObjectIdentifier: UsersFile.User] = [:]
  }

  private let state: Mutex<State>
  let events = ControlEvents()

  /// The paths that can be read; they exist behind `/cameras/{camera}` too.
  static let paths = ["/snapshot.jpg", "/stream.mjpg", "/listen.mp3", "/camera.sdp", "/metrics", "/healthz"]

  init(users: UsersFile?) {
    state = Mutex(State(authenticator: users.map { DigestAuthenticator(users: $0, at: .now()) }))
  }

  /// `true` if there are users that may log in.
  var hasUsers: Bool { state.withLock { $0.authenticator != nil } }

  /// Sets the users that may log in.
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

  /// Returns the current role of a client that ``check(_:at:)`` has admitted; nil if it has none.
  func roleOfNow(for question: RequestAuthenticator.Question) -> Role? {
    if question.isFromHere { return Requester.unknown.role }
    return state.withLock { state in
      state.proven[question.connection].flatMap { state.authenticator?.users[$0.name]?.role }
    }
  }

  /// Checks one request; its body need not have been read.
  func check(_ question: RequestAuthenticator.Question, at now: Instant) -> RequestAuthenticator.Answer {
    let request = question.request
    if let refusal = Self.refusal(of: request, isFromHere: question.isFromHere) { return .refused(refusal, at: now) }
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

  private static func refusal(of request: Request, isFromHere: Bool) -> HTTPRefusal? {
    let path = request.uri.path
    if isFromHere, WHEPAPI.isWatching(request) { return nil }
    let parts = path.split(separator: "/", omittingEmptySubsequences: false)
    let isNamed = parts.count == 4 && parts[1] == "cameras" && !parts[2].isEmpty
    let isOfPage =
      isFromHere && (PageAPI.isPublic(request) || path.hasPrefix("/v1/cameras/") && path.hasSuffix("/viewers"))
    guard isOfPage || paths.contains(isNamed ? "/\(parts[3])" : path) else { return .notForReading(path) }
    return request.method == .get || request.method == .head ? nil : .readingOnly(request.method)
  }
}

extension ReadingAuthenticator.State {
  fileprivate mutating func check(
    _ question: RequestAuthenticator.Question, at now: Instant
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

extension HTTPRefusal {
  fileprivate var isFailedLogin: Bool { status == .unauthorized && failure.value != nil }

  fileprivate static func challenge(_ values: [String], _ text: String, isFailedLogin: Bool = false) -> HTTPRefusal {
    var refusal = HTTPRefusal(
      status: .unauthorized,
      failure: ControlFailure(
        text, kind: .noPermission, field: "authorization", value: isFailedLogin ? "wrong" : nil))
    for value in values { refusal.headers.append(HTTPField(name: .wwwAuthenticate, value: value)) }
    return refusal
  }

  fileprivate static var unreadableLogin: HTTPRefusal {
    HTTPRefusal(
      status: .badRequest,
      failure: ControlFailure(
        "the Authorization header is not a Digest login for this address: send one of RFC 7616", kind: .usage,
        field: "authorization"))
  }

  /// Returns the refusal of a client while there are no users that could log in.
  fileprivate static func nobodyReads(_ question: RequestAuthenticator.Question) -> HTTPRefusal {
    let mend = "add a user with \(ServiceAccount.addingUser), and log in"
    let failure: ControlFailure
    if !question.peer.isLoopback {
      failure = ControlFailure("without users only this host may watch: \(mend)", kind: .noPermission)
    } else if let field = RequestOrigin.forwardingField(of: question.request) {
      failure = ControlFailure(
        "the request came through a proxy or tunnel, as its field \(field.prefix(40)) shows: \(mend)",
        kind: .noPermission,
        field: String(field.prefix(40)))
    } else {
      failure = ControlFailure(
        "the request is for another name than this host's: write http://localhost, or \(mend)",
        kind: .noPermission, field: "host")
    }
    return HTTPRefusal(status: .forbidden, failure: failure)
  }

  fileprivate static func notForReading(_ path: String) -> HTTPRefusal {
    let limit = ReadingAuthenticator.paths.joined(separator: ", ")
    let path = String(path.prefix(80))
    return HTTPRefusal(
      status: .notFound,
      failure: ControlFailure(
        "there is no \(path) by plain HTTP: choose one of \(limit), or use --https or nightjar ctl", kind: .usage,
        field: "path", value: path, limit: limit))
  }

  fileprivate static func readingOnly(_ method: HTTPRequest.Method) -> HTTPRefusal {
    let method = String(method.rawValue.prefix(20))
    var refusal = HTTPRefusal(
      status: .methodNotAllowed,
      failure: ControlFailure(
        "plain HTTP does not allow \(method): use GET, or --https or nightjar ctl", kind: .usage,
        field: "method", value: method, limit: "GET, HEAD"))
    refusal.headers[.allow] = "GET, HEAD"
    return refusal
  }
}

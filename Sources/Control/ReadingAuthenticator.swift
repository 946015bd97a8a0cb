import Credentials
import Glibc
import HTTPTypes
import Hummingbird
import Media
import NIOCore
import Synchronization

/// Says who may read by plain HTTP: this machine; others by Digest (RFC 7616), which sends no password.
///
/// Nothing but ``paths`` can be had this way, and nothing be changed: a page in somebody's browser could ask for anything
/// that needs no login. That one of another name shows what this machine answers (DNS rebinding) is refused by the name.
/// Failed logins wait as at RTSP: ``FailedLogins``.
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

  /// From now on these may.
  func set(users: UsersFile?) {
    state.withLock { state in
      state.proven = state.proven.filter { users?[$0.value.name] == $0.value }
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

  /// Whether one whom ``check(_:at:)`` has let in is still what it was.
  func isStillAllowed(_ connection: ObjectIdentifier, _ peer: PeerAddress?) -> Bool {
    peer?.isLoopback == true || state.withLock { $0.proven[connection] != nil }
  }

  /// Checks one request; no body of it need have been read.
  func check(_ question: RequestAuthenticator.Question, at now: MediaTime) -> RequestAuthenticator.Answer {
    let request = question.request
    if let refusal = Self.refusal(of: request) { return .refused(refusal, at: now) }
    if question.peer.isLoopback {
      // Browsers always send one; clients of HTTP/1.0 need not.
      guard request.head.authority.map(Self.isOwnName) ?? true else {
        events.refusedCrossSite()
        return .refused(.foreignName, at: now)
      }
      return .granted(who: RequestAuthenticator.Answer.nobody, at: now)
    }
    let answer = state.withLock { $0.check(question, at: now) }
    if case .refused(let refusal, _) = answer, refusal.isFailedLogin { events.loginFailed(from: question.client) }
    return answer
  }

  private static func refusal(of request: Request) -> Refusal? {
    let path = request.uri.path
    let parts = path.split(separator: "/", omittingEmptySubsequences: false)
    let isNamed = parts.count == 4 && parts[1] == "cameras" && !parts[2].isEmpty
    guard paths.contains(isNamed ? "/\(parts[3])" : path) else { return .notForReading(path) }
    return request.method == .get || request.method == .head ? nil : .readingOnly(request.method)
  }

  /// The machine's host name, in lower case.
  private static var ownName: String? {
    var buffer = [CChar](repeating: 0, count: 256)
    guard gethostname(&buffer, buffer.count - 1) == 0, buffer[0] != 0 else { return nil }
    return String(cBuffer: buffer).lowercased()
  }

  /// Whether it is this machine's name for itself, or an address: nobody else's name can lead here then.
  static func isOwnName(_ authority: String) -> Bool {
    var host = Substring(authority.lowercased())
    if host.hasPrefix("[") {
      guard let end = host.firstIndex(of: "]") else { return false }
      return PeerAddress(String(host[host.index(after: host.startIndex)..<end])) != nil
    }
    host = host.prefix { $0 != ":" }
    if host.hasSuffix(".") { host.removeLast() }
    if host == "localhost" || host.hasSuffix(".localhost") || String(host) == ownName { return true }
    // What follows a % is no address's but a zone's name, and that has brackets around it.
    return !host.contains("%") && PeerAddress(String(host)) != nil
  }
}

extension ReadingAuthenticator.State {
  fileprivate mutating func check(
    _ question: RequestAuthenticator.Question, at now: MediaTime
  ) -> RequestAuthenticator.Answer {
    guard authenticator != nil else { return .refused(.nobodyReads, at: now) }
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
      proven[question.connection] = authenticator?.users[user]
      return .granted(
        who: "\(user)", at: isLogin ? failedLogins.noteSuccess(from: question.peer, at: now) : now)
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

  fileprivate static var nobodyReads: Refusal {
    Refusal(
      status: .forbidden,
      failure: ControlFailure(
        "without users only this machine may look: add one with nightjar user add NAME", kind: .noPermission))
  }

  fileprivate static var foreignName: Refusal {
    Refusal(
      status: .forbidden,
      failure: ControlFailure(
        "this machine is asked by a name that is not its own: write http://localhost or its address",
        kind: .noPermission, field: "host"))
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

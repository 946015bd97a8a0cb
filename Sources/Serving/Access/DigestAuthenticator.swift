package import Platform
import TLS

/// Requests a password and checks the answer: Digest access authentication, RFC 7616, for any protocol whose requests
/// have a method and a URI.
///
/// It has one owner at a time; it neither waits nor reads a clock. It delays no answer: see ``FailedLogins``.
package struct DigestAuthenticator: ~Copyable, Sendable {
  /// A request to check, with its origin.
  package struct Request: Sendable {
    /// The method as in the request line; it is hashed.
    package let method: String
    /// The URI as in the request line.
    package let uri: [UInt8]
    /// The value of the `Authorization` header; nil if there is none.
    package let authorization: [UInt8]?
    /// The address that the request comes from.
    package let peer: PeerAddress
    /// A number that no other connection of this server has or had.
    package let connection: UInt64

    /// Creates a request; `authorization` is the header's value without its name.
    package init(
      method: String, uri: String, authorization: String?, peer: PeerAddress, connection: UInt64
    ) {
      self.method = method
      self.uri = Array(uri.utf8)
      self.authorization = authorization.map { Array($0.utf8) }
      self.peer = peer
      self.connection = connection
    }
  }

  /// The answer to a request.
  package enum Outcome: Hashable, Sendable {
    /// The request is this user's.
    case granted(UserName)
    /// No user was proved: answer 401 with both values, each in a `WWW-Authenticate` header of its own, in this order.
    case challenge([String], Rejection)
    /// The request is malformed: answer 400. RFC 7616 section 3.4.6 wants that for a URI that differs.
    case badRequest(Rejection)
  }

  /// The reason why a request is not granted.
  package enum Rejection: Hashable, Sendable {
    /// There is no `Authorization` header: the usual first request.
    case missing
    /// The header cannot be read.
    case malformed(DigestAuthorizationError)
    /// The header is for another realm.
    case realm
    /// The header is for another URI.
    case uri
    /// The password is wrong, or there is no such user, or none with this algorithm. Only this rejection counts as a
    /// failed login.
    case credentials
    /// The password is right, but the nonce is too old, belongs to another client, or was used with this counter. The
    /// client answers the new challenge without asking its user.
    case stale
  }

  /// The lifetime of a nonce.
  package static let nonceLife = Duration(seconds: 300)
  /// The most nonces whose counters are kept.
  package static let nonceLimit = 4096

  /// The users that may log in; may be replaced at any time, for example when the file has changed.
  package var users: UsersFile

  private let issuer: NonceIssuer
  private var replays: ReplayTable
  private let life: Duration
  /// The hashes for names that do not exist: checking them takes the same time, and no password matches them.
  private let nobody: [DigestAlgorithm: [UInt8]]

  /// Creates an authenticator for these users; `now` is on the clock of all later calls.
  package init(users: UsersFile, nonceLife: Duration = Self.nonceLife, at now: Instant) {
    self.users = users
    life = nonceLife
    issuer = NonceIssuer(start: now)
    replays = ReplayTable(limit: Self.nonceLimit, life: nonceLife)
    var nobody: [DigestAlgorithm: [UInt8]] = [:]
    for algorithm in DigestAlgorithm.allCases {
      nobody[algorithm] = Hexadecimal.text(Secrets.randomBytes(algorithm.hexLength / 2))
    }
    self.nobody = nobody
  }

  /// Checks one request.
  package mutating func authenticate(_ request: Request, at now: Instant) -> Outcome {
    guard let value = request.authorization else { return challenge(request, .missing, at: now) }
    let authorization: DigestAuthorization
    do throws(DigestAuthorizationError) {
      authorization = try DigestAuthorization(parsing: value)
    } catch .scheme {
      // A client that tries Basic on its own may know Digest too.
      return challenge(request, .malformed(.scheme), at: now)
    } catch {
      return .badRequest(.malformed(error))
    }
    guard authorization.realm.elementsEqual(UsersFile.realm.utf8) else { return challenge(request, .realm, at: now) }
    guard RequestURI(authorization.uri).covers(RequestURI(request.uri)) else { return .badRequest(.uri) }

    let hash = authorization.user.flatMap { users[$0]?.hashes[authorization.algorithm] }
    let expected = DigestHash.response(
      authorization, hash: hash ?? nobody[authorization.algorithm] ?? [], method: request.method)
    let isRight = Secrets.isEqual(expected, authorization.response)
    guard isRight, hash != nil, let user = authorization.user else { return challenge(request, .credentials, at: now) }
    guard isFresh(authorization, request, at: now) else { return challenge(request, .stale, at: now) }
    return .granted(user)
  }

  /// Returns `true` if the nonce may be used here, now, and for this request. Only a request with the right password
  /// gets here, so no other uses room in the table.
  private mutating func isFresh(
    _ authorization: DigestAuthorization, _ request: Request, at now: Instant
  ) -> Bool {
    let elapsed = issuer.elapsed(at: now)
    guard let nonce = issuer.read(authorization.nonce, peer: request.peer, connection: request.connection),
      nonce.issued <= elapsed, elapsed - nonce.issued <= life
    else { return false }
    guard let protection = authorization.protection else { return nonce.isOfConnection }
    return replays.note(nonce, count: protection.count, at: elapsed)
  }

  private func challenge(_ request: Request, _ rejection: Rejection, at now: Instant) -> Outcome {
    let nonce = issuer.make(peer: request.peer, connection: request.connection, at: now)
    return .challenge(
      DigestAlgorithm.allCases.map {
        DigestChallenge(nonce: nonce, algorithm: $0, isStale: rejection == .stale).description
      }, rejection)
  }
}

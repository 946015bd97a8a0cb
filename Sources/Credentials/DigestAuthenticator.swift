public import Media
import TLS

/// Asks for a password and checks the answer: Digest access authentication, RFC 7616, for any protocol whose requests
/// have a method and a URI.
///
/// Of one owner at a time; it neither waits nor reads a clock. It holds back no answer: see ``FailedLogins``.
public struct DigestAuthenticator: ~Copyable, Sendable {
  /// What is asked, and by whom.
  public struct Request: Sendable {
    /// As in the request line; it is hashed.
    public let method: String
    /// As in the request line.
    public let uri: [UInt8]
    /// The value of the `Authorization` header; nil where there is none.
    public let authorization: [UInt8]?
    /// Where it comes from.
    public let peer: PeerAddress
    /// A number that no other connection of this server has or had.
    public let connection: UInt64

    /// A request; `authorization` is the header's value without its name.
    public init(
      method: String, uri: String, authorization: String?, peer: PeerAddress, connection: UInt64
    ) {
      self.method = method
      self.uri = Array(uri.utf8)
      self.authorization = authorization.map { Array($0.utf8) }
      self.peer = peer
      self.connection = connection
    }
  }

  /// What is to be answered.
  public enum Outcome: Hashable, Sendable {
    /// It is this user.
    case granted(UserName)
    /// No user was proved: 401 with both values, each in a `WWW-Authenticate` header of its own, in this order.
    case challenge([String], Refusal)
    /// It is no proper request, 400; RFC 7616 section 3.4.6 wants that for a URI that differs.
    case badRequest(Refusal)
  }

  /// Why it is not granted.
  public enum Refusal: Hashable, Sendable {
    /// There is no `Authorization` header: the usual first request.
    case missing
    /// The header cannot be read.
    case malformed(DigestAuthorizationError)
    /// The header is for another realm.
    case realm
    /// The header is for another URI.
    case uri
    /// The password is wrong, or there is no such user, or none with this algorithm. The only one that counts as a
    /// failed login.
    case credentials
    /// The password is right, but the nonce is too old, another's, or was used with this counter: the client answers the
    /// new challenge without asking its user.
    case stale
  }

  /// How long a nonce is good.
  public static let nonceLife = MediaTime(seconds: 300)
  /// The most nonces whose counters are kept.
  public static let nonceLimit = 4096

  /// Who may watch; may be replaced at any time, as when the file has changed.
  public var users: UsersFile

  private let issuer: NonceIssuer
  private var replays: ReplayTable
  private let life: MediaTime
  /// The hashes of nobody, for names that are not there: they cost the same time, and no password is theirs.
  private let nobody: [DigestAlgorithm: [UInt8]]

  /// For these users; `now` is on the clock of all later calls.
  public init(users: UsersFile, nonceLife: MediaTime = Self.nonceLife, at now: MediaTime) {
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
  public mutating func authenticate(_ request: Request, at now: MediaTime) -> Outcome {
    guard let value = request.authorization else { return challenge(request, .missing, at: now) }
    let authorization: DigestAuthorization
    do throws(DigestAuthorizationError) {
      authorization = try DigestAuthorization(parsing: value)
    } catch .scheme {
      // A client that tries Basic of its own accord may know Digest too.
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

  /// Whether the nonce may be used here, now, and for this request. Only one whose password was right gets here, so
  /// nobody else takes room in the table.
  private mutating func isFresh(
    _ authorization: DigestAuthorization, _ request: Request, at now: MediaTime
  ) -> Bool {
    let elapsed = issuer.elapsed(at: now)
    guard let nonce = issuer.read(authorization.nonce, peer: request.peer, connection: request.connection),
      nonce.issued <= elapsed, elapsed - nonce.issued <= life
    else { return false }
    guard let protection = authorization.protection else { return nonce.isOfConnection }
    return replays.note(nonce, count: protection.count, at: elapsed)
  }

  private func challenge(_ request: Request, _ refusal: Refusal, at now: MediaTime) -> Outcome {
    let nonce = issuer.make(peer: request.peer, connection: request.connection, at: now)
    return .challenge(
      DigestAlgorithm.allCases.map {
        DigestChallenge(nonce: nonce, algorithm: $0, isStale: refusal == .stale).description
      }, refusal)
  }
}

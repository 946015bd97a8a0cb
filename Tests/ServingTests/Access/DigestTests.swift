import Foundation
import Media
import Platform
import Serving
import TestSupport
import Testing

@Suite struct DigestTests {
  private let peer: PeerAddress

  init() throws {
    peer = try #require(PeerAddress("192.0.2.7"))
  }

  @Test(arguments: [
    // RFC 7616 section 3.9.1, both algorithms.
    (
      "Mufasa", "http-auth@example.org", "Circle of Life", "/dir/index.html", DigestAlgorithm.md5,
      "7ypf/xlj9XXwfDPEoM4URrv/xwf94BcCAzFZH4GiTo0v", "f2/wE4q74E6zIJEtWaHKaf5wv/H5QzzpXusqGemxURZJ",
      "8ca523f5e9506fed4657c9700eebdbec"
    ),
    (
      "Mufasa", "http-auth@example.org", "Circle of Life", "/dir/index.html", .sha256,
      "7ypf/xlj9XXwfDPEoM4URrv/xwf94BcCAzFZH4GiTo0v", "f2/wE4q74E6zIJEtWaHKaf5wv/H5QzzpXusqGemxURZJ",
      "753927fa0e85d155564e2e272a28d1802ca10daf4496794697cf8db5856cb6c1"
    ),
    // RFC 2617 section 3.5.
    (
      "Mufasa", "testrealm@host.com", "Circle Of Life", "/dir/index.html", .md5, "dcd98b7102dd2f0e8b11d0f600bfb0c093",
      "0a4f113b", "6629fae49393a05397450978507c4ef1"
    ),
  ])
  func `the RFCs' examples come out`(
    name: String, realm: String, password: String, uri: String, algorithm: DigestAlgorithm, nonce: String,
    clientNonce: String, response: String
  ) throws {
    let text = """
      Digest username="\(name)", realm="\(realm)", uri="\(uri)", algorithm=\(algorithm.rawValue), nonce="\(nonce)", \
      nc=00000001, cnonce="\(clientNonce)", qop=auth, response="\(response)", opaque="FQhe/qaU925kfnzjCev0ciny7QMkPq"
      """
    let authorization = try DigestAuthorization(parsing: Array(text.utf8))
    let hash = DigestHash.hex(algorithm, Array("\(name):\(realm):\(password)".utf8))
    #expect(DigestHash.response(authorization, hash: hash, method: "GET") == Array(response.utf8))
    #expect(DigestHash.response(authorization, hash: hash, method: "PUT") != Array(response.utf8))
  }

  /// The answer of a client that python computes, which we did not write.
  private func answer(
    _ challenge: String, method: String = "DESCRIBE", uri: String = "rtsp://box:8554/camera", nc: Int? = 1,
    password: String = "correct horse", name: String = "alice"
  ) throws -> String {
    let directory = try TemporaryDirectory()
    let script = """
      import hashlib, re, sys
      challenge, method, uri, nc, name, password = sys.argv[1:]
      value = dict(re.findall(r'(\\w+)="?([^",]+)"?', challenge))
      h = lambda t: {'MD5': hashlib.md5, 'SHA-256': hashlib.sha256}[value['algorithm']](t.encode()).hexdigest()
      a1, a2 = h(f"{name}:{value['realm']}:{password}"), h(f"{method}:{uri}")
      head = f'Digest username="{name}", realm="{value["realm"]}", nonce="{value["nonce"]}", uri="{uri}", '
      if nc == '-':
          print(head + f'algorithm={value["algorithm"]}, response="{h(a1 + ":" + value["nonce"] + ":" + a2)}"')
      else:
          r = h(f'{a1}:{value["nonce"]}:{int(nc):08x}:c0ffee:auth:{a2}')
          print(head + f'algorithm={value["algorithm"]}, qop=auth, nc={int(nc):08x}, cnonce="c0ffee", response="{r}"')
      """
    let result = try Subprocess.run(
      ["python3", "-c", script, challenge, method, uri, nc.map(String.init) ?? "-", name, password], in: directory)
    #expect(result.status == 0, "\(result.error)")
    return result.outputText.trimmingCharacters(in: .newlines)
  }

  private func request(
    _ authorization: String?, method: String = "DESCRIBE", uri: String = "rtsp://box:8554/camera",
    connection: UInt64 = 1,
    peer: PeerAddress? = nil
  ) -> DigestAuthenticator.Request {
    .init(method: method, uri: uri, authorization: authorization, peer: peer ?? self.peer, connection: connection)
  }

  private func users() throws -> UsersFile {
    var users = UsersFile()
    try users.set(UsersFile.User(name: UserName("alice"), password: "correct horse"))
    return users
  }

  private func refusal(_ outcome: DigestAuthenticator.Outcome) -> DigestAuthenticator.Rejection? {
    switch outcome {
    case .granted: nil
    case .challenge(_, let refusal), .badRequest(let refusal): refusal
    }
  }

  @Test(arguments: [0, 1]) func `a client logs in, once for each counter, for a nonce's life`(index: Int) throws {
    var server = DigestAuthenticator(users: try users(), at: .zero)
    guard case .challenge(let challenges, .missing) = server.authenticate(request(nil), at: .zero) else {
      Issue.record("no challenge")
      return
    }
    #expect(challenges.count == 2)
    #expect(challenges[0].contains("algorithm=SHA-256") && challenges[1].contains("algorithm=MD5"))
    let challenge = challenges[index]
    let alice = DigestAuthenticator.Outcome.granted(try UserName("alice"))
    let second = try answer(challenge, nc: 2)
    let late = Instant(seconds: 301)
    for (header, connection, time, expected) in [
      (try answer(challenge), 1, Instant.zero, nil), (try answer(challenge), 1, .zero, .stale),
      (second, 2, .zero, nil), (second, 2, .zero, .stale),
      (try answer(challenge, nc: 3, password: "wrong horse"), 1, .zero, .credentials),
      (try answer(challenge, nc: 3, name: "mallory"), 1, .zero, .credentials),
      (try answer(challenge, nc: 4), 1, late, .stale),
      // Without qop: on its own connection only, there as often as it likes.
      (try answer(challenge, nc: nil), 1, .zero, nil), (try answer(challenge, nc: nil), 1, .zero, nil),
      (try answer(challenge, nc: nil), 2, .zero, .stale), (try answer(challenge, nc: nil), 1, late, .stale),
    ] as [(String, UInt64, Instant, DigestAuthenticator.Rejection?)] {
      let outcome = server.authenticate(request(header, connection: connection), at: time)
      #expect(refusal(outcome) == expected, "\(header)")
      if expected == nil { #expect(outcome == alice) }
      if case .challenge(let again, .stale) = outcome { #expect(again[0].contains("stale=true")) }
    }
    let other = server.authenticate(
      request(try answer(challenge, nc: 9), peer: PeerAddress("192.0.2.8")), at: .zero)
    #expect(refusal(other) == .stale)
    let method = server.authenticate(request(try answer(challenge, nc: 9), method: "PLAY"), at: .zero)
    #expect(refusal(method) == .credentials)
  }

  @Test(arguments: [
    ("rtsp://box:8554/camera", "rtsp://box:8554/camera", true), ("rtsp://BOX:8554/camera/", "/camera", true),
    ("rtsp://box/camera", "rtsp://a:b@box:554/camera/", true), ("/camera", "rtsp://box/camera", true),
    ("rtsp://box/camera/", "rtsp://box/camera/trackID=0", true), ("*", "*", true),
    ("rtsp://box/camera", "rtsp://box/other", false), ("rtsp://box/camera", "rtsp://box/camera2", false),
    ("rtsp://box/", "rtsp://box/camera", false), ("rtsp://box/camera", "rtsp://evil/camera", false),
    ("rtsp://box/camera", "rtsp://box/camera/..", false), ("rtsp://box/camera", "rtsp://box/camera/a/b", false),
    ("rtsp://box/camera", "rtsp://box/camera/%2e%2e", false), ("rtsp://box/camera/track", "rtsp://box/camera", false),
    ("rtsp://box/camera", "rtsps://box/camera", false), ("*", "rtsp://box/camera", false),
  ]) func `the digest's URI must be the request's`(digest: String, request: String, isCovered: Bool) {
    #expect(RequestURI(Array(digest.utf8)).covers(RequestURI(Array(request.utf8))) == isCovered)
  }

  private static let rest = #"realm="r", nonce="n", uri="/", response="00000000000000000000000000000000""#

  /// `@` stands for what else a header must have.
  private static let hostile: [(String, DigestAuthorizationError)] = [
    ("", DigestAuthorizationError.scheme), ("Basic YTpi", .scheme), ("Digest", .scheme),
    ("Digest username", .syntax(offset: 15)),
    ("Digest username=", .syntax(offset: 16)), (#"Digest username="a"#, .syntax(offset: 16)),
    (#"Digest username="a\"#, .syntax(offset: 16)), ("Digest username=\"a\nb\"", .syntax(offset: 18)),
    (#"Digest username="a" realm="b""#, .syntax(offset: 20)),
    (#"Digest username="a", USERNAME=b"#, .repeated("username")),
    ("Digest username*=UTF-8''a, @", .unsupported("username*")),
    (#"Digest username="a", userhash=true, @"#, .unsupported("userhash")), ("Digest @", .missing("username")),
    (#"Digest username="a", qop=auth, @"#, .missing("nc")),
    (#"Digest username="a", qop=auth-int, @"#, .value("qop")),
    (#"Digest username="a", nc=00000001, @"#, .missing("qop")),
    (#"Digest username="a", qop=auth, nc=00000000, cnonce="b", @"#, .value("nc")),
    (#"Digest username="a", qop=auth, nc=1, cnonce="b", @"#, .value("nc")),
    (#"Digest username="a", algorithm=SHA-512-256, @"#, .value("algorithm")),
    (#"Digest username="a", algorithm=MD5-sess, @"#, .value("algorithm")),
    (#"Digest username="a", algorithm=SHA-256, @"#, .value("response")),
  ]

  @Test(arguments: hostile) func `hostile headers are refused`(value: String, expected: DigestAuthorizationError) {
    let text = value.replacingOccurrences(of: "@", with: Self.rest)
    #expect(throws: expected) { try DigestAuthorization(parsing: Array(text.utf8)) }
  }

  @Test func `headers beyond the limits are refused`() {
    let many = (0..<25).map { "k\($0)=v" }.joined(separator: ",")
    #expect(throws: DigestAuthorizationError.parameters) {
      try DigestAuthorization(parsing: Array("Digest \(many)".utf8))
    }
    let long = [UInt8](repeating: 0x41, count: 4097)
    #expect(throws: DigestAuthorizationError.size(4097)) { try DigestAuthorization(parsing: long) }
  }

  @Test func `names that nobody has are read, and are nobody's`() throws {
    for name in [#"a\"b"#, "a:b", "é", ""] {
      #expect(try DigestAuthorization(parsing: Array("Digest username=\"\(name)\", \(Self.rest)".utf8)).user == nil)
    }
  }

  @Test func `the table of counters stays small and forgets nothing that could be replayed`() {
    var table = ReplayTable(limit: 3, life: Duration(seconds: 300))
    let nonce = { (number: UInt64) in
      NonceIssuer.Nonce(issued: Duration(seconds: Double(number)), number: number, isOfConnection: true)
    }
    var taken: [Bool] = []
    for number in UInt64(1)...5 { taken.append(table.note(nonce(number), count: 1, at: Duration(seconds: 6))) }
    #expect(taken == [true, true, true, true, true])
    #expect(table.count == 3)
    let replayed = (UInt64(1)...5).map { table.note(nonce($0), count: 1, at: Duration(seconds: 6)) }
    #expect(replayed == [false, false, false, false, false])
  }
}

@Suite struct FailedLoginTests {
  @Test func `answers to one who guesses come slower and slower, however many connections he has`() throws {
    var logins = FailedLogins()
    let guesser = try #require(PeerAddress("2001:db8::1"))
    let neighbour = try #require(PeerAddress("2001:db8::ffff:1"))
    let other = try #require(PeerAddress("2001:db8:0:1::1"))
    var answers: [Double] = []
    for peer in [guesser, neighbour, guesser, neighbour, guesser, guesser] {
      answers.append((logins.noteFailure(from: peer, at: .zero) - .zero).seconds)
    }
    // Nobody who was right before waits for the first one.
    #expect(answers == [0, 1, 3, 7, 15, 31])
    let later = Instant(seconds: 20)
    let tries = [
      logins.mayTry(from: guesser, at: .zero), logins.mayTry(from: other, at: .zero),
      logins.mayTry(from: guesser, at: later),
    ]
    #expect(tries == [false, true, true])
    let success = logins.noteSuccess(from: guesser, at: later)
    #expect(success == Instant(seconds: 47))
    // A success shortens the delays. It does not end the one that is due.
    let next = [later, later, Instant(seconds: 60)].map { logins.noteFailure(from: guesser, at: $0) }
    #expect(next == [Instant(seconds: 47), Instant(seconds: 48), Instant(seconds: 60)])
    #expect(logins.noteSuccess(from: guesser, at: Instant(seconds: 70)) == Instant(seconds: 70))
    #expect(logins.addresses == 0)
    #expect(logins.total == 9 && logins.turnedAway == 1)
  }

  @Test func `the table of addresses is bounded`() throws {
    var logins = FailedLogins()
    for index in 0..<5000 {
      let peer = try #require(PeerAddress([10, 0, UInt8(index >> 8), UInt8(index & 255)]))
      _ = logins.noteFailure(from: peer, at: Instant(nanoseconds: Int64(index)))
    }
    #expect(logins.addresses == FailedLogins.addressLimit)
  }
}

import Media
package import Platform
import RTP
package import RTSP
import SRTP

/// The client's side of an RTSP session: DESCRIBE, SETUP of each track, PLAY, and the requests that keep it alive. Messages go
/// in, requests come out. It has no socket and no clock.
package struct RTSPDialogue {
  /// The client's way of receiving packets.
  package enum Way: Equatable {
    /// Over the RTSP connection, on channels 0 and 1 and those after them.
    case interleaved
    /// At these UDP ports, one pair a track.
    case udp([PortPair])
    /// At the server's groups.
    case multicast
  }

  /// The place in the conversation: the request that is not answered yet, or none.
  private enum Step {
    case options, describe, setup, play, playing, ended
  }

  /// A user with a password.
  package struct Credentials {
    let user: String
    let password: String

    /// Creates the credentials of a user.
    package init(user: String, password: String) { (self.user, self.password) = (user, password) }
  }

  /// A track that the server has set up.
  package struct SetUpTrack {
    /// The track, with the profile that was set up.
    package var track: ReceivedDescription.Track
    /// The server's transport.
    package var transport: ServerTransport
    /// The keys; nil where the packets are in the clear, or within an encrypted connection.
    package var keys: TrackKeys?
  }

  /// The tracks that the server has set up so far, in their order; the picture's is the first.
  package private(set) var setUp: [SetUpTrack] = []
  /// The codecs of sound that the server has and that are not received, for people.
  private(set) var otherSound: String?
  /// The longest time between two requests: a half of the session's timeout.
  package private(set) var keepAliveInterval = Duration.seconds(30)
  /// `true` once PLAY is answered.
  package var isPlaying: Bool { step == .playing }
  /// `true` while a response is awaited.
  var isWaiting: Bool { pending != nil }

  private let url: StreamURL
  private let way: Way
  private let wantsSound: Bool
  private let credentials: Credentials?
  private let makeNonce: () -> String
  private let makeControlKey: TrackKeys.Maker
  private var step = Step.options
  private var pending: Request?
  private var sequenceNumber = 0
  private var session: String?
  private var hasGetParameter = false
  private var base = ""
  private var presentation = ""
  private var challenge: DigestChallenge?
  private var nonceCount: UInt32 = 0
  /// The number of challenges to the pending request.
  private var answers = 0
  /// The attempts to set up that are left: of each track, and of each of its profiles.
  private var attempts: [SetUpAttempt] = []

  /// The limit of a session's identifier in bytes.
  private static let sessionLimit = 256

  /// Creates the dialogue for a stream. `makeNonce` returns a new random text for Digest, and `makeControlKey` a new key.
  package init(
    _ url: StreamURL, way: Way, wantsSound: Bool = true, credentials: Credentials?, makeNonce: @escaping () -> String,
    makeControlKey: @escaping TrackKeys.Maker
  ) {
    (self.url, self.way, self.wantsSound, self.credentials) = (url, way, wantsSound, credentials)
    (self.makeNonce, self.makeControlKey) = (makeNonce, makeControlKey)
    base = url.description
    presentation = base
  }

  /// Returns the first request.
  package mutating func begin() -> [UInt8] { request(.options, url.description) }

  /// Returns the request that keeps the session alive.
  package mutating func keepAlive() -> [UInt8] { request(hasGetParameter ? .getParameter : .options, presentation) }

  /// Returns the request that ends the session; nil where there is none.
  package mutating func end() -> [UInt8]? {
    step = .ended
    return session == nil ? nil : request(.teardown, presentation)
  }

  /// Takes a message and returns the bytes to send, if any.
  ///
  /// - Throws: ``ReceiverError`` for a refusal, and for a message that makes no sense.
  package mutating func take(_ message: ServerMessage) throws(ReceiverError) -> [UInt8]? {
    switch message {
    case .request(let method, let number):
      if method == .redirect { throw .redirected("another server") }
      let status: ResponseStatus = method == .options ? .ok : .notImplemented
      return Response(status, sequenceNumber: number).bytes
    case .response(let response): return try take(response)
    }
  }

  private mutating func take(_ response: ServerResponse) throws(ReceiverError) -> [UInt8]? {
    guard let request = pending, response.headers["CSeq"] == "\(sequenceNumber)" else {
      throw .malformed("the server answers a request that was not sent")
    }
    // A server may say that the answer takes longer.
    if response.status < 200 { return nil }
    pending = nil
    switch response.status {
    case 200..<300: return try proceed(response)
    case 300..<400:
      throw .redirected(Text.printable(response.headers["Location"] ?? "another place"))
    case 401: return try authenticate(request, response)
    default:
      // Servers that lack OPTIONS or GET_PARAMETER still count the request as a sign of life.
      if step == .options { return describe() }
      if step == .playing, response.status != 454 {
        hasGetParameter = false
        return nil
      }
      guard step == .setup, let next = try skip(response.status) else {
        throw .refused(status: response.status, reason: response.reason)
      }
      return next
    }
  }

  private mutating func proceed(_ response: ServerResponse) throws(ReceiverError) -> [UInt8]? {
    switch step {
    case .options:
      let methods = response.headers.values(of: "Public").joined(separator: ",")
      hasGetParameter = methods.split(separator: ",").contains { Text.trimmed($0) == "GET_PARAMETER" }
      return describe()
    case .describe: return try takeDescription(response)
    case .setup:
      try takeSetup(response)
      return try setUpNext()
    case .play: step = .playing
    case .playing, .ended: break
    }
    return nil
  }

  private mutating func describe() -> [UInt8] {
    step = .describe
    return request(.describe, url.description, [("Accept", "application/sdp")])
  }

  private mutating func takeDescription(_ response: ServerResponse) throws(ReceiverError) -> [UInt8] {
    let description = try ReceivedDescription(response.body)
    let tracks = [try description.picture()] + (wantsSound ? description.sound().map { [$0] } ?? [] : [])
    otherSound = wantsSound ? description.otherSound : nil
    for text in [description.control, response.headers["Content-Base"]] + tracks.map(\.medium.control) {
      guard text?.utf8.allSatisfy({ $0 > 0x20 && $0 != 0x7f }) ?? true else {
        throw .malformed("the server names a URL with spaces or control characters")
      }
    }
    let named = response.headers["Content-Base"] ?? ""
    let isUsable = named.lowercased().hasPrefix("rtsp") && named.utf8.count <= StreamURL.lengthLimit
    base = isUsable ? named : url.description
    presentation = control(description.control)
    step = .setup
    attempts = []
    for (index, track) in tracks.enumerated() {
      do throws(ReceiverError) {
        attempts += try SetUpAttempt.all(of: track, number: index, way, isEncrypted: url.isEncrypted)
      } catch {
        // Sound that cannot be had takes no picture away.
        if index == 0 { throw error }
      }
    }
    guard let next = try setUpNext() else { throw .malformed("the session description has no media") }
    return next
  }

  // MARK: SETUP

  /// Returns the request for the next track, or PLAY after the last one.
  private mutating func setUpNext() throws(ReceiverError) -> [UInt8]? {
    guard let attempt = attempts.first else {
      step = .play
      return request(.play, presentation, [("Range", "npt=0.000-")])
    }
    var keys: TrackKeys?
    if attempt.profile.isProtected {
      do throws(ReceiverError) {
        keys = TrackKeys(try attempt.track.senderKey(), makeControlKey)
      } catch {
        // Without a key, another profile may do.
        guard let next = try skip(nil) else { throw error }
        return next
      }
    }
    attempts[0].keys = keys
    let uri = control(attempt.track.medium.control)
    var fields = [("Transport", attempt.transport(way))]
    if let message = keys?.controlMessage {
      fields.append(("KeyMgmt", KeyManagementField(url: uri, data: message).description))
    }
    return request(.setup, uri, fields)
  }

  /// Gives up the present attempt, refused with `status`, and returns the next request; nil where there is none that helps.
  private mutating func skip(_ status: Int?) throws(ReceiverError) -> [UInt8]? {
    let attempt = attempts.removeFirst()
    // Another profile helps where this one is not served (461), or has no key.
    if status == nil || status == 461, attempts.first?.number == attempt.number { return try setUpNext() }
    attempts.removeAll { $0.number == attempt.number }
    guard attempt.number > 0, status != 454 else { return nil }
    return try setUpNext()
  }

  private mutating func takeSetup(_ response: ServerResponse) throws(ReceiverError) {
    var attempt = attempts.removeFirst()
    attempts.removeAll { $0.number == attempt.number }
    guard let text = response.headers["Transport"] else { throw .malformed("the server names no transport") }
    let transport = try ServerTransport(text)
    try check(transport)
    if let field = response.headers["KeyMgmt"], attempt.profile.isProtected {
      // The answer's key comes after the description's.
      do {
        attempt.keys?.sender = try .init(mikey: KeyManagementField(parsing: field).data)
      } catch let error as ReceiverError {
        throw error
      } catch {
        throw .key("\(error)")
      }
    }
    attempt.track.medium.profile = attempt.profile.rawValue
    setUp.append(SetUpTrack(track: attempt.track, transport: transport, keys: attempt.keys))
    let parts = response.headers["Session"]?.split(separator: ";").map { Text.trimmed($0) } ?? []
    guard let identifier = parts.first, !identifier.isEmpty, identifier.utf8.count <= Self.sessionLimit,
      identifier.utf8.allSatisfy({ (0x21...0x7e).contains($0) })
    else { throw .malformed("the server gives the session no identifier") }
    session = identifier
    for part in parts.dropFirst() where part.lowercased().hasPrefix("timeout=") {
      // A request a second at most, and one in five minutes at least, whatever the server says.
      let seconds = Text.decimal(part.dropFirst(8), digits: 6) ?? 60
      keepAliveInterval = .seconds(Int64(min(max(seconds / 2, 1), 300)))
    }
  }

  private func check(_ transport: ServerTransport) throws(ReceiverError) {
    switch way {
    case .interleaved:
      guard let channels = transport.channels, transport.group == nil else {
        throw .unsupported("the server does not send over its RTSP connection")
      }
      let used = setUp.compactMap(\.transport.channels).flatMap { [$0.rtp, $0.rtcp] }
      guard !used.contains(channels.rtp), !used.contains(channels.rtcp) else {
        throw .malformed("the server sends two tracks on one channel")
      }
    case .udp:
      guard transport.channels == nil, transport.group == nil else {
        throw .unsupported("the server does not send over UDP to this host alone")
      }
    case .multicast:
      guard transport.group != nil else { throw .unsupported("the server does not send to a group") }
    }
  }

  /// Returns the URL of a control attribute, RFC 2326 appendix C.1.1.
  private func control(_ value: String?) -> String {
    guard let value, value != "*", !value.isEmpty else { return base }
    if value.lowercased().hasPrefix("rtsp://") || value.lowercased().hasPrefix("rtsps://") { return value }
    return base.hasSuffix("/") ? base + value : base + "/" + value
  }

  // MARK: Requests

  private mutating func authenticate(_ request: Request, _ response: ServerResponse) throws(ReceiverError) -> [UInt8] {
    guard credentials != nil else {
      throw .credentials(
        "the server wants a user name and a password; give them in the URL: rtsp://user:password@host/path")
    }
    guard let found = DigestChallenge(choosingFrom: response.headers.values(of: "WWW-Authenticate")) else {
      throw .credentials("the server offers no Digest authentication, and passwords are sent in no other way")
    }
    answers += 1
    // A nonce of an earlier request may have become too old; the server then gives another, and says so or not.
    let isNew = found.nonce != challenge?.nonce
    guard isNew, answers == 1 || answers == 2 && found.isStale else {
      throw .credentials("the server refuses the user name or the password")
    }
    (challenge, nonceCount) = (found, 0)
    return send(request)
  }

  private mutating func request(_ method: RequestMethod, _ uri: String, _ fields: [(String, String)] = []) -> [UInt8] {
    var request = Request(method, uri)
    for (name, value) in fields { request.headers.append(name, value) }
    answers = 0
    return send(request)
  }

  private mutating func send(_ request: Request) -> [UInt8] {
    sequenceNumber += 1
    pending = request
    var text = "\(request.method) \(request.uri) RTSP/1.0\r\nCSeq: \(sequenceNumber)\r\nUser-Agent: nightjar\r\n"
    if let session { text += "Session: \(session)\r\n" }
    if let challenge, let credentials {
      nonceCount += 1
      let value = challenge.authorization(
        user: credentials.user, password: credentials.password, method: request.method.description, uri: request.uri,
        count: nonceCount, clientNonce: makeNonce())
      text += "Authorization: \(value)\r\n"
    }
    for field in request.headers.fields { text += "\(field.name): \(field.value)\r\n" }
    return Array((text + "\r\n").utf8)
  }
}

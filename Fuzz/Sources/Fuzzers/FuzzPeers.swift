import Platform
import TLS
import WebRTC

/// Browsers, whose DTLS is OpenSSL's, and others send datagrams to one table. The input says who sends what from where:
/// true and forged checks, records of a handshake that are lost, changed, repeated, cut, joined or in fragments, any
/// bytes, and time between them. The table keeps its limits, and sends nothing to who has not proved to know a
/// session's password.
enum FuzzPeers {
  static func take(_ input: UnsafeRawBufferPointer) {
    PeerScript(input).run()
  }
}

/// One run: each byte of the input is an action, and some actions take bytes that follow.
final class PeerScript {
  private typealias Outputs = [(identity: PeerTable.Identity, output: PeerSession.Output)]

  private static let limits = PeerTable.Limits(sessions: 4, unestablished: 3, unestablishedPerNetwork: 2)
  private static let addresses = ["192.0.2.1", "192.0.2.2", "2001:db8::1"].compactMap { IPAddress($0) }
  /// The most sessions that a run asks for.
  private static let sessionLimit = 12

  private var script: UnsafeRawBufferPointer.SubSequence
  private var table = PeerTable(limits: PeerScript.limits)
  private var time = Instant.zero
  private var asked = 0
  private var browsers: [Browser] = []
  /// The browser whose check came last from each path.
  private var owners: [PeerPath: Browser] = [:]

  init(_ input: UnsafeRawBufferPointer) { script = input[...] }

  func run() {
    add(0)
    while let action = script.popFirst() {
      step(action)
      checkLimits()
    }
    time = time + Duration.seconds(41)
    expire()
    precondition(table.count == 0 && table.nextDeadline == nil, "a session without an end")
    precondition(browsers.allSatisfy { $0.hasEnded })
  }

  private func step(_ action: UInt8) {
    let amount = Int(action & 31)
    let browser = browsers[amount % 8 % browsers.count]
    switch (action >> 5, amount / 8) {
    case (0, _): add(amount)
    case (1, _): check(browser, from: nextPath(), next())
    case (2, _): deliverFirst(of: browser, from: nextPath())
    case (3, _):
      let path = nextPath()
      let datagram = Array(script.prefix(amount))
      script = script.dropFirst(amount)
      deliver(datagram, from: path, by: nil)
    case (4, 0): browser.takeAnswers()
    case (4, 1): browser.loseAnswers()
    case (4, _): browser.meddle(next(), next())
    case (5, _):
      time = time + Duration.milliseconds(500 * Int64(amount + 1))
      expire()
    case (6, 0): end(browser)
    case (6, 1): forget(nextPath())
    case (6, _): browser.close()
    default: connect(browser, from: nextPath())
    }
  }

  private func next() -> UInt8 { script.popFirst() ?? 0 }

  /// One of 64 paths.
  private func nextPath() -> PeerPath {
    let number = next() & 63
    return PeerPath(
      address: Self.addresses[Int(number) % Self.addresses.count], port: 5000 + UInt16(number & 31),
      carrier: number < 32 ? .datagrams : .connection(UInt64(number)))
  }

  private static func kind(_ bytes: [UInt8]) -> DatagramKind { bytes.withUnsafeBytes { DatagramKind($0) } }

  private func checkLimits() {
    let live = browsers.filter { !$0.hasEnded }
    precondition(table.count == live.count && live.count <= Self.limits.sessions)
    let unestablished = live.filter { $0.session.state != .established }
    precondition(unestablished.count <= Self.limits.unestablished)
    for address in Self.addresses {
      precondition(unestablished.count { $0.address == address } <= Self.limits.unestablishedPerNetwork)
    }
    for browser in live {
      precondition(browser.identity.map { table[$0] === browser.session } == true)
      precondition(browser.session.agent.paths.count <= ICELiteAgent.pathLimit)
      precondition(browser.hasBegun == (browser.session.state == .established))
    }
  }

  // MARK: Sessions

  private func add(_ amount: Int) {
    guard asked < Self.sessionLimit else { return }
    asked += 1
    let address = Self.addresses[amount % Self.addresses.count]
    guard
      let browser = Browser(address: address, isHonest: amount < 16, isFragmented: amount & 8 != 0, at: time)
    else { fatalError("no session") }
    let live = browsers.filter { !$0.hasEnded }
    let unestablished = live.filter { $0.session.state != .established }
    let hasRoom =
      live.count < Self.limits.sessions && unestablished.count < Self.limits.unestablished
      && unestablished.count { $0.address == address } < Self.limits.unestablishedPerNetwork
    browser.identity = table.add(browser.session, from: address.bytes)
    precondition((browser.identity != nil) == hasRoom)
    if hasRoom { browsers.append(browser) }
  }

  private func end(_ browser: Browser) {
    guard let identity = browser.identity else { return }
    let wasLive = !browser.hasEnded
    var outputs: Outputs = []
    let isFound = table.end(identity) { outputs.append(($0, $1)) }
    note(outputs)
    precondition(isFound == wasLive && browser.hasEnded)
  }

  private func forget(_ path: PeerPath) {
    var outputs: Outputs = []
    table.forget(path) { outputs.append(($0, $1)) }
    note(outputs)
    let owner = owners.removeValue(forKey: path)
    precondition(outputs.allSatisfy { $0.identity == owner?.identity })
    precondition(owner.map { $0.hasEnded || !$0.session.agent.knows(path) } ?? true)
  }

  private func expire() {
    var outputs: Outputs = []
    table.expire(at: time) { outputs.append(($0, $1)) }
    note(outputs)
    // DTLS goes by the host's clock, so the next deadline may be now.
    precondition(table.nextDeadline.map { $0 >= time } ?? true, "a deadline is over, and nothing was done")
  }

  // MARK: Datagrams

  /// Sends a check; ``Browser/check(_:)`` has the flags.
  private func check(_ browser: Browser, from path: PeerPath, _ flags: UInt8) {
    let before = table.counts
    let other = owners[path].flatMap { $0 !== browser && !$0.hasEnded && $0.session.agent.knows(path) ? $0 : nil }
    let isHeld = other?.session.agent.lastCheck(on: path).map { time - $0 <= PeerTable.pathHold } ?? false
    var outputs = receive(browser.check(flags), from: path)
    let isProved = !browser.hasEnded && !Browser.isForged(flags) && !isHeld
    if isProved, let other {
      // The other session has lost the path.
      precondition(!other.session.agent.knows(path))
      outputs.removeAll { $0.identity == other.identity }
    }
    let isTaken = isProved && browser.session.agent.knows(path)
    precondition(table.counts.refusedChecks == before.refusedChecks + (isTaken ? 0 : 1))
    precondition(table.counts.malformed == before.malformed && table.counts.unknown == before.unknown)
    guard isProved else { return precondition(outputs.isEmpty, "an answer to who has proved nothing") }
    precondition(isTaken || Browser.isRefused(flags), "a true check that does not count")
    precondition(outputs.allSatisfy { $0.identity == browser.identity })
    precondition(outputs.count <= (browser.hasBegun ? 2 : 1), "more than an answer")
    guard case .send(let answer, let target) = outputs.first?.output else { fatalError("a check without an answer") }
    precondition(Self.kind(answer) == .stun && target == path)
    for (_, output) in outputs.dropFirst() {
      guard case .move = output else { fatalError("more than an answer") }
    }
    if isTaken { owners[path] = browser }
  }

  private func deliverFirst(of browser: Browser, from path: PeerPath) {
    guard !browser.datagrams.isEmpty else { return }
    deliver(browser.datagrams.removeFirst(), from: path, by: browser)
  }

  /// Hands a datagram to the table that is no true check.
  private func deliver(_ datagram: [UInt8], from path: PeerPath, by sender: Browser?) {
    let owner = owners[path].flatMap { !$0.hasEnded && $0.session.agent.knows(path) ? $0 : nil }
    if owner !== sender {
      owner?.isMeddledWith = true
      sender?.isMeddledWith = true
    }
    let kind = Self.kind(datagram)
    let before = table.counts
    let outputs = receive(datagram, from: path)
    let after = table.counts
    if kind == .stun {
      precondition(outputs.isEmpty, "an answer to who has proved nothing")
      precondition(after.malformed + after.refusedChecks == before.malformed + before.refusedChecks + 1)
      precondition(after.unknown == before.unknown)
    } else {
      precondition(after.malformed == before.malformed && after.refusedChecks == before.refusedChecks)
      precondition(after.unknown == before.unknown + (owner == nil ? 1 : 0))
      precondition(owner != nil || outputs.isEmpty, "output for who has proved nothing")
      precondition(outputs.allSatisfy { $0.identity == owner?.identity }, "output for another session")
    }
    for (_, output) in outputs {
      switch output {
      case .send(let bytes, _): precondition(kind == .dtls && Self.kind(bytes) == .dtls)
      case .control(let bytes): precondition(kind == .rtcp && bytes == datagram)
      case .begin, .end: precondition(kind == .dtls)
      case .move: fatalError("another path without a check")
      }
    }
  }

  private func receive(_ datagram: [UInt8], from path: PeerPath) -> Outputs {
    var outputs: Outputs = []
    _ = datagram.withUnsafeBytes { bytes in
      table.receive(bytes, from: path, at: time) { outputs.append(($0, $1)) }
    }
    note(outputs)
    return outputs
  }

  /// Everything arrives, by one path. A browser with which nobody meddled gets the stream.
  private func connect(_ browser: Browser, from path: PeerPath) {
    guard !browser.hasEnded else { return }
    check(browser, from: path, Browser.nominates)
    // Another one may have the path.
    guard owners[path] === browser else { return }
    for _ in 0..<8 {
      while !browser.datagrams.isEmpty { deliverFirst(of: browser, from: path) }
      browser.takeAnswers()
    }
    guard !browser.isMeddledWith else { return }
    precondition(browser.session.state == (browser.isHonest ? .established : .ended(.fingerprint)))
  }

  /// Hands on what the table has asked for, which concerns live sessions and proved paths alone.
  private func note(_ outputs: Outputs) {
    for (identity, output) in outputs {
      guard let browser = browsers.first(where: { $0.identity == identity }), !browser.hasEnded else {
        fatalError("output for a session that is over")
      }
      switch output {
      case .send(let bytes, let path):
        guard Self.kind(bytes) == .dtls else { continue }
        precondition(browser.session.agent.knows(path) && bytes.count <= TLSConnection.datagramBytes)
        browser.answers.append(bytes)
      case .begin(_, let path):
        precondition(browser.isHonest && !browser.hasBegun && browser.session.agent.knows(path))
        browser.hasBegun = true
      case .move(let path): precondition(browser.hasBegun && browser.session.agent.knows(path))
      case .control(let bytes): precondition(browser.hasBegun && bytes.count <= PeerSession.controlLimit)
      case .end:
        precondition(table[identity] == nil)
        browser.hasEnded = true
      }
    }
  }
}

/// A browser: its session in the table, its checks, and its end of DTLS.
final class Browser {
  let address: IPAddress
  /// `true` if its certificate is that of its offer.
  let isHonest: Bool
  let session: PeerSession
  /// `nil` if the table has not taken the session.
  var identity: PeerTable.Identity?
  /// The records that it has to send, one in each datagram.
  var datagrams: [[UInt8]] = []
  /// The datagrams that it is to receive.
  var answers: [[UInt8]] = []
  /// `true` once a datagram was not delivered as it was sent, or came from elsewhere.
  var isMeddledWith = false
  var hasBegun = false
  var hasEnded = false
  private let own: ICECredentials
  private let client: DTLSClient

  private static let server: ServerContext = {
    guard let key = try? PrivateKey(), let certificate = try? Certificate.server(Browser.contents, key: key),
      let context = try? ServerContext(
        datagramsWith: [certificate], key: key, profiles: [.aeadAES128GCM, .aes128CounterHMAC80],
        asksForCertificate: true)
    else { fatalError("no context") }
    return context
  }()
  private static let contents = Certificate.Contents(
    commonName: "fuzz", names: [], addresses: [], validity: 0...4_000_000_000)

  /// - Parameter isFragmented: `true` sends messages of the handshake in small fragments.
  init?(address: IPAddress, isHonest: Bool, isFragmented: Bool, at time: Instant) {
    let own = ICECredentials()
    let fingerprint = isHonest ? DTLSClient.fingerprint : [UInt8](repeating: 0, count: 32)
    guard
      let session = try? PeerSession(remote: own, fingerprints: [fingerprint], context: Self.server, at: time),
      let client = isFragmented ? DTLSClient(datagramBytes: 256) : DTLSClient()
    else { return nil }
    (self.address, self.isHonest, self.session, self.own, self.client) = (address, isHonest, session, own, client)
    takeDatagrams()
  }

  // MARK: Checks

  /// The bits of a check's flags; the three upper ones are its priority.
  static let nominates: UInt8 = 1
  private static let (isControlled, hasOtherPassword, hasUnknownAttribute, hasOtherName): (UInt8, UInt8, UInt8, UInt8) =
    (2, 4, 8, 16)

  /// Returns `true` if these flags make a check of somebody who does not know the session's credentials.
  static func isForged(_ flags: UInt8) -> Bool { flags & (hasOtherPassword | hasOtherName) != 0 }

  /// Returns `true` if these flags make a check that gets an error response.
  static func isRefused(_ flags: UInt8) -> Bool { flags & (isControlled | hasUnknownAttribute) != 0 }

  /// Returns a check of the session.
  func check(_ flags: UInt8) -> [UInt8] {
    let local = session.agent.local
    var bytes: [UInt8] = [0, 1, 0, 0, 0x21, 0x12, 0xa4, 0x42] + [UInt8](repeating: flags, count: 12)
    func append(_ type: UInt16, _ value: [UInt8]) {
      bytes += [UInt8(type >> 8), UInt8(type & 0xff), 0, UInt8(value.count)]
      bytes += value
      bytes += [UInt8](repeating: 0, count: (4 - value.count % 4) % 4)
    }
    append(0x0006, Array("\(local.fragment):\(flags & Self.hasOtherName == 0 ? own.fragment : "none")".utf8))
    append(0x0024, [0, 0, 0, flags >> 5])
    append(flags & Self.isControlled == 0 ? 0x802a : 0x8029, [UInt8](repeating: 7, count: 8))
    if flags & Self.nominates != 0 { append(0x0025, []) }
    if flags & Self.hasUnknownAttribute != 0 { append(0x7ffe, []) }
    // As if MESSAGE-INTEGRITY were there already.
    bytes[3] = UInt8(bytes.count + 24 - STUNMessage.headerBytes)
    let key = flags & Self.hasOtherPassword == 0 ? local.password : own.password
    append(0x0008, HashFunction.sha1.authenticationCode(of: bytes, key: Array(key.utf8)))
    return bytes
  }

  // MARK: DTLS

  func takeAnswers() {
    for datagram in answers { client.receive(datagram) }
    answers.removeAll()
    takeDatagrams()
  }

  func loseAnswers() {
    if !answers.isEmpty { isMeddledWith = true }
    answers.removeAll()
  }

  /// Repeats, delays, cuts, divides or changes the first datagram, or joins it with the second, which is allowed.
  func meddle(_ way: UInt8, _ place: UInt8) {
    guard let first = datagrams.first, !first.isEmpty else { return }
    if way == 3 {
      guard datagrams.count > 1 else { return }
      return datagrams.replaceSubrange(0..<2, with: [first + datagrams[1]])
    }
    isMeddledWith = true
    let end = Int(place) % first.count
    switch way {
    case 0: datagrams.append(first)
    case 1:
      datagrams.removeFirst()
      datagrams.append(first)
    case 4: datagrams[0].removeLast(end)
    case 5: datagrams.replaceSubrange(0..<1, with: [Array(first[..<end]), Array(first[end...])])
    default: datagrams[0][end] ^= 1 << (way & 7)
    }
  }

  func close() {
    client.close()
    isMeddledWith = true
    takeDatagrams()
  }

  private func takeDatagrams() {
    datagrams += client.datagrams
    client.datagrams.removeAll()
  }
}

package import Platform
import SRTP
package import TLS

/// One session with a peer, from the answer to the end: checks, handshake, keys, consent. It has no socket and no
/// clock: datagrams and times come in, and ``Output`` goes out.
///
/// Use it from one thread at a time.
package final class PeerSession: @unchecked Sendable {
  // Sendable: whoever creates it hands it over to the table, whose owner lets in one thread at a time.

  /// The progress of a session.
  package enum State: Hashable, Sendable {
    /// No check has come.
    case waiting
    /// The peer is reached, and the handshake of DTLS is not complete.
    case handshaking
    /// Media may be sent.
    case established
    /// The session has ended.
    case ended(PeerEnd)
  }

  /// An action that the session requests of the owner of the sockets.
  package enum Output: Sendable {
    /// Send a datagram.
    case send([UInt8], on: PeerPath)
    /// Begin to send media on a path.
    case begin(PeerKeys, on: PeerPath)
    /// Send media on another path from here on.
    case move(to: PeerPath)
    /// Pass on SRTCP of the peer.
    case control([UInt8])
    /// Release the session, which has ended.
    case end(PeerEnd)
  }

  /// The connectivity checks.
  package private(set) var agent: ICELiteAgent
  /// The progress.
  package private(set) var state = State.waiting
  /// The time at which the session was created.
  package let created: Instant

  private let fingerprints: [[UInt8]]
  private let connection: TLSConnection
  private let flight = Flight()
  /// The time by the session's clock at which DTLS wants to be called.
  private var retransmission: Instant?
  /// The last datagrams of the handshake, to be sent again unless the peer shows that it has them; `nil` after that.
  private var lastFlight: Repetition?

  /// Datagrams that are sent several times.
  private struct Repetition {
    let datagrams: [[UInt8]]
    /// The time of the next repetition.
    var next: Instant
    /// The pause before it.
    var pause: Duration
    var left: Int
  }

  /// The datagrams that DTLS has just made.
  private final class Flight {
    var datagrams: [[UInt8]] = []

    /// Returns the datagrams, as few as hold them (RFC 6347 section 4.1.1), and forgets them. OpenSSL puts each message
    /// that it sends again into a datagram of its own: of five, one more often gets lost than of one.
    func takeAll() -> [[UInt8]] {
      defer { datagrams.removeAll() }
      return datagrams.reduce(into: []) { all, next in
        if let last = all.last, last.count + next.count <= TLSConnection.datagramBytes {
          all[all.count - 1] += next
        } else {
          all.append(next)
        }
      }
    }
  }

  /// The time after which a session ends that no check has reached.
  package static let reachTime = Duration(seconds: 20)
  /// The time after which a session ends whose handshake is not complete.
  package static let handshakeTime = Duration(seconds: 40)
  /// The time without a check after which the peer does not agree any more to get media, RFC 7675 section 5.1.
  package static let consentTime = Duration(seconds: 30)
  /// The pause before the last datagrams of the handshake are sent for the second time; each later pause is twice as
  /// long. If they get lost, the peer waits for its own timer, which in most libraries is a second (RFC 6347 section
  /// 4.2.4.1), and meanwhile cannot decrypt the media.
  package static let repetitionPause = Duration.milliseconds(100)
  /// The most repetitions of the last datagrams of the handshake.
  package static let repetitions = 5
  /// The most bytes of SRTCP in a datagram.
  package static let controlLimit = 1500

  /// Creates a session whose answer is about to be sent.
  ///
  /// - Parameters:
  ///   - fingerprints: the SHA-256 hashes of which the peer's certificate must have one.
  ///   - candidates: this side's candidates, as the answer lists them.
  ///   - context: the server's certificate; it must ask for the peer's.
  /// - Throws: ``OpenSSLError``.
  package init(
    local: ICECredentials = ICECredentials(), remote: ICECredentials, fingerprints: [[UInt8]],
    candidates: [Candidate] = [], context: ServerContext, at time: Instant
  ) throws(OpenSSLError) {
    agent = ICELiteAgent(local: local, remote: remote, candidates: candidates)
    self.fingerprints = fingerprints
    created = time
    let flight = flight
    connection = try TLSConnection(context) { flight.datagrams.append(Array($0)) }
  }

  /// The path on which media are sent, or would be.
  package var path: PeerPath? { agent.selected ?? agent.paths.last?.path }

  /// Takes a connectivity check.
  ///
  /// - Returns: `true` if the peer has proved to be at `path`.
  package func receive(
    check message: STUNMessage, from path: PeerPath, at time: Instant, _ output: (Output) -> Void
  ) -> Bool {
    if case .ended = state { return false }
    let before = self.path
    guard let response = agent.answer(message, from: path, at: time) else { return false }
    output(.send(response, on: path))
    guard agent.knows(path) else { return false }
    if state == .waiting { state = .handshaking }
    if state == .established, let now = self.path, now != before { output(.move(to: now)) }
    return true
  }

  /// Takes a datagram of DTLS or SRTCP from a path on which checks have come.
  package func receive(
    _ datagram: UnsafeRawBufferPointer, from path: PeerPath, at time: Instant, _ output: (Output) -> Void
  ) {
    guard agent.knows(path) else { return }
    switch (DatagramKind(datagram), state) {
    case (.rtcp, .established):
      // Only who has finished the handshake has keys.
      lastFlight = nil
      if datagram.count <= Self.controlLimit { output(.control(Array(datagram))) }
    case (.dtls, .handshaking), (.dtls, .established): receive(dtls: datagram, at: time, output)
    default: break
    }
  }

  private func receive(dtls datagram: UnsafeRawBufferPointer, at time: Instant, _ output: (Output) -> Void) {
    do throws(TLSConnectionError) {
      // No data channel is negotiated: what comes after the handshake means nothing.
      try connection.receive(datagram) { _ in }
    } catch {
      send(flightTo: output)
      // A record that cannot be read after the handshake is noise (RFC 6347 section 4.1.2.7).
      if state == .handshaking { end(.handshake("\(error)"), output) }
      return
    }
    let sent = send(flightTo: output)
    retransmission = connection.retransmissionTime.map { time + $0 }
    if state == .handshaking, connection.state == .established {
      if path?.isDatagrams == true {
        lastFlight = Repetition(
          datagrams: sent, next: time + Self.repetitionPause, pause: Self.repetitionPause, left: Self.repetitions)
      }
      begin(output)
    }
    if connection.isInputClosed { end(.peer, output) }
  }

  /// The handshake is complete: compares the peer's certificate with that of its offer (RFC 5763 section 5).
  private func begin(_ output: (Output) -> Void) {
    retransmission = nil
    guard let hash = connection.peerFingerprint, fingerprints.contains(hash) else {
      return end(.fingerprint, output)
    }
    guard let keys = PeerKeys(connection) else { return end(.noProtection, output) }
    guard let path else { return }
    state = .established
    output(.begin(keys, on: path))
  }

  /// Notes that a path is closed, such as a TCP connection.
  package func forget(_ path: PeerPath, _ output: (Output) -> Void) {
    let before = self.path
    agent.forget(path)
    if state == .established, let now = self.path, now != before { output(.move(to: now)) }
  }

  /// The time at which ``expire(at:_:)`` is to be called; `nil` once the session has ended.
  package var deadline: Instant? {
    switch state {
    case .waiting: created + Self.reachTime
    case .handshaking: retransmission.map { min($0, created + Self.handshakeTime) } ?? created + Self.handshakeTime
    case .established: lastFlight.map { min($0.next, consentEnd) } ?? consentEnd
    case .ended: nil
    }
  }

  /// The time at which the peer's consent ends unless a check comes.
  private var consentEnd: Instant { (agent.lastCheck ?? created) + Self.consentTime }

  /// Does what is due: repeats datagrams of the handshake, and ends a session whose time is over.
  package func expire(at time: Instant, _ output: (Output) -> Void) {
    switch state {
    case .waiting: if time >= created + Self.reachTime { end(.unreached, output) }
    case .handshaking:
      guard time < created + Self.handshakeTime else { return end(.handshakeTime, output) }
      guard let due = retransmission, time >= due else { return }
      do throws(TLSConnectionError) { try connection.retransmit() } catch {
        return end(.handshake("\(error)"), output)
      }
      send(flightTo: output)
      retransmission = connection.retransmissionTime.map { time + $0 }
    case .established:
      if time >= consentEnd { end(.consent, output) } else { repeatLastFlight(at: time, output) }
    case .ended: break
    }
  }

  private func repeatLastFlight(at time: Instant, _ output: (Output) -> Void) {
    guard var flight = lastFlight, time >= flight.next else { return }
    // A repetition without a path counts too: its time would be over for good.
    if let path { for datagram in flight.datagrams { output(.send(datagram, on: path)) } }
    flight.left -= 1
    flight.pause = flight.pause + flight.pause
    flight.next = time + flight.pause
    lastFlight = flight.left > 0 ? flight : nil
  }

  /// Ends the session for a reason of this side's. The peer is told by `close_notify`.
  package func end(_ reason: PeerEnd = .local, _ output: (Output) -> Void) {
    if case .ended = state { return }
    connection.closeOutput()
    send(flightTo: output)
    state = .ended(reason)
    output(.end(reason))
  }

  /// Sends what DTLS has just made, and returns the datagrams.
  @discardableResult
  private func send(flightTo output: (Output) -> Void) -> [[UInt8]] {
    let datagrams = flight.takeAll()
    guard let path else { return [] }
    for datagram in datagrams { output(.send(datagram, on: path)) }
    return datagrams
  }
}

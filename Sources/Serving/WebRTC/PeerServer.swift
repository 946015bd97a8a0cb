import Glibc
import Media
package import Platform
import RTP
import SRTP
package import Streaming
import Synchronization
import TLS
import WebRTC

/// The server of all WebRTC peers: one port of UDP and TCP, one thread, and the table of sessions.
///
/// The thread answers checks and handshakes, and passes SRTCP on. Media leave on the send threads of the pipelines.
package final class PeerServer: @unchecked Sendable {
  // Sendable: constants, and state under the mutex. `thread` is touched by `init` and `close` alone, on the owner's thread.

  /// The answer to a browser's offer.
  package struct Answer: Sendable {
    /// The session description.
    package let text: String
    /// The session's name in its URL: 128 random bits.
    package let name: String
  }

  /// The configuration.
  package let configuration: Configuration
  let sockets: [PeerSocket]
  private let listeners: [PeerListener]
  /// The reason why there are no TCP connections; nil if there are.
  package let listenFailure: SystemFailure?
  let connections: PeerConnections
  private let context: ServerContext
  private let fingerprint: [UInt8]
  /// The events of sessions, for the log. There is room for the end of all sessions at once.
  package let events: EventQueue<PeerEvent>
  /// Wakes the thread.
  let wake: WakeUp
  let state: Mutex<State>
  private var thread: NamedThread?

  struct State: ~Copyable {
    var table: PeerTable
    var viewers: [PeerTable.Identity: PeerViewer] = [:]
    var names: [String: PeerTable.Identity] = [:]
    /// The pipelines whose streams browsers may get.
    var pipelines: [Pipeline] = []
    var isOver = false
  }

  /// Binds the port and starts the thread.
  ///
  /// - Parameter former: the server that has been closed for this one, whose sockets are taken over if the port is the
  ///   same.
  /// - Throws: ``SystemFailure`` where the port is in use, or the system has no thread left; ``OpenSSLError``.
  package init(_ configuration: Configuration, after former: PeerServer? = nil) throws {
    self.configuration = configuration
    let key = try PrivateKey()
    let certificate = try Certificate.server(
      .init(commonName: "nightjar", names: [], addresses: [], validity: 0...4_102_444_800), key: key)
    fingerprint = HashFunction.sha256.digest(of: try certificate.der)
    context = try ServerContext(
      datagramsWith: [certificate], key: key, profiles: [.aeadAES128GCM, .aes128CounterHMAC80],
      asksForCertificate: true)
    let inherited = former.flatMap { $0.isSamePort(configuration) ? $0 : nil }
    (sockets, listeners, listenFailure) =
      try inherited.map { ($0.sockets, $0.listeners, $0.listenFailure) }
      ?? Self.bind(configuration)
    let wake = try WakeUp()
    self.wake = wake
    connections = try PeerConnections(listeners, limits: .init()) { wake.fire() }
    events = EventQueue(limit: 4 * max(16, configuration.limits.sessions))
    state = Mutex(State(table: PeerTable(limits: configuration.limits)))
    thread = try NamedThread("nj-peers", urgency: .punctual) { [unowned self] in run() }
  }

  deinit { close() }

  /// Ends all sessions, and the thread.
  package func close() {
    let ended = state.withLock { state -> Actions in
      state.isOver = true
      var actions = Actions()
      for identity in Array(state.viewers.keys) {
        state.table.end(identity) { actions.append($0, $1) }
      }
      return actions
    }
    carryOut(ended)
    wake.fire()
    thread = nil
    connections.closeAll { _ in }
  }

  /// The port.
  package var port: UInt16 { sockets[0].port }

  private func isSamePort(_ new: Configuration) -> Bool {
    new.port == configuration.port && new.isForThisMachineAlone == configuration.isForThisMachineAlone
  }

  /// Binds UDP of both families to one port, and listens for TCP there. A host without IPv6 does without it, and one whose
  /// TCP port is in use without TCP.
  private static func bind(
    _ configuration: Configuration
  ) throws(SystemFailure) -> ([PeerSocket], [PeerListener], SystemFailure?) {
    let loopback = configuration.isForThisMachineAlone
    let host = { (isIPv6: Bool) in loopback ? IPAddress(isIPv6 ? "::1" : "127.0.0.1") : nil }
    var sockets: [PeerSocket] = []
    var listeners: [PeerListener] = []
    var failure: SystemFailure?
    // Where any port will do, one that is free for both.
    for _ in 0..<(configuration.port == 0 ? portTries : 1) {
      sockets = [try PeerSocket(isIPv6: false, port: configuration.port, host: host(false))]
      let port = sockets[0].port
      (listeners, failure) = ([], nil)
      do throws(SystemFailure) {
        sockets.append(try PeerSocket(isIPv6: true, port: port, host: host(true)))
      } catch {
        guard [EAFNOSUPPORT, EADDRNOTAVAIL].contains(error.errorNumber) else {
          if configuration.port == 0 { continue }
          throw error
        }
      }
      do throws(SystemFailure) {
        for socket in sockets {
          listeners.append(try PeerListener(isIPv6: socket.isIPv6, port: port, host: host(socket.isIPv6)))
        }
        break
      } catch { (listeners, failure) = ([], error) }
    }
    return (sockets, listeners, failure)
  }

  private static let portTries = 16

  /// The candidates, as the interfaces are now.
  private var candidates: [Candidate] {
    configuration.candidates(
      own: HostNames.ofMachine.addresses.compactMap { IPAddress(bytes: $0) }, port: port,
      hasIPv6: sockets.contains(where: \.isIPv6), connects: !listeners.isEmpty)
  }

  // MARK: Sessions, from any thread

  /// Answers the offer of a browser that may watch `camera`. A browser that takes H.264 and not the codec of the camera gets
  /// the H.264 that the pipeline has for it.
  ///
  /// - Parameter isAllowed: returns `true` while the requester may watch. Once it does not, the session ends.
  /// - Throws: ``OfferError``; ``PeerServerError``; ``OpenSSLError``; ``/Media/ParameterSetError`` where the pictures' parameter
  ///   sets cannot be read.
  package func answer(
    _ offer: String, of pipeline: Pipeline, camera: String, peer: ViewerPeer,
    isAllowed: @escaping @Sendable () -> Bool
  ) throws -> Answer {
    var peer = peer
    (peer.transport, peer.isEncrypted) = (.webrtc, true)
    let network = peer.address.flatMap { PeerAddress($0) }?.network ?? []
    let (negotiation, pictures) = try Self.negotiate(SessionOffer(parsing: offer), with: pipeline)
    let candidates = candidates
    let session = try PeerSession(
      remote: negotiation.credentials, fingerprints: negotiation.fingerprints, candidates: candidates,
      context: context, at: .now())
    let viewer = PeerViewer(
      negotiation, pipeline: pipeline, pictures: pictures, camera: camera, peer: peer, isAllowed: isAllowed)
    let answer = SessionAnswer(
      negotiation, credentials: session.agent.local, fingerprint: fingerprint, candidates: candidates,
      sources: viewer.sources, canonicalName: pipeline.canonicalName,
      sessionID: SessionDescription.presentSessionID())
    try state.withLock { state throws(PeerServerError) in
      guard !state.isOver, state.pipelines.contains(where: { $0 === pipeline }) else { throw .replaced }
      guard let identity = state.table.add(session, from: network) else { throw .tooMany }
      state.viewers[identity] = viewer
      state.names[viewer.name] = identity
    }
    wake.fire()
    return Answer(text: answer.text, name: viewer.name)
  }

  /// Returns what an offer and a pipeline have in common, and the number of the track of the pictures.
  ///
  /// - Throws: as ``answer(_:of:camera:peer:isAllowed:)``.
  private static func negotiate(
    _ offer: SessionOffer, with pipeline: Pipeline
  ) throws -> (negotiation: Negotiation, pictures: Int) {
    let sound = pipeline.sound?.channels
    let tracks = try SentTracks(pipeline.parameterSets.sets, sound: sound)
    do throws(OfferError) {
      return (try Negotiation(offer, sending: tracks), 0)
    } catch {
      guard case .noCodec = error, let track = pipeline.h264Track else { throw error }
      // Without an encoder there are no parameter sets, and the level does not matter: the browser is told why.
      let profile = pipeline.h264ParameterSets?.profileLevelID ?? leastProfile
      // An offer without H.264 is refused for the codec of the stream.
      let other = try? Negotiation(offer, sending: SentTracks(profileLevelID: profile, sound: sound))
      guard let other else { throw error }
      if let refusal = pipeline.h264Refusal { throw PeerServerError.noH264(error, refusal) }
      return (other, track)
    }
  }

  /// Constrained Baseline of level 1, which every decoder of H.264 supports.
  private static let leastProfile = "42c00a"

  /// Returns `true` if the camera has a session of this name.
  package func has(_ name: String, of camera: String) -> Bool {
    state.withLock { state in state.names[name].flatMap { state.viewers[$0]?.camera } == camera }
  }

  /// Ends the session of this name. Returns `false` if the camera has none.
  package func end(_ name: String, of camera: String) -> Bool {
    var actions = Actions()
    let isFound = state.withLock { state in
      guard let identity = state.names[name], state.viewers[identity]?.camera == camera else { return false }
      return state.table.end(identity) { actions.append($0, $1) }
    }
    carryOut(actions)
    return isFound
  }

  /// Serves the streams of these pipelines. The sessions that get another one end: it has been replaced.
  package func serve(_ pipelines: [Pipeline]) {
    var actions = Actions()
    state.withLock { state in
      state.pipelines = pipelines
      for (identity, viewer) in state.viewers where !pipelines.contains(where: { $0 === viewer.pipeline }) {
        state.table.end(identity) { actions.append($0, $1) }
      }
    }
    carryOut(actions)
  }

  /// The counts of what was refused, by cause.
  package var counts: PeerCounts {
    var counts = connections.counts
    let table = state.withLock { $0.table.counts }
    counts[.check] = table.refusedChecks + table.malformed
    counts[.datagram] = table.unknown
    return counts
  }
}

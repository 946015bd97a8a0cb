import Glibc
import Media
package import Platform
import RTP
import SRTP
package import Streaming
import Synchronization
import TLS
package import WebRTC

/// The server of all WebRTC peers: one UDP port, one thread, and the table of sessions.
///
/// The thread answers checks and handshakes, and passes SRTCP on. Media leave on the send threads of the pipelines.
package final class PeerServer: @unchecked Sendable {
  // Sendable: constants, and state under the mutex. `thread` is touched by `init` and `close` alone, on the owner's thread.

  /// What a browser gets for its offer.
  package struct Answer: Sendable {
    /// The session description.
    package let text: String
    /// The session's name in its URL: 128 random bits.
    package let name: String
  }

  /// The configuration of a server.
  package struct Configuration: Hashable, Sendable {
    /// The UDP port; 0 for any.
    package var port: UInt16
    /// The addresses to tell browsers beside those of the interfaces, as of a router that forwards the port.
    package var addresses: [IPAddress]
    /// `true` to use loopback addresses alone.
    package var isForThisMachineAlone: Bool
    /// The limits.
    package var limits: PeerTable.Limits

    /// The port unless another is configured.
    package static let standardPort: UInt16 = 8189

    /// Creates a configuration.
    package init(
      port: UInt16 = Configuration.standardPort, addresses: [IPAddress] = [], isForThisMachineAlone: Bool = false,
      limits: PeerTable.Limits = .init()
    ) {
      self.port = port
      self.addresses = addresses
      self.isForThisMachineAlone = isForThisMachineAlone
      self.limits = limits
    }
  }

  /// The configuration.
  package let configuration: Configuration
  private let sockets: [PeerSocket]
  private let context: ServerContext
  private let fingerprint: [UInt8]
  /// What happened to sessions, for the log.
  package let events = EventQueue<PeerEvent>()
  private let wake: Interrupt
  private let state: Mutex<State>
  private var thread: NamedThread?

  private struct State: ~Copyable {
    var table: PeerTable
    var viewers: [PeerTable.Identity: PeerViewer] = [:]
    var names: [String: PeerTable.Identity] = [:]
    /// The pipelines whose streams browsers may get.
    var pipelines: [Pipeline] = []
    var isOver = false
  }

  /// The most datagrams that are taken at a time, and the rest after as many: a flood costs a part of a processor only.
  /// What is lost meanwhile is repeated.
  private static let datagramsAtATime = 64
  private static let rest = Duration.milliseconds(5)
  /// The interval at which is asked whether each browser may still watch.
  private static let accessInterval = Duration(seconds: 2)
  private static let datagramBytes = 2048

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
    sockets = try former.flatMap { $0.inheritance(configuration) } ?? Self.sockets(configuration)
    wake = try Interrupt()
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
  }

  /// The port.
  package var port: UInt16 { sockets[0].port }

  private func inheritance(_ new: Configuration) -> [PeerSocket]? {
    let isSame = new.port == configuration.port && new.isForThisMachineAlone == configuration.isForThisMachineAlone
    return isSame ? sockets : nil
  }

  /// Binds both families to one port. A host without IPv6 does without it.
  private static func sockets(_ configuration: Configuration) throws(SystemFailure) -> [PeerSocket] {
    let loopback = configuration.isForThisMachineAlone
    let first = try PeerSocket(isIPv6: false, port: configuration.port, host: loopback ? IPAddress("127.0.0.1") : nil)
    do throws(SystemFailure) {
      return [first, try PeerSocket(isIPv6: true, port: first.port, host: loopback ? IPAddress("::1") : nil)]
    } catch {
      guard [EAFNOSUPPORT, EADDRNOTAVAIL].contains(error.errorNumber) else { throw error }
      return [first]
    }
  }

  /// The candidates, as the interfaces are now.
  private var candidates: [Candidate] {
    let hasIPv6 = sockets.contains(where: \.isIPv6)
    var own: [IPAddress] = []
    for address in HostNames.ofMachine.addresses.compactMap({ IPAddress(bytes: $0) })
    where (hasIPv6 || !address.isIPv6) && !address.isIPv6LinkLocal && !own.contains(address) {
      own.append(address)
    }
    // A browser of another machine cannot use a loopback address, and one of this machine needs it only without others.
    let ranked = own.filter { $0.isLoopback == configuration.isForThisMachineAlone }
    // Behind the direct ones: the way through a router is longer.
    return ((ranked.isEmpty ? own : ranked) + configuration.addresses).prefix(Self.candidateLimit)
      .map { Candidate(address: $0, port: port) }
  }

  private static let candidateLimit = 16

  // MARK: Sessions, from any thread

  /// Answers the offer of a browser that may watch `camera`.
  ///
  /// - Parameter isAllowed: returns `true` while the requester may watch. Once it does not, the session ends.
  /// - Throws: ``OfferError``; ``PeerServerError``; ``OpenSSLError``.
  package func answer(
    _ offer: String, of pipeline: Pipeline, camera: String, peer: ViewerPeer,
    isAllowed: @escaping @Sendable () -> Bool
  ) throws -> Answer {
    var peer = peer
    (peer.transport, peer.isEncrypted) = (.webrtc, true)
    let network = peer.address.flatMap { PeerAddress($0) }?.network ?? []
    let tracks = SentTracks(
      profileLevelID: pipeline.parameterSets.sets.profileLevelID, sound: pipeline.sound?.channels)
    let negotiation = try Negotiation(SessionOffer(parsing: offer), sending: tracks)
    let session = try PeerSession(
      remote: negotiation.credentials, fingerprints: negotiation.fingerprints, context: context, at: .now())
    let viewer = PeerViewer(negotiation, pipeline: pipeline, camera: camera, peer: peer, isAllowed: isAllowed)
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

  /// The number of sessions.
  package var sessionCount: Int { state.withLock { $0.table.count } }

  /// The counts of datagrams from nobody that is known.
  package var counts: PeerTable.Counts { state.withLock { $0.table.counts } }

  // MARK: The thread

  private func run() {
    let memory = UnsafeMutableRawBufferPointer.allocate(byteCount: Self.datagramBytes, alignment: 8)
    defer { memory.deallocate() }
    var nextAccessCheck = Instant.now() + Self.accessInterval
    while !state.withLock({ $0.isOver }) {
      wait(until: nextAccessCheck)
      wake.clear()
      var isFlooded = false
      for socket in sockets where receive(from: socket, into: memory) { isFlooded = true }
      var actions = Actions()
      let now = Instant.now()
      state.withLock { state in
        if let deadline = state.table.nextDeadline, deadline <= now {
          state.table.expire(at: now) { actions.append($0, $1) }
        }
      }
      carryOut(actions)
      if now >= nextAccessCheck {
        nextAccessCheck = now + Self.accessInterval
        checkAccess()
      }
      if isFlooded { usleep(useconds_t(Self.rest.nanoseconds / 1000)) }
    }
  }

  /// Ends the sessions whose requester may not watch any more.
  private func checkAccess() {
    let viewers = state.withLock { $0.viewers }
    var actions = Actions()
    for (identity, viewer) in viewers where !viewer.isAllowed() {
      state.withLock { _ = $0.table.end(identity, .notAllowed) { actions.append($0, $1) } }
    }
    carryOut(actions)
  }

  private func wait(until accessCheck: Instant) {
    let deadline = state.withLock { state in
      let deadline = state.table.nextDeadline
      return state.viewers.isEmpty ? deadline : min(deadline ?? accessCheck, accessCheck)
    }
    let rest = deadline.map { max(.zero, $0 - .now()) }
    var list = sockets.map { pollfd(fd: $0.fileDescriptor, events: Int16(POLLIN), revents: 0) }
    list.append(pollfd(fd: wake.fileDescriptor, events: Int16(POLLIN), revents: 0))
    // Rounded up: the deadline is over then.
    let milliseconds = rest.map { CInt(clamping: ($0.nanoseconds + 999_999) / 1_000_000) } ?? -1
    _ = poll(&list, nfds_t(list.count), milliseconds)
  }

  /// Takes the datagrams that have come. Returns `true` if there may be more.
  private func receive(from socket: PeerSocket, into memory: UnsafeMutableRawBufferPointer) -> Bool {
    for _ in 0..<Self.datagramsAtATime {
      guard let arrival = socket.receive(into: memory) else { return false }
      let path = PeerPath(address: arrival.sender.address, port: arrival.sender.port, local: arrival.local)
      // Nobody keeps the pointer.
      nonisolated(unsafe) let datagram = UnsafeRawBufferPointer(rebasing: memory[..<arrival.count])
      var actions = Actions()
      state.withLock { $0.table.receive(datagram, from: path, at: .now()) { actions.append($0, $1) } }
      carryOut(actions)
    }
    return true
  }

  /// What the table has asked for, to be done without its lock.
  private struct Actions {
    var list: [(PeerTable.Identity, PeerSession.Output)] = []

    mutating func append(_ identity: PeerTable.Identity, _ output: PeerSession.Output) {
      list.append((identity, output))
    }
  }

  private func carryOut(_ actions: consuming Actions) {
    for (identity, output) in actions.list {
      switch output {
      case .send(let bytes, let path):
        if let way = way(path) {
          bytes.withUnsafeBytes { way.socket.send($0, to: way.address, from: way.source) }
        }
      case .control(let bytes): viewer(identity)?.receive(control: bytes)
      case .move(let path): if let way = way(path) { viewer(identity)?.move(to: way) }
      case .begin(let keys, let path): begin(identity, keys, on: path)
      case .end(let reason): end(identity, reason)
      }
    }
  }

  private func viewer(_ identity: PeerTable.Identity) -> PeerViewer? { state.withLock { $0.viewers[identity] } }

  private func way(_ path: PeerPath) -> PeerTransport.Way? {
    guard let socket = sockets.first(where: { $0.isIPv6 == path.address.isIPv6 }) else { return nil }
    return PeerTransport.Way(socket: socket, address: SocketAddress(path.address, port: path.port), from: path.local)
  }

  private func begin(_ identity: PeerTable.Identity, _ keys: PeerKeys, on path: PeerPath) {
    guard let viewer = viewer(identity), let way = way(path) else { return }
    do {
      guard try viewer.begin(keys, way) else { return }
      events.add(.began(viewer.peer, camera: viewer.camera))
    } catch {
      var actions = Actions()
      state.withLock { _ = $0.table.end(identity, .failure("\(error)")) { actions.append($0, $1) } }
      carryOut(actions)
    }
  }

  private func end(_ identity: PeerTable.Identity, _ reason: PeerEnd) {
    let viewer = state.withLock { state in
      let viewer = state.viewers.removeValue(forKey: identity)
      if let viewer { state.names[viewer.name] = nil }
      return viewer
    }
    guard let viewer else { return }
    if let began = viewer.end() {
      events.add(.ended(viewer.peer, camera: viewer.camera, reason, after: .now() - began))
    } else {
      events.add(.failed(viewer.peer, camera: viewer.camera, reason))
    }
  }
}

/// The reason why a server takes no session.
package enum PeerServerError: Failure, Hashable {
  /// There are too many sessions.
  case tooMany
  /// The camera's stream has just been replaced by another one.
  case replaced
  /// There is no server of sessions.
  case notServed

  /// A one-line description for the client.
  package var description: String {
    switch self {
    case .tooMany: "too many browsers watch, or are about to: try again in a moment"
    case .replaced: "the camera's stream is just being replaced: try again in a moment"
    case .notServed: "browsers get no WebRTC here, because its UDP port is in use: the log says more"
    }
  }

  /// The kind of failure.
  package var kind: FailureKind { self == .notServed ? .unavailable : .temporary }
}

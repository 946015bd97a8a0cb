import Adaptors
import Glibc
import Platform
import RTP
import RTSP
import SRTP
import Synchronization
import TLS

/// One session with an RTSP server: the connection, the dialogue, the packets.
final class RTSPSession {
  private let worker: ReceiverWorker
  private let url: StreamURL
  private let connection: ServerConnection
  private let way: RTSPDialogue.Way
  /// The sockets of UDP that no track has yet.
  private var pairs: [DatagramPair]
  private var dialogue: RTSPDialogue
  private var parser = ServerMessageParser()
  /// The tracks that are set up; the picture's is the first.
  private var tracks: [SessionTrack] = []
  private let clock = SessionClock()
  private let before: StreamReceiver.Statistics
  private let packetMemory = PacketMemory()
  /// The time by which the pending request must be answered, and at which the next sign of life is due.
  private var (answerDeadline, keepAliveTime) = (Instant.zero, Instant.zero)
  private var (playTime, isPlaying): (Instant, Bool) = (.zero, false)

  /// Connects to the server.
  ///
  /// - Throws: ``ReceiverError``.
  init(
    _ worker: ReceiverWorker, _ url: StreamURL, transport: StreamReceiver.Transport
  ) throws(ReceiverError) {
    (self.worker, self.url) = (worker, url)
    before = worker.published.withLock { $0 }
    let configuration = worker.configuration
    connection = try Self.connect(worker, url)
    var pairs: [DatagramPair] = []
    if transport == .udp || transport == .automatic {
      for _ in 0..<(configuration.receivesSound ? 2 : 1) { pairs.append(try DatagramPair(from: connection.address)) }
    }
    self.pairs = pairs
    way =
      switch transport {
      case .tcp: .interleaved
      case .multicast: .multicast
      case .udp, .automatic: .udp(pairs.map(\.ports))
      }
    let user = url.user ?? configuration.user
    let credentials = user.map {
      RTSPDialogue.Credentials(
        user: $0, password: url.user != nil ? url.password ?? "" : configuration.password ?? "")
    }
    dialogue = RTSPDialogue(
      url, way: way, wantsSound: configuration.receivesSound, credentials: credentials,
      makeNonce: { String(UInt64.random(in: 0 ... .max), radix: 16) }, makeControlKey: Self.controlKey)
  }

  /// Returns a new key for our reports, with its message.
  private static func controlKey(_ suite: SRTPSuite) -> (key: SRTPKey, source: UInt32, message: String) {
    var generator = SystemRandomNumberGenerator()
    let (key, source) = (SRTPKey(random: suite), UInt32.random(in: 1 ... .max))
    let now = wallClock()
    let message = MIKEYMessage(key: key, streams: [.init(ssrc: source)]).text(
      at: NTPTimestamp(unixSeconds: now / 1_000_000_000, nanoseconds: now % 1_000_000_000), using: &generator)
    return (key, source, message)
  }

  private var memory: UnsafeMutableRawBufferPointer { packetMemory.bytes }

  private static func connect(_ worker: ReceiverWorker, _ url: StreamURL) throws(ReceiverError) -> ServerConnection {
    let timeout = worker.configuration.answerTimeout
    var trust: ServerConnection.Trust?
    if url.isEncrypted {
      do throws(OpenSSLError) {
        trust =
          if let digest = worker.configuration.certificateFingerprint {
            .fingerprint(try ClientContext(comparingFingerprints: ()), digest)
          } else {
            .authorities(try ClientContext())
          }
      } catch {
        throw .encryption("\(error)")
      }
    }
    let addresses = try PeerAddress.all(of: url.host, port: url.port, by: .now() + timeout, stop: worker.stop)
    var failure = ReceiverError.host("\(url.host) has no address")
    let deadline = Instant.now() + timeout
    for (index, address) in addresses.enumerated() {
      // A share of what is left for each: where IPv6 leads nowhere, IPv4 has its turn.
      let share = Duration(nanoseconds: max(0, (deadline - .now()).nanoseconds) / Int64(addresses.count - index))
      do throws(ReceiverError) {
        return try ServerConnection(
          address, host: url.host, trust: trust, by: .now() + share, stop: worker.stop.fileDescriptor)
      } catch {
        if error == .stopped { throw error }
        failure = error
      }
    }
    throw failure
  }

  /// Receives until the stream ends. The server is told, as far as that can be done at once.
  ///
  /// - Throws: ``ReceiverError``.
  func run() throws(ReceiverError) {
    defer { connection.close() }
    do throws(ReceiverError) {
      try send(dialogue.begin())
      while true { try proceed() }
    } catch {
      leave()
      // A connection that breaks while the stream plays was the right one.
      if isPlaying, case .encryption(let reason) = error { throw .connection(reason) }
      throw error
    }
  }

  /// Waits for what comes next, and takes it.
  private func proceed() throws(ReceiverError) {
    var wait = SessionWait()
    let stop = wait.add(worker.stop.fileDescriptor)
    let request = wait.add(worker.keyFrameRequest.fileDescriptor)
    let server = wait.add(connection.descriptor, CInt(connection.hasOutput ? POLLIN | POLLOUT : POLLIN))
    for track in tracks { track.add(to: &wait) }
    wait.wait(until: nextDeadline)
    if wait.isReady(stop) { throw .stopped }
    if wait.isReady(request) {
      worker.keyFrameRequest.clear()
      picture?.receiver.requestKeyFrame()
    }
    if wait.isReady(server) { try readConnection() }
    for track in tracks { track.receiveDatagrams(into: memory) }
    try work()
  }

  private var picture: TrackReception? { tracks.first?.reception }

  private var nextDeadline: Instant {
    var deadline = dialogue.isWaiting ? answerDeadline : keepAliveTime
    for track in tracks { deadline = min(deadline, track.reception.receiver.nextDeadline) }
    if isPlaying { deadline = min(deadline, silenceTime) }
    return deadline
  }

  private var silenceTime: Instant {
    max(playTime, picture?.lastPacket ?? .zero) + worker.configuration.silenceTimeout
  }

  private func send(_ request: [UInt8]) throws(ReceiverError) {
    answerDeadline = .now() + worker.configuration.answerTimeout
    keepAliveTime = .now() + dialogue.keepAliveInterval
    try connection.send(request)
  }

  /// Tells the server and its sender that we leave, as far as that can be done at once.
  private func leave() {
    for track in tracks { track.reception.sendGoodbye(into: memory, at: .now()) { sendControl($0, of: track) } }
    if let request = dialogue.end() { try? connection.send(request) }
  }

  // MARK: What comes

  private func readConnection() throws(ReceiverError) {
    let isOpen = try connection.receive { bytes throws(ReceiverError) in
      try parser.take(
        bytes,
        data: { channel, packet throws(ReceiverError) in take(packet, on: channel) },
        message: { message throws(ReceiverError) in try take(message) })
    }
    guard isOpen else {
      throw isPlaying ? .ended : .connection("the server closed the connection without an answer")
    }
    try connection.flush()
  }

  private func take(_ packet: UnsafeRawBufferPointer, on channel: UInt8) {
    for track in tracks { track.take(packet, on: channel) }
  }

  private func take(_ message: ServerMessage) throws(ReceiverError) {
    let answer = try dialogue.take(message)
    // Packets may come before the answer to PLAY.
    while tracks.count < dialogue.setUp.count { tracks.append(try opened(dialogue.setUp[tracks.count])) }
    if let answer {
      // An answer to the server's own request puts off no deadline of ours.
      if case .request = message { try connection.send(answer) } else { try send(answer) }
    }
    guard dialogue.isPlaying, !isPlaying else { return }
    (isPlaying, playTime) = (true, .now())
    keepAliveTime = .now() + dialogue.keepAliveInterval
    worker.published.withLock { $0.isPlaying = true }
    worker.noteSound(tracks.count > 1, other: dialogue.otherSound)
    worker.events.send(.playing("RTSP from \(connection.address.address.text) port \(url.port), \(wayName)"))
  }

  /// Returns the reception of a track that the server has set up.
  private func opened(_ setUp: RTSPDialogue.SetUpTrack) throws(ReceiverError) -> SessionTrack {
    let transport = setUp.transport
    var sockets: DatagramPair?
    if let group = transport.group {
      let interface =
        if let name = worker.configuration.interface {
          try GroupMembership.index(of: name)
        } else {
          connection.localAddress.map { GroupMembership.index(of: $0) } ?? 0
        }
      sockets = try DatagramPair(
        joining: GroupMembership(
          // A server with several addresses sends to the group from another one than it answers from.
          group.address, sender: group.sender, interface: interface, timeToLive: group.timeToLive),
        ports: group.ports)
    } else if !pairs.isEmpty {
      sockets = pairs.removeFirst()
      if let ports = transport.serverPorts { sockets?.setReportPort(ports.rtcp, of: connection.address) }
    }
    let reception = try TrackReception(
      setUp.track, .init(isReliable: sockets == nil, isGroup: transport.group != nil), keys: setUp.keys, clock,
      worker.configuration, at: .now(),
      wallClock: wallClock
    ) { [worker] in worker.deliver($0) }
    return SessionTrack(reception, sockets: sockets, channels: transport.channels)
  }

  /// The way of the packets, for people.
  private var wayName: String {
    let isProtected = picture?.track.profile.isProtected ?? false
    switch way {
    case .interleaved: return url.isEncrypted ? "TLS" : "TCP"
    case .udp(let ports): return "\(isProtected ? "SRTP over " : "")UDP, port \(ports[0].rtp)"
    case .multicast:
      let group = tracks.first?.sockets.map { " at port \($0.ports.rtp)" } ?? ""
      return "\(isProtected ? "SRTP to " : "")a group\(group)"
    }
  }

  // MARK: What is due

  private func work() throws(ReceiverError) {
    let now = Instant.now()
    if dialogue.isWaiting, answerDeadline <= now {
      throw .time("the server does not answer for \(worker.configuration.answerTimeout.seconds) s")
    }
    if isPlaying, !dialogue.isWaiting, keepAliveTime <= now { try send(dialogue.keepAlive()) }
    for track in tracks {
      track.reception.poll(at: now)
      track.reception.sendFeedback(into: memory, at: now) { sendControl($0, of: track) }
    }
    try connection.flush()
    guard let picture else { return }
    worker.publish(tracks, since: before)
    if isPlaying, silenceTime <= now { throw worker.silence(of: picture) }
    if picture.receiver.hasEnded { throw .ended }
  }

  private func sendControl(_ packet: UnsafeRawBufferPointer, of track: SessionTrack) {
    if let sockets = track.sockets { return sockets.send(packet) }
    guard let channels = track.channels, packet.count <= Int(UInt16.max) else { return }
    let header = InterleavedFrame.header(channel: channels.rtcp, payloadBytes: UInt16(packet.count))
    // A connection that fails shows at the next read.
    try? connection.send([header.0, header.1, header.2, header.3] + packet)
  }
}

import Glibc
import NIOCore
import Platform
import RTP
import RTSP
import SRTP
import Streaming

extension RTSPService {
  /// Sends its tracks to a session, and answers once they begin.
  func play(
    _ session: SessionIdentifier, urls: [Int: String], _ request: Request, _ response: Response,
    on connection: RTSPConnection
  ) {
    sessions[session]?.user = connection.user
    guard let entry = table[session], let first = entry.transports.min(by: { $0.key < $1.key }),
      playing[session] == nil, let served = sessions[session]
    else {
      // The session already plays and continues.
      return connection.answered(response)
    }
    let presentation = served.presentation
    lastPlay += 1
    let isProtected = presentation.keys[session, first.key] != nil
    var viewer = Playing(
      number: lastPlay, presentation: presentation, connection: entry.connection,
      name: first.value.viewerName(of: connection, isProtected: isProtected),
      camera: presentations.values.count { !$0.isH264 } > 1 ? presentation.name : nil)
    viewer.pending = PendingPlay(response: response, urls: urls, connection: connection)
    do {
      for (track, transport) in entry.transports.sorted(by: { $0.key < $1.key }) {
        let stream = PlayingStream(track: track, transport: transport)
        viewer.streams.append(try start(stream, of: viewer, entry, isReturning: served.hasPlayed, on: connection))
      }
    } catch {
      for stream in viewer.streams { stop(stream, of: viewer, goodbye: false) }
      noteRefusal()
      if !(error is BacklogError) {
        table.end(session)
        end(session)
      }
      guard case .h264(let refusal) = error as? StreamDestinationError else {
        // Without the viewer's port: each try has another, and the log sums up equal reasons.
        let reason = if case .socket(_, let cause) = error as? StreamDestinationError { cause } else { "\(error)" }
        return connection.answered(
          self.response(.serviceUnavailable, to: request, refused: "cannot send: \(reason)", on: connection))
      }
      return connection.answered(self.response(to: request, refused: refusal, on: connection))
    }
    playing[session] = viewer
    sessions[session]?.hasPlayed = true
    events.add(.came(viewer: viewer.name, camera: viewer.camera, viewer.media))
    countSessions()
    answerIfStarted(session)
    // The answer comes even if the camera delivers no picture.
    answer(session, viewer.number, after: .nanoseconds(configuration.startPatience.nanoseconds))
  }

  /// The connection takes no more packets. The backlog of a viewer that takes nothing must not grow by another PLAY;
  /// its session stays.
  private struct BacklogError: Error, CustomStringConvertible {
    let description = "the client has not read what was sent before; read it, then play again"
  }

  /// Starts one track of a session.
  ///
  /// - Throws: the error of an address or of the pipeline; ``BacklogError``.
  private func start(
    _ stream: PlayingStream, of viewer: Playing, _ entry: ServerSession, isReturning: Bool,
    on connection: RTSPConnection
  ) throws -> PlayingStream {
    var stream = stream
    let place = sessions[entry.identifier]?.places[stream.track] ?? GuestPlace()
    sessions[entry.identifier]?.places[stream.track] = place
    let (session, number, track) = (entry.identifier, viewer.number, stream.track)
    let presentation = viewer.presentation
    let key = presentation.keys[session, track]
    let peer = stream.transport.viewerPeer(of: connection, isProtected: key != nil)
    let service = NIOLoopBound(self, eventLoop: loop)
    let handover = handover
    let transport: GuestTransport
    switch stream.transport.delivery {
    case .multicast:
      try presentation.shared[track].join()
      stream.hasStarted = true
      return stream
    case .udp(let ports):
      endFormer(of: entry)
      let address = try SocketAddress(host: connection.client, port: ports.rtp)
      let control = ports.rtcp == ports.rtp ? nil : try SocketAddress(host: connection.client, port: ports.rtcp)
      transport = .datagrams(to: address, control: control, timeToLive: nil)
    case .interleaved(let channels):
      guard connections[entry.connection]?.takesMore == true else { throw BacklogError() }
      let write: @Sendable (InterleavedBytes) -> Void = { service.value.take($0, for: session, number, track: track) }
      let isSound = !presentation.pipeline.track(presentation.tracks[track]).media.contains(.picture)
      let interleaved = try InterleavedTransport(
        media: channels.rtp, control: channels.rtcp, overtakesPictures: isSound
      ) { bytes in handover.put(.write(bytes, by: write)) }
      stream.interleaved = interleaved
      transport = .interleaved(interleaved)
    }
    stream.viewer = try presentation.pipeline.admit(
      transport, track: presentation.tracks[track], name: viewer.name, peer: peer,
      client: viewer.streams.lazy.compactMap(\.viewer).first,
      stream: key?.stream, controlKey: key?.controlKey,
      // A client that requests AVPF has read the offer; others know only packets that are repeated unchanged.
      hasRetransmissionStream: stream.transport.profile == .avpf && stream.interleaved == nil,
      isReturning: isReturning, place: place,
      onGoodbye: { handover.put { service.value.saidGoodbye(session, number, track: track) } }
    ) { start in
      handover.put { service.value.started(session, number, track: track, start) }
    }
    if let interleaved = stream.interleaved { connections[entry.connection]?.add(interleaved) }
    return stream
  }

  /// Ends the session of a vanished player at the same port. `session` belongs to a player that has started again;
  /// without this, every packet, and in the end a BYE, would reach it twice.
  private func endFormer(of session: ServerSession) {
    let ports = Set(session.transports.values.compactMap(\.port))
    let former = playing.keys.filter { other in
      other != session.identifier && table[other]?.client == session.client
        && playing[other]?.streams.contains { $0.transport.port.map(ports.contains) == true } == true
    }
    for other in former {
      table.end(other)
      end(other)
    }
  }

  /// Ends the stream of a viewer that has sent BYE. Its session stays for a later TEARDOWN or PLAY, as long as any
  /// session without a sign of life.
  private func saidGoodbye(_ session: SessionIdentifier, _ number: UInt64, track: Int) {
    guard playing[session]?.number == number else { return }
    letGo(session, track: track)
    countSessions()
  }

  /// Notes the first packet of a track, which is about to leave.
  private func started(_ session: SessionIdentifier, _ number: UInt64, track: Int, _ start: StreamStart) {
    guard let viewer = playing[session], viewer.number == number,
      let index = viewer.streams.firstIndex(where: { $0.track == track })
    else { return }
    playing[session]?.streams[index].start = start
    playing[session]?.streams[index].hasStarted = true
    answerIfStarted(session)
  }

  /// Sends the answer to PLAY if each track has begun. If some have, the others get some more time.
  private func answerIfStarted(_ session: SessionIdentifier) {
    guard let viewer = playing[session], let pending = viewer.pending else { return }
    if viewer.streams.allSatisfy(\.hasStarted) { return answerPlay(session, viewer.number) }
    guard viewer.streams.contains(where: \.hasStarted), !pending.isDue else { return }
    playing[session]?.pending?.isDue = true
    answer(session, viewer.number, after: Self.tracksPatience)
  }

  private func answer(_ session: SessionIdentifier, _ number: UInt64, after time: TimeAmount) {
    guard playing[session]?.pending != nil else { return }
    let service = NIOLoopBound(self, eventLoop: loop)
    loop.scheduleTask(in: time) { service.value.answerPlay(session, number) }
  }

  /// Sends the answer to PLAY: the first packets of the session are about to leave, or the answer can wait no longer.
  private func answerPlay(_ session: SessionIdentifier, _ number: UInt64) {
    guard let viewer = playing[session], viewer.number == number,
      var pending = playing[session]?.pending.take()
    else { return }
    pending.response.setRTPInformation(
      viewer.streams.map { stream in
        RTPInformation(
          url: pending.urls[stream.track] ?? "", sequenceNumber: stream.start?.sequenceNumber,
          timestamp: stream.start?.timestamp)
      })
    pending.connection.answered(pending.response)
    playing[session]?.early = []
    for (track, bytes) in viewer.early { write(bytes, to: viewer, track: track) }
  }

  /// Notes the signs of life of a session that plays. Returns `true` if its client is gone.
  func isGone(_ session: SessionIdentifier, _ viewer: Playing, at now: Instant) -> Bool {
    var heard = viewer.lastHeard
    // A client may close its connections and play on (RFC 2326 section 1.1), and then its ports take packets.
    var isRefusing = table[session]?.openConnections.isEmpty ?? true
    for stream in viewer.streams {
      guard let id = stream.viewer, let figures = viewer.presentation.pipeline.statistics(of: id) else {
        isRefusing = false
        continue
      }
      if figures.errorNumber != ECONNREFUSED { isRefusing = false }
      // RTCP over UDP arrives at the send thread.
      if let time = figures.lastHeard { heard = max(heard, time) }
    }
    if heard > viewer.lastHeard {
      playing[session]?.lastHeard = heard
      table.keepAlive(session, at: heard)
    }
    guard isRefusing else {
      if viewer.goneSince != nil {
        playing[session]?.goneSince = nil
        table.note(session, isRefusing: false)
      }
      return false
    }
    // A request since then is a sign of life, and the patience begins anew.
    guard let goneSince = viewer.goneSince, table[session]?.isRefusing != false else {
      playing[session]?.goneSince = now
      table.note(session, isRefusing: true)
      return false
    }
    return now - goneSince >= Self.gonePatience
  }

  /// Takes interleaved packets of a session's track from the send thread, and writes them once PLAY is answered.
  private func take(_ bytes: InterleavedBytes, for session: SessionIdentifier, _ number: UInt64, track: Int) {
    guard let viewer = playing[session], viewer.number == number else {
      // The BYE of an ended session, and packets that were on their way before.
      if let viewer = leaving[number] { write(bytes, to: viewer, track: track) }
      return
    }
    if bytes.isFrame { viewer[track]?.interleaved?.frameWasTaken() }
    guard viewer.pending == nil else {
      playing[session]?.early.append((track, bytes))
      return
    }
    write(bytes, to: viewer, track: track)
  }

  private func write(_ bytes: InterleavedBytes, to viewer: Playing, track: Int) {
    guard let interleaved = viewer[track]?.interleaved, let connection = connections[viewer.connection] else { return }
    packets.write(bytes, to: connection, of: interleaved)
  }

  /// Ends a session and stops sending to it.
  func end(_ session: SessionIdentifier, goodbye: Bool = false) {
    letGo(session, goodbye: goodbye)
    sessions.removeValue(forKey: session)?.presentation.keys.end(session)
  }

  /// Ends one track of a session that has others.
  func release(_ session: SessionIdentifier, track: Int) {
    letGo(session, track: track)
    sessions[session]?.presentation.keys.end(session, track: track)
  }

  /// Stops sending one track to a session, and the session's play with its last one.
  private func letGo(_ session: SessionIdentifier, track: Int) {
    guard let viewer = playing[session], let stream = viewer[track] else { return }
    guard viewer.streams.count > 1 else { return letGo(session) }
    stop(stream, of: viewer, goodbye: false)
    playing[session]?.streams.removeAll { $0.track == track }
    answerIfStarted(session)
  }

  /// Stops sending to a session.
  func letGo(_ session: SessionIdentifier, goodbye: Bool = false) {
    guard let viewer = playing.removeValue(forKey: session) else { return }
    events.add(.left(viewer: viewer.name, camera: viewer.camera, after: .now() - viewer.since, viewer.figures))
    // A request that waits for its first packet gets its answer.
    if let pending = viewer.pending { pending.connection.answered(pending.response) }
    for stream in viewer.streams { stop(stream, of: viewer, goodbye: goodbye) }
    guard goodbye, viewer.streams.contains(where: { $0.interleaved != nil }) else { return }
    leaving[viewer.number] = viewer
    let service = NIOLoopBound(self, eventLoop: loop)
    let number = viewer.number
    let time = TimeAmount.nanoseconds(configuration.goodbyeTime.nanoseconds)
    loop.scheduleTask(in: time) { service.value.leaving[number] = nil }
  }

  /// Stops sending a track.
  private func stop(_ stream: PlayingStream, of viewer: Playing, goodbye: Bool) {
    // A client may play and pause for as long as its connection lasts.
    if let interleaved = stream.interleaved { connections[viewer.connection]?.letGo(of: interleaved) }
    if let id = stream.viewer {
      viewer.presentation.pipeline.remove(id, goodbye: goodbye)
    } else {
      viewer.presentation.shared[stream.track].leave(isOver: goodbye)
    }
  }
}

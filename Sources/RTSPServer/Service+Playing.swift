import Credentials
import Media
import NIOCore
import RTP
import RTSP
import SRTP
import Streaming

extension Service {
  /// Sends the stream to a session, and answers once it begins.
  func play(
    _ session: SessionIdentifier, url: String, _ request: Request, _ response: Response, on connection: Connection
  ) {
    sessions[session]?.user = connection.user
    guard let entry = table[session], let transport = entry.transports[0], playing[session] == nil,
      let served = sessions[session]
    else {
      // It plays already and goes on.
      return connection.answered(response)
    }
    let (presentation, pipeline) = (served.presentation, served.presentation.pipeline)
    lastPlay += 1
    let number = lastPlay
    let key = presentation.keys[session]
    let name = transport.viewerName(of: connection, isProtected: key != nil)
    let peer = transport.viewerPeer(of: connection, isProtected: key != nil)
    var viewer = Playing(
      number: number, presentation: presentation, connection: entry.connection, transport: transport, name: name,
      camera: presentations.count > 1 ? presentation.name : nil)
    viewer.pending = PendingPlay(response: response, url: url, connection: connection)
    let service = NIOLoopBound(self, eventLoop: loop)
    let handover = handover
    let onGoodbye: @Sendable () -> Void = { handover.put { service.value.saidGoodbye(session, number) } }
    do {
      switch transport.delivery {
      case .multicast:
        try presentation.shared.join()
      case .udp(let ports):
        endFormer(of: entry)
        let address = try SocketAddress(host: connection.client, port: ports.rtp)
        let control = ports.rtcp == ports.rtp ? nil : try SocketAddress(host: connection.client, port: ports.rtcp)
        viewer.viewer = try pipeline.admit(
          .datagrams(to: address, control: control, timeToLive: nil),
          name: name, peer: peer, stream: key?.stream, controlKey: key?.controlKey,
          // Whoever asks for AVPF has read what it offers; others know packets that come again as they were.
          hasRetransmissionStream: transport.profile == .avpf, isReturning: served.hasPlayed, onGoodbye: onGoodbye
        ) { start in
          handover.put { service.value.started(session, number, start) }
        }
      case .interleaved(let channels):
        guard connections[entry.connection]?.channel.isWritable == true else {
          // What waits there for a viewer that takes nothing must not grow by playing again.
          noteRefusal()
          return connection.answered(Response(.serviceUnavailable, to: request))
        }
        let write: @Sendable (InterleavedBytes) -> Void = { service.value.write($0, for: session, number) }
        let interleaved = try InterleavedTransport(media: channels.rtp, control: channels.rtcp) { bytes in
          handover.put(.write(bytes, by: write))
        }
        viewer.interleaved = interleaved
        viewer.viewer = try pipeline.admit(
          .interleaved(interleaved),
          name: name, peer: peer, stream: key?.stream, controlKey: key?.controlKey,
          isReturning: served.hasPlayed, onGoodbye: onGoodbye
        ) { start in
          handover.put { service.value.started(session, number, start) }
        }
      }
    } catch {
      noteRefusal()
      table.end(session)
      end(session)
      return connection.answered(Response(.serviceUnavailable, to: request))
    }
    playing[session] = viewer
    sessions[session]?.hasPlayed = true
    events.add(.came(viewer: name, camera: viewer.camera))
    countSessions()
    if transport.delivery == .multicast { return started(session, number, nil) }
    // Where the camera gives no picture the answer comes all the same.
    loop.scheduleTask(in: Self.startPatience) { service.value.started(session, number, nil) }
  }

  /// Ends the session of a player that was at the same port and has vanished: `session` is of one that has started
  /// again, and every packet, and in the end a BYE, would come to it twice.
  private func endFormer(of session: ServerSession) {
    let former = playing.keys.filter { other in
      other != session.identifier && table[other]?.client == session.client
        && playing[other]?.transport.port == session.transports[0]?.port
    }
    for other in former {
      table.end(other)
      end(other)
    }
  }

  /// A viewer has said BYE: its stream ends at once. Its session stays for a TEARDOWN that may follow, or another PLAY, as
  /// long as any that gives no sign of life.
  private func saidGoodbye(_ session: SessionIdentifier, _ number: UInt64) {
    guard playing[session]?.number == number else { return }
    letGo(session)
    countSessions()
  }

  /// The first packet of a session is about to leave, or the answer cannot wait for it any longer.
  private func started(_ session: SessionIdentifier, _ number: UInt64, _ start: StreamStart?) {
    guard playing[session]?.number == number, var pending = playing[session]?.pending.take() else { return }
    pending.response.setRTPInformation([
      RTPInformation(url: pending.url, sequenceNumber: start?.sequenceNumber, timestamp: start?.timestamp)
    ])
    pending.connection.answered(pending.response)
    let early = playing[session]?.early ?? []
    playing[session]?.early = []
    for bytes in early { write(bytes, for: session, number) }
  }

  /// Writes interleaved packets of a session.
  private func write(_ bytes: InterleavedBytes, for session: SessionIdentifier, _ number: UInt64) {
    guard let viewer = playing[session], viewer.number == number else {
      // The last word of one that is over, and what was on its way before.
      if let viewer = leaving[number] { write(bytes, to: viewer) }
      return
    }
    guard viewer.pending == nil else {
      playing[session]?.early.append(bytes)
      return
    }
    write(bytes, to: viewer)
  }

  private func write(_ bytes: InterleavedBytes, to viewer: Playing) {
    guard let interleaved = viewer.interleaved, let connection = connections[viewer.connection] else { return }
    packets.write(bytes, to: connection, of: interleaved)
  }

  /// Stops sending to a session, which is over.
  func end(_ session: SessionIdentifier, goodbye: Bool = false) {
    letGo(session, goodbye: goodbye)
    sessions.removeValue(forKey: session)?.presentation.keys.end(session)
  }

  /// Stops sending to a session.
  func letGo(_ session: SessionIdentifier, goodbye: Bool = false) {
    guard let viewer = playing.removeValue(forKey: session) else { return }
    let pipeline = viewer.presentation.pipeline
    let figures = viewer.viewer.flatMap { pipeline.statistics(of: $0) }
    events.add(.left(viewer: viewer.name, camera: viewer.camera, after: .now() - viewer.since, figures))
    // A request that waits for its first packet gets its answer.
    if let pending = viewer.pending { pending.connection.answered(pending.response) }
    guard let id = viewer.viewer else { return viewer.presentation.shared.leave(isOver: goodbye) }
    pipeline.remove(id, goodbye: goodbye)
    guard goodbye, viewer.interleaved != nil else { return }
    leaving[viewer.number] = viewer
    let service = NIOLoopBound(self, eventLoop: loop)
    let number = viewer.number
    loop.scheduleTask(in: Connection.goodbyeTime) { service.value.leaving[number] = nil }
  }
}

package import Platform
import RTP
package import SRTP
import Synchronization

/// The transport of RTP packets to a viewer that joined on its own, as by RTSP.
package enum GuestTransport: Sendable {
  /// UDP from ``Pipeline/guestPorts(for:)``. RTCP goes to its own address, or to that of RTP where `control` is nil.
  case datagrams(to: SocketAddress, control: SocketAddress?, timeToLive: UInt8?)
  /// A part of a byte stream that another object writes.
  case interleaved(InterleavedTransport)
  /// SRTP to a WebRTC peer. `retransmissions` is the source of its retransmission stream; nil where it takes none.
  case peer(PeerTransport, retransmissions: UInt32?)
}

/// The place of one viewer in a track, across the pauses of its session: the numbering of the stream that only this viewer had.
/// That ends with a pause, and the next one goes on from there. One object serves one track of one session.
package final class GuestPlace: Sendable {
  /// The numbering at the last pause; nil where the viewer had the stream that all share, whose numbers go on anyway.
  let numbering = Mutex<RTPStream?>(nil)

  /// Creates the place of a viewer that has not played yet.
  package init() {}
}

extension Pipeline {
  /// The packet size of viewers that joined on their own.
  package static let guestPacketSize = StreamDestination.defaultMaximumPacketSize
  /// The packet size of WebRTC peers. With the tag of SRTP, the two bytes of a retransmission and the time of sending, a
  /// datagram has at most 1200 bytes, as browsers' own have: larger ones are lost in tunnels.
  static let peerPacketSize = 1200 - 16 - 2 - SendTimeExtension.byteCount

  /// Returns the source (SSRC) of a track for WebRTC peers.
  package func peerSource(ofTrack track: Int) -> UInt32 { self.track(track).sendStage.peerNumbering.ssrc }

  /// Returns this side's UDP ports of RTP and RTCP for viewers at addresses of the family of `address`.
  ///
  /// - Throws: ``SystemFailure`` where the system has none left.
  package func guestPorts(for address: SocketAddress) throws(SystemFailure) -> (media: UInt16, control: UInt16) {
    let port = try viewerList.withLock { list throws(SystemFailure) in
      try localPorts(family: address.family, &list).port
    }
    return (port, port + 1)
  }

  /// Sends a track to a viewer that joined on its own. Its first packet is that of a key frame. That is a new one where
  /// the limit on requests allows it; else the last one is sent again, with all that followed it. A viewer that returns
  /// gets a new key frame, as soon as the limit allows. Any thread may call it, at any time.
  ///
  /// The server of the viewers limits their number, and can say which option allows more. Nothing is allocated for a viewer
  /// before it joins.
  ///
  /// - Parameters:
  ///   - track: the number of the track; that of the pictures is 0, that of H.264 beside them ``h264Track``.
  ///   - name: the viewer's name, for a person.
  ///   - peer: the viewer's connection.
  ///   - client: the identity that all tracks of one viewer share, from ``nextClient()`` or the viewer of the first
  ///     track; nil for the first track.
  ///   - stream: the protected stream that the viewer gets; nil is the one in the clear.
  ///   - controlKey: the key of the viewer's RTCP; nil is the stream's key.
  ///   - hasRetransmissionStream: `true` retransmits packets in a stream of their own (RFC 4588), of payload type
  ///     ``RTPPayloadType/retransmission``, instead of unchanged. In the clear only.
  ///   - isReturning: `true` if the viewer may have got packets of the stream before. Then no sequence number comes to
  ///     the viewer twice: the numbers go on across a pause (RFC 2326 appendix B), and a receiver of SRTP refuses
  ///     repeated packets.
  ///   - place: the viewer's place, the same one before and after a pause; nil for a viewer that never returns.
  ///   - onGoodbye: is called once, on another thread, when the viewer has said BYE. The viewer gets the stream until
  ///     it is removed.
  ///   - onStart: is told of the first packet, on another thread, just before the packet leaves.
  /// - Throws: ``StreamDestinationError`` where the system gives no socket, or there is no encoder for the H.264.
  package func admit(
    _ transport: GuestTransport, track: Int = 0, name: String, peer: ViewerPeer? = nil,
    client: ViewerID? = nil, stream: ProtectedStream? = nil, controlKey: SRTPKey? = nil,
    hasRetransmissionStream: Bool = false, isReturning: Bool = false, place: GuestPlace? = nil,
    onGoodbye: (@Sendable () -> Void)? = nil, onStart: @escaping @Sendable (StreamStart) -> Void
  ) throws(StreamDestinationError) -> ViewerID {
    try viewerList.withLock { list throws(StreamDestinationError) in
      if track == h264Track, let refusal = h264Refusal { throw .h264(refusal) }
      let way: any PacketTransport =
        switch transport {
        case .interleaved(let transport): transport
        case .peer(let transport, _): transport
        case .datagrams(let address, let control, let timeToLive):
          try datagramTransport(to: address, control: control, timeToLive: timeToLive, name: name, &list)
        }
      let id = list.nextID()
      let payload = self.track(track).sendStage.guestPayload
      var kind = RTPOutput.Kind(payload: payload, packetSize: Self.guestPacketSize, protection: stream?.protection)
      var retransmissionSource: UInt32?
      if case .peer(_, let source) = transport {
        kind = RTPOutput.Kind(payload: payload, packetSize: Self.peerPacketSize, isForPeers: true)
        retransmissionSource = source
      }
      start(
        ViewerFigures(id: id, name: name, peer: peer, track: track, client: client, isGuest: true), way, kind,
        track: track, controlKey: controlKey,
        hasRetransmissionStream: hasRetransmissionStream && stream == nil || retransmissionSource != nil,
        retransmissionSource: retransmissionSource, isReturning: isReturning, place: place, onStart: onStart,
        onGoodbye: onGoodbye)
      list.guests[id] = track
      noteWatched(list)
      return id
    }
  }

  /// Returns an identity for a viewer whose tracks may come in any order.
  package func nextClient() -> ViewerID { viewerList.withLock { $0.nextID() } }

  /// Reserves `groups` for viewers that joined on their own, of this stream or another, instead of the groups reserved
  /// before. No destination may be the same: receivers would get two pictures, and perhaps in the clear where that is
  /// not intended. Sounds at automatic ports give way.
  ///
  /// - Throws: ``StreamDestinationError/sharedGroup(_:)`` where there is such a destination; then nothing has changed.
  package func reserve(groups: [SocketAddress]) throws(StreamDestinationError) {
    try viewerList.withLock { list throws(StreamDestinationError) in
      let same = list.destinations.first { entry in
        entry.ways.contains { !$0.isAutomatic && groups.contains($0.address) }
      }
      if let same { throw .sharedGroup(same.destination.description) }
      yieldSounds(&list) { groups.contains($0.address) }
      list.sharedGroups = groups
      noteWatched(list)
    }
  }

  /// Returns a protected stream of a track by `key`. The stream begins with its first viewer, and is kept for the next
  /// one. Any thread may call it.
  package func reserve(_ key: SRTPKey, track: Int = 0) -> ProtectedStream {
    let protection = viewerList.withLock { $0.newProtection(by: key) }
    protection.progress.isHeld.store(true, ordering: .relaxed)
    return ProtectedStream(track: track, protection: protection)
  }

  /// Releases a reserved stream, at once or with its last viewer. No viewer may be admitted to the stream afterwards.
  package func release(_ stream: ProtectedStream) {
    stream.protection.progress.isHeld.store(false, ordering: .relaxed)
    track(stream.track).sendStage.release(stream.protection)
  }

  /// Requests a key frame on behalf of a viewer that has joined a group that gets the stream already. Such requests are
  /// granted together, at most one in 500 ms.
  package func requestKeyFrameForGuest() { sendStage.requestKeyFrame() }

  /// Returns one viewer's figures; nil where there is no such viewer.
  package func statistics(of id: ViewerID) -> DestinationStatistics? {
    statisticsRecorder.viewers.withLock { viewers in viewers.index(of: id).map { viewers.present[$0] } }?.current
  }
}

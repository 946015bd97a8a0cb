public import Media
import RTP
public import SRTP
import Synchronization

/// How the RTP packets of a viewer that came by itself, as by RTSP, get to it.
public enum GuestTransport: Sendable {
  /// By UDP from ``Pipeline/guestPorts(for:)``; RTCP to its own address, or to the same one where that is nil.
  case datagrams(to: SocketAddress, control: SocketAddress?, timeToLive: UInt8?)
  /// Within a byte stream that somebody else writes.
  case interleaved(InterleavedTransport)
}

extension Pipeline {
  /// The packet size that viewers get who came by themselves: H.264, as RTSP describes it.
  public static let guestPacketSize = StreamDestination.defaultMaximumPacketSize

  /// This side's UDP ports of RTP and RTCP for viewers at addresses of the family of `address`.
  ///
  /// - Throws: ``SystemFailure`` where the system has none left.
  public func guestPorts(for address: SocketAddress) throws(SystemFailure) -> (media: UInt16, control: UInt16) {
    let port = try viewerList.withLock { list throws(SystemFailure) in
      try localPorts(family: address.family, &list).port
    }
    return (port, port + 1)
  }

  /// Sends H.264 to a viewer that came by itself. Its first packet is that of a key frame: of a new one where the limit
  /// on requests allows it, else the last one, and what followed it, again. One that returns gets the new one, as soon as the limit
  /// allows. Any thread, at any time.
  ///
  /// - Parameters:
  ///   - name: Who it is, for a person.
  ///   - peer: How it is connected.
  ///   - stream: The protected stream that it gets; nil is the one in the clear.
  ///   - controlKey: What it protects RTCP by; nil is the stream's key.
  ///   - hasRetransmissionStream: Whether what it asks for again comes by a stream of its own (RFC 4588), of payload type
  ///     ``RTPPayloadType/retransmission``, instead of as it was. In the clear only.
  ///   - isReturning: Whether it may have got packets of the stream before. Then no sequence number comes to it twice: they go on
  ///     across a pause (RFC 2326 appendix B), and a receiver of SRTP refuses what comes again.
  ///   - onGoodbye: Is told once, on another thread, that the viewer has said BYE; it gets the stream until it is removed.
  ///   - onStart: Is told of the first packet, on another thread, just before it leaves.
  /// - Throws: ``StreamDestinationError`` where there are too many, or the system gives no socket.
  public func admit(
    _ transport: GuestTransport, name: String, peer: ViewerPeer? = nil, stream: ProtectedStream? = nil,
    controlKey: SRTPKey? = nil, hasRetransmissionStream: Bool = false, isReturning: Bool = false,
    onGoodbye: (@Sendable () -> Void)? = nil, onStart: @escaping @Sendable (StreamStart) -> Void
  ) throws(StreamDestinationError) -> ViewerID {
    try viewerList.withLock { list throws(StreamDestinationError) in
      guard list.count < Self.viewerLimit else { throw .tooMany(limit: Self.viewerLimit) }
      let way: any PacketTransport =
        switch transport {
        case .interleaved(let transport): transport
        case .datagrams(let address, let control, let timeToLive):
          try datagramTransport(to: address, control: control, timeToLive: timeToLive, name: name, &list)
        }
      let id = list.nextID()
      let kind = RTPOutput.Kind(
        payload: .h264, packetSize: Self.guestPacketSize, protection: stream?.protection)
      start(
        ViewerFigures(id: id, name: name, peer: peer), way, kind, controlKey: controlKey,
        hasRetransmissionStream: hasRetransmissionStream && stream == nil, isReturning: isReturning, onStart: onStart,
        onGoodbye: onGoodbye)
      list.guests.insert(id)
      return id
    }
  }

  /// Keeps `groups` for viewers who came by themselves, of this stream or another, instead of those kept before: no
  /// destination may be the same, or receivers would get two pictures, and in the clear perhaps where it is not meant to
  /// be.
  ///
  /// - Throws: ``StreamDestinationError/sharedGroup(_:)`` where there is such a destination; then nothing has changed.
  public func reserve(groups: [SocketAddress]) throws(StreamDestinationError) {
    try viewerList.withLock { list throws(StreamDestinationError) in
      if let same = list.destinations.first(where: { groups.contains($0.address) }) {
        throw .sharedGroup(same.destination.description)
      }
      list.sharedGroups = groups
    }
  }

  /// A protected stream by `key`, which begins with its first viewer and is kept for the next one. Any thread.
  public func reserve(_ key: SRTPKey) -> ProtectedStream {
    let protection = viewerList.withLock { $0.newProtection(by: key) }
    protection.progress.isHeld.store(true, ordering: .relaxed)
    return ProtectedStream(protection: protection)
  }

  /// Lets a stream go that was reserved, at once or with its last viewer; nobody may be admitted to it any more.
  public func release(_ stream: ProtectedStream) {
    stream.protection.progress.isHeld.store(false, ordering: .relaxed)
    sendStage.release(stream.protection)
  }

  /// Asks for a key frame on behalf of somebody who has joined a group that gets the stream already; such requests are
  /// granted together, at most one in 500 ms.
  public func requestKeyFrameForGuest() { sendStage.requestKeyFrame() }

  /// One viewer's figures; nil where there is no such one.
  public func statistics(of id: ViewerID) -> DestinationStatistics? {
    statisticsRecorder.viewers.withLock { $0.present.first { $0.id == id } }?.current
  }
}

import Platform
import RTP
import SRTP
import Streaming
import Synchronization
import WebRTC

/// One browser that gets the tracks of a pipeline.
final class PeerViewer: Sendable {
  let pipeline: Pipeline
  let camera: String
  let peer: ViewerPeer
  /// Returns `true` while the requester may watch.
  let isAllowed: @Sendable () -> Bool
  /// The session's name in its URL.
  let name: String
  /// The sources of the sent media, in the order of the negotiation.
  let sources: [SessionAnswer.Source]
  private let media: [Negotiation.Medium]
  /// The numbers of the media's tracks in the pipeline.
  private let tracks: [Int]
  private let state = Mutex(State())

  private struct State {
    var transports: [PeerTransport] = []
    var viewers: [ViewerID] = []
    var began: Instant?
    var isOver = false
  }

  /// Creates the viewer of an offer that is about to be answered.
  ///
  /// - Parameter pictures: the number of the track of the pictures.
  init(
    _ negotiation: Negotiation, pipeline: Pipeline, pictures: Int, camera: String, peer: ViewerPeer,
    isAllowed: @escaping @Sendable () -> Bool
  ) {
    (self.pipeline, self.camera, self.peer, self.isAllowed) = (pipeline, camera, peer, isAllowed)
    media = negotiation.sent
    tracks = media.map { $0.type == .video ? pictures : pipeline.tracks.count - 1 }
    var generator = SystemRandomNumberGenerator()
    name = (0..<2).map { _ in
      let digits = String(generator.next() as UInt64, radix: 16)
      return String(repeating: "0", count: 16 - digits.count) + digits
    }.joined()
    sources = zip(media, tracks).map { medium, track in
      SessionAnswer.Source(
        ssrc: pipeline.peerSource(ofTrack: track),
        retransmission: medium.retransmission.map { _ in UInt32.random(in: 1 ... .max, using: &generator) })
    }
  }

  /// Begins to send, unless the viewer has ended meanwhile: then nothing happens, and the result is `false`.
  ///
  /// - Throws: as ``Pipeline/admit(_:track:name:peer:client:stream:controlKey:hasRetransmissionStream:isReturning:onGoodbye:onStart:)``.
  func begin(_ keys: PeerKeys, _ way: PeerTransport.Way) throws -> Bool {
    try state.withLock { state in
      guard !state.isOver else { return false }
      state.began = .now()
      let client = pipeline.nextClient()
      for ((medium, source), track) in zip(zip(media, sources), tracks) {
        let types = PeerTransport.PayloadTypes(
          media: medium.codec.payloadType, retransmission: medium.retransmission,
          sendTime: medium.sendTimeExtension)
        let transport = try PeerTransport(types, key: keys.sending, way: way)
        let id = try pipeline.admit(
          .peer(transport, retransmissions: source.retransmission),
          track: track, name: "webrtc \(peer.place)", peer: peer, client: client, controlKey: keys.receiving,
          onStart: { _ in })
        state.transports.append(transport)
        state.viewers.append(id)
      }
      return true
    }
  }

  /// Sends on another way from here on.
  func move(to way: PeerTransport.Way) {
    state.withLock { state in
      for transport in state.transports { transport.move(to: way) }
    }
  }

  /// Passes SRTCP on. It may concern each of the tracks.
  func receive(control bytes: [UInt8]) {
    state.withLock { state in
      for transport in state.transports { transport.receive(control: bytes) }
    }
  }

  /// Ends the stream. Returns the time at which it began; `nil` if it never did.
  func end() -> Instant? {
    let (viewers, began) = state.withLock { state in
      state.isOver = true
      defer { (state.viewers, state.transports) = ([], []) }
      return (state.viewers, state.began)
    }
    for viewer in viewers { pipeline.remove(viewer, goodbye: false) }
    return began
  }
}

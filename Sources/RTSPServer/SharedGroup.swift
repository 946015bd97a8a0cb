import Media
import RTP
import RTSP
import Streaming

/// The multicast group that all share who ask for one: it gets the stream while there is one of them.
struct SharedGroup {
  private let group: ServerConfiguration.Group?
  private let pipeline: Pipeline
  /// The protected stream that it gets; nil is the one in the clear.
  private let stream: ProtectedStream?
  private var members = 0
  private var viewer: ViewerID?
  /// Whether it got the stream before: who pauses comes back to it.
  private var hasPlayed = false

  init(_ group: ServerConfiguration.Group?, _ pipeline: Pipeline, stream: ProtectedStream?) {
    self.group = group
    self.stream = stream
    self.pipeline = pipeline
  }

  /// What SETUP answers; nil where there is no group.
  var server: TransportAnswer.Server? {
    guard let group, let address = ConnectionAddress(group.address) else { return nil }
    return .multicast(address, PortPair(rtp: group.port, rtcp: group.port + 1), timeToLive: group.timeToLive)
  }

  /// One more has joined; the first one starts the stream, and each gets a key frame soon.
  mutating func join() throws {
    guard let group else { return }
    if viewer == nil {
      let address = try SocketAddress(host: group.address, port: group.port)
      let control = try SocketAddress(host: group.address, port: group.port + 1)
      viewer = try pipeline.admit(
        .datagrams(to: address, control: control, timeToLive: group.timeToLive),
        name: "\(stream == nil ? "rtsp" : "rtsp srtp") multicast \(group.address):\(group.port)",
        peer: ViewerPeer(
          .multicast, address: group.address, port: Int(group.port), isEncrypted: stream != nil), stream: stream,
        isReturning: hasPlayed
      ) { _ in }
      hasPlayed = true
    } else {
      pipeline.requestKeyFrameForGuest()
    }
    members += 1
  }

  /// One has left; the last one ends the stream.
  ///
  /// - Parameter isOver: whether all leave because the camera does. Otherwise there is no BYE: somebody may have set the
  ///   group up just now, and would take it for the end.
  mutating func leave(isOver: Bool) {
    members -= 1
    guard members == 0, let viewer else { return }
    pipeline.remove(viewer, goodbye: isOver)
    self.viewer = nil
  }
}

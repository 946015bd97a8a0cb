import RTP
import RTSP
import Streaming

/// The multicast group that all multicast viewers of a track share: it gets the track while it has a member. The tracks
/// have ports of their own, two for each.
struct SharedGroup {
  private let group: RTSPServerConfiguration.Group?
  private let pipeline: Pipeline
  private let track: Int
  /// The identity of the group's viewer, which all its tracks share.
  private let client: ViewerID
  /// The protected stream of the group; nil is the one in the clear.
  private let stream: ProtectedStream?
  private var members = 0
  private var viewer: ViewerID?
  /// `true` if the group had the stream before: a viewer that pauses returns to it.
  private var hasPlayed = false

  /// Creates a group without members: that of `track` at the ports that follow those of the tracks before it.
  init(
    _ group: RTSPServerConfiguration.Group?, _ pipeline: Pipeline, track: Int, client: ViewerID,
    stream: ProtectedStream?
  ) {
    self.group = group.map { $0.ofTrack(track) }
    self.track = track
    self.client = client
    self.stream = stream
    self.pipeline = pipeline
  }

  /// The server's transport in the answer to SETUP; nil if there is no group.
  var server: TransportAnswer.Server? {
    guard let group, let address = ConnectionAddress(group.address) else { return nil }
    return .multicast(address, PortPair(rtp: group.port, rtcp: group.port + 1), timeToLive: group.timeToLive)
  }

  /// Adds a member; the first one starts the stream, and each gets a key frame soon.
  ///
  /// - Throws: the error of an address or of the pipeline.
  mutating func join() throws {
    guard let group else { return }
    if viewer == nil {
      let address = try SocketAddress(host: group.address, port: group.port)
      let control = try SocketAddress(host: group.address, port: group.port + 1)
      viewer = try pipeline.admit(
        .datagrams(to: address, control: control, timeToLive: group.timeToLive), track: track,
        name: "\(stream == nil ? "rtsp" : "rtsp srtp") multicast \(group.address):\(group.port)",
        peer: ViewerPeer(
          .multicast, address: group.address, port: Int(group.port), isEncrypted: stream != nil), client: client,
        stream: stream, isReturning: hasPlayed
      ) { _ in }
      hasPlayed = true
    } else {
      pipeline.requestKeyFrameForGuest()
    }
    members += 1
  }

  /// Removes a member; the last one ends the stream.
  ///
  /// - Parameter isOver: `true` if all leave because the camera's stream ends. Otherwise there is no BYE: a client that
  ///   has just set the group up would take it for the end.
  mutating func leave(isOver: Bool) {
    members -= 1
    guard members == 0, let viewer else { return }
    pipeline.remove(viewer, goodbye: isOver)
    self.viewer = nil
  }
}

extension RTSPServerConfiguration.Group {
  /// Returns the group of one track: RTP and RTCP have a port each, track after track.
  func ofTrack(_ track: Int) -> Self {
    var group = self
    group.port &+= UInt16(2 * track)
    return group
  }
}

package import Platform
package import RTP
package import SRTP
import Synchronization

/// The statistics of one destination, or of a viewer with all its tracks.
package struct DestinationStatistics: Sendable {
  /// The destination's identity in the pipeline.
  package private(set) var id: ViewerID
  /// The identity that all tracks of a viewer share.
  package let client: ViewerID
  /// The destination's name, for a person: its URL, or the transport and address of an RTSP viewer.
  package let name: String
  /// The destination's connection; nil where it is unknown.
  package let peer: ViewerPeer?
  /// The track that the destination gets; the first one of a viewer with several tracks.
  package let track: Int
  /// `true` if the viewer joined on its own, as by RTSP.
  package let isGuest: Bool
  /// `true` if the destination gets H.264 because it cannot decode the stream's own codec.
  package internal(set) var getsH264 = false
  /// The media that the destination gets.
  package var media: StreamMedia = .picture
  /// Frames of which all packets were sent, or were lost one by one.
  package var frames = 0
  /// Frames that the destination lost, whole or in part: because it was too slow for them, because they followed one
  /// that it had lost, because they came in neither size while its size changed, or because there was no route.
  package var framesDropped = 0
  /// `true` if the destination is losing frames because it takes them too slowly.
  package var isSlow = false
  /// The bits a second that its network takes, headers included; nil where that is as much as the stream has, or no
  /// limit has shown.
  package var bandwidth: Int?
  /// The time that packets last waited on the network; nil where that is not known.
  package var queueing: Duration?
  /// The number of times that it lost pictures because its network took less than the least bitrate.
  package var pauses = 0
  /// The lesser of width and height of the small pictures that it gets because its network is weak; nil where it gets the full
  /// ones.
  package var smallHeight: Int?
  /// The number of changes from full pictures to small ones, and back.
  package var renditionChanges = 0
  /// The number of times that it waited in vain for a small key frame, and went on with full pictures.
  package var smallMissed = 0
  /// The number of times that its circuit breaker has stopped it, by cause.
  package var stops = CircuitBreaker.Counts()
  /// The cause for which its circuit breaker has stopped it; nil where it has not.
  package var stopped: CircuitBreaker.Cause?
  /// Packets that the kernel took.
  package var packets = 0
  /// Their bytes, RTP headers included, without UDP and IP.
  package var bytes = 0
  /// Packets that the kernel did not take.
  package var lost = 0
  /// The `errno` with which the last access unit was refused; 0 where it was not.
  package var errorNumber: CInt = 0
  /// The reception that the destination last reported by RTCP.
  package var reception = ReportedReception()
  /// The time of the last RTCP from the destination; nil before the first.
  package var lastHeard: Instant?
  /// The requests of the destination by RTCP.
  package var feedback = ViewerFeedback.Counts()
  /// `true` if its packets are protected.
  package var isProtected: Bool { progress != nil }
  /// The number of times that the sequence number of a protected stream has wrapped. A receiver that joins late must
  /// know it. Nil for a stream in the clear.
  package var rolloverCounter: UInt32? { progress?.rolloverCounter.load(ordering: .relaxed) }
  /// The progress of the protected stream.
  var progress: StreamProgress?
  /// SRTCP that was not taken; nothing where the stream is not protected.
  package var refused = ControlUnprotector.Counts()

  /// The media that were refused, where there are several tracks.
  private var refusedMedia: StreamMedia?

  package init(
    id: ViewerID, name: String, peer: ViewerPeer? = nil, track: Int = 0, client: ViewerID? = nil, isGuest: Bool = false
  ) {
    self.id = id
    self.name = name
    self.peer = peer
    self.track = track
    self.client = client ?? id
    self.isGuest = isGuest
  }

  /// The media whose last access unit was refused; see ``errorNumber``.
  package var unreached: StreamMedia { refusedMedia ?? (errorNumber == 0 ? [] : media) }

  /// Returns the viewers whose tracks `destinations` are, in the order in which the viewers came.
  package static func viewers(of destinations: [DestinationStatistics]) -> [DestinationStatistics] {
    if destinations.allSatisfy({ $0.client == $0.id }) { return destinations }
    var viewers: [DestinationStatistics] = []
    var places: [ViewerID: Int] = [:]
    for destination in destinations {
      if let place = places[destination.client] {
        viewers[place].add(track: destination)
      } else {
        places[destination.client] = viewers.count
        viewers.append(destination)
      }
    }
    for index in viewers.indices { viewers[index].id = viewers[index].client }
    return viewers
  }

  /// Adds the figures of another track of the same viewer: the sums of what is counted, and the worse of each condition.
  private mutating func add(track other: DestinationStatistics) {
    // The viewer has the name of its first track.
    guard track <= other.track else {
      let own = self
      self = other
      return add(track: own)
    }
    refusedMedia = unreached.union(other.unreached)
    media.formUnion(other.media)
    getsH264 = getsH264 || other.getsH264
    frames += other.frames
    framesDropped += other.framesDropped
    isSlow = isSlow || other.isSlow
    bandwidth = bandwidth ?? other.bandwidth
    queueing = queueing ?? other.queueing
    pauses += other.pauses
    smallHeight = smallHeight ?? other.smallHeight
    renditionChanges += other.renditionChanges
    smallMissed += other.smallMissed
    stops = stops + other.stops
    stopped = stopped ?? other.stopped
    packets += other.packets
    bytes += other.bytes
    lost += other.lost
    if errorNumber == 0 { errorNumber = other.errorNumber }
    reception.add(other.reception)
    if let heard = other.lastHeard { lastHeard = max(lastHeard ?? heard, heard) }
    feedback = feedback + other.feedback
    refused = refused + other.refused
  }
}

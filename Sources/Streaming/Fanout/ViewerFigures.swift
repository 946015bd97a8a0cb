import RTP
import Synchronization

/// The first packet that a viewer gets (RTSP's RTP-Info, RFC 2326 section 12.33).
package struct StreamStart: Hashable, Sendable {
  /// The packet's sequence number.
  package let sequenceNumber: UInt16
  /// The packet's timestamp.
  package let timestamp: UInt32
  /// The stream's source.
  package let ssrc: UInt32

  init?(_ header: UnsafeRawBufferPointer) {
    guard let header = try? RTPPacket(parsing: header).header else { return nil }
    (sequenceNumber, timestamp, ssrc) = (header.sequenceNumber, header.timestamp, header.ssrc)
  }
}

/// The identity of a viewer in its pipeline.
package struct ViewerID: Hashable, Sendable {
  package let number: UInt64

  /// Creates an identity.
  package init(number: UInt64) {
    self.number = number
  }
}

/// One viewer's figures: written by the send thread, read by any.
package final class ViewerFigures: Sendable {
  let id: ViewerID
  private let value: Mutex<DestinationStatistics>

  /// - Parameter client: the identity that all tracks of a viewer share; nil where the viewer gets no other track.
  package init(
    id: ViewerID, name: String, peer: ViewerPeer? = nil, track: Int = 0, client: ViewerID? = nil, isGuest: Bool = false
  ) {
    self.id = id
    value = Mutex(
      DestinationStatistics(id: id, name: name, peer: peer, track: track, client: client, isGuest: isGuest))
  }

  func update(_ body: (inout DestinationStatistics) -> Void) {
    value.withLock { body(&$0) }
  }

  /// The present figures.
  package var current: DestinationStatistics { value.withLock { $0 } }
}

extension DestinationStatistics {
  /// Adds what was sent.
  mutating func count(_ progress: SendProgress) {
    packets += progress.packets
    bytes += progress.bytes
    lost += progress.lost
    // Waiting for room is no refusal.
    errorNumber = progress.end == .full || progress.end == .busy ? 0 : progress.errorNumber
  }
}

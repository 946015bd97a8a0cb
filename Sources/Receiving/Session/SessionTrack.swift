import Platform
import RTP
import RTSP

/// One track of a session: its reception, and its sockets or channels.
final class SessionTrack {
  /// The reception.
  let reception: TrackReception
  /// The sockets of UDP; nil where packets come over the RTSP connection.
  let sockets: DatagramPair?
  /// The channels of the RTSP connection; nil for UDP.
  let channels: ChannelPair?

  init(_ reception: TrackReception, sockets: DatagramPair?, channels: ChannelPair? = nil) {
    (self.reception, self.sockets, self.channels) = (reception, sockets, channels)
  }

  /// Takes the datagrams that have come.
  func receiveDatagrams(into memory: UnsafeMutableRawBufferPointer) {
    sockets?.receive(into: memory) { bytes, isControl in
      guard !isControl else {
        reception.receiveControl(bytes, at: .now())
        return false
      }
      let former = reception.lastPacket
      reception.receive(bytes, at: .now())
      return reception.lastPacket != former
    }
  }

  /// Takes a packet of the RTSP connection, if it is of this track.
  func take(_ packet: UnsafeRawBufferPointer, on channel: UInt8) {
    guard let channels else { return }
    if channel == channels.rtp { return reception.receive(packet, at: .now()) }
    if channel == channels.rtcp { reception.receiveControl(packet, at: .now()) }
  }

  /// Adds the sockets to what the thread waits for.
  func add(to wait: inout SessionWait) {
    guard let sockets else { return }
    _ = wait.add(sockets.descriptors.media)
    _ = wait.add(sockets.descriptors.control)
  }
}

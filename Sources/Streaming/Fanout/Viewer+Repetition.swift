package import Platform
import RTP

extension Viewer {
  /// Sends one packet that others have got before. Returns `false` if there is no room, and then a key frame must come.
  package func sendAgain(_ packet: UnsafeRawBufferPointer, at now: Instant) -> Bool {
    guard !isStopped else {
      fallBehind()
      return false
    }
    let isSent = transport.send(header: packet, payload: UnsafeRawBufferPointer(rebasing: packet[packet.count...]))
    if isSent {
      packetsSent += 1
      noteLeft(packet, at: now)
    } else {
      fallBehind()
    }
    figures.update {
      if isSent {
        $0.packets += 1
        $0.bytes += packet.count
      } else {
        $0.lost += 1
      }
    }
    return isSent
  }

  /// Sends a packet again that the viewer has requested, its two parts one after the other. It counts for the path as any
  /// other does. Returns `false` if it found no room.
  package func repeatPacket(header: UnsafeRawBufferPointer, payload: UnsafeRawBufferPointer) -> Bool {
    guard transport.send(header: header, payload: payload) else { return false }
    bandwidth?.noteRepeated(bytes: header.count + payload.count)
    return true
  }

  /// Returns `true` if a packet may be sent to the viewer again. A packet that was left out is not sent after all, and
  /// no packet is sent while there is no room. A slow viewer requests all that it has missed, and the repetition would
  /// hold it up for ever.
  package func takesAgain(_ sequenceNumber: UInt16) -> Bool {
    guard !isBlocked || step == .spread, !awaitsKeyFrame, !isStopped else { return false }
    // After so many, a packet from before the first one is no longer kept, and its number is another packet's.
    return packetsSinceFirst >= Self.numberSpan || sequenceNumber &- firstSequenceNumber < UInt16(Self.numberSpan)
  }

  /// Sends packets that belong to no frame, such as a transport stream's clock. They are lost where there is no room.
  package func sendAside(_ packets: OutgoingFrame, at now: Instant) {
    guard !isBlocked, !isUnreachable, !isCatchingUp, !isStopped else { return }
    var progress = transport.send(packets, 0..<packets.count)
    progress.lost += packets.count - progress.next
    packetsSent += progress.packets
    count(progress, at: now)
    noteLeft(progress, of: packets, at: now)
  }
}

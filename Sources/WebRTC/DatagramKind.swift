/// The protocol of a datagram on the one port of all peers, by its first byte (RFC 7983 section 7).
package enum DatagramKind: Hashable, Sendable {
  /// STUN, RFC 8489.
  case stun
  /// DTLS, RFC 6347.
  case dtls
  /// RTP or SRTP.
  case rtp
  /// RTCP or SRTCP, which shares RTP's port (RFC 5761 section 4).
  case rtcp
  /// Anything else: ZRTP, TURN channels, noise.
  case other

  /// Classifies `datagram`.
  package init(_ datagram: UnsafeRawBufferPointer) {
    guard let first = datagram.first else {
      self = .other
      return
    }
    switch first {
    case 0...3: self = .stun
    case 20...63: self = .dtls
    case 128...191:
      // The packet types 192 to 223 are RTCP's, so that the payload types 64 to 95 are not RTP's on such a port.
      guard datagram.count >= 4 else {
        self = .other
        return
      }
      self = (192...223).contains(datagram[1]) ? .rtcp : .rtp
    default: self = .other
    }
  }
}

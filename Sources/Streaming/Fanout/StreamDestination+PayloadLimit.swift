import RTP
import SRTP

extension StreamDestination {
  /// Returns the most bytes of a NAL unit that goes as one RTP packet to each destination of H.264 or HEVC among `destinations`, and
  /// to viewers by RTSP, whatever protects their packets.
  package static func payloadLimit(of destinations: [StreamDestination]) -> Int {
    let overhead = SRTPSuite.allCases.map(\.packetOverhead).max() ?? 0
    let packet = destinations.filter { $0.payload.format.takesParts }.reduce(Pipeline.guestPacketSize - overhead) {
      min($0, $1.maximumPacketSize - ($1.protection?.overhead ?? 0))
    }
    return packet - RTPHeader.byteCount
  }
}

import RTP
import SRTP

extension StreamDestination {
  /// The most bytes of a NAL unit that goes as one RTP packet to each of `destinations`, as far as they get H.264, and to
  /// viewers by RTSP, however their packets are protected.
  public static func payloadLimit(of destinations: [StreamDestination]) -> Int {
    let overhead = SRTPSuite.allCases.map(\.packetOverhead).max() ?? 0
    let packet = destinations.filter { $0.payload == .h264 }.reduce(Pipeline.guestPacketSize - overhead) {
      min($0, $1.maximumPacketSize - ($1.protection?.overhead ?? 0))
    }
    return packet - RTPHeader.byteCount
  }
}

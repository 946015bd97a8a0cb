import RTP

/// A depacketizer of HEVC and everything that it said.
struct HEVCReceiver: ~Copyable {
  var depacketizer: HEVCDepacketizer
  var units: [Delivered] = []
  var keyFrames: [Bool] = []
  var errors: [HEVCDepacketizerError] = []

  init(limits: HEVCDepacketizer.Limits = .init()) {
    depacketizer = HEVCDepacketizer(limits: limits)
  }

  mutating func take(_ packets: [[UInt8]]) {
    for packet in packets {
      var delivered: [Delivered] = []
      var isKeyFrame: [Bool] = []
      packet.withUnsafeBytes { bytes in
        do throws(HEVCDepacketizerError) {
          try depacketizer.receive(bytes) {
            delivered.append(Delivered($0))
            isKeyFrame.append($0.isKeyFrame)
          }
        } catch {
          errors.append(error)
        }
      }
      units += delivered
      keyFrames += isKeyFrame
    }
  }

  mutating func finish() {
    var delivered: [Delivered] = []
    depacketizer.finish { delivered.append(Delivered($0)) }
    units += delivered
  }
}

/// An RTP packet with HEVC in it, for what no packetizer would make.
func hevcPacket(
  _ sequenceNumber: UInt16, timestamp: UInt32 = 0, marker: Bool = false, _ payload: [UInt8]
) -> [UInt8] {
  var bytes = packet(sequenceNumber, timestamp: timestamp, marker: marker, payload)
  bytes[1] = bytes[1] & 0x80 | RTPPayloadType.hevc.rawValue
  return bytes
}

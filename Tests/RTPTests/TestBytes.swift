import Media
import Platform
import RTP
import TestSupport

/// The bytes of hexadecimal digits; everything else between them is for the reader.
func hex(_ text: String) -> [UInt8] {
  let digits = text.compactMap { $0.hexDigitValue }
  precondition(digits.count.isMultiple(of: 2), "half a byte")
  return stride(from: 0, to: digits.count, by: 2).map { UInt8(digits[$0] << 4 | digits[$0 + 1]) }
}

/// Lends an access unit of `nalUnits` to `body`.
func withAccessUnit<Result>(
  _ nalUnits: [[UInt8]], isKeyFrame: Bool = false, at nanoseconds: Int64 = 0,
  _ body: (borrowing AccessUnit) -> Result
) -> Result {
  withNALUnits(nalUnits) { units in
    let time = Instant(nanoseconds: nanoseconds)
    return body(AccessUnit(nalUnits: units, isKeyFrame: isKeyFrame, timestamp: time, captured: time))
  }
}

extension PacketBatch {
  /// Copies of the packets, both parts joined.
  var packets: [[UInt8]] {
    (0..<count).map { Array(self[$0].header) + Array(self[$0].payload) }
  }
}

/// A copy of what a depacketizer delivered.
struct Delivered: Equatable, CustomStringConvertible {
  var nalUnits: [[UInt8]]
  var timestamp: UInt32
  var isDamaged = false

  init(_ nalUnits: [[UInt8]], timestamp: UInt32, isDamaged: Bool = false) {
    self.nalUnits = nalUnits
    self.timestamp = timestamp
    self.isDamaged = isDamaged
  }

  init(_ unit: borrowing ReceivedAccessUnit) {
    nalUnits = (0..<unit.count).map { Array(unit[$0]) }
    timestamp = unit.timestamp
    isDamaged = unit.isDamaged
  }

  var description: String {
    "\(nalUnits.map { "\($0.count) bytes of type \($0[0] & 31)" }) at \(timestamp)\(isDamaged ? ", damaged" : "")"
  }
}

/// A depacketizer and everything that it said.
struct Receiver: ~Copyable {
  var depacketizer: H264Depacketizer
  var units: [Delivered] = []
  var errors: [H264DepacketizerError] = []

  init(limits: H264Depacketizer.Limits = .init()) {
    depacketizer = H264Depacketizer(limits: limits)
  }

  mutating func take(_ packets: [[UInt8]]) {
    for packet in packets {
      var delivered: [Delivered] = []
      packet.withUnsafeBytes { bytes in
        do throws(H264DepacketizerError) {
          try depacketizer.receive(bytes) { delivered.append(Delivered($0)) }
        } catch {
          errors.append(error)
        }
      }
      units += delivered
    }
  }

  mutating func finish() {
    var delivered: [Delivered] = []
    depacketizer.finish { delivered.append(Delivered($0)) }
    units += delivered
  }
}

/// An RTP packet with H.264 in it, for what no packetizer would make.
func packet(
  _ sequenceNumber: UInt16, timestamp: UInt32 = 0, marker: Bool = false, ssrc: UInt32 = 1, _ payload: [UInt8]
) -> [UInt8] {
  [
    0x80, marker ? 0xe0 : 0x60, UInt8(sequenceNumber >> 8), UInt8(sequenceNumber & 0xff),
    UInt8(timestamp >> 24), UInt8(timestamp >> 16 & 0xff), UInt8(timestamp >> 8 & 0xff), UInt8(timestamp & 0xff),
    UInt8(ssrc >> 24), UInt8(ssrc >> 16 & 0xff), UInt8(ssrc >> 8 & 0xff), UInt8(ssrc & 0xff),
  ] + payload
}

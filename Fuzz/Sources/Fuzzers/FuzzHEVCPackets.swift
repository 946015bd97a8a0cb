import Media
import Platform
import RTP

/// Any bytes as payloads of RTP packets with HEVC, each behind its length: nothing traps, memory is bounded, and whole units
/// are packetized and received again.
enum FuzzHEVCPackets {
  private static let limits = AccessUnitLimits(nalBytes: 1024, nalUnits: 8, unitBytes: 2048)

  static func take(_ input: UnsafeRawBufferPointer) {
    var depacketizer = HEVCDepacketizer(limits: limits)
    var rest = input[...]
    var (sequenceNumber, timestamp): (UInt16, UInt32) = (0xfff0, 0)
    var units: [[[UInt8]]] = []
    while let control = rest.popFirst(), let length = rest.popFirst() {
      let payload = rest.prefix(Int(length))
      rest = rest.dropFirst(payload.count)
      // The two highest bits say what happens to the packet; the next one is the marker.
      sequenceNumber &+= control & 0xc0 == 0xc0 ? 2 : 1
      if control & 0x10 != 0 { timestamp &+= 3000 }
      let marker: UInt8 = control & 0x20 != 0 ? 0x80 : 0
      let packet: [UInt8] =
        [0x80, marker | RTPPayloadType.hevc.rawValue, UInt8(sequenceNumber >> 8), UInt8(sequenceNumber & 0xff)]
        + (0..<4).map { UInt8(truncatingIfNeeded: timestamp >> UInt32(24 - 8 * $0)) } + [0, 0, 0, 7] + Array(payload)
      packet.withUnsafeBytes { bytes in
        do throws(HEVCDepacketizerError) {
          try depacketizer.receive(bytes) { units.append(check($0)) }
        } catch {
          precondition(!error.description.isEmpty)
        }
      }
      precondition(depacketizer.memoryBytes < 32_768, "memory beyond the limits")
    }
    depacketizer.finish { units.append(check($0)) }
    for unit in units { repeatPackets(of: unit, size: 128 + input.count % 256) }
  }

  /// Checks a unit, and returns its NAL units.
  private static func check(_ unit: borrowing ReceivedAccessUnit) -> [[UInt8]] {
    precondition(unit.count <= limits.nalUnits && unit.annexB.count <= limits.unitBytes)
    return (0..<unit.count).map { index in
      let bytes = Array(unit[index])
      precondition(bytes.count >= 2 && bytes.count <= limits.nalBytes && bytes[0] & 0x81 == 0 && bytes[1] & 0xf8 == 0)
      return bytes
    }
  }

  /// Sends a unit in packets of this size, and receives it again.
  private static func repeatPackets(of nalUnits: [[UInt8]], size: Int) {
    guard var packetizer = try? HEVCPacketizer(maximumPacketSize: size) else { fatalError("no packetizer") }
    let memory = nalUnits.flatMap(\.self)
    let batch = PacketBatch(packets: 16)
    var found: [[UInt8]] = []
    memory.withUnsafeBytes { bytes in
      var (start, units): (Int, [NALUnit]) = (0, [])
      for unit in nalUnits {
        if let unit = NALUnit(UnsafeRawBufferPointer(rebasing: bytes[start..<start + unit.count])) {
          units.append(unit)
        }
        start += unit.count
      }
      units.withUnsafeBufferPointer { units in
        packetizer.packetize(
          AccessUnit(nalUnits: units, isKeyFrame: false, timestamp: .zero, captured: .zero), into: batch)
      }
      var depacketizer = HEVCDepacketizer(limits: limits)
      for index in 0..<batch.count {
        let packet = Array(batch[index].header) + Array(batch[index].payload)
        packet.withUnsafeBytes { packet in
          do throws(HEVCDepacketizerError) {
            try depacketizer.receive(packet) { unit in
              precondition(!unit.isDamaged)
              found = (0..<unit.count).map { Array(unit[$0]) }
            }
          } catch {
            fatalError("our own packet is refused: \(error)")
          }
        }
      }
    }
    precondition(found == nalUnits.filter { $0[0] >> 1 != 35 }, "the unit came out otherwise")
  }
}

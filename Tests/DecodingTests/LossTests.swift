import Adaptors
import Decoding
import Media
import Platform
import RTP
import TestSupport
import Testing

/// A stream whose packets get lost, from the packetizer to the decoder.
@Suite struct LossTests {
  private static let size = PictureSize(width: 320, height: 192)

  @Test(arguments: [1, 2, 3] as [UInt64])
  func `with every twentieth packet lost, no damaged picture is shown as good`(seed: UInt64) throws {
    let clip = try ClipStream(
      size: Self.size, frames: 150, ["-tune", "zerolatency", "-x264-params", "keyint=10:slices=2:bitrate=700"])
    let units = accessUnits(of: clip.stream)
    let bytes = Self.size.pixels * 3 / 2
    var packetizer = try H264Packetizer(
      stream: RTPStream(payloadType: .h264, ssrc: 7, firstSequenceNumber: 0xfff0, timestampOffset: 0))
    let receiver = try RTPReceiver(.init(retransmission: .reorderOnly), at: .zero)
    let decoder = try VideoDecoder(configuration: .init(acceleration: .software))
    let batch = PacketBatch()
    var random = SeededGenerator(seed: seed)
    var (shown, lost, damaged) = (0, 0, 0)
    var wrong: [Int] = []

    func take(_ unit: borrowing ReceivedAccessUnit) {
      if unit.isDamaged { damaged += 1 }
      let number = Int((Int64(unit.timestamp) * 1000 / 90_000 + 20) / 40)
      let picture = EncodedPicture(
        annexB: Array(unit.annexB), timestamp: Instant(nanoseconds: Int64(number)), isDamaged: unit.isDamaged)
      for decoded in (try? decoder.decode(picture)) ?? [] {
        shown += 1
        let number = Int(decoded.timestamp.nanoseconds)
        if !clip.pictures[(number * bytes)..<(number + 1) * bytes].elementsEqual(decoded.bytes) { wrong.append(number) }
      }
    }

    for (index, unit) in units.enumerated() {
      let time = Instant.zero + Duration.milliseconds(Int64(index * 40))
      batch.removeAll()
      // The batch lends the payloads of the access unit, which are copied here.
      let packets = withNALUnits(nalUnits(unit.annexB)) { units in
        packetizer.packetize(
          AccessUnit(nalUnits: units, isKeyFrame: unit.isKeyFrame, timestamp: time, captured: time), into: batch)
        return (0..<batch.count).map { Array(batch[$0].header) + Array(batch[$0].payload) }
      }
      for packet in packets {
        guard Double.random(in: 0..<1, using: &random) >= 0.05 else {
          lost += 1
          continue
        }
        try packet.withUnsafeBytes { try receiver.receive($0, at: time) { take($0) } }
      }
      receiver.poll(at: time + .milliseconds(35)) { take($0) }
    }
    receiver.finish { take($0) }
    #expect(lost > 10 && damaged > 10)
    #expect(shown > 20 && shown < 150)
    #expect(wrong.isEmpty, "\(wrong)")
  }
}

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
  private static let frames = 150

  /// A network that loses every twentieth packet in both directions, and the decoder behind it.
  private final class LossyPath {
    private(set) var (shown, sent, lost, damaged, again) = (0, 0, 0, 0, 0)
    private(set) var wrong: [Int] = []
    private var packetizer: H264Packetizer
    let receiver: RTPReceiver
    private let viewer: ViewerFeedback
    private var history = PacketHistory(packets: 2048, bytes: 4 << 20)
    private let decoder: VideoDecoder
    private let pictures: [UInt8]
    private let batch = PacketBatch()
    private var random: SeededGenerator
    private let memory = UnsafeMutableRawBufferPointer.allocate(byteCount: RTPReceiver.feedbackRoom, alignment: 8)

    /// - Parameter asks: `true` if the receiver asks for lost packets, and gets them in a stream of their own (RTX).
    init(_ pictures: [UInt8], asks: Bool, seed: UInt64) throws {
      packetizer = try H264Packetizer(
        stream: RTPStream(payloadType: .h264, ssrc: 7, firstSequenceNumber: 0xfff0, timestampOffset: 0))
      let type = try #require(RTPPayloadType(rawValue: 97))
      receiver = try RTPReceiver(
        .init(
          ssrc: 5, retransmissionPayloadType: asks ? type : nil, retransmission: asks ? .init() : .reorderOnly,
          seed: seed),
        at: .zero)
      viewer = ViewerFeedback(
        media: 7,
        retransmissions: RetransmissionStream(
          RTPStream(payloadType: type, ssrc: 8, firstSequenceNumber: 0, timestampOffset: 0)))
      decoder = try VideoDecoder(configuration: .init(acceleration: .software, threads: 2))
      random = SeededGenerator(seed: seed)
      self.pictures = pictures
    }

    deinit { memory.deallocate() }

    /// Sends a picture, and lets 40 ms pass.
    func send(_ unit: EncodedPicture, number: Int) {
      let begin = Instant.zero + Duration.milliseconds(Int64(number * 40))
      batch.removeAll()
      // The batch lends the payloads of the access unit, which are copied here.
      let packets = withNALUnits(nalUnits(unit.annexB)) { units in
        packetizer.packetize(
          AccessUnit(nalUnits: units, isKeyFrame: unit.isKeyFrame, timestamp: begin, captured: begin), into: batch)
        return (0..<batch.count).map { index in
          history.append(batch[index], at: begin)
          return Array(batch[index].header) + Array(batch[index].payload)
        }
      }
      sent += packets.count
      for packet in packets { if !pass(packet, at: begin) { lost += 1 } }
      for step in 1...40 {
        let time = begin + .milliseconds(Int64(step))
        receiver.poll(at: time) { take($0) }
        while case let count = receiver.writeFeedback(into: memory, at: time), count > 0 {
          guard Double.random(in: 0..<1, using: &random) >= 0.05 else { continue }
          var answers: [[UInt8]] = []
          _ = try? viewer.receive(
            UnsafeRawBufferPointer(rebasing: memory[..<count]), at: time,
            ntp: NTPTimestamp(rawValue: 0) + (time - .zero), history: history
          ) {
            answers.append(Array($0) + Array($1))
            return true
          }
          again += answers.count
          for packet in answers { pass(packet, at: time) }
        }
      }
    }

    @discardableResult
    private func pass(_ packet: [UInt8], at time: Instant) -> Bool {
      guard Double.random(in: 0..<1, using: &random) >= 0.05 else { return false }
      packet.withUnsafeBytes { try? receiver.receive($0, at: time) { take($0) } }
      return true
    }

    func finish() { receiver.finish { take($0) } }

    private func take(_ unit: borrowing ReceivedAccessUnit) {
      if unit.isDamaged { damaged += 1 }
      let number = Int((Int64(unit.timestamp) * 1000 / 90_000 + 20) / 40)
      let picture = EncodedPicture(
        annexB: Array(unit.annexB), timestamp: Instant(nanoseconds: Int64(number)), isDamaged: unit.isDamaged)
      for decoded in (try? decoder.decode(picture)) ?? [] {
        shown += 1
        let number = Int(decoded.timestamp.nanoseconds)
        let bytes = LossTests.size.pixels * 3 / 2
        if !pictures[(number * bytes)..<(number + 1) * bytes].elementsEqual(decoded.bytes) { wrong.append(number) }
      }
    }
  }

  @Test(arguments: [1, 2, 3] as [UInt64], [false, true])
  func `with every twentieth packet lost, no damaged picture is shown as good`(seed: UInt64, asks: Bool) throws {
    let clip = try ClipStream(
      size: Self.size, frames: Self.frames,
      ["-tune", "zerolatency", "-x264-params", "keyint=10:slices=2:sliced-threads=0:threads=1:bitrate=700"])
    let path = try LossyPath(clip.pictures, asks: asks, seed: seed)
    for (index, unit) in accessUnits(of: clip.stream).enumerated() { path.send(unit, number: index) }
    path.finish()
    #expect(path.lost > 10 && path.lost < path.sent / 5)
    #expect(path.wrong.isEmpty, "\(path.wrong)")
    if asks {
      // Nearly all of them come after all.
      #expect(path.again > 10 && path.receiver.counts.packetsRecovered > 10)
      #expect(path.shown > Self.frames * 8 / 10 && path.shown <= Self.frames, "\(path.shown)")
    } else {
      #expect(path.again == 0 && path.damaged > 10)
      #expect(path.shown > 20 && path.shown < Self.frames, "\(path.shown)")
    }
  }
}

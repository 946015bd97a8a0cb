import Encoding
import Media
import Platform
import RTP
import Streaming
import Testing

/// A send stage that runs, and the encoder's side of its queue.
final class SendStageBench: @unchecked Sendable {
  // Sendable: a stage's thread uses the stage alone.
  let pictures: CodedPictureQueue
  let stage: SendStage
  let statistics = StatisticsRecorder(encoderName: "none", started: .now())
  let requests = EncoderRequests()
  private let packetSize: Int
  private var thread: NamedThread?
  private var count: Int64 = 0

  /// - Parameter packetSize: the maximum size of the viewers' packets.
  init(heldLimit: Int, pacing: Double = 0, packetSize: Int) throws {
    self.packetSize = packetSize
    pictures = try CodedPictureQueue(capacity: 1 << 20, held: heldLimit)
    let sets = try #require(ParameterSets(sequence: [0x67, 66, 0xc0, 30, 1], picture: [0x68, 1]))
    let track = TrackFormat(
      payload: .h264, bitrate: 100_000, interval: FrameRate.thirty.interval, unitBytes: 1 << 20, parameterSets: sets)
    stage = try SendStage(
      pictures: pictures, heldLimit: heldLimit, track: track, pacing: pacing, canonicalName: "someone",
      requests: requests, statistics: statistics)
    thread = try NamedThread("stage") { [stage] in stage.run() }
  }

  deinit { end() }

  /// The timestamp of the next picture.
  func nextTime() -> Instant {
    count += 1
    return Instant.zero + .milliseconds(count * 33)
  }

  func add(_ transport: any PacketTransport, number: UInt64, payload: StreamPayload = .h264) -> ViewerFigures {
    let figures = ViewerFigures(id: ViewerID(number: number), name: "viewer \(number)")
    let kind = RTPOutput.Kind(payload: payload, packetSize: packetSize)
    stage.add(SendStage.JoiningViewer(transport: transport, figures: figures, kind: kind))
    return figures
  }

  func end() {
    pictures.close()
    thread = nil
  }
}

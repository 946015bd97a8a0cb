import Control
import Encoding
import Media
import Streaming

/// The stream that runs, as the control socket sees it.
final class StreamControl: ControlTarget {
  private let pipeline: Pipeline
  private let sourceName: String
  private let fixesQuality: Bool

  /// - Parameter fixesQuality: whether the quantizer is fixed, so that there is no bitrate to speak of.
  init(_ pipeline: Pipeline, sourceName: String, fixesQuality: Bool) {
    self.pipeline = pipeline
    self.sourceName = sourceName
    self.fixesQuality = fixesQuality
  }

  func status() -> StreamStatus {
    let statistics = pipeline.statistics
    let format = pipeline.sourceFormat
    let orientation = pipeline.orientation
    let size = orientation.size(of: format.size)
    return StreamStatus(
      source: StreamStatus.Source(
        name: sourceName, width: format.size.width, height: format.size.height, fps: format.frameRate.framesPerSecond),
      orientation: StreamStatus.Laid(
        degrees: orientation.rotation.degrees, mirrored: orientation.isMirrored, width: size.width, height: size.height,
        switches: statistics.encoder.switches),
      encoder: StreamStatus.Encoder(
        name: statistics.encoderName, bitrate: fixesQuality ? nil : pipeline.bitrate,
        failovers: statistics.encoder.failovers),
      frames: StreamStatus.Frames(
        captured: statistics.captured, encoded: statistics.encoded, keyFrames: statistics.keyFrames,
        sent: statistics.sent,
        droppedByCause: Dictionary(uniqueKeysWithValues: statistics.drops.map { ($0.key.name, $0.value) })),
      destinations: statistics.destinations.map {
        StreamStatus.Destination(
          url: $0.name, packets: $0.packets, bytes: $0.bytes, packetsLost: $0.lost)
      },
      uptimeSeconds: statistics.duration.seconds)
  }

  func rotate(to orientation: Orientation) async throws { try await pipeline.turn(to: orientation) }

  func requestKeyFrame() { pipeline.requestKeyFrame() }

  func changeBitrate(_ bitsPerSecond: Int) throws {
    guard !fixesQuality else {
      throw CommandFailure(kind: .usage, description: "this stream has a fixed quality (cqp) and no bitrate to change")
    }
    try pipeline.changeBitrate(bitsPerSecond)
  }
}

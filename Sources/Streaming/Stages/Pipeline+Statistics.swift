package import Media
package import Platform
import Synchronization

extension Pipeline {
  /// The statistics so far.
  package var statistics: StreamStatistics { statistics(latencies: .summaries) }

  /// The statistics so far, without ``StreamStatistics/latencies``: for a caller that reads often and keeps the
  /// distributions.
  package var counts: StreamStatistics { statistics(latencies: .distributions) }

  /// The statistics so far, without latencies of any kind: for a caller that reads each second and allocates little.
  package var counters: StreamStatistics { statistics(latencies: .none) }

  /// The number of frames that were encoded so far, and the time for which the encoder was at work. Allocates nothing.
  package var encoderWork: (frames: Int, busy: Duration) {
    statisticsRecorder.encode.withLock { ($0.frames, $0.busy) }
  }

  /// The time for which the small rendition's encoder was at work so far, in software. Allocates nothing.
  package var smallEncoderTime: Duration { small?.processing ?? .zero }

  /// Returns the events of the small rendition and of the H.264 since the last call, oldest first of each.
  package func takeRenditionEvents() -> [RenditionEvent] {
    (small?.events.take() ?? []) + (h264?.events.take() ?? [])
  }

  private func statistics(latencies: StatisticsRecorder.LatencyFigures) -> StreamStatistics {
    var statistics = statisticsRecorder.statistics(until: end.withLock { $0 } ?? .now(), latencies: latencies)
    statistics.camera = source.condition
    statistics.smallRendition = small?.statistics
    // A driver's hang is counted once, by whichever encoder on it looks first.
    statistics.encoder.hangs += statistics.smallRendition?.encoder.hangs ?? 0
    if let h264 { statistics.add(h264) }
    return statistics
  }

  /// Returns the camera's events since the last call, oldest first.
  package func takeCameraEvents() -> [CameraEvent] { source.takeEvents() }

  /// Returns the latency from capture to wire since the last call.
  package func recentLatency() -> LatencySummary {
    statisticsRecorder.recentLatency()
  }

  /// The codec of the pictures.
  package var codec: VideoCodec { sendStage.parameterSetCache?.codec ?? .h264 }

  /// The stream's parameter sets, and the number of their changes since the start.
  package var parameterSets: (sets: ParameterSets, changes: Int) {
    guard let current = sendStage.parameterSets else { preconditionFailure("a track of pictures has parameter sets") }
    return current
  }
}

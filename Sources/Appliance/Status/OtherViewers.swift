import Streaming

/// The viewers that need nothing of the stream's own encoder, counted by what they get.
package struct OtherViewers: Hashable, Sendable {
  /// Viewers that get H.264 from an encoder of its own, because they do not decode the stream's codec.
  package var h264 = 0
  /// Viewers of `/stream.mjpg`.
  package var mjpeg = 0
  /// Clients that take single pictures.
  package var snapshot = 0
  /// Listeners of `/listen.mp3`.
  package var mp3 = 0

  /// Creates counts.
  package init(h264: Int = 0, mjpeg: Int = 0, snapshot: Int = 0, mp3: Int = 0) {
    (self.h264, self.mjpeg, self.snapshot, self.mp3) = (h264, mjpeg, snapshot, mp3)
  }

  /// Counts the viewers of a pipeline, whose present figures are `statistics`.
  init(_ pipeline: Pipeline, _ statistics: StreamStatistics, _ snapshots: SnapshotViewers) {
    self.init(
      h264: statistics.viewers.count(where: \.getsH264), mjpeg: pipeline.pictureStatistics.watching,
      snapshot: snapshots.count(), mp3: pipeline.sound?.figures.mp3.listeners.count ?? 0)
  }

  /// The counts that are not zero, as in `1 by H.264`, `2 by MJPEG`.
  package var counts: [String] {
    [(h264, "H.264"), (mjpeg, "MJPEG"), (snapshot, "snapshot"), (mp3, "MP3")].filter { $0.0 > 0 }
      .map { "\($0.0) by \($0.1)" }
  }

  /// The viewers' occupations, each with the number of those viewers: `watch by MJPEG (2)`.
  package var occupations: [String] {
    [(mjpeg, "watch by MJPEG"), (snapshot, "take snapshots"), (mp3, "listen by MP3"), (h264, "watch H.264")]
      .filter { $0.0 > 0 }.map { "\($0.1) (\($0.0))" }
  }
}

import Appliance
import Host
import Platform
import Streaming
import Testing

/// The lines about a stream that begins and rests, and the live line meanwhile.
@Suite struct StatusDisplayTests {
  /// The figures of a stream after so many seconds, with the frames that left and those that nobody's encoder took.
  private static func figures(second: Int64, sent: Int, unwatched: Int) -> StreamStatistics {
    var figures = StreamStatistics()
    figures.duration = .seconds(second)
    (figures.encoded, figures.sent, figures.unwatched) = (sent, sent, unwatched)
    return figures
  }

  private static let latency = LatencySummary(LatencyHistogram())

  @Test(arguments: [
    (OtherViewers(), "nobody is watching: the encoder rests", "nobody is watching"),
    (OtherViewers(mjpeg: 2), "all watch by MJPEG (2): the encoder rests", "2 by MJPEG, the encoder rests"),
    (OtherViewers(snapshot: 1), "all take snapshots (1): the encoder rests", "1 by snapshot, the encoder rests"),
    (
      OtherViewers(h264: 1, mjpeg: 2, snapshot: 3, mp3: 4),
      "all watch by MJPEG (2) or take snapshots (3) or listen by MP3 (4) or watch H.264 (1): the encoder rests",
      "1 by H.264, 2 by MJPEG, 3 by snapshot, 4 by MP3, the encoder rests"
    ),
  ])
  func `an encoder that rests is told with those who watch without it`(
    others: OtherViewers, line: String, live: String
  ) {
    var told: [String] = []
    var display = StatusDisplay(isInteractive: true) { text, level, event in
      told.append("\(event), \(level): \(text)")
    }
    let shown = [(30, 0), (30, 30), (30, 60)].enumerated().map { second, frames in
      display.show(
        Self.figures(second: Int64(second) + 1, sent: frames.0, unwatched: frames.1), recent: Self.latency,
        others: others)
    }
    #expect(told == ["streaming, info: streaming", "resting, info: \(line)"])
    #expect(shown[0]?.hasPrefix("00:01  30.0 fps  ") == true, "\(shown)")
    #expect(shown.dropFirst() == ["00:02  \(live)  dropped 0", "00:03  \(live)  dropped 0"])
  }

  @Test func `without a terminal there is no live line, and the lines are the same`() {
    var told: [String] = []
    var display = StatusDisplay(isInteractive: false) { text, _, _ in told.append(text) }
    for (second, unwatched) in [(1, 0), (2, 30)] {
      let live = display.show(
        Self.figures(second: Int64(second), sent: 30, unwatched: unwatched), recent: Self.latency,
        others: OtherViewers(mjpeg: 1))
      #expect(live == nil)
    }
    #expect(told == ["streaming", "all watch by MJPEG (1): the encoder rests"])
  }
}

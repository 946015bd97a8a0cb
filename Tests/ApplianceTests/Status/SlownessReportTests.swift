import Appliance
import Platform
import Streaming
import Testing

/// The lines about viewers that are too slow.
@Suite struct SlownessReportTests {
  private static let slow = "viewer: too slow for the stream, losing frames"
  private static let recovered = "viewer: takes all frames again (7 lost so far)"

  private static func viewer(isSlow: Bool) -> DestinationStatistics {
    var viewer = DestinationStatistics(id: ViewerID(number: 1), name: "viewer", isGuest: false)
    (viewer.isSlow, viewer.framesDropped) = (isSlow, 7)
    return viewer
  }

  /// Returns the lines of looks once a second, each with its second; `isSlow` tells whether the viewer is slow then.
  private static func lines(for seconds: Int64, isSlow: (Int64) -> Bool) -> [String] {
    var report = SlownessReport()
    return (0..<seconds).compactMap { second in
      let line = report.note(viewer(isSlow: isSlow(second)), at: Instant.zero + Duration.seconds(second))
      return line.map { "\(second) \($0.text)" }
    }
  }

  @Test func `a viewer that loses frames and takes all of them in turns is told of once`() {
    #expect(Self.lines(for: 300) { $0 % 4 < 2 } == ["0 \(Self.slow)"])
  }

  @Test func `a viewer takes all frames again after ten seconds, and after a minute if it has lost some again`() {
    let lines = Self.lines(for: 200) { $0 == 5 || $0 == 30 || $0 == 60 }
    #expect(lines == ["5 \(Self.slow)", "15 \(Self.recovered)", "30 \(Self.slow)", "120 \(Self.recovered)"])
  }

  @Test func `a viewer that has left is forgotten`() {
    var report = SlownessReport()
    #expect(report.note(Self.viewer(isSlow: true), at: .zero)?.isWarning == true)
    #expect(report.note(Self.viewer(isSlow: true), at: .zero) == nil)
    report.forgetOthers(than: [])
    #expect(report.note(Self.viewer(isSlow: true), at: .zero) != nil)
  }
}

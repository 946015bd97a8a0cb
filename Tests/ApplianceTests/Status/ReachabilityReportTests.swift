import Appliance
import Glibc
import Platform
import Streaming
import Testing

/// The lines about who receives at an address.
@Suite struct ReachabilityReportTests {
  private static func viewer(isGuest: Bool = false, number: UInt64 = 1) -> DestinationStatistics {
    DestinationStatistics(id: ViewerID(number: number), name: "viewer", isGuest: isGuest)
  }

  /// Returns the lines for a viewer at one look after another.
  private static func lines(_ looks: [(packets: Int, error: CInt)], of first: DestinationStatistics) -> [String?] {
    var report = ReachabilityReport()
    var viewer = first
    return looks.map { look in
      (viewer.packets, viewer.errorNumber) = (look.packets, look.error)
      return report.note(viewer)?.text
    }
  }

  @Test func `a destination that nobody has taken is not listened to yet, and afterwards not any more`() {
    let refused = ECONNREFUSED
    let (yet, again) = ("viewer: nobody is listening yet", "viewer: nobody is listening any more")
    let viewer = Self.viewer()
    #expect(Self.lines([(1, refused), (30, refused)], of: viewer) == [yet, nil])
    // The first refusal may come after the first look.
    #expect(Self.lines([(1, 0), (30, refused)], of: viewer) == [nil, yet])
    #expect(Self.lines([(1, refused), (30, 0), (60, refused)], of: viewer) == [yet, "viewer: reachable", again])
    // A receiver that was there from the start.
    #expect(Self.lines([(1, 0), (30, 0), (60, refused)], of: viewer) == [nil, nil, again])
    // Until the host is known to be away, packets for it wait.
    let away = "viewer: " + SystemFailure.text(EHOSTUNREACH)
    #expect(
      Self.lines([(1, 0), (30, 0), (60, EHOSTUNREACH), (60, refused)], of: viewer) == [nil, nil, away, yet])
    var heard = Self.viewer()
    heard.lastHeard = .now()
    #expect(Self.lines([(1, refused)], of: heard) == [again])
  }

  @Test func `a viewer by RTSP was there`() {
    #expect(
      Self.lines([(9, 0), (9, ECONNREFUSED)], of: Self.viewer(isGuest: true))[1]
        == "viewer: nobody is listening any more")
  }

  @Test func `a destination of two ports has one line, which names the port if only one is refused`() {
    var report = ReachabilityReport()
    func look(_ pictures: CInt, _ sound: CInt) -> String? {
      var both = [1, 2].map {
        DestinationStatistics(id: ViewerID(number: $0), name: "viewer", track: Int($0) - 1, client: ViewerID(number: 1))
      }
      (both[0].errorNumber, both[1].errorNumber, both[1].media) = (pictures, sound, .sound)
      let viewers = DestinationStatistics.viewers(of: both)
      return viewers.count == 1 ? report.note(viewers[0])?.text : "\(viewers.count) viewers"
    }
    #expect(look(ECONNREFUSED, ECONNREFUSED) == "viewer: nobody is listening yet")
    #expect(look(0, ECONNREFUSED) == "viewer: nobody is listening at the port of the sound")
    #expect(look(0, ECONNREFUSED) == nil)
    #expect(look(0, 0) == "viewer: reachable")
    #expect(look(ECONNREFUSED, ECONNREFUSED) == "viewer: nobody is listening any more")
  }

  @Test func `a viewer that has left is forgotten`() {
    var report = ReachabilityReport()
    var viewer = Self.viewer()
    viewer.errorNumber = ECONNREFUSED
    #expect(report.note(viewer) != nil)
    #expect(report.note(viewer) == nil)
    report.forgetOthers(than: [])
    #expect(report.note(viewer) != nil)
  }
}

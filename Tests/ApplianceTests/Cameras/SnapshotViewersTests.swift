import Appliance
import Platform
import Serving
import Streaming
import Testing

/// The clients that take single pictures: who counts as a viewer, and the lines about those who have gone.
@Suite struct SnapshotViewersTests {
  private static func time(_ seconds: Double) -> Instant { Instant(nanoseconds: 1 << 50) + Duration(seconds: seconds) }

  /// A request of `host`, whose connection has `port`.
  private static func request(of host: Int, port: Int = 50_000) -> ViewerPeer {
    ViewerPeer(.http, address: "192.0.2.\(host)", port: port, user: "anna")
  }

  /// The lines about those who have gone by then.
  private static func gone(_ viewers: SnapshotViewers, of camera: String? = nil, by seconds: Double) -> [String] {
    let events = viewers.takeGone(of: camera, at: time(seconds))
    #expect(events.allSatisfy { $0.isOfViewer && !$0.isWarning })
    return events.map { $0.line(of: "http") }
  }

  @Test func `who takes a picture each second is one viewer until a minute after the last, and has then left`() {
    let viewers = SnapshotViewers()
    for second in 0...130 {
      let isNew = viewers.note(
        Self.request(of: 7, port: 50_000 + second), bytes: 10, at: Self.time(Double(second)))
      #expect(isNew == (second == 0) && viewers.count(at: Self.time(Double(second))) == 1)
      #expect(Self.gone(viewers, by: Double(second)) == [])
    }
    for (seconds, count) in [(189.9, 1), (190, 0)] {
      #expect(viewers.count(at: Self.time(seconds)) == count)
      // As /v1/viewers lists them.
      #expect(viewers.list("camera", at: Self.time(seconds)).count == count)
      let left = ["viewer snapshot http 192.0.2.7, anna left after 130 s: 131 pictures"]
      #expect(Self.gone(viewers, by: seconds) == (count == 0 ? left : []))
    }
    #expect(Self.gone(viewers, by: 191) == [])
  }

  @Test func `who comes back after a minute has left before, and is new`() {
    let viewers = SnapshotViewers()
    #expect(viewers.note(Self.request(of: 7), bytes: 10, at: Self.time(0)))
    #expect(!viewers.note(Self.request(of: 7), bytes: 10, at: Self.time(59.9)))
    #expect(viewers.note(Self.request(of: 7), bytes: 10, at: Self.time(120)))
    let left = "viewer snapshot http 192.0.2.7, anna left nursery after"
    #expect(Self.gone(viewers, of: "nursery", by: 120) == ["\(left) 59 s: 2 pictures"])
    #expect(Self.gone(viewers, of: "nursery", by: 1000) == ["\(left) 0 s: 1 picture"])
  }

  @Test func `beyond the limit the one who has been away for the longest is forgotten, and told to have left`() {
    let viewers = SnapshotViewers()
    for host in 0...SnapshotViewers.limit {
      #expect(viewers.note(Self.request(of: host), bytes: 10, at: Self.time(Double(host) / 10)))
    }
    #expect(viewers.count(at: Self.time(10)) == SnapshotViewers.limit)
    #expect(Self.gone(viewers, by: 10) == ["viewer snapshot http 192.0.2.0, anna left after 0 s: 1 picture"])
    let count = Self.gone(viewers, by: 100).count
    #expect(count == SnapshotViewers.limit && viewers.count(at: Self.time(100)) == 0)
  }
}

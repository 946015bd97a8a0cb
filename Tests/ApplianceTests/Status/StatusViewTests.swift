import Appliance
import Platform
import Serving
import Testing

/// The live view of a status, of a camera that nobody or somebody watches.
@Suite struct StatusViewTests {
  /// A camera's status after so many seconds, in which it took 30 frames each.
  private static func status(
    second: Int, encoded: Int = 0, _ pictures: StreamStatus.Pictures = .init()
  ) -> ApplianceStatus {
    let camera = StreamStatus(
      name: "nursery", health: .init(name: "nursery", state: .streaming),
      source: .init(name: "test", width: 320, height: 240, fps: 30),
      orientation: .init(degrees: 0, mirrored: false, width: 320, height: 240, switches: 0),
      encoder: .init(name: "x264", bitrate: 1_000_000, failovers: 0, busySeconds: 0),
      frames: .init(
        captured: 30 * second, encoded: encoded, keyFrames: 0, unwatched: 30 * second - encoded, sent: encoded,
        droppedByCause: [:]),
      destinations: [], pictures: pictures, uptimeSeconds: Double(second))
    return ApplianceStatus(uptimeSeconds: Double(second), cameras: [camera])
  }

  /// The second of two views.
  private static func lines(_ former: ApplianceStatus, _ latter: ApplianceStatus) -> [String] {
    var view = StatusView()
    _ = view.lines(of: former, only: nil, at: Instant.zero + Duration(seconds: former.uptimeSeconds))
    let lines = view.lines(of: latter, only: nil, at: Instant.zero + Duration(seconds: latter.uptimeSeconds))
    #expect(lines.allSatisfy { $0.count <= 80 }, "\(lines)")
    return lines
  }

  @Test func `beside a viewer by MJPEG it is the encoder that rests, and not the camera`() {
    let lines = Self.lines(
      Self.status(second: 1, .init(viewers: 1, coded: 30)), Self.status(second: 3, .init(viewers: 1, coded: 40)))
    #expect(lines[0] == "nightjar  00:03  1 camera  1 viewer")
    #expect(lines[2] == "nursery             streaming    320x240    encoder rests dropped 0", "\(lines)")
    #expect(lines.last == "  1 viewer by MJPEG" + String(repeating: " ", count: 40) + "5.0 JPEG/s", "\(lines)")
  }

  @Test func `an encoder at work has its rate there`() {
    let lines = Self.lines(Self.status(second: 1), Self.status(second: 3, encoded: 60))
    #expect(lines[2] == "nursery             streaming    320x240    30.0 fps      dropped 0", "\(lines)")
  }

  /// The figures of an older program, which does not count who takes single pictures.
  private static let older: StreamStatus.Pictures = {
    var pictures = StreamStatus.Pictures(viewers: 2, coded: 7)
    pictures.snapshotViewers = nil
    return pictures
  }()

  @Test(arguments: [
    (
      StreamStatus.Pictures(viewers: 3, snapshotViewers: 1, coded: 7), "3 viewers",
      "  2 viewers by MJPEG, 1 by snapshot ", "2 watching by MJPEG, 1 taking snapshots, 7 JPEGs made"
    ),
    (
      StreamStatus.Pictures(viewers: 1, snapshotViewers: 1, coded: 7), "1 viewer", "  1 viewer by snapshot ",
      "0 watching by MJPEG, 1 taking snapshots, 7 JPEGs made"
    ),
    (older, "2 viewers", "  2 viewers by MJPEG ", "2 watching by MJPEG, 7 JPEGs made"),
  ])
  func `who takes single pictures is a viewer apart`(
    pictures: StreamStatus.Pictures, head: String, line: String, text: String
  ) {
    let status = Self.status(second: 1, pictures)
    let lines = Self.lines(status, status)
    #expect(lines[0].hasSuffix("  1 camera  \(head)"), "\(lines)")
    #expect(lines.contains { $0.hasPrefix(line) }, "\(lines)")
    #expect(StatusText.text(status).contains("\npictures     \(text)"))
  }
}

import Foundation
import TestSupport
import Testing

/// A stream whose camera is not there yet.
@Suite struct WaitingTests {
  @Test(arguments: [(0, 640, 360), (90, 360, 640)])
  func `a player sees a placeholder with text and a clock that ticks`(
    degrees: Int, width: Int, height: Int
  ) throws {
    let directory = try TemporaryDirectory()
    let reception = try Reception.ofH264(
      [
        "--source", directory.path("camera"), "--wait", "--size", "640x360", "--fps", "25", "--duration", "3s",
        "--orientation", "\(degrees)", "--control", "none",
      ], size: (width, height), in: directory)
    #expect(reception.receiverLog.isEmpty, "\(reception.receiverLog)")
    let sent = reception.figure("frames", "sent")
    #expect(sent >= 20 && reception.pictureCount == sent, "\(reception.log)")
    #expect(reception.figure("camera", "placeholder_frames") >= sent)
    #expect((reception.statistics["camera"] as? [String: Any])?["state"] as? String == "waiting")
    #expect(reception.log.contains("no camera yet"), "\(reception.log)")

    let pictures = try Data(contentsOf: reception.pictures)
    let bytes = width * height * 3 / 2
    func luma(_ number: Int) -> Data { pictures[number * bytes..<number * bytes + width * height] }
    let (first, last) = (luma(0), luma(reception.pictureCount - 1))
    // Grey with light text on it, and nothing of it at the edges.
    #expect(last.max() ?? 0 > 180 && (last.min() ?? 0) > 20)
    #expect(last.prefix(width * 8).max() ?? 255 < 80)
    let changed = zip(first, last).filter { abs(Int($0) - Int($1)) > 60 }.count
    #expect(changed > 20, "the clock: \(changed) samples")
  }
}

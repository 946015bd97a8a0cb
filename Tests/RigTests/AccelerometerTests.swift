import Foundation
import TestSupport
import Testing

/// The kernel's own IIO sysfs, of its dummy sensor (`iio_simple_dummy`), whose accelerometer has one axis.
@Suite(.serialized, .enabled(if: Vivid.isHere)) struct AccelerometerTests {
  /// A dummy sensor, for as long as this lives.
  private final class Dummy {
    let device: String
    private static let folder = "/sys/kernel/config/iio/devices/dummy"
    private let entry = folder + "/nightjar"

    init(in directory: TemporaryDirectory) throws {
      if !FileManager.default.fileExists(atPath: Self.folder) {
        let result = try Subprocess.run(["mount", "-t", "configfs", "none", "/sys/kernel/config"], in: directory)
        try #require(result.status == 0, "\(result.error)")
      }
      try #require(mkdir(entry, 0o755) == 0)
      let devices = "/sys/bus/iio/devices"
      let name = try FileManager.default.contentsOfDirectory(atPath: devices).first {
        try $0.hasPrefix("iio:device")
          && String(contentsOfFile: "\(devices)/\($0)/name", encoding: .utf8) == "nightjar\n"
      }
      device = "\(devices)/\(try #require(name))"
    }

    func remove() { rmdir(entry) }

    deinit { remove() }
  }

  private static func stream(_ arguments: [String], in directory: TemporaryDirectory) throws -> Subprocess {
    try Subprocess(
      [
        nightjarPath, "stream", "--source", "test", "--size", "320x240", "--orientation", "auto", "--to",
        "rtp://127.0.0.1:5004", "--sdp", directory.path("a.sdp"),
      ] + arguments, in: directory)
  }

  @Test func `a sensor with one axis is reported once, and the stream keeps its orientation`() throws {
    let directory = try TemporaryDirectory()
    let dummy = try Dummy(in: directory)
    defer { dummy.remove() }
    let program = try Self.stream(["--duration", "13s", "--stats-json", directory.path("s.json")], in: directory)
    // Longer than it takes until the sensor is looked for again.
    let result = try program.wait(limit: 90)
    #expect(result.status == 0, "\(result.error)")
    let warning = "accelerometer \(dummy.device) has no y and z axis: three are needed"
    #expect(result.error.components(separatedBy: warning).count == 2, "\(result.error)")
    #expect(result.log.lines.allSatisfy { !$0.hasPrefix("orientation ") }, "\(result.error)")
    let figures = try JSONSerialization.jsonObject(
      with: Data(contentsOf: URL(fileURLWithPath: directory.path("s.json"))))
    let frames = (figures as? [String: Any])?["frames"] as? [String: Any]
    #expect(frames?["sent"] as? Int ?? 0 > 30, "\(result.error)")
  }

  @Test func `the kernel's readings rotate the picture, and a removed sensor leaves it so`() throws {
    let directory = try TemporaryDirectory()
    let dummy = try Dummy(in: directory)
    defer { dummy.remove() }
    // Its one axis, and what it lacks: 34 times the scale is gravity.
    let folder = directory.url.appendingPathComponent("bus/iio/devices/iio:device0")
    try FileManager.default.createDirectory(at: folder, withIntermediateDirectories: true)
    for name in ["name", "in_accel_x_raw"] {
      try FileManager.default.createSymbolicLink(
        atPath: folder.appendingPathComponent(name).path, withDestinationPath: "\(dummy.device)/\(name)")
    }
    for (name, text) in ["in_accel_y_raw": "0", "in_accel_z_raw": "1", "in_accel_scale": "0.288"] {
      try Data((text + "\n").utf8).write(to: folder.appendingPathComponent(name))
    }
    let program = try Self.stream(["--sysfs", directory.url.path], in: directory)
    #expect(
      eventually(within: 60) { program.log.count(of: "orientation 90: 240x320") > 0 }, "\(program.errorSoFar)")
    let start = "orientation follows the accelerometer nightjar"
    #expect(program.log.lines.contains { $0.hasPrefix(start) })
    dummy.remove()
    #expect(
      eventually(within: 60) { program.log.lines.contains { $0.hasSuffix(" is gone: the last orientation stays") } },
      "\(program.errorSoFar)")
    program.send(SIGINT)
    let result = try program.wait(limit: 60)
    #expect(result.status == 0, "\(result.error)")
    #expect(result.log.lines.allSatisfy { !$0.hasPrefix("orientation 0") }, "\(result.error)")
  }
}

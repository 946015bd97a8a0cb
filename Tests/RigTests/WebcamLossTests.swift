import Foundation
import TestSupport
import Testing

/// A stream whose USB webcam is unplugged, stalls, freezes or spoils its pictures, with the kernel's driver of those.
@Suite(.serialized, .enabled(if: Vivid.isHere)) struct WebcamLossRigTests {
  private static func stream(_ camera: UVCCamera, in directory: TemporaryDirectory) throws -> LoggedStream {
    let stream = try LoggedStream(
      ["--source", try #require(camera.node), "--format", "mjpeg", "--size", "640x360"], in: directory)
    #expect(stream.says("streaming"), "\(stream.program.errorSoFar)")
    return stream
  }

  /// Ends it; there was no gap.
  private static func finish(_ stream: LoggedStream) throws -> [String: Any] {
    let log = stream.program.errorSoFar
    let figures = try stream.finish()
    #expect(stream.packets.sequenceGaps == 0 && stream.packets.sourceCount == 1, "\(log)")
    #expect(stream.packets.steps(since: 0).shortest > 0)
    return figures["camera"] as? [String: Any] ?? [:]
  }

  @Test func `a webcam that is pulled out and plugged in is taken again by its serial number`() throws {
    let directory = try TemporaryDirectory()
    let camera = try UVCCamera(jpegs: ["640x360"], in: directory)
    let stream = try Self.stream(camera, in: directory)
    for cycle in 1...3 {
      let start = PacketLog.now()
      try camera.command("unplug")
      #expect(stream.says("the camera was unplugged", times: cycle), "\(stream.program.errorSoFar)")
      #expect(stream.state == "disconnected")
      #expect(eventually { stream.packets.units.last?.time ?? 0 > start + 1 })
      try camera.command("plug")
      #expect(stream.says("camera is back after", times: cycle), "\(stream.program.errorSoFar)")
      #expect(stream.packets.steps(since: start - 0.5).longest < 1)
    }
    let figures = try Self.finish(stream)
    #expect(figures["losses"] as? Int == 3 && figures["reopenings"] as? Int == 3, "\(figures)")
  }

  @Test func `a webcam that stalls is replaced, and taken back when it delivers`() throws {
    let directory = try TemporaryDirectory()
    let camera = try UVCCamera(jpegs: ["640x360"], in: directory)
    let stream = try Self.stream(camera, in: directory)
    try camera.command("stall")
    #expect(stream.says("no picture for 2 seconds"), "\(stream.program.errorSoFar)")
    #expect(stream.state == "stalled")
    let before = stream.packets.units.count
    #expect(eventually { stream.packets.units.count > before + 30 }, "placeholders")
    try camera.command("resume")
    #expect(stream.says("camera is back after"), "\(stream.program.errorSoFar)")
    #expect(try Self.finish(stream)["state"] as? String == "live")
  }

  @Test func `a webcam that freezes is reported, and streamed`() throws {
    let directory = try TemporaryDirectory()
    let camera = try UVCCamera(jpegs: ["640x360"], in: directory)
    let stream = try Self.stream(camera, in: directory)
    try camera.command("freeze")
    #expect(stream.says("picture frozen since"), "\(stream.program.errorSoFar)")
    #expect(stream.state == "frozen")
    try camera.command("resume")
    #expect(stream.says("picture moves again"), "\(stream.program.errorSoFar)")
    let figures = try Self.finish(stream)
    #expect(figures["losses"] as? Int == 0 && figures["placeholder_frames"] as? Int == 0, "\(figures)")
  }

  @Test func `a webcam that delivers nothing but damaged JPEGs has stalled, and is taken back`() throws {
    let directory = try TemporaryDirectory()
    let camera = try UVCCamera(jpegs: ["640x360"], in: directory)
    let stream = try Self.stream(camera, in: directory)
    try camera.command("corrupt 100000 header")
    #expect(stream.says("only corrupt pictures for 2 seconds"), "\(stream.program.errorSoFar)")
    #expect(stream.state == "stalled")
    try camera.command("resume")
    #expect(stream.says("camera is back after"), "\(stream.program.errorSoFar)")
    #expect(try Self.finish(stream)["state"] as? String == "live")
  }
}

import Foundation
import TestSupport
import Testing

/// A stream without its camera, on the kernel's own drivers: the names of its state, no gap in RTP, nothing leaked.
@Suite(.serialized, .enabled(if: Vivid.isHere)) struct CameraLossTests {
  private static func plug(_ action: String) throws {
    let driver = "/sys/bus/platform/drivers/vivid/\(action)"
    let file = try FileHandle(forWritingTo: URL(fileURLWithPath: driver))
    try file.write(contentsOf: Data("vivid.0".utf8))
    try file.close()
  }

  /// When an access unit came that is not that of a placeholder: those between two ticks of its clock are all but empty,
  /// vivid's are not, because of the numbers that run in them.
  private static func liveTime(_ packets: PacketLog, since start: Double) -> Double? {
    let units = packets.units.filter { $0.time >= start }
    guard units.count >= 4 else { return nil }
    for index in 0...units.count - 4 where units[index..<index + 4].allSatisfy({ $0.bytes > liveBytes }) {
      return units[index].time
    }
    return nil
  }

  private static let liveBytes = 200

  @Test func `unplugged and plugged in again and again, the stream has no gap and nothing leaks`() throws {
    let directory = try TemporaryDirectory()
    let cycles = runsLong ? 50 : 5
    // Automatic quality chooses slower presets where the machine has time for them, which take more memory for good.
    let stream = try LoggedStream(
      ["--source", try Vivid.node(0), "--size", "640x360", "--fps", "30", "--x264-preset", "ultrafast"], in: directory)
    #expect(stream.says("streaming"))
    var (placeholderAfter, liveAfter): ([Double], [Double]) = ([], [])
    var (memory, descriptors): ([Int], [Int]) = ([], [])
    for cycle in 0..<cycles {
      let out = PacketLog.now()
      try Self.plug("unbind")
      let hasPlaceholders = eventually(within: 60) {
        stream.packets.units.count { $0.time > out && $0.bytes <= Self.liveBytes } >= 40
      }
      #expect(hasPlaceholders, "cycle \(cycle): \(stream.program.errorSoFar)")
      // The longest silence on the wire around the loss is the one before the placeholder.
      let around = stream.packets.units.filter { $0.time >= out - 0.2 }
      let gap = zip(around, around.dropFirst()).max { $0.1.time - $0.0.time < $1.1.time - $1.0.time }
      // From its last picture, or from the unplugging where that was later.
      placeholderAfter.append(gap.map { $0.1.time - max($0.0.time, out) } ?? 99)
      let back = PacketLog.now()
      try Self.plug("bind")
      var live: Double?
      let isBack = eventually(within: 30) {
        live = Self.liveTime(stream.packets, since: back)
        return live != nil
      }
      #expect(isBack, "cycle \(cycle): \(stream.program.errorSoFar)")
      liveAfter.append((live ?? .infinity) - back)
      sleep(1)
      memory.append(stream.residentKilobytes)
      descriptors.append(stream.settledDescriptors(as: descriptors.first))
    }
    let log = stream.program.errorSoFar
    let figures = try stream.finish()
    let camera = figures["camera"] as? [String: Any] ?? [:]
    // A machine that is held up may have lost the camera besides, and says so.
    let stalls = stream.stalls
    #expect(log.components(separatedBy: "the camera was unplugged").count - 1 == cycles, "\(log)")
    #expect(camera["losses"] as? Int == cycles + stalls && camera["reopenings"] as? Int == cycles + stalls, "\(camera)")
    #expect(camera["placeholder_frames"] as? Int ?? 0 > cycles * 20)
    #expect(camera["state"] as? String == "live")
    let lines = ProgramLog(log).lines
    let (start, end) = ("camera lost: ", ": the camera was unplugged; nightjar streams a placeholder")
    #expect(lines.count { $0.hasPrefix(start) && $0.hasSuffix(end) } == cycles, "\(log)")
    #expect(lines.count { $0.hasPrefix("camera is back after ") } >= cycles, "\(log)")

    #expect(stream.packets.sequenceGaps == 0 && stream.packets.sourceCount == 1)
    // Three frame intervals are the goal; ten times that for a machine that is busy.
    let steps = stream.packets.steps(since: 0)
    #expect(steps.shortest > 0 && steps.longest < 1 + stream.heartbeat.longestPause, "\(steps)")
    #expect(placeholderAfter.allSatisfy { $0 < 1 + stream.heartbeat.longestPause }, "\(placeholderAfter)")
    #expect(liveAfter.allSatisfy { $0 < 10 }, "\(liveAfter)")
    // After the first cycle nothing new is kept.
    let settled = min(2, memory.count - 1)
    #expect((memory.last ?? 0) - memory[settled] < 2048, "\(memory)")
    #expect(Set(descriptors).count == 1, "\(descriptors)")
    let sorted = (placeholderAfter.sorted(), liveAfter.sorted())
    print(
      "camera loss: \(cycles) cycles, placeholder after median \(sorted.0[cycles / 2]) s longest "
        + "\(sorted.0[cycles - 1]) s, longest RTP step \(steps.longest) s, live after median \(sorted.1[cycles / 2]) s "
        + "longest \(sorted.1[cycles - 1]) s, memory \(memory[settled])…\(memory.last ?? 0) kB, descriptors \(descriptors[0])"
    )
  }

  @Test func `vivid's disconnection is survived, and the other camera is not taken for it`() throws {
    let directory = try TemporaryDirectory()
    let node = try Vivid.node(1)
    let stream = try LoggedStream(["--source", node, "--size", "640x360"], in: directory)
    #expect(stream.says("streaming"))
    try Vivid.set(node, "disconnect=1", in: directory)
    #expect(stream.says("camera lost: \(node): the camera was unplugged"), "\(stream.program.errorSoFar)")
    #expect(eventually { stream.state == "disconnected" })
    // vivid-000 is there all the time; this one is when its driver is bound anew.
    sleep(3)
    #expect(stream.state == "disconnected")
    try Self.plug("unbind")
    try Self.plug("bind")
    #expect(stream.says("camera is back after"), "\(stream.program.errorSoFar)")
    #expect(eventually { stream.state == "live" })
    _ = try stream.finish()
    #expect(stream.packets.sequenceGaps == 0)
  }

  @Test(arguments: [
    ("inject_v4l2_buf_flag_error=1", "marked some as broken", "driver_error"),
    ("inject_fatal_streaming_error=1", "the stream broke (", "driver_error"),
    ("percentage_of_dropped_buffers=50", "the camera skipped some", "driver"),
  ])
  func `each fault of the driver is named and counted, and the stream goes on`(
    fault: String, words: String, cause: String
  ) throws {
    let directory = try TemporaryDirectory()
    let node = try Vivid.node(0)
    defer { try? Vivid.set(node, "percentage_of_dropped_buffers=0", in: directory) }
    let stream = try LoggedStream(["--source", node, "--size", "640x360"], in: directory)
    #expect(stream.says("streaming"))
    try Vivid.set(node, fault, in: directory)
    #expect(stream.says(words), "\(stream.program.errorSoFar)")
    let before = stream.packets.units.count
    #expect(eventually { stream.packets.units.count > before + 30 })
    let figures = try stream.finish()
    let frames = figures["frames"] as? [String: Any]
    // Of those that vivid drops on its way, about as many as came.
    let least = cause == "driver" ? 15 : 1
    #expect((frames?["dropped_by_cause"] as? [String: Int])?[cause] ?? 0 >= least, "\(figures)")
    #expect(stream.packets.sequenceGaps == 0)
  }

  @Test func `a driver that refuses to start the stream again is named, and tried until it does`() throws {
    let directory = try TemporaryDirectory()
    let node = try Vivid.node(0)
    let stream = try LoggedStream(["--source", node, "--size", "640x360"], in: directory)
    #expect(stream.says("streaming"))
    // Meets the attempt to start anew that the fatal error leads to.
    try Vivid.control(
      node, ["-c", "inject_vidioc_streamon_error=1", "-c", "inject_fatal_streaming_error=1"], in: directory)
    #expect(stream.says("the stream broke (", times: 2), "\(stream.program.errorSoFar)")
    let before = stream.packets.units.count
    #expect(eventually { stream.packets.units.count > before + 30 && stream.state == "live" })
    _ = try stream.finish()
    #expect(stream.packets.sequenceGaps == 0)
  }

  @Test func `a driver that refuses to start at the beginning is an error, but not for a stream that waits`() throws {
    let directory = try TemporaryDirectory()
    let node = try Vivid.node(0)
    try Vivid.set(node, "inject_vidioc_streamon_error=1", in: directory)
    let refused = try Subprocess.run(
      [
        nightjarPath, "stream", "--source", node, "--control", "none", "--to", "rtp://127.0.0.1:5004", "--sdp",
        directory.path("r.sdp"),
      ], in: directory)
    #expect(refused.status == 74 && refused.error.contains("VIDIOC_STREAMON"), "\(refused.error)")
    try Vivid.set(node, "inject_vidioc_streamon_error=1", in: directory)
    let stream = try LoggedStream(["--source", node, "--size", "640x360", "--wait"], in: directory)
    #expect(stream.says("camera lost: \(node): VIDIOC_STREAMON"), "\(stream.program.errorSoFar)")
    #expect(stream.says("camera is back after"), "\(stream.program.errorSoFar)")
    _ = try stream.finish()
  }

  @Test func `a camera that delivers nothing has stalled, and is started anew`() throws {
    let directory = try TemporaryDirectory()
    let node = try Vivid.node(0)
    defer { try? Vivid.set(node, "percentage_of_dropped_buffers=0", in: directory) }
    let stream = try LoggedStream(["--source", node, "--size", "640x360"], in: directory)
    #expect(stream.says("streaming"))
    try Vivid.set(node, "percentage_of_dropped_buffers=100", in: directory)
    #expect(stream.says("camera lost: \(node): no picture for 2 seconds"), "\(stream.program.errorSoFar)")
    #expect(eventually { stream.state == "stalled" })
    let before = stream.packets.units.count
    #expect(eventually { stream.packets.units.count > before + 30 }, "placeholders")
    try Vivid.set(node, "percentage_of_dropped_buffers=0", in: directory)
    #expect(stream.says("camera is back after"), "\(stream.program.errorSoFar)")
    _ = try stream.finish()
    #expect(stream.packets.sequenceGaps == 0)
  }

  @Test func `a picture that no longer changes is reported, and that it moves again`() throws {
    let directory = try TemporaryDirectory()
    let node = try Vivid.node(0)
    defer { try? Vivid.set(node, "osd_text_mode=0", in: directory) }
    try Vivid.set(node, "osd_text_mode=2", in: directory)
    let stream = try LoggedStream(["--source", node, "--size", "640x360"], in: directory)
    #expect(stream.says("picture frozen since"), "\(stream.program.errorSoFar)")
    // A machine that is held up may lose the camera for a moment.
    #expect(eventually { stream.state == "frozen" })
    try Vivid.set(node, "osd_text_mode=0", in: directory)
    #expect(stream.says("picture moves again"), "\(stream.program.errorSoFar)")
    #expect(eventually { stream.state == "live" })
    _ = try stream.finish()
  }

  @Test func `a stream that waits shows so, and takes the camera when it comes`() throws {
    let directory = try TemporaryDirectory()
    let link = directory.path("camera")
    let stream = try LoggedStream(["--source", link, "--wait", "--size", "640x360"], in: directory)
    #expect(stream.says("no camera yet"), "\(stream.program.errorSoFar)")
    #expect(eventually { stream.state == "waiting" && stream.packets.units.count > 30 })
    // What is no camera is told once, and is no end.
    try "no camera".write(toFile: link, atomically: true, encoding: .utf8)
    #expect(stream.says("is not a video device"), "\(stream.program.errorSoFar)")
    try FileManager.default.removeItem(atPath: link)
    try FileManager.default.createSymbolicLink(atPath: link, withDestinationPath: try Vivid.node(0))
    #expect(stream.says("camera is there after"), "\(stream.program.errorSoFar)")
    let camera = (try stream.finish())["camera"] as? [String: Any]
    #expect(camera?["losses"] as? Int == stream.stalls && camera?["state"] as? String == "live")
    #expect(stream.packets.sequenceGaps == 0)
  }

  @Test func `a camera that comes back is flipped again by its driver, and given back as it was`() throws {
    let directory = try TemporaryDirectory()
    func flip() throws -> String {
      try Subprocess.run(["v4l2-ctl", "-d", try Vivid.node(0), "-C", "horizontal_flip"], in: directory).outputText
    }
    let stream = try LoggedStream(
      ["--source", try Vivid.node(0), "--size", "640x360", "--orientation", "180", "--control", "none"], in: directory)
    #expect(stream.says("streaming"), "\(stream.program.errorSoFar)")
    #expect(try flip().hasSuffix("1\n"))
    try Self.plug("unbind")
    #expect(stream.says("the camera was unplugged"), "\(stream.program.errorSoFar)")
    // A machine that is held up may have lost the camera before.
    let returns = stream.program.errorSoFar.components(separatedBy: "camera is back after").count
    try Self.plug("bind")
    #expect(stream.says("camera is back after", times: returns), "\(stream.program.errorSoFar)")
    #expect(try flip().hasSuffix("1\n"))
    _ = try stream.finish()
    #expect(try flip().hasSuffix("0\n"))
  }

  @Test func `a rotation without a camera applies to the placeholder and to the returning camera`() throws {
    let directory = try TemporaryDirectory()
    let stream = try LoggedStream(["--source", try Vivid.node(0), "--size", "640x360"], in: directory)
    #expect(stream.says("streaming"), "\(stream.program.errorSoFar)")
    try Self.plug("unbind")
    #expect(stream.says("camera lost"))
    let turn = try Subprocess.run([nightjarPath, "ctl", "--socket", stream.socket, "rotate", "90"], in: directory)
    #expect(turn.status == 0, "\(turn.error)")
    try Self.plug("bind")
    #expect(stream.says("camera is back after"), "\(stream.program.errorSoFar)")
    let before = stream.packets.units.count
    #expect(eventually { stream.packets.units.count > before + 30 && stream.state == "live" })
    let status = try Subprocess.run([nightjarPath, "ctl", "--socket", stream.socket, "status"], in: directory)
    #expect(
      status.listing.values(of: "orientation") == ["90 degrees, sent as 360x640; encoders exchanged once"],
      "\(status.outputText)")
    let figures = try stream.finish()
    #expect((figures["camera"] as? [String: Any])?["reopenings"] as? Int == 1 + stream.stalls)
    #expect(stream.packets.sequenceGaps == 0 && stream.packets.sourceCount == 1)
    #expect(stream.packets.steps(since: 0).longest < 1 + stream.heartbeat.longestPause)
  }

  @Test func `a node that is replaced by a file is told once, and the stream goes on`() throws {
    let directory = try TemporaryDirectory()
    let node = try Vivid.node(0)
    let stream = try LoggedStream(["--source", node, "--size", "640x360"], in: directory)
    #expect(stream.says("streaming"))
    try Self.plug("unbind")
    #expect(stream.says("camera lost"))
    try "no camera".write(toFile: node, atomically: false, encoding: .utf8)
    #expect(stream.says("\(node) is not a video device"), "\(stream.program.errorSoFar)")
    sleep(2)
    try FileManager.default.removeItem(atPath: node)
    try Self.plug("bind")
    #expect(stream.says("camera is back after"), "\(stream.program.errorSoFar)")
    _ = try stream.finish()
    #expect(stream.program.errorSoFar.components(separatedBy: "is not a video device").count == 2)
    #expect(stream.packets.sequenceGaps == 0)
  }

  @Test(arguments: [["--size", "648x482"], ["--size", "640x360", "--format", "mjpeg"]])
  func `with --wait, a camera without the requested size or format counts as missing`(
    wanted: [String]
  ) throws {
    let directory = try TemporaryDirectory()
    let stream = try LoggedStream(["--source", try Vivid.node(0), "--wait"] + wanted, in: directory)
    #expect(stream.says("no camera yet: the camera does not offer"), "\(stream.program.errorSoFar)")
    #expect(stream.says("streaming"), "\(stream.program.errorSoFar)")
    // Another size is scaled, another format is not taken.
    let state = wanted.count == 2 ? "live" : "waiting"
    #expect(eventually(within: 60) { stream.state == state }, "\(stream.camera) \(stream.program.errorSoFar)")
    _ = try stream.finish()
    #expect(stream.packets.sequenceGaps == 0)
  }

  @Test func `with --wait, a camera that gets no memory for its buffers is waited for`() throws {
    let directory = try TemporaryDirectory()
    let node = try Vivid.node(0)
    // Once for this: the driver has no buffers for the next that asks.
    try Vivid.set(node, "inject_vidioc_reqbufs_error=1", in: directory)
    let stream = try LoggedStream(["--source", node, "--size", "640x360", "--wait"], in: directory)
    #expect(stream.says("VIDIOC_REQBUFS"), "\(stream.program.errorSoFar)")
    #expect(eventually(within: 60) { stream.state == "live" }, "\(stream.camera) \(stream.program.errorSoFar)")
    _ = try stream.finish()
    #expect(stream.packets.sequenceGaps == 0)
  }

  @Test func `setting the clock moves nothing`() throws {
    let directory = try TemporaryDirectory()
    let stream = try LoggedStream(["--source", try Vivid.node(0), "--size", "640x360"], in: directory)
    #expect(stream.says("streaming"))
    try Self.plug("unbind")
    defer { try? Self.plug("bind") }
    #expect(stream.says("camera lost"))
    let start = PacketLog.now()
    var time = timespec()
    clock_gettime(CLOCK_REALTIME, &time)
    defer {
      time.tv_sec += Int(PacketLog.now() - start)
      clock_settime(CLOCK_REALTIME, &time)
    }
    for offset in [-3600, 86_400] {
      var other = timespec(tv_sec: time.tv_sec + offset, tv_nsec: 0)
      try #require(clock_settime(CLOCK_REALTIME, &other) == 0, "\(errno)")
      sleep(2)
    }
    let steps = stream.packets.steps(since: start)
    #expect(steps.shortest > 0 && steps.longest < 1 + stream.heartbeat.longestPause, "\(steps)")
    let seconds = stream.camera["seconds"] as? Double ?? -1
    #expect(seconds > 2 && seconds < 300, "\(seconds)")
    try Self.plug("bind")
    #expect(stream.says("camera is back after"), "\(stream.program.errorSoFar)")
    _ = try stream.finish()
    #expect(stream.packets.sequenceGaps == 0)
  }
}

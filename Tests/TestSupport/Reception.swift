public import Foundation

/// A stream from the program under test to ffmpeg, from its first packet to its last.
public struct Reception {
  /// The program's own figures, from `--stats-json`.
  public let statistics: [String: Any]
  /// What the program wrote to standard error.
  public let log: String
  /// What the receiver complained of.
  public let receiverLog: String
  /// The decoded pictures as I420, if they were asked for.
  public let pictures: URL
  /// How many pictures were decoded.
  public let pictureCount: Int

  /// Whether all pictures that were sent were decoded, but for the last ones: ffmpeg hears the end of a stream (RTCP
  /// BYE) before it takes the packets that still wait in its other socket, and on a busy machine there are some. A
  /// picture that is missing before is in ``receiverLog``.
  public var isWhole: Bool { receiverLog.isEmpty && (0...30).contains(figure("frames", "sent") - pictureCount) }

  /// A whole number of the program's figures, such as `["frames", "sent"]`.
  public func figure(_ path: String...) -> Int {
    var value: Any? = statistics
    for key in path { value = (value as? [String: Any])?[key] }
    return (value as? NSNumber)?.intValue ?? -1
  }

  /// Runs `nightjar stream` with `arguments` and an H.264 destination, and decodes everything with ffmpeg.
  ///
  /// A first short run writes the session description, so that ffmpeg listens before the stream begins: only then can
  /// the frames be compared one by one.
  ///
  /// - Parameter body: What is done while the program streams.
  public static func ofH264(
    _ arguments: [String], size: (width: Int, height: Int), host: String = "127.0.0.1", options: String = "",
    in directory: TemporaryDirectory, whileStreaming body: (Subprocess) throws -> Void = { _ in }
  ) throws -> Reception {
    let port = try UDPPort.free()
    let description = directory.path("\(port).sdp")
    let figures = directory.path("\(port).json")
    let pictures = directory.url.appendingPathComponent("\(port).yuv")
    let bracketed = host.contains(":") ? "[\(host)]" : host
    let stream =
      [nightjarPath, "stream"] + arguments + ["--to", "rtp://\(bracketed):\(port)\(options)", "--sdp", description]
    let prelude = try Subprocess.run(stream + ["--duration", "300ms"], in: directory)
    guard prelude.status == 0 else { throw Failed(log: prelude.error) }

    let receiver = try Subprocess(
      [
        // No probing, whose packets would be missing, and one thread, which holds no picture back.
        "ffmpeg", "-nostdin", "-v", "warning", "-protocol_whitelist", "file,udp,rtp", "-probesize", "32",
        "-analyzeduration", "0", "-threads", "1", "-flags", "low_delay", "-buffer_size", "400000", "-i", description,
        "-fps_mode", "passthrough", "-f", "rawvideo", "-pix_fmt",
        "yuv420p", "-flush_packets", "1", "-y", pictures.path,
      ], in: directory)
    guard try eventually({ try UDPPort.isBound(port) }) else {
      throw Failed(log: "the receiver does not listen: \(receiver.errorSoFar)")
    }
    let running = try Subprocess(stream + ["--stats-json", figures], in: directory)
    _ = eventually { running.errorSoFar.contains("streaming") || !running.isRunning }
    try body(running)
    let program = try running.wait(limit: 300)
    guard program.status == 0 else { throw Failed(log: program.error) }
    let statistics = try JSONSerialization.jsonObject(with: Data(contentsOf: URL(fileURLWithPath: figures)))
    let sent = ((statistics as? [String: Any])?["frames"] as? [String: Any])?["sent"] as? Int ?? 0

    // RTP has no end of its own here: wait until all pictures are there, or nothing more comes.
    let pictureBytes = size.width * size.height * 3 / 2
    func count() -> Int {
      let attributes = try? FileManager.default.attributesOfItem(atPath: pictures.path)
      return ((attributes?[.size] as? NSNumber)?.intValue ?? 0) / pictureBytes
    }
    // The decoder lets go of the last picture when it hears that there will be no other.
    // It has ended by itself where it heard so from the program.
    _ = eventually(within: 20) { count() >= sent - 1 || !receiver.isRunning }
    try UDPPort.send([0x80 | 1, 203, 0, 1, 0, 0, 0, 0], to: host, port: port + 1)
    let received = try receiver.wait(limit: 30)
    // That it was told not to probe, that nothing more came, and that two pictures of a jittering camera fall on one
    // tick of its own output's 30 Hz clock, are no complaints about the stream; nor is what it calls full range.
    let ownAffairs = [
      "not enough frames to estimate rate", "Connection timed out", "[rawvideo @", "deprecated pixel format used",
      "Last message repeated",
    ]
    let complaints = received.error.split(separator: "\n")
      .filter { line in !ownAffairs.contains { line.contains($0) } }
      .joined(separator: "\n")
    return Reception(
      statistics: statistics as? [String: Any] ?? [:], log: program.error, receiverLog: complaints,
      pictures: pictures, pictureCount: count())
  }

  /// The stream could not be had; the log says why.
  public struct Failed: Error, CustomStringConvertible {
    let log: String
    /// The log.
    public var description: String { log }
  }
}

import Foundation
import TestSupport
import Testing

/// The loopback interface of a network namespace, behind a token bucket.
private enum SlowLink {
  static func shaping(_ rate: String) -> String {
    "ip link set lo up && ip route add 239.0.0.0/8 dev lo && tc qdisc add dev lo root tbf rate \(rate) burst 64kb latency 5s"
  }

  /// `true` if this machine lets its users make such a network, for a program that has x264.
  static let isPossible: Bool = {
    #if X264
      guard let directory = try? TemporaryDirectory(),
        let result = try? Subprocess.run(["unshare", "-rn", "sh", "-c", shaping("1mbit")], in: directory, limit: 30)
      else { return false }
      return result.status == 0
    #else
      return false
    #endif
  }()
}

/// A network that is slower than the program.
@Suite(.serialized, .enabled(if: SlowLink.isPossible, "needs x264, user namespaces, and tc with its tbf"))
struct SlowLinkTests {
  /// Streams three pictures of noise `loops` times, two a second: more than a megabyte each, in packets so small that
  /// no socket's buffer holds them all. The figures, and what the program wrote to standard error.
  private func stream(
    over rate: String, loops: Int = 2, in directory: TemporaryDirectory
  ) throws -> (figures: [String: Any], log: String) {
    let clip = directory.path("noise.y4m")
    let (width, height) = (1920, 1080)
    var data = Data("YUV4MPEG2 W\(width) H\(height) F2:1 Ip C420jpeg\n".utf8)
    let noise = try FileHandle(forReadingFrom: URL(fileURLWithPath: "/dev/urandom"))
    for _ in 0..<3 {
      data += Data("FRAME\n".utf8)
      data += try #require(try noise.read(upToCount: width * height))
      data += Data(repeating: 128, count: width * height / 2)
    }
    try data.write(to: URL(fileURLWithPath: clip))
    let result = try Subprocess.run(
      [
        "unshare", "-rn", "sh", "-c", SlowLink.shaping(rate) + " && exec \"$@\"", "sh", nightjarPath, "stream",
        "--encoder", "x264", "--source", "file:\(clip)", "--loop", "\(loops)", "--rate-control", "cqp",
        "--quantizer", "24",
        // To a group, because nobody refuses what is sent there.
        "--keyframe-interval", "10s", "--to", "rtp://239.1.2.3:5004?mtu=250", "--stats-json", "-",
      ], in: directory, limit: 120)
    #expect(result.status == 0, "\(result.error)")
    let figures = try JSONSerialization.jsonObject(with: result.output) as? [String: Any]
    return (try #require(figures, "\(result.error)"), result.error)
  }

  private func figure(_ figures: [String: Any], _ group: String, _ name: String) throws -> Int {
    let values = try #require(figures[group] as? [String: Any])
    return try #require(values[name] as? Int)
  }

  private func lost(_ figures: [String: Any]) throws -> Int {
    try #require((figures["destinations"] as? [[String: Any]])?.first?["packets_lost"] as? Int)
  }

  @Test func `a picture that is larger than the socket's buffer gets through in its time`() throws {
    let directory = try TemporaryDirectory()
    let figures = try stream(over: "60mbit", loops: 4, in: directory).figures
    // None on a machine that is not busy; giving up 10 ms after the buffer is full would cost a quarter and more.
    let packets = try #require(figures["packets"] as? Int)
    #expect(try lost(figures) * 10 < packets)
    #expect(try figure(figures, "frames", "sent") > 1)
  }

  @Test func `a link that is too slow costs whole pictures, and a key frame after them`() throws {
    let directory = try TemporaryDirectory()
    // A picture takes a second, and there are two a second.
    let (figures, log) = try stream(over: "10mbit", loops: 6, in: directory)
    let slow = "rtp://239.1.2.3:5004?mtu=250: too slow for the stream, losing frames"
    #expect(ProgramLog(log).count(of: slow) > 0, "\(log)")
    // One every 10 s is asked for: all but the first are for the loss.
    #expect(try figure(figures, "frames", "key_frames") > 1)
    // What has begun goes on: packets are lost of the pictures alone that were on their way at the end.
    let packets = try #require(figures["packets"] as? Int)
    #expect(try lost(figures) < packets)
    // The encoder gets every picture, but for those that come before a busy host has encoded the one before.
    let frames = try #require(figures["frames"] as? [String: Any])
    let drops = try #require(frames["dropped_by_cause"] as? [String: Int])
    let captured = try figure(figures, "frames", "captured")
    let missed = try (drops["encoder_late"] ?? 0) + figure(figures, "frames", "thinned")
    #expect(try figure(figures, "frames", "encoded") + missed == captured, "\(frames)")
    // And such a host may come too late for a picture of the clip, or have no memory free for it.
    #expect(captured + (drops["driver"] ?? 0) + (drops["pool_exhausted"] ?? 0) == 18, "\(frames)")
  }
}

import Foundation
import TestSupport
import Testing

/// A player whose network takes less than the floor for a while, beside one that has none of its troubles.
@Suite(
  .serialized,
  .enabled(if: TwoNetworks.hasBuffers, "needs x264, user namespaces, veth, tc with its tbf, and their own /proc/sys"))
struct WeakViewerTests {
  /// The sizes in bytes of the pictures that a player has decoded, its complaints about them, and what `ctl viewers` printed of it
  /// in the weak time.
  private struct Outcome {
    var far: [Int]
    var near: [Int]
    var complaints: (far: String, near: String)
    var viewers: String
    var metrics: String
    /// The JSON of `ctl status` in the weak time.
    var status: String
    var log: String
  }

  /// - Parameters:
  ///   - rates: the bitrate, and what the weak network takes.
  ///   - environment: the variables of the program alone.
  private func watch(
    by transport: String, _ encoder: [String] = ["--encoder", "x264"],
    rates: (full: String, weak: String) = ("1500k", "300kbit"),
    environment: [String: String] = [:], in directory: TemporaryDirectory
  ) throws -> Outcome {
    let variables = environment.map { "'\($0.key)=\($0.value)'" }.joined(separator: " ")
    _ = try UsersFile.options(["anna": "horsebattery"], in: directory)
    func player(_ host: String, _ transport: String, _ name: String) -> String {
      "ffmpeg -nostdin -v warning -rtsp_transport \(transport) -threads 1 -flags low_delay -i rtsp://anna:horsebattery@\(host):8554/camera "
        + "-map 0:v -autoscale 0 -fps_mode passthrough -f framecrc -flush_packets 1 -y \(name).txt 2> \(name).err"
    }
    let script = """
      cd '\(directory.url.path)'
      cat > far.sh <<'END'
      for i in $(seq 600); do test -e streaming && break; sleep 0.1; done
      exec \(player("10.9.0.1", transport, "far"))
      END
      far='sh far.sh'; export far
      \(TwoNetworks.setup)
      ffmpeg -nostdin -v error -f lavfi -i testsrc2=size=320x240:rate=30,noise=alls=60:allf=t -t 3 -pix_fmt yuv420p \
        clip.y4m || exit 80
      # A near player that gets no processor for a while is no weak network: its socket keeps seconds of pictures. The
      # far player's socket is in another network, and keeps as little as ever.
      \(TwoNetworks.buffers) || exit 92
      env XDG_RUNTIME_DIR="$PWD" \(variables) '\(nightjarPath)' stream \(encoder.joined(separator: " ")) \
        --source file:clip.y4m --loop 100 --bitrate \(rates.full) \
        --keyframe-interval 1s --audio none --name camera --rtsp 0.0.0.0:8554 --users users \
        --http 127.0.0.1:8080 --control "$PWD/control" --duration 280s 2> log > /dev/null &
      stream=$!
      for i in $(seq 600); do grep -q '^streaming' log && break; sleep 0.1; done
      touch streaming
      \(player("127.0.0.1", "tcp", "near")) & near_id=$!
      pictures() { grep -cs '^0,' $1.txt; }
      for i in $(seq 600); do test "$(pictures far)" -gt 60 2> /dev/null && break; sleep 0.1; done
      tc qdisc add dev v0 root tbf rate \(rates.weak) burst 8kb latency 2s
      small() { '\(nightjarPath)' ctl viewers --socket "$PWD/control" --camera camera > viewers 2>&1; grep -q 'it gets 120p\\|network: 120p' viewers; }
      for i in $(seq 300); do small && break; sleep 0.1; done
      sleep 10
      curl -s http://127.0.0.1:8080/metrics > metrics
      '\(nightjarPath)' ctl status --socket "$PWD/control" --camera camera --json > status
      tc qdisc del dev v0 root
      # On a busy machine the first full pictures may come late enough to look like a weak network.
      full() { ! small && test "$(tail -n 30 far.txt | grep -c ' 115200,')" = 30; }
      for i in $(seq 1200); do full && break; sleep 0.1; done
      kill $stream
      wait $stream
      cat log >&2
      for id in $far_id $near_id; do
        for i in $(seq 200); do kill -0 $id 2> /dev/null || break; sleep 0.1; done
      done
      kill -9 $far_id $near_id 2> /dev/null
      wait $far_id $near_id
      exit 0
      """
    let result = try TwoNetworks.run(script, in: directory, limit: 400)
    #expect(result.status == 0, "\(result.error)")
    func text(_ name: String) throws -> String {
      try String(contentsOf: directory.url.appendingPathComponent(name), encoding: .utf8)
    }
    func sizes(_ name: String) throws -> [Int] {
      try text("\(name).txt").split(separator: "\n").filter { !$0.hasPrefix("#") }.map { line in
        let fields = line.split(separator: ",").map { $0.trimmingCharacters(in: .whitespaces) }
        return try #require(fields.count > 4 ? Int(fields[4]) : nil, "\(line)")
      }
    }
    /// Returns the decoder's complaints about pictures; that packets were missed is no wonder.
    func complaints(_ name: String) throws -> String {
      try text("\(name).err").split(separator: "\n").filter { line in
        [
          "conceal", "error while decoding", "corrupt", "Missing reference", "reference picture", "mmco",
          "non-existing",
        ]
        .contains { line.contains($0) }
      }.joined(separator: "\n")
    }
    return Outcome(
      far: try sizes("far"), near: try sizes("near"), complaints: (try complaints("far"), try complaints("near")),
      viewers: try text("viewers"), metrics: try text("metrics"), status: try text("status"), log: result.error)
  }

  @Test(arguments: ["tcp", "udp"])
  func `a weak network gets small pictures by RTSP, and full ones again, and the other player loses none`(
    transport: String
  )
    throws
  {
    // By UDP, ffmpeg reports after each 280 kB: twice the bitrate takes half the time.
    let rates = transport == "udp" ? ("3000k", "600kbit") : ("1500k", "300kbit")
    let outcome = try watch(by: transport, rates: rates, in: try TemporaryDirectory())
    try check(outcome, losesDatagrams: transport == "udp")
  }

  @Test func `a weak network gets small pictures by VA-API, and full ones again`() throws {
    try #require(StrictVADriver.isBuilt)
    let directory = try TemporaryDirectory()
    let node = directory.path("node")
    let log = directory.path("violations")
    try Data().write(to: URL(fileURLWithPath: node))
    // More than three seconds for a picture: a machine that is busy with other tests is no hang.
    let outcome = try watch(
      by: "tcp", ["--encoder", "auto", "--vaapi-device", "'\(node)'", "--hang-limit", "100"],
      environment: StrictVADriver.environment(node: node, log: log), in: directory)
    try check(outcome)
    #expect(StrictVADriver.violations(in: log).isEmpty, "\(StrictVADriver.violations(in: log))")
    let status = try #require(JSONSerialization.jsonObject(with: Data(outcome.status.utf8)) as? [String: Any])
    let rendition = try #require(status["small_rendition"] as? [String: Any], "\(outcome.status)")
    #expect((rendition["encoder"] as? String)?.hasPrefix("VA-API") == true, "\(rendition)")
    #expect(rendition["failures"] as? Int == 0 && rendition["failovers"] as? Int == 0, "\(rendition)")
    let encoder = try #require(status["encoder"] as? [String: Any])
    #expect((encoder["name"] as? String)?.hasPrefix("VA-API") == true, "\(encoder)")
  }

  /// - Parameter losesDatagrams: `true` if the weak network may cut pictures until the program knows of it.
  private func check(_ outcome: Outcome, losesDatagrams: Bool = false) throws {
    let (full, small) = (320 * 240 * 3 / 2, 160 * 120 * 3 / 2)
    #expect(Set(outcome.near) == [full], "\(outcome.log)")
    #expect(outcome.complaints.near.isEmpty, "\(outcome.complaints.near)")
    #expect(outcome.complaints.far.isEmpty || losesDatagrams, "\(outcome.complaints.far)")
    #expect(Set(outcome.far) == [full, small], "\(outcome.far.count) pictures, \(outcome.viewers), \(outcome.log)")
    // Ten seconds at least, of which most were seen.
    let weak = outcome.far.count { $0 == small }
    #expect(weak > 100, "\(weak) small pictures")
    #expect(outcome.far.last == full, "\(outcome.viewers)")
    #expect(outcome.metrics.contains(#"nightjar_small_picture_viewers{camera="camera"} 1"#), "\(outcome.metrics)")
    #expect(outcome.metrics.contains(#"nightjar_viewer_small_picture_height{camera="camera",viewer="#))
  }
}

import Foundation
import TestSupport
import Testing

/// Receivers that are no RTSP players, and whose network takes less than the floor for a while: a given destination, and a browser's peer.
@Suite(.serialized, .enabled(if: TwoNetworks.isPossible, "needs x264, user namespaces, veth, and tc with its tbf"))
struct WeakReceiverTests {
  private static let clients = URL(fileURLWithPath: #filePath).deletingLastPathComponent().path + "/Clients"

  /// Streams to a receiver in the far network. Its network gets weak, until some time after it gets small pictures, and strong again.
  ///
  /// - Parameters:
  ///   - far: the commands of the receiver, which ends once the file `over` is there. It begins before the program.
  ///   - options: the options of the program.
  ///   - rate: what the weak network takes.
  ///   - settling: the seconds in which two more reports come.
  /// - Returns: what the program printed.
  private func weaken(
    _ far: String, _ options: String, rate: String, settling: Int, in directory: TemporaryDirectory
  ) throws -> String {
    let script = """
      cd '\(directory.url.path)'
      cat > far.sh <<'END'
      \(far)
      END
      far='sh far.sh'; export far
      \(TwoNetworks.setup)
      ffmpeg -nostdin -v error -f lavfi -i testsrc2=size=320x240:rate=15,noise=alls=60:allf=t -t 3 -pix_fmt yuv420p \
        clip.y4m || exit 80
      XDG_RUNTIME_DIR="$PWD" '\(nightjarPath)' stream --encoder x264 --source file:clip.y4m --loop 200 --bitrate 1500k \
        --keyframe-interval 1s --name camera --control "$PWD/control" --duration 400s \(options) 2> log > /dev/null &
      stream=$!
      viewers() { '\(nightjarPath)' ctl viewers --socket "$PWD/control" --camera camera > viewers 2>&1; }
      small() { viewers; grep -q 'it gets 120p\\|network: 120p' viewers; }
      for i in $(seq 600); do viewers; grep -q 'it reports' viewers && break; sleep 0.1; done
      sleep \(settling)
      tc qdisc add dev v0 root tbf rate \(rate) burst 8kb latency 2s
      for i in $(seq 900); do small && break; sleep 0.1; done
      small || echo "no small pictures: $(cat viewers)" >&2
      sleep 8
      tc qdisc del dev v0 root
      # On a busy machine the first full pictures may come late enough to look like a weak network. The seconds count: a
      # question takes a good part of one there.
      begun=$(date +%s); last=$begun
      while now=$(date +%s); [ $((now - last)) -lt 6 ] && [ $((now - begun)) -lt 160 ]; do
        if small; then last=$(date +%s); fi
        sleep 0.4
      done
      [ $((now - last)) -ge 6 ] || echo "no full pictures: $(cat viewers)" >&2
      touch over
      wait $far_id
      status=$?
      kill $stream
      wait $stream
      cat log >&2
      exit $status
      """
    let result = try TwoNetworks.run(
      script, in: directory,
      environment: [
        "STATE_DIRECTORY": directory.path("state"), "HOME": directory.url.path,
      ], limit: 400)
    #expect(result.status == 0, "\(result.error.suffix(5000))")
    // The script's own.
    let complaints = ["no small pictures: ", "no full pictures: "]
    let isWell = result.log.lines.allSatisfy { line in !complaints.contains { line.hasPrefix($0) } }
    #expect(isWell, "\(result.error.suffix(5000))")
    return result.error
  }

  @Test func `a destination by UDP that reports by RTCP gets small pictures, and full ones again`() throws {
    let directory = try TemporaryDirectory()
    let log = try weaken(
      "exec /usr/bin/python3 '\(Self.clients)/gst_receiver.py' 10.9.0.2 5004 far.h264 over",
      // GStreamer reports each five seconds.
      "--audio none --to rtp://10.9.0.2:5004", rate: "300kbit", settling: 12, in: directory)
    let decoded = try Subprocess.run(
      [
        "ffmpeg", "-nostdin", "-v", "error", "-threads", "1", "-f", "h264", "-i", directory.path("far.h264"),
        "-autoscale", "0",
        "-fps_mode", "passthrough", "-f", "framecrc", "-",
      ], in: directory, limit: 120)
    let sizes = decoded.outputText.split(separator: "\n").filter { !$0.hasPrefix("#") }.compactMap { line in
      let fields = line.split(separator: ",").map { $0.trimmingCharacters(in: .whitespaces) }
      return fields.count > 4 ? Int(fields[4]) : nil
    }
    let (full, small) = (320 * 240 * 3 / 2, 160 * 120 * 3 / 2)
    // Datagrams are lost before the weak network is known, but no parameter sets are taken for others.
    #expect(Set(sizes) == [full, small], "\(sizes.count) pictures: \(log.suffix(3000))")
    #expect(sizes.first == full && sizes.last == full)
    let weak = sizes.count { $0 == small }
    #expect(weak > 50, "\(weak) small pictures of \(sizes.count)")
  }

  @Test func `a peer by WebRTC gets small pictures in its stream, and full ones again`() throws {
    let directory = try TemporaryDirectory()
    try UsersFile.add("anna", "correct horse", in: directory)
    // The sound, which is a stream of its own, takes a part.
    _ = try weaken(
      """
      for i in $(seq 600); do curl -sko /dev/null --max-time 1 https://10.9.0.1:8443/ && break; sleep 0.1; done
      exec /usr/bin/python3 '\(Self.clients)/peer.py' https://10.9.0.1:8443/whep seconds=1 until=over limit=350 \
        'login=anna:correct horse' > told.json
      """, "--audio test --https 10.9.0.1:8443 --webrtc-port 0 --users users", rate: "400kbit", settling: 4,
      in: directory)
    let text = try Data(contentsOf: URL(fileURLWithPath: directory.path("told.json")))
    let told = try #require(JSONSerialization.jsonObject(with: text) as? [String: Any])
    let runs = try #require(told["runs"] as? [[Int]], "\(told)")
    #expect(Set(runs.map { Array($0.prefix(2)) }) == [[320, 240], [160, 120]], "\(runs)")
    #expect(runs.first?.first == 320 && runs.last?.first == 320, "\(runs)")
    let weak = runs.filter { $0.first == 160 }.reduce(0) { $0 + ($1.last ?? 0) }
    #expect(weak > 50, "\(runs)")
  }
}

import CLinux
import Foundation
import TestSupport
import Testing

/// Two network namespaces of the test's own, joined by a pair of interfaces: 10.9.0.1 on `v0`, where the program is,
/// and 10.9.0.2 on the other side.
enum TwoNetworks {
  /// Makes them, with `$far` run in the far one once it is there; what follows runs in the near one, and has no better claim to a
  /// processor than other programs. See ``run(_:in:environment:limit:)``.
  static let setup = """
    unshare -n sh -c 'touch ready; for i in $(seq 200); do test -e go && break; sleep 0.1; done
      ip link set lo up; ip addr add 10.9.0.2/24 dev v1; ip link set v1 up; touch there; eval "exec $far"' & far_id=$!
    chrt -o -p 0 $$ > /dev/null 2>&1
    for i in $(seq 200); do test -e ready && break; sleep 0.1; done
    ip link set lo up && ip link add v0 type veth peer name v1 && ip link set v1 netns $far_id || exit 90
    ip addr add 10.9.0.1/24 dev v0 && ip link set v0 up || exit 91
    touch go
    for i in $(seq 200); do test -e there && break; sleep 0.1; done
    """

  /// Runs a script that has ``setup``. What runs in the far network gets a processor at once, where this machine's user may order that:
  /// it stands for another computer. A receiver that waits for a processor reports late, as one on a weak network does.
  static func run(
    _ script: String, in directory: TemporaryDirectory, environment: [String: String] = [:], limit: Double
  ) throws -> Subprocess.Result {
    let words = RequestedPriority.isAllowed ? RequestedPriority.words : []
    return try Subprocess.run(
      words + ["unshare", "-rn", "sh", "-c", script], in: directory, environment: environment, limit: limit)
  }

  /// `true` if this machine lets its users make such networks, for a program that has x264.
  static var isPossible: Bool { abilities.contains("networks") }
  /// `true` if a network there may refuse a protocol by a rule, too.
  static var hasRules: Bool { isPossible && abilities.contains("rules") }
  /// `true` if a socket there may keep more than usual, too.
  static var hasBuffers: Bool { isPossible && abilities.contains("buffers") }
  /// The command that refuses all UDP, of page-blocked.py.
  private static let rule = "ip rule add pref 1 ipproto udp blackhole"
  /// The command for the room of TCP's sockets.
  static let buffers = "echo '4096 4194304 6291456' > /proc/sys/net/ipv4/tcp_rmem"

  /// The words for what this machine lets its users do.
  private static let abilities: Set<Substring> = {
    #if X264
      let script = """
        far='sleep 2'; export far
        \(setup)
        tc qdisc add dev v0 root tbf rate 1mbit burst 16kb latency 5s && echo networks
        \(rule) && echo rules
        \(buffers) && echo buffers
        """
      guard let directory = try? TemporaryDirectory(),
        let result = try? Subprocess.run(
          ["unshare", "-rn", "sh", "-c", "cd '\(directory.url.path)'\n\(script)"], in: directory, limit: 60)
      else { return [] }
      return Set(result.outputText.split(separator: "\n"))
    #else
      return []
    #endif
  }()
}

/// A viewer on a network in trouble, beside one that has none; ffmpeg decodes what both get.
@Suite(.serialized, .enabled(if: TwoNetworks.isPossible, "needs x264, user namespaces, veth, and tc with its tbf"))
struct NetworkTroubleTests {
  private struct Outcome {
    let frames: Int
    let far: Int
    let near: Int
    /// The pictures that the far viewer had decoded when its way was found again; 0 where that was not awaited.
    let farBefore: Int
    let farComplaints: String
    let nearComplaints: String
    let farLost: Int
    let nearLost: Int
    /// The datagrams for which the near viewer's socket had no room, because the viewer got no processor for a while.
    let nearDropped: Int
    /// The median of the milliseconds in which a picture was sent to both.
    let sending: Double
    let log: String
  }

  /// The shell's wait until the program says that the far viewer is reachable, and until that viewer has half a second
  /// of pictures more than it had by then. The file `found` has their number by then.
  private static let awaitingReturn = """
    for i in $(seq 300); do grep -qx 'rtp://10.9.0.2:5004: reachable' log && break; sleep 0.1; done
    grep -c '^0,' 10.9.0.2.txt > found
    for i in $(seq 300); do test $(grep -c '^0,' 10.9.0.2.txt) -ge $(($(cat found) + 15)) && break; sleep 0.1; done
    """

  /// The shell's functions: the number of pictures that a viewer has, the wait until it has so many, and the time of an
  /// outage, which takes two seconds and 25 pictures, and until the program has told of it.
  private static let counting = """
    pictures() { cat $1.txt 2> /dev/null | grep -c '^0,'; }
    reaches() { for i in $(seq 300); do test $(pictures $1) -ge $2 && break; sleep 0.1; done; }
    tells() { for i in $(seq 300); do grep -q '^rtp://10.9.0.2:5004: ' log && break; sleep 0.1; done; }
    outage() { before=$(pictures 127.0.0.1); sleep 2; reaches 127.0.0.1 $((before + 25)); tells; }
    """

  /// Streams for some seconds to both, while `trouble` runs in a shell of its own some seconds later.
  ///
  /// - Parameters:
  ///   - lasting: The least seconds of the stream.
  ///   - before: The commands for the networks before the stream begins.
  ///   - further: The commands that take the time for which the stream goes on after that.
  private func run(
    _ trouble: String, after seconds: Int = 2, lasting: Int = 6, before: String = "true", further: String = "true"
  ) throws -> Outcome {
    let directory = try TemporaryDirectory()
    func description(_ host: String) throws -> [String] {
      let text = """
        v=0\r\no=- 1 1 IN IP4 10.9.0.1\r\ns=-\r\nc=IN IP4 \(host)\r\nt=0 0\r\nm=video 5004 RTP/AVP 96\r\n\
        a=rtpmap:96 H264/90000\r\na=fmtp:96 packetization-mode=1\r\nm=audio 5010 RTP/AVP 0\r\n
        """
      // The other stream, of which nothing comes, keeps ffmpeg from ending at the program's BYE before it has read all.
      try Data(text.utf8).write(to: directory.url.appendingPathComponent("\(host).sdp"))
      return [
        "ffmpeg", "-nostdin", "-v", "warning", "-protocol_whitelist", "file,udp,rtp", "-probesize", "32",
        "-analyzeduration", "0", "-threads", "1", "-flags", "low_delay", "-buffer_size", "4000000", "-i", "\(host).sdp",
        "-map", "0:v",
        "-fps_mode", "passthrough", "-f", "framecrc", "-flush_packets", "1", "-y", "\(host).txt",
      ]
    }
    let far = try description("10.9.0.2").joined(separator: " ") + " 2> 10.9.0.2.err"
    let near = try description("127.0.0.1").joined(separator: " ") + " 2> 127.0.0.1.err"
    let script = """
      cd '\(directory.url.path)'
      far='\(far)'; export far
      \(TwoNetworks.setup)
      \(before)
      \(near) & near_id=$!
      \(Self.counting)
      # Sockets at port 5004, with what waits in them.
      sockets() { cat /proc/$far_id/net/udp /proc/$near_id/net/udp | grep ':138C '; }
      for i in $(seq 300); do test $(sockets | wc -l) = 2 && break; sleep 0.1; done
      '\(nightjarPath)' stream --encoder x264 --source test --size 320x240 --fps 30 --bitrate 2M \
        --keyframe-interval 600s --to rtp://10.9.0.2:5004 --to rtp://127.0.0.1:5004 \
        --stats-json figures.json 2> log &
      stream=$!
      for i in $(seq 600); do grep -q '^streaming' log && break; sleep 0.1; done
      # The first picture may come later than that line.
      for i in $(seq 600); do grep -qs '^0,' 127.0.0.1.txt && break; sleep 0.1; done
      (sleep \(seconds); \(trouble)) > trouble.log 2>&1 &
      sleep \(lasting)
      reaches 127.0.0.1 50
      \(further)
      kill $stream
      wait $stream
      status=$?
      cat log >&2
      # What is still on its way to the far one does not matter.
      for i in $(seq 300); do sockets | grep -vq ' 00000000:00000000 ' || break; sleep 0.1; done
      cat /proc/$near_id/net/udp > near.udp
      # RTCP BYE for the other stream, as long as ffmpeg takes it.
      bye='import socket, sys
      s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
      s.sendto(bytes([129, 203, 0, 2, 0, 0, 0, 0, 3]) + b"end", (sys.argv[1], 5011))'
      nsenter -t $far_id -n python3 -c "$bye" 10.9.0.2
      python3 -c "$bye" 127.0.0.1
      # One after the other: `kill -0` of two fails as soon as one of them has ended.
      for id in $far_id $near_id; do
        for i in $(seq 200); do kill -0 $id 2> /dev/null || break; sleep 0.1; done
      done
      kill -9 $far_id $near_id 2> /dev/null
      wait $far_id $near_id
      cat trouble.log >&2
      exit $status
      """
    let result = try TwoNetworks.run(script, in: directory, limit: 180)
    #expect(result.status == 0, "\(result.error)")
    let figures = try #require(
      try JSONSerialization.jsonObject(with: Data(contentsOf: directory.url.appendingPathComponent("figures.json")))
        as? [String: Any])
    let destinations = try #require(figures["destinations"] as? [[String: Any]])
    func number(_ value: Any?) -> Double { (value as? NSNumber)?.doubleValue ?? -1 }
    func text(_ name: String) throws -> String {
      try String(contentsOf: directory.url.appendingPathComponent(name), encoding: .utf8)
    }
    func pictures(_ host: String) throws -> Int {
      try text("\(host).txt").split(separator: "\n").filter { !$0.hasPrefix("#") }.count
    }
    /// Returns the decoder's complaints about pictures; that packets were missed is no wonder.
    func complaints(_ host: String) throws -> String {
      try text("\(host).err").split(separator: "\n").filter { line in
        ["conceal", "error while decoding", "corrupt", "Missing reference", "reference picture", "mmco"].contains {
          line.contains($0)
        }
      }.joined(separator: "\n")
    }
    // The second field is the socket's own address, and the last one what it had no room for.
    let nearSockets = try text("near.udp").split(separator: "\n").map { $0.split(separator: " ") }
      .filter { $0.count > 4 && $0[1].hasSuffix(":138C") }
    let sending = (figures["latency_ms"] as? [String: Any])?["send"] as? [String: Any]
    return Outcome(
      frames: Int(number((figures["frames"] as? [String: Any])?["sent"])), far: try pictures("10.9.0.2"),
      near: try pictures("127.0.0.1"), farBefore: (try? text("found")).flatMap { Int($0.filter(\.isNumber)) } ?? 0,
      farComplaints: try complaints("10.9.0.2"),
      nearComplaints: try complaints("127.0.0.1"), farLost: Int(number(destinations.first?["packets_lost"])),
      nearLost: Int(number(destinations.last?["packets_lost"])),
      nearDropped: nearSockets.reduce(0) { $0 + (Int($1.last ?? "") ?? 0) },
      sending: number(sending?["p50"]),
      log: result.error)
  }

  /// The good viewer has everything, at once.
  private func checkNear(_ outcome: Outcome) {
    #expect(outcome.frames > 40, "\(outcome.log)")
    // A datagram that is missing is a picture at most.
    let dropped = outcome.nearDropped
    let whole = outcome.frames - dropped...outcome.frames
    #expect(whole.contains(outcome.near), "\(outcome.near) of \(outcome.frames), \(dropped) datagrams dropped")
    #expect(outcome.nearLost == 0)
    #expect(outcome.nearComplaints.isEmpty || dropped > 0, "\(outcome.nearComplaints)")
    // A viewer that held the other up would do it with every picture. The slowest of some hundred pictures may have
    // waited for the processor alone.
    #expect(outcome.sending >= 0 && outcome.sending < 100, "\(outcome.sending)")
  }

  @Test func `a viewer on a slow link gets whole pictures only, and the other all of them in time`() throws {
    // The test picture takes some 230 kbit/s, and 80 where ten come in a second. A key frame takes a second or two
    // here, also at the end.
    let outcome = try run(
      "true", lasting: 5, before: "tc qdisc add dev v0 root tbf rate 40kbit burst 4kb latency 20s",
      further: "reaches 10.9.0.2 6; for i in $(seq 300); do grep -q ': too slow for' log && break; sleep 0.1; done")
    checkNear(outcome)
    #expect(outcome.far > 5 && outcome.far < outcome.frames * 9 / 10, "\(outcome.far) of \(outcome.frames)")
    #expect(outcome.farComplaints.isEmpty, "\(outcome.farComplaints)")
    let slow = ProgramLog(outcome.log).lines.filter { $0.hasSuffix(": too slow for the stream, losing frames") }
    #expect(
      Set(slow) == ["rtp://10.9.0.2:5004: too slow for the stream, losing frames"], "\(outcome.log)")
  }

  @Test func `an interface that is too narrow for segmentation offload gets fragments, and loses nothing`() throws {
    let outcome = try run("true", before: "ip link set v0 mtu 1000")
    checkNear(outcome)
    #expect(outcome.farLost == 0)
    #expect(outcome.far >= outcome.frames - 10, "\(outcome.far) of \(outcome.frames)")
    #expect(outcome.farComplaints.isEmpty, "\(outcome.farComplaints)")
  }

  // nightjar looks once a second which ways are gone: one that is back sooner may go and come between two looks.
  @Test(arguments: [
    "ip link set v0 down; outage; ip link set v0 up",
    "ip addr del 10.9.0.1/24 dev v0; outage; ip addr add 10.9.0.7/24 dev v0",
    "ip route del 10.9.0.0/24; outage; ip route add 10.9.0.0/24 dev v0",
    // EACCES, as from a firewall.
    "ip route add prohibit 10.9.0.2/32; outage; ip route del prohibit 10.9.0.2/32",
    "ip route add unreachable 10.9.0.2/32; outage; ip route del unreachable 10.9.0.2/32",
  ])
  func `a way that is gone for two seconds is found again, and the other viewer notices nothing`(trouble: String) throws
  {
    let outcome = try run("reaches 10.9.0.2 15; \(trouble)", further: Self.awaitingReturn)
    checkNear(outcome)
    #expect(outcome.farLost > 0, "\(outcome.log)")
    // Fifteen pictures were before it. What comes after it begins with a key frame, which would be ten minutes away
    // otherwise.
    #expect(
      outcome.farBefore > 10 && outcome.far >= outcome.farBefore + 15,
      "\(outcome.far) of \(outcome.frames), \(outcome.farBefore) before: \(outcome.log)")
    #expect(outcome.far < outcome.near - 10)
    #expect(outcome.farComplaints.isEmpty, "\(outcome.farComplaints)")
    let log = ProgramLog(outcome.log)
    #expect(log.count(of: "rtp://10.9.0.2:5004: reachable") >= 1, "\(outcome.log)")
    #expect(!log.lines.contains { $0.hasSuffix(": too slow for the stream, losing frames") }, "\(outcome.log)")
  }
}

import CLinux
import Foundation
import TestSupport
import Testing

/// Destinations that are not there when the program starts, as before DHCP and the name server.
@Suite struct MissingDestinationTests {
  /// `true` if this machine lets its users make networks and mount files.
  private static let isPossible = runs(
    "ip link set lo up && ip link add v0 type veth peer name v1 && mount --bind /dev/null /etc/hosts")
  /// `true` if they may also choose their name server.
  private static let canChooseNameServer = isPossible && runs("mount --bind /dev/null /etc/resolv.conf")

  private static func runs(_ script: String) -> Bool {
    guard let directory = try? TemporaryDirectory() else { return false }
    return (try? Subprocess.run(["unshare", "-rmn", "sh", "-c", script], in: directory))?.status == 0
  }

  /// Waits in a shell until `condition` holds; ends the script with what the program said where it never does.
  private static func await(_ condition: String) -> String {
    "for i in $(seq 1200); do \(condition) && break; sleep 0.1; done; \(condition) || { cat log >&2; kill -9 $stream; exit 92; }"
  }

  /// The program's command, without a destination.
  private static let command =
    "'\(nightjarPath)' stream --encoder x264 --source test --size 320x240 --control none"

  /// Runs `script` in namespaces of its own, the program with `arguments` beside it; it leaves its end to this.
  /// `preparation` comes before the program.
  private static func run(
    _ arguments: String, _ script: String, after preparation: String = "", in directory: TemporaryDirectory
  ) throws -> Subprocess.Result {
    let whole = """
      cd '\(directory.url.path)'
      ip link set lo up
      echo '127.0.0.1 localhost' > hosts
      mount --bind hosts /etc/hosts || exit 90
      \(preparation)
      \(command) \(arguments) 2> log &
      stream=$!
      \(script)
      status=$?
      kill $stream
      wait $stream || exit 91
      cat log >&2
      exit $status
      """
    return try Subprocess.run(["unshare", "-rmn", "sh", "-c", whole], in: directory, limit: 300)
  }

  private static let watching =
    "timeout 60 ffmpeg -nostdin -v error -rtsp_transport tcp -i rtsp://127.0.0.1:8554/camera -frames:v 5 -f framecrc -"
  private static let receiving =
    "timeout 60 ffmpeg -nostdin -v error -protocol_whitelist file,udp,rtp -i s.sdp -frames:v 5 -f framecrc -"

  #if X264
    @Test(
      .enabled(if: isPossible, "needs user namespaces"),
      arguments: [
        ("rtp://239.8.7.6:5004?ssm=1&loop=1", "no route"), ("rtp://232.8.7.6:5004?loop=1", "no route"),
        ("rtp://239.8.7.6:5004?interface=v0&loop=1", "no interface"),
      ])
    func `a group without its route or interface gets the stream once that is there`(url: String, words: String) throws
    {
      let directory = try TemporaryDirectory()
      let result = try Self.run(
        "--rtsp 127.0.0.1:8554 --x264-preset ultrafast --to '\(url)' --sdp s.sdp",
        """
        \(Self.await("grep -q 'nightjar tries again' log"))
        \(Self.watching) || exit 93
        test -s s.sdp && exit 94
        ip link add v0 type veth peer name v1 && ip addr add 10.9.7.1/24 dev v0 || exit 95
        ip link set v0 up && ip link set v1 up || exit 95
        ip route add 224.0.0.0/4 dev v0 || exit 96
        \(Self.await("test -s s.sdp"))
        \(Self.receiving)
        """, in: directory)
      #expect(result.status == 0, "\(result.error)")
      #expect(result.outputText.split(separator: "\n").count { $0.hasPrefix("0,") } == 10, "\(result.outputText)")
      let lines = result.error.split(separator: "\n")
      #expect(lines.count { $0.contains(words) && $0.hasSuffix("; nightjar tries again") } == 1, "\(result.error)")
      #expect(lines.count { $0.contains("\(url.prefix(20))") && $0.hasSuffix("is there now") } == 1, "\(result.error)")
    }

    @Test(.enabled(if: isPossible, "needs user namespaces"))
    func `a source-specific group waits for the address of its interface, which receivers must know`() throws {
      let directory = try TemporaryDirectory()
      let url = "rtp://232.8.7.6:5004?interface=v0&loop=1&sap=1"
      let result = try Self.run(
        "--rtsp 127.0.0.1:8554 --x264-preset ultrafast --to '\(url)' --sdp s.sdp",
        """
        \(Self.await("grep -q 'no interface' log"))
        ip link add v0 type veth peer name v1 && ip link set v0 up && ip link set v1 up || exit 95
        \(Self.await("grep -q 'no address yet' log"))
        test -s s.sdp && exit 94
        ip addr add 10.9.7.1/24 dev v0 || exit 96
        \(Self.await("test -s s.sdp"))
        grep -q 'source-filter: incl IN IP4 232.8.7.6 10.9.7.1' s.sdp || exit 97
        """, in: directory)
      #expect(result.status == 0, "\(result.error)")
      let lines = result.error.split(separator: "\n")
      #expect(lines.count { $0.contains("no address yet") && $0.hasSuffix("; nightjar tries again") } == 1)
      #expect(lines.count { $0.contains("232.8.7.6") && $0.hasSuffix("is there now") } == 1, "\(result.error)")
    }

    @Test(.enabled(if: isPossible, "needs user namespaces"))
    func `a group whose route comes later is joined then, to hear its receivers`() throws {
      let directory = try TemporaryDirectory()
      // The group as /proc/net/igmp has it.
      let isMember = "grep -q 060708EF /proc/net/igmp"
      let result = try Self.run(
        "--to rtp://239.8.7.6:5004",
        """
        \(Self.await("grep -q unreachable log"))
        \(isMember) && exit 93
        ip link add v0 type veth peer name v1 && ip addr add 10.9.7.1/24 dev v0 || exit 95
        ip link set v0 up && ip link set v1 up || exit 95
        ip route add 224.0.0.0/4 dev v0 || exit 96
        \(Self.await(isMember))
        """, in: directory)
      #expect(result.status == 0, "\(result.error)")
    }

    @Test(
      .enabled(if: isPossible, "needs user namespaces"),
      arguments: [
        ("--rtsp 127.0.0.1:8554", "--to rtp://127.0.0.1:5008", watching, 5),
        // Without RTSP, and without another destination.
        ("--http 127.0.0.1:8080", "", "curl -fsS --max-time 60 -o now.jpg http://127.0.0.1:8080/snapshot.jpg", 0),
      ])
    func `a host without an address keeps nobody from watching, and gets the stream once it has one`(
      server: String, other: String, watching: String, pictures: Int
    ) throws {
      let directory = try TemporaryDirectory()
      let result = try Self.run(
        "\(server) --to rtp://late-host:5004 \(other) --sdp s.sdp",
        """
        \(Self.await("grep -q 'nightjar tries again' log"))
        \(watching) || exit 93
        # The second destination's, whichever is there first.
        \(Self.await(other.isEmpty ? "true" : "test -s s-2.sdp"))
        test -s s.sdp && exit 94
        echo '127.0.0.1 late-host' >> hosts
        \(Self.await("test -s s.sdp"))
        \(Self.receiving)
        """, in: directory)
      #expect(result.status == 0, "\(result.error)")
      let count = result.outputText.split(separator: "\n").count { $0.hasPrefix("0,") }
      #expect(count == pictures + 5, "\(result.outputText)")
      let log = result.log
      let missing = "cannot find the host 'late-host': "
      #expect(log.warnings.count { $0.hasPrefix(missing) } == 1, "\(result.error)")
      #expect(log.count(of: "rtp://late-host:5004 is there now") == 1, "\(result.error)")
    }

    @Test(.enabled(if: canChooseNameServer, "needs user namespaces, and a resolv.conf"))
    func `a silent name server keeps no other destination waiting, and an only one is told of`() throws {
      let directory = try TemporaryDirectory()
      let named = "rtp://cam.example.org:5004"
      let result = try Self.run(
        "--to \(named) --to rtp://127.0.0.1:5008 --sdp s.sdp",
        """
        \(Self.command) --to \(named) 2> only &
        only=$!
        \(Self.await("test -s s-2.sdp"))
        grep -q 'cannot find' log && exit 93
        \(Self.await("grep -q 'no answer yet' only"))
        kill $only
        wait $only
        test -s s.sdp && exit 94
        true
        """,
        // Whatever is sent to the name server leaves by v0, and nobody at v1 takes it.
        after: """
          ip link add v0 type veth peer name v1 && ip addr add 10.9.7.1/24 dev v0 || exit 95
          ip link set v0 up && ip link set v1 up || exit 95
          ip neigh add 10.9.7.53 lladdr 02:00:00:00:00:53 dev v0 || exit 96
          printf 'nameserver 10.9.7.53\\noptions timeout:30 attempts:1\\n' > resolv.conf
          mount --bind resolv.conf /etc/resolv.conf || exit 90
          echo 'hosts: files dns' > nsswitch.conf
          ! test -e /etc/nsswitch.conf || mount --bind nsswitch.conf /etc/nsswitch.conf || exit 90
          """, in: directory)
      #expect(result.status == 0, "\(result.error)")
      let told = "no answer yet about the host 'cam.example.org'; nightjar goes on asking"
      #expect(result.log.warnings.count { $0 == told } == 1, "\(result.error)")
    }

    @Test func `as a service it starts without its only destination, and says that it is ready`() throws {
      let directory = try TemporaryDirectory()
      // Python plays systemd.
      let script = """
        import os, signal, socket, subprocess, sys
        listener = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
        listener.bind("notify")
        listener.settimeout(60)
        stream = subprocess.Popen(sys.argv[1:], env=dict(os.environ, NOTIFY_SOCKET=os.path.abspath("notify")))
        try:
            while listener.recv(1000) != b"READY=1": pass
        finally:
            stream.send_signal(signal.SIGTERM)
        sys.exit(stream.wait(60))
        """
      let result = try Subprocess.run(
        [
          "sh", "-c", "cd \"$1\" && shift && exec python3 \"$@\"", "sh", directory.url.path, "-c", script, nightjarPath,
          "stream", "--source", "test", "--size", "320x240", "--control", "none", "--to", "rtp://host.invalid:5004",
        ], in: directory)
      #expect(result.status == 0, "\(result.error)")
    }

    @Test func `an unresolved host causes a warning, with several cameras and in a reload, and the cameras stream`()
      throws
    {
      let port = try TCPPort.free()
      func text(_ first: String, _ second: String) -> String {
        """
        rtsp = '127.0.0.1:\(port)'
        size = '320x240'
        [[camera]]
        name = 'one'
        source = 'test'
        \(first)
        [[camera]]
        name = 'two'
        source = 'test'
        \(second)
        """
      }
      let recorder = try DatagramRecorder()
      let (absent, present) = ("'rtp://host.invalid:5004'", "'rtp://127.0.0.1:\(recorder.port)'")
      let program = try ConfiguredProgram(
        text("to = [\(absent), \(present)]", ""), environment: ["STATE_DIRECTORY": "/nonexistent"],
        until: "host.invalid")
      #expect(eventually { recorder.count > 30 }, "\(program.process.errorSoFar)")
      // Each camera is opened on a thread of its own.
      let socket = program.directory.path("control")
      let isOpen = try eventually {
        try Health(socket, path: "/cameras/two/healthz", in: program.directory)?.summary == "200 idle"
      }
      #expect(isOpen, "\(program.process.errorSoFar)")
      for name in ["one", "two"] {
        let played = try Subprocess.run(
          [
            "ffmpeg", "-nostdin", "-v", "error", "-rtsp_transport", "tcp", "-i", "rtsp://127.0.0.1:\(port)/\(name)",
            "-frames:v", "5", "-f", "null", "-",
          ], in: program.directory)
        #expect(played.status == 0, "\(name): \(played.error) \(program.process.errorSoFar)")
      }
      try program.write(text("to = [\(present), \(absent)]", "to = 'rtp://other.invalid:5004'"))
      let answer = try program.answer("reload")
      let cameras = answer["cameras"] as? [[String: Any]] ?? []
      #expect(cameras.map { $0["outcome"] as? String } == ["changed", "changed"], "\(answer)")
      let warnings = answer["warnings"] as? [String] ?? []
      for host in ["one: cannot find the host 'host.invalid'", "two: cannot find the host 'other.invalid'"] {
        #expect(warnings.count { $0.hasPrefix(host) && $0.hasSuffix("; nightjar tries again") } == 1, "\(warnings)")
      }
      let status = try program.answer("status", "--camera", "two")
      let missing = try #require(status["missing_destinations"] as? [[String: String]])
      #expect(missing.map { $0["url"] } == ["rtp://other.invalid:5004"], "\(status)")
      #expect(missing.first?["reason"]?.hasPrefix("cannot find the host 'other.invalid': ") == true, "\(status)")
      let lines = try program.control("status", "--camera", "two").outputText.split(separator: "\n")
      let line = try #require(lines.firstIndex(of: "missing      rtp://other.invalid:5004"), "\(lines)")
      #expect(lines[line + 1].hasPrefix("             cannot find the host 'other.invalid': "), "\(lines)")
      // What is missing goes as what is there does, by a reload and by ctl.
      #expect(try program.control("remove", "rtp://other.invalid:5004", "--camera", "two").status == 0)
      let again = try program.control("remove", "rtp://other.invalid:5004", "--camera", "two")
      let reason = "rtp://other.invalid:5004 is not a destination of camera two, which has none"
      let hint = "nightjar ctl viewers lists who watches"
      #expect(again.status == 66 && again.log.failures == ["\(reason): \(hint)"], "\(again.error)")
      try program.write(text("to = \(present)", ""))
      #expect(try program.answer("reload")["warnings"] as? [String] == [])
      #expect(try program.reload() == ["one": "unchanged", "two": "unchanged"])
      let count = recorder.count
      #expect(eventually { recorder.count > count + 10 })
      try program.end()
      _ = recorder.finish()
    }
  #endif
}

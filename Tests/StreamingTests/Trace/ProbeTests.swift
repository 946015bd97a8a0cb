import Foundation
import TestSupport
import Testing

/// The static probes, as programs find them that know nothing of ours.
@Suite struct ProbeTests {
  private static let probes: Set = [
    "frame_captured", "convert_begin", "convert_end", "frame_waiting", "encode_begin", "encode_end", "packetize_begin",
    "packetize_end", "send_begin", "send_end", "frame_sent", "frame_dropped", "frame_skipped",
    "network_estimate", "rendition_change",
  ]

  @Test func `readelf lists them, with semaphores`() throws {
    let directory = try TemporaryDirectory()
    let result = try Subprocess.run(["readelf", "-nW", nightjarPath], in: directory)
    let notes = result.outputText.components(separatedBy: "Provider: nightjar").dropFirst()
    var found: Set<String> = []
    for note in notes {
      let lines = note.split(separator: "\n").map { $0.trimmingCharacters(in: .whitespaces) }
      let name = try #require(lines.first { $0.hasPrefix("Name: ") }).dropFirst(6)
      found.insert(String(name))
      let location = try #require(lines.first { $0.hasPrefix("Location: ") })
      // Without one the arguments would be made up for nobody.
      #expect(!location.hasSuffix("Semaphore: 0x0000000000000000"), "\(name)")
      let arguments = try #require(lines.first { $0.hasPrefix("Arguments: ") })
      #expect(!arguments.contains("%fs") && !arguments.contains("tpoff"), "no tracer reads \(arguments)")
    }
    #expect(found == Self.probes)
  }

  @Test func `the document has them all, and what they say`() throws {
    let document = try String(contentsOf: packageRoot.appendingPathComponent("docs/tracing.md"), encoding: .utf8)
    let source = try String(
      contentsOf: packageRoot.appendingPathComponent("Sources/CTracing/tracepoints.c"), encoding: .utf8)
    var documented: [String: Int] = [:]
    for row in document.matches(of: /\| `([a-z_]+)` \|[^|\n]*\|([^|\n]*)\|([^|\n]*)\|\n/) {
      let columns = [row.output.2, row.output.3].filter { !$0.allSatisfy { $0 == " " } }
      documented[String(row.output.1)] = 2 + columns.count
    }
    var written: [String: Int] = [:]
    for probe in source.matches(of: /PROBE\(([a-z_]+), ([0-9]),/) {
      written[String(probe.output.1)] = Int(probe.output.2)
    }
    #expect(documented == written && Set(written.keys) == Self.probes)
  }

  /// gdb counts the semaphores up and reads the arguments by the same notes as bpftrace and perf.
  @Test func `gdb stops at each with the frame's number and what else it says`() throws {
    let directory = try TemporaryDirectory()
    var script = "set pagination off\nset confirm off\nset breakpoint pending off\nhandle SIGPIPE nostop noprint\n"
    // It ends with the fifth frame, however long that takes.
    script += "set $sent = 0\n"
    let marks = [
      "frame_captured", "convert_begin", "convert_end", "frame_waiting", "encode_begin", "encode_end",
      "packetize_begin",
      "packetize_end", "send_begin", "send_end", "frame_sent",
    ]
    for mark in marks {
      script += """
        break -probe-stap nightjar:\(mark)
        commands
        silent
        printf "mark \(mark) %d %lld %d\\n", $_probe_arg0, $_probe_arg1, $_probe_argc
        \(mark == "frame_sent" ? "set $sent = $sent + 1\nif $sent == 5\nkill\nquit\nend" : "")
        continue
        end

        """
    }
    script += "run\n"
    let file = directory.path("script")
    try Data(script.utf8).write(to: URL(fileURLWithPath: file))
    let result = try Subprocess.run(
      [
        // gdb waits for signals that are blocked in what a test starts.
        "python3", "-c",
        "import os, signal, sys; signal.pthread_sigmask(signal.SIG_SETMASK, []); os.execvp(sys.argv[1], sys.argv[1:])",
        // Without the symbols: they are many, and the probes need none.
        "gdb", "-nx", "-batch", "-readnever", "-x", file, "--args", nightjarPath, "stream", "--source", "test",
        "--size",
        "160x120", "--fps", "5", "--duration", "200s", "--control", "none", "--to", "rtp://127.0.0.1:\(UDPPort.free())",
      ], in: directory, environment: ["DEBUGINFOD_URLS": ""], limit: 240)
    let lines = result.outputText.split(separator: "\n").filter { $0.hasPrefix("mark ") }.map {
      $0.split(separator: " ")
    }
    try #require(lines.allSatisfy { $0.count == 5 }, "\(result.outputText)")
    var ways: [Int64: Set<String>] = [:]
    for line in lines {
      #expect(line[2] == "1", "the first camera")
      ways[try #require(Int64(line[3])), default: []].insert(String(line[1]))
    }
    // The last ones may not have come to their end.
    let whole = ways.values.filter { $0 == Set(marks) }.count
    #expect(whole >= 3, "\(result.outputText)\(result.error)")
    let counts = Dictionary(lines.map { (String($0[1]), String($0[4])) }, uniquingKeysWith: { first, _ in first })
    #expect(counts["encode_begin"] == "2" && counts["encode_end"] == "4" && counts["frame_sent"] == "3")
  }
}

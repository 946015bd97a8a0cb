import Foundation
import Serving
import TestSupport
import Testing

/// The answers of `/metrics` and `/healthz`, and what the documents say of them.
@Suite struct MetricsFormatTests {
  @Test func `metrics are Prometheus's text, with what a label may hold escaped`() throws {
    let served = try ServedControl()
    defer { served.process.send(SIGTERM) }
    let answer = try served.curl([], "/metrics")
    #expect(answer.status == 200)
    let fields = HTTPFields(answer.headers)
    #expect(fields["content-type"] == "text/plain; version=0.0.4; charset=utf-8")
    #expect(fields["cache-control"] == "no-store")
    #expect(
      answer.body == """
        # HELP nightjar_build_info Always 1; the version is in the label.
        # TYPE nightjar_build_info gauge
        nightjar_build_info{version="a\\\\b\\"c\\nd"} 1
        # HELP nightjar_reloads_total Reloads of the configuration that succeeded.
        # TYPE nightjar_reloads_total counter
        nightjar_reloads_total 2
        # HELP nightjar_capture_to_wire_seconds The time from the camera's timestamp to a frame's last packet.
        # TYPE nightjar_capture_to_wire_seconds histogram
        nightjar_capture_to_wire_seconds_bucket{camera="camera",le="0.005"} 3
        nightjar_capture_to_wire_seconds_bucket{camera="camera",le="1"} 4
        nightjar_capture_to_wire_seconds_bucket{camera="camera",le="+Inf"} 6
        nightjar_capture_to_wire_seconds_sum{camera="camera"} 2.25
        nightjar_capture_to_wire_seconds_count{camera="camera"} 6

        """)
    let head = try served.curl(["-I"], "/metrics")
    #expect(head.status == 200)
    #expect(try served.curl(["-X", "POST", "-d", "x"], "/metrics").status == 405)
  }

  @Test func `health is 200 where all is well and 503 where anything is not, for all and for each camera`() throws {
    let served = try ServedControl(cameras: ["idle", "nursery", "frozen", "absent"])
    defer { served.process.send(SIGTERM) }
    let all = try served.curl([], "/healthz")
    #expect(all.status == 503)
    #expect(all["healthy"] == "0")
    #expect(try served.curl(["-I"], "/healthz").status == 503)
    for (camera, status) in [("idle", 200), ("nursery", 200), ("frozen", 503), ("absent", 503), ("attic", 404)] {
      let answer = try served.curl([], "/cameras/\(camera)/healthz")
      #expect(answer.status == status, "\(camera): \(answer.body)")
      if status != 404 { #expect(answer["name"] == camera) }
      #expect(try served.curl(["-I"], "/cameras/\(camera)/healthz").status == status)
    }
    #expect(try served.curl([], "/cameras/frozen/healthz")["state"] == "frozen")
    let well = try ServedControl(cameras: ["idle", "nursery"])
    defer { well.process.send(SIGTERM) }
    #expect(try well.curl([], "/healthz").status == 200)
    #expect(HealthStatus(cameras: []).healthy == false)
    #expect(HealthStatus(cameras: [.init(name: "a", state: .idle)], reason: "it stands still").healthy == false)
  }

  @Test func `names and units are Prometheus's, and docs/metrics.md lists each as the program does`() throws {
    let document = try String(contentsOf: packageRoot.appendingPathComponent("docs/metrics.md"), encoding: .utf8)
    let rows = document.split(separator: "\n").filter { $0.hasPrefix("| `nightjar_") || $0.hasPrefix("| `process_") }
    let expected = Metric.allCases.map { metric in
      let labels = metric.labels.map { "`\($0)`" }.joined(separator: ", ")
      return "| `\(metric.rawValue)` | \(metric.kind.rawValue) | \(labels.isEmpty ? "–" : labels) | \(metric.help) |"
    }
    #expect(rows.map(String.init) == expected, "docs/metrics.md ought to have:\n\(expected.joined(separator: "\n"))")
    for metric in Metric.allCases {
      #expect((metric.kind == .counter) == metric.rawValue.hasSuffix("_total"))
      #expect(metric.help.hasSuffix(".") && !metric.help.contains("\n") && !metric.help.contains("\\"))
      for unit in ["milli", "micro", "_ms", "_bits", "percent"] { #expect(!metric.rawValue.contains(unit)) }
    }
    // Every state stands there too.
    for state in HealthStatus.State.allCases {
      // The row of a table: the state, and the status of its answer.
      let rows = document.split(separator: "\n").map { row in
        row.split(separator: "|").map { $0.trimmingCharacters(in: .whitespaces) }
      }
      let statuses = rows.compactMap { $0.first == "`\(state.rawValue)`" && $0.count > 1 ? $0[1] : nil }
      #expect(statuses == [state.isHealthy ? "200" : "503"], "\(state)")
    }
  }

  @Test func `the dashboard asks for what there is, and leaves out nothing that matters`() throws {
    let text = try String(contentsOf: packageRoot.appendingPathComponent("dashboards/nightjar.json"), encoding: .utf8)
    let dashboard = try #require(try JSONSerialization.jsonObject(with: Data(text.utf8)) as? [String: Any])
    let panels = try #require(dashboard["panels"] as? [[String: Any]])
    let queries = panels.flatMap { ($0["targets"] as? [[String: Any]] ?? []).compactMap { $0["expr"] as? String } }
    #expect(queries.count > 40)
    var known: [String: Metric] = [:]
    for metric in Metric.allCases {
      let suffixes = metric.kind == .histogram ? ["_bucket", "_sum", "_count"] : [""]
      for suffix in suffixes { known[metric.rawValue + suffix] = metric }
    }
    var asked: Set<Metric> = []
    for query in queries + [text] {
      for match in query.matches(of: /\b(?:nightjar|process)_[a-z0-9_]+/) {
        let metric = known[String(match.output)]
        #expect(metric != nil, "\(match.output) in \(query.prefix(200))")
        if let metric { asked.insert(metric) }
      }
    }
    // Labels that are asked for are there.
    for query in queries {
      for match in query.matches(of: /((?:nightjar|process)_[a-z0-9_]+)\{([^}]*)\}/) {
        let metric = try #require(known[String(match.1)])
        for label in match.2.matches(of: /([a-z]+)=~?"/).map({ String($0.1) }) where label != "instance" {
          #expect(metric.labels.contains(label), "\(label) of \(metric.rawValue)")
        }
      }
    }
    let unasked = Set(Metric.allCases).subtracting(asked)
    let spare: Set<Metric> = [
      .keyFrames, .thermalState, .rtspRequests, .rtspRequestsRefused, .processVirtualMemory, .processDescriptors,
      .processDescriptorLimit, .pictures, .picturesSkipped, .mp3Frames, .mp3Skipped,
    ]
    #expect(unasked == spare)
  }

  @Test func `the dashboard tells hosts apart, and present values from former ones`() throws {
    let text = try String(contentsOf: packageRoot.appendingPathComponent("dashboards/nightjar.json"), encoding: .utf8)
    let dashboard = try #require(try JSONSerialization.jsonObject(with: Data(text.utf8)) as? [String: Any])
    let panels = try #require(dashboard["panels"] as? [[String: Any]])
    for panel in panels {
      for target in panel["targets"] as? [[String: Any]] ?? [] {
        let (query, legend) = (target["expr"] as? String ?? "", target["legendFormat"] as? String ?? "")
        #expect(legend.hasPrefix("{{instance}}"), "\(query)")
        for match in query.matches(of: /by \(([^)]*)\)/) {
          #expect(match.1.hasPrefix("instance, camera"), "\(query)")
        }
        // Of a range, the last value of what has ended would be shown.
        guard panel["type"] as? String == "stat" else { continue }
        #expect(target["instant"] as? Bool == true && target["range"] as? Bool == false, "\(query)")
      }
    }
    // What has no colour of its own is red.
    let state = try #require(panels.first { $0["title"] as? String == "State" }?["fieldConfig"] as? [String: Any])
    let defaults = try #require((state["defaults"] as? [String: Any])?["color"] as? [String: String])
    #expect(defaults == ["mode": "fixed", "fixedColor": "red"])
    for name in HealthStatus.State.allCases {
      let colors = try (state["overrides"] as? [[String: Any]] ?? []).compactMap { rule -> String? in
        let pattern = try #require((rule["matcher"] as? [String: String])?["options"])
        // Grafana writes expressions between slashes.
        let bare = pattern.trimmingCharacters(in: ["/"])
        let isMeant = "box:8080 camera: \(name.rawValue)".range(of: bare, options: .regularExpression) != nil
        guard isMeant else { return nil }
        return ((rule["properties"] as? [[String: Any]])?.first?["value"] as? [String: String])?["fixedColor"]
      }
      #expect(colors.contains("green") == name.isHealthy, "\(name)")
    }
  }

  @Test func `the dashboard's queries and the alarms of docs/metrics.md are PromQL, says promtool`() throws {
    let directory = try TemporaryDirectory()
    let text = try String(contentsOf: packageRoot.appendingPathComponent("dashboards/nightjar.json"), encoding: .utf8)
    let dashboard = try #require(try JSONSerialization.jsonObject(with: Data(text.utf8)) as? [String: Any])
    let panels = try #require(dashboard["panels"] as? [[String: Any]])
    let queries = panels.flatMap { ($0["targets"] as? [[String: Any]] ?? []).compactMap { $0["expr"] as? String } }
    let recorded = queries.enumerated().map { number, query in
      let plain = query.replacingOccurrences(of: "$__rate_interval", with: "5m")
      return "    - record: query:\(number)\n      expr: '\(plain)'\n"
    }
    let document = try String(contentsOf: packageRoot.appendingPathComponent("docs/metrics.md"), encoding: .utf8)
    // As it stands there, whole: that is what somebody copies.
    let alarms = try #require(
      document.components(separatedBy: "## Alarms\n").last?.firstMatch(of: /```yaml\n([^`]*)```/)?.output.1)
    for (name, rules, count) in [
      ("dashboard.yml", "groups:\n- name: dashboard\n  rules:\n\(recorded.joined())", queries.count),
      ("alarms.yml", String(alarms), 6),
    ] {
      let file = directory.path(name)
      try Data(rules.utf8).write(to: URL(fileURLWithPath: file))
      let judged = try Subprocess.run(["promtool", "check", "rules", file], in: directory)
      #expect(judged.status == 0, "\(judged.outputText)\(judged.error)")
      #expect(judged.outputText.contains("\(count) rules found"), "\(judged.outputText)")
    }
  }
}

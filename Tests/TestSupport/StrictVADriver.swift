import Foundation

/// The VA-API driver of Tests/StrictVADriver: hardware for machines that have none.
package enum StrictVADriver {
  /// Where it is built.
  package static let directory = packageRoot.appendingPathComponent(".build/strict-va").path

  /// Builds it, once; whether it is there.
  package static let isBuilt: Bool = {
    guard let scratch = try? TemporaryDirectory() else { return false }
    let sources = packageRoot.appendingPathComponent("Tests/StrictVADriver").path
    _ = try? Subprocess.run(["make", "-s", "-C", sources, "OUT=\(directory)"], in: scratch)
    return FileManager.default.fileExists(atPath: directory + "/strict_drv_video.so")
  }()

  /// Returns the environment in which a program finds the driver behind the file `node`, which passes for a render
  /// node.
  ///
  /// - Parameters:
  ///   - log: the file that the driver writes to what is wrong with its client.
  ///   - knobs: settings of the driver, without their prefix `NIGHTJAR_VA_`.
  ///   - preload: further libraries to load first.
  package static func environment(
    node: String, log: String, knobs: [String: String] = [:], preload: [String] = []
  ) -> [String: String] {
    var variables = [
      "LIBVA_DRIVER_NAME": "strict", "LIBVA_DRIVERS_PATH": directory, "LIBVA_MESSAGING_LEVEL": "0",
      "LD_PRELOAD": (preload + [directory + "/render-node.so"]).joined(separator: ":"),
      "NIGHTJAR_RENDER_NODE": node, "NIGHTJAR_VA_LOG": log,
    ]
    for (name, value) in knobs { variables["NIGHTJAR_VA_\(name)"] = value }
    return variables
  }

  /// The complaints in a driver's log.
  package static func violations(in log: String) -> [String] { lines(of: log, beginning: "violation:") }

  /// The sums of the contexts that have ended, in a driver's log.
  package static func summaries(in log: String) -> [String] { lines(of: log, beginning: "summary:") }

  private static func lines(of log: String, beginning: String) -> [String] {
    let text = (try? String(contentsOfFile: log, encoding: .utf8)) ?? ""
    return text.split(separator: "\n").map(String.init).filter { $0.hasPrefix(beginning) }
  }
}

/// `true` if the tests that take long run too: `make check-long`.
package let runsLong = ProcessInfo.processInfo.environment["NIGHTJAR_LONG"] == "1"

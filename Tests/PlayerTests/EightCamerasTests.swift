import Foundation
import TestSupport
import Testing

#if X264
  /// The program with as many cameras and servers as it has at most, within what the unit allows it.
  @Suite struct EightCamerasTests {
    /// The threads of a process, by its name for each.
    private static func threads(of process: Int32) throws -> [String: Int] {
      let folder = "/proc/\(process)/task"
      var counts: [String: Int] = [:]
      for thread in try FileManager.default.contentsOfDirectory(atPath: folder) {
        // One that has ended meanwhile is none.
        let name = try? String(contentsOfFile: "\(folder)/\(thread)/comm", encoding: .utf8)
        if let name { counts[name.trimmingCharacters(in: .whitespacesAndNewlines), default: 0] += 1 }
      }
      return counts
    }

    /// The number behind `TasksMax=` in the unit.
    private static func tasksMaximum() throws -> Int {
      let unit = packageRoot.appendingPathComponent("systemd/nightjar.service")
      let lines = try String(contentsOf: unit, encoding: .utf8).split(separator: "\n")
      let line = try #require(lines.first { $0.hasPrefix("TasksMax=") })
      return try #require(Int(line.dropFirst("TasksMax=".count)))
    }

    @Test func `eight cameras with all servers have four times the room that their threads need`() throws {
      let directory = try TemporaryDirectory()
      let users = directory.path("users")
      let added = try Subprocess.run(
        ["sh", "-c", "echo 'correct horse' | \"$0\" user add anna --users \"$1\"", nightjarPath, users], in: directory)
      #expect(added.status == 0, "\(added.error)")
      let ports = try (0..<3).map { _ in try TCPPort.free() }
      // A render node for each camera's encoders, of the test driver's.
      let node = directory.path("node")
      try Data().write(to: URL(fileURLWithPath: node))
      let hardware = StrictVADriver.isBuilt ? "encoder = 'auto'\nvaapi-device = '\(node)'" : "encoder = 'x264'"
      let cameras = (1...8).map {
        """
        [[camera]]
        name = 'camera-\($0)'
        source = 'test'
        size = '320x240'
        to = 'rtp://239.255.77.\($0):5004?sap=1'
        """
      }
      let program = try ConfiguredProgram(
        """
        rtsp = '0.0.0.0:\(ports[0])'
        https = '127.0.0.1:\(ports[1])'
        webrtc-port = 0
        http = '127.0.0.1:\(ports[2])'
        users = '\(users)'
        announce = true
        \(hardware)
        \(cameras.joined(separator: "\n"))
        """,
        environment: StrictVADriver.environment(node: node, log: directory.path("log"), knobs: [:])
          .merging(["STATE_DIRECTORY": directory.path("state")]) { $1 },
        until: "https      ")
      let process = program.process
      /// The threads that each camera has.
      let each = ["nj-capture", "nj-encode", "nj-send", "nj-announce"] + (StrictVADriver.isBuilt ? ["nj-driver"] : [])
      // The most of each that there were at a time: a driver that a busy machine keeps from answering is given up, and taken back later.
      var threads: [String: Int] = [:]
      let isComplete = try eventually(within: 120) {
        threads.merge(try Self.threads(of: process.identifier), uniquingKeysWith: max)
        // The others begin beside these.
        return each.allSatisfy { threads[$0, default: 0] >= 8 } && threads.values.reduce(0, +) > 64
      }
      #expect(isComplete, "\(threads) \(process.errorSoFar)")
      let count = threads.values.reduce(0, +)
      print("eight cameras: \(count) threads, \(threads.sorted { $0.key < $1.key })")
      let maximum = try Self.tasksMaximum()
      // More than the unit once allowed.
      #expect(count > 64 && count * 4 <= maximum, "\(count) of \(maximum) threads: \(threads)")
      try program.end()
    }
  }
#endif

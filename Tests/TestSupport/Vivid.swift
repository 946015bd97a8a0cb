import Foundation

/// The kernel's own camera, in the rig.
package enum Vivid {
  /// `true` if this runs in the rig.
  package static let isHere = ProcessInfo.processInfo.environment["NIGHTJAR_RIG"] != nil

  /// The node of vivid number `index`.
  package static func node(_ index: Int) throws -> String {
    let name = "vivid-00\(index)-vid-cap"
    let root = "/sys/class/video4linux"
    for entry in try FileManager.default.contentsOfDirectory(atPath: root).sorted() {
      let text = try String(contentsOfFile: "\(root)/\(entry)/name", encoding: .utf8)
      if text.trimmingCharacters(in: .whitespacesAndNewlines) == name { return "/dev/\(entry)" }
    }
    throw CocoaError(.fileNoSuchFile)
  }

  /// Runs v4l2-ctl on `node`, which tells of failure only in words.
  package static func control(_ node: String, _ arguments: [String], in directory: TemporaryDirectory) throws {
    let result = try Subprocess.run(["v4l2-ctl", "-d", node] + arguments, in: directory)
    guard result.error.isEmpty else { throw Refused(words: result.error) }
  }

  /// Sets a control.
  package static func set(_ node: String, _ control: String, in directory: TemporaryDirectory) throws {
    try self.control(node, ["-c", control], in: directory)
  }

  /// The refusal of v4l2-ctl.
  package struct Refused: Error {
    let words: String
  }
}

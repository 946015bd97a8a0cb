import Appliance
import Capture
import FoundationEssentials
import Glibc
import Platform
import Serving

extension DevicesCommand {
  /// Lists the controls of one camera, or of all.
  func listControls() throws {
    signal(SIGPIPE, SIG_IGN)
    try reportingFailures {
      let paths = camera.map { [$0] } ?? CameraList().entries.filter { $0.capabilities != nil }.map(\.path)
      guard !paths.isEmpty else { throw ApplianceFailure(kind: .noInput, description: "no camera found: plug one in") }
      let listed = try paths.map { path in
        ControlsOfCamera(
          path: path, controls: try CameraControlList.controls(of: path).map(CameraControlsAnswer.Control.init))
      }
      try writeOutput(json ? Self.json(listed) : listed.map(\.text).joined(separator: "\n"))
    }
  }

  private static func json(_ cameras: [ControlsOfCamera]) -> String {
    let encoder = JSONEncoder()
    encoder.outputFormatting = [.prettyPrinted, .sortedKeys, .withoutEscapingSlashes]
    encoder.keyEncodingStrategy = .convertToSnakeCase
    // Only non-finite numbers could fail, and these are integers.
    return ((try? encoder.encode(["cameras": cameras])).map { String(decoding: $0, as: UTF8.self) } ?? "{}") + "\n"
  }

  private struct ControlsOfCamera: Encodable {
    let path: String
    let controls: [CameraControlsAnswer.Control]

    var text: String { path + "\n" + (controls.isEmpty ? "no controls\n" : ControlsText.text(controls)) }
  }
}

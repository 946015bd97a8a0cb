import Appliance
import ArgumentParser
import Capture
import FoundationEssentials
import Glibc

/// `nightjar devices`.
struct DevicesCommand: ParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "devices",
    abstract: "List the cameras, microphones and encoders of this host, and what they can do.",
    discussion: """
      nightjar stream takes a camera of the list for --source, a format for --format, a microphone for --audio, and a \
      render node for --vaapi-device. A microphone keeps its name when it is unplugged and plugged in again.
      """)

  @Flag(help: "Print the list as JSON.")
  var json = false

  @Flag(help: "List the cameras' controls instead, for nightjar stream --controls.")
  var controls = false

  @Argument(help: ArgumentHelp("With --controls: only this camera.", valueName: "camera"))
  var camera: String?

  @Option(help: ArgumentHelp("List only this render node.", valueName: "path"))
  var vaapiDevice: String?

  func validate() throws {
    if controls, vaapiDevice != nil { throw ValidationError("--vaapi-device and --controls exclude each other") }
    guard let camera, !controls else { return }
    throw ValidationError("\(camera): add --controls to list its controls")
  }

  func run() throws {
    if controls { return try listControls() }
    let cameras = CameraList()
    let encoders = EncoderList(node: vaapiDevice)
    let microphones = MicrophoneList(beside: cameras)
    let text =
      json
      ? Self.json(cameras, microphones, encoders)
      : CameraText.text(cameras) + "\n" + MicrophoneText.text(microphones) + "\n" + encoders.text
    // A reader that has seen enough would otherwise end the program by a signal, silently.
    signal(SIGPIPE, SIG_IGN)
    try reportingFailures { try writeOutput(text) }
  }

  private static func json(_ cameras: CameraList, _ microphones: MicrophoneList, _ encoders: EncoderList) -> String {
    let encoder = JSONEncoder()
    encoder.outputFormatting = [.prettyPrinted, .sortedKeys, .withoutEscapingSlashes]
    encoder.keyEncodingStrategy = .convertToSnakeCase
    // Only non-finite numbers could fail, and a frame rate is a quotient of integers.
    let document = Document(
      cameras: cameras.entries.map(CameraText.Entry.init),
      microphones: microphones.entries.map(MicrophoneText.Entry.init),
      encoders: encoders)
    guard let data = try? encoder.encode(document) else { return "{}\n" }
    return String(decoding: data, as: UTF8.self) + "\n"
  }

  /// The whole list as JSON.
  private struct Document: Encodable {
    let cameras: [CameraText.Entry]
    let microphones: [MicrophoneText.Entry]
    let encoders: EncoderList
  }
}

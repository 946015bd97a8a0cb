import Appliance
import ArgumentParser
import Capture
import FoundationEssentials
import Glibc
import Media

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
      : Self.text(cameras) + "\n" + MicrophoneText.text(microphones) + "\n" + encoders.text
    // A reader that has seen enough would otherwise end the program by a signal, silently.
    signal(SIGPIPE, SIG_IGN)
    try reportingFailures { try writeOutput(text) }
  }

  private static func text(_ list: CameraList) -> String {
    var lines: [String] = []
    for entry in list.entries {
      // Codecs and metadata nodes share /dev/video*; they are no cameras and would only confuse.
      if case .notCapture = entry.obstacle { continue }
      lines.append("\(entry.path)  \(entry.identity.map { "\($0.card) (\($0.driver), \($0.bus))" } ?? "")")
      for link in entry.links { lines.append("  also     \(link)") }
      if let obstacle = entry.obstacle { lines.append("  unusable \(obstacle)") }
      for format in entry.capabilities?.formats ?? [] {
        let hint = format.pixelFormat == .h264 ? " (nightjar stream --encoder camera passes it on)" : ""
        lines.append("  \(format.pixelFormat)  \(format.name)\(hint)")
        for size in format.sizes { lines.append("    \(describe(size))") }
      }
    }
    if lines.isEmpty { lines.append("no camera found; nightjar stream then uses its built-in synthetic camera") }
    if let first = list.firstUsable { lines.append("\nStream it: nightjar stream --source \(first.path)") }
    return lines.joined(separator: "\n") + "\n"
  }

  private static func describe(_ size: CameraSize) -> String {
    let extent =
      switch size.extent {
      case .discrete(let size): "\(size)"
      case .stepwise(let widths, let heights):
        "\(widths.minimum)x\(heights.minimum) to \(widths.maximum)x\(heights.maximum) in steps of "
          + "\(widths.step)x\(heights.step)"
      }
    let rates =
      switch size.rates {
      case .unknown: "rates unknown"
      case .listed(let rates): rates.map(\.description).joined(separator: ", ") + " fps"
      case .range(let slowest, let fastest): "\(slowest) to \(fastest) fps"
      }
    return "\(extent): \(rates)"
  }

  private static func json(_ cameras: CameraList, _ microphones: MicrophoneList, _ encoders: EncoderList) -> String {
    let encoder = JSONEncoder()
    encoder.outputFormatting = [.prettyPrinted, .sortedKeys, .withoutEscapingSlashes]
    encoder.keyEncodingStrategy = .convertToSnakeCase
    // Only non-finite numbers could fail, and a frame rate is a quotient of integers.
    let document = Document(
      cameras: cameras.entries.map(Device.init), microphones: microphones.entries.map(MicrophoneText.Entry.init),
      encoders: encoders)
    guard let data = try? encoder.encode(document) else { return "{}\n" }
    return String(decoding: data, as: UTF8.self) + "\n"
  }

  /// The whole list as JSON.
  private struct Document: Encodable {
    let cameras: [Device]
    let microphones: [MicrophoneText.Entry]
    let encoders: EncoderList
  }

  /// One device node as JSON.
  private struct Device: Encodable {
    struct Format: Encodable {
      let format: String
      let name: String
      let sizes: [Size]
    }

    /// A size, or with `minimum` and so on a grid of sizes.
    struct Size: Encodable {
      var width: Int?
      var height: Int?
      var minimum: [Int]?
      var maximum: [Int]?
      var step: [Int]?
      var fps: [Double]?
      var fpsRange: [Double]?

      init(_ size: CameraSize) {
        switch size.extent {
        case .discrete(let size): (width, height) = (size.width, size.height)
        case .stepwise(let widths, let heights):
          minimum = [widths.minimum, heights.minimum]
          maximum = [widths.maximum, heights.maximum]
          step = [widths.step, heights.step]
        }
        switch size.rates {
        case .unknown: break
        case .listed(let rates): fps = rates.map(\.framesPerSecond)
        case .range(let slowest, let fastest): fpsRange = [slowest.framesPerSecond, fastest.framesPerSecond]
        }
      }
    }

    let path: String
    let links: [String]
    let card: String?
    let driver: String?
    let bus: String?
    let role: String?
    let usable: Bool
    let obstacle: String?
    let formats: [Format]

    init(_ entry: CameraListing) {
      path = entry.path
      links = entry.links
      card = entry.identity?.card
      driver = entry.identity?.driver
      bus = entry.identity?.bus
      role = entry.identity?.role.description
      usable = entry.obstacle == nil
      obstacle = entry.obstacle?.description
      formats = (entry.capabilities?.formats ?? []).map { format in
        Format(format: format.pixelFormat.description, name: format.name, sizes: format.sizes.map(Size.init))
      }
    }
  }
}

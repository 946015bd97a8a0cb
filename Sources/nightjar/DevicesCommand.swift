import ArgumentParser
import Capture
import FoundationEssentials
import Glibc
import Media

/// `nightjar devices`.
struct DevicesCommand: ParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "devices",
    abstract: "List the cameras and encoders of this machine with what they can do.",
    discussion: """
      Every camera in the list can be given to nightjar stream --source, every format to --format, and every render \
      node to --vaapi-device.
      """)

  @Flag(help: "Write the list as JSON.")
  var json = false

  @Flag(help: "List the cameras' own settings instead, as --controls of nightjar stream takes them.")
  var controls = false

  @Argument(help: ArgumentHelp("With --controls: this camera, and no other.", valueName: "camera"))
  var camera: String?

  @Option(help: ArgumentHelp("Look at this render node, and no other.", valueName: "path"))
  var vaapiDevice: String?

  func validate() throws {
    if controls, vaapiDevice != nil { throw ValidationError("--vaapi-device has nothing to do with --controls") }
    guard let camera, !controls else { return }
    throw ValidationError("\(camera): add --controls to see its settings")
  }

  func run() throws {
    if controls { return try listControls() }
    let cameras = CameraList()
    let encoders = EncoderList(node: vaapiDevice)
    let text = json ? Self.json(cameras, encoders) : Self.text(cameras) + "\n" + encoders.text
    // A reader that has seen enough would end the program with a signal, and without a word otherwise.
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
        lines.append("  \(format.pixelFormat)  \(format.name)")
        for size in format.sizes { lines.append("    \(describe(size))") }
      }
    }
    if lines.isEmpty { lines.append("no camera found; nightjar stream uses its built-in synthetic camera then") }
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

  private static func json(_ cameras: CameraList, _ encoders: EncoderList) -> String {
    let encoder = JSONEncoder()
    encoder.outputFormatting = [.prettyPrinted, .sortedKeys, .withoutEscapingSlashes]
    encoder.keyEncodingStrategy = .convertToSnakeCase
    // Only non-finite numbers could fail, and a frame rate is a quotient of whole ones.
    guard let data = try? encoder.encode(Document(cameras: cameras.entries.map(Device.init), encoders: encoders)) else {
      return "{}\n"
    }
    return String(decoding: data, as: UTF8.self) + "\n"
  }

  /// The whole list as JSON.
  private struct Document: Encodable {
    let cameras: [Device]
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

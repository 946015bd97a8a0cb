package import Capture
import Media

/// The cameras of this host as `nightjar devices` shows them.
package enum CameraText {
  /// Returns the cameras as text.
  package static func text(_ list: CameraList) -> String {
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

  /// One device node as JSON.
  package struct Entry: Encodable {
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

    /// Creates the form of `entry`.
    package init(_ entry: CameraListing) {
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

import Encoding
import Media
import VAAPI

/// The encoders of this host, for `nightjar devices`.
package struct EncoderList: Encodable {
  /// A hardware encoder, identified by its render node.
  struct Hardware: Encodable {
    let path: String
    let driver: String?
    let obstacle: String?
    let modes: [Mode]
  }

  /// One profile through one entry point.
  struct Mode: Encodable {
    /// `h264` or `hevc`.
    let codec: String
    let profile: String
    let entryPoint: String
    let rateControls: [String]
    let minimum: [Int]
    let maximum: [Int]
    let slices: Int
    let qualityLevels: Int
    let packedHeaders: Bool
    let importsDmaBuffers: Bool
  }

  /// The name of x264; `nil` in a build without it.
  let software: String?
  let softwarePresets: [String]
  /// The name of x265; `nil` in a build without it.
  let softwareHEVC: String?
  let hardware: [Hardware]

  /// Creates the list from the drivers of every render node, or of `node` alone.
  package init(node: String?) {
    software = EncoderSelector.softwareName(for: .h264)
    softwareHEVC = EncoderSelector.softwareName(for: .hevc)
    softwarePresets = EncoderSelector.x264Presets
    let nodes = node.map { [RenderNode(path: $0)] } ?? RenderNode.all()
    hardware = nodes.map(Hardware.init)
  }

  /// The list in a few lines.
  package var text: String {
    let presets = softwarePresets.joined(separator: ", ")
    var lines = [software.map { "\($0)  profiles \(Self.profiles); presets \(presets)" } ?? "no x264 in this build"]
    lines.append(softwareHEVC.map { "\($0)  HEVC, profile main; presets \(presets)" } ?? "no x265 in this build")
    if hardware.isEmpty { lines.append("no VA-API encoder: no render node in /dev/dri") }
    for device in hardware {
      lines.append("\(device.path)  \(device.driver ?? "")")
      if let obstacle = device.obstacle { lines.append("  unusable \(obstacle)") }
      for mode in device.modes { lines.append("  \(mode.text)") }
      if device.obstacle == nil {
        lines.append("  Use it: nightjar stream --encoder vaapi --vaapi-device \(device.path)")
      }
    }
    return lines.joined(separator: "\n") + "\n"
  }

  private static let profiles = H264Profile.allCases.map(\.rawValue).joined(separator: ", ")
}

extension EncoderList.Hardware {
  init(_ node: RenderNode) {
    path = node.path
    do throws(EncoderError) {
      let capabilities = try DriverQuery.capabilities(of: node)
      driver = capabilities.vendor
      modes = capabilities.encoders.map(EncoderList.Mode.init)
      obstacle = modes.isEmpty ? "the driver offers no encoder of H.264 or HEVC" : nil
    } catch {
      driver = nil
      modes = []
      obstacle = error.description
    }
  }
}

extension EncoderList.Mode {
  init(_ encoder: VAAPICapabilities.Encoder) {
    codec = encoder.profile.codec.rawValue
    profile = encoder.profile.name
    entryPoint = encoder.entryPoint.rawValue
    rateControls = encoder.rateControls.map(\.rawValue)
    minimum = [encoder.minimumSize.width, encoder.minimumSize.height]
    maximum = [encoder.maximumSize.width, encoder.maximumSize.height]
    slices = encoder.slices
    qualityLevels = encoder.qualityLevels
    packedHeaders = encoder.packedHeaders.contains(.sequence)
    importsDmaBuffers = encoder.importsDMABuffers
  }

  /// The mode in one line.
  var text: String {
    // A profile without a codec is one of H.264.
    let title = codec == VideoCodec.hevc.rawValue ? "HEVC \(profile)" : profile
    let controls = rateControls.isEmpty ? "rate control unknown" : rateControls.joined(separator: " ")
    return "\(title)  \(entryPoint)  \(controls)  "
      + "\(minimum[0])x\(minimum[1]) to \(maximum[0])x\(maximum[1]), up to \(slices) slices"
      + (qualityLevels > 1 ? ", quality 1 to \(qualityLevels)" : "")
      + (importsDmaBuffers ? ", reads camera buffers" : "")
  }
}

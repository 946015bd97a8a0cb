import Encoding
import Glibc
import Media
import Platform
import Serving
import VAAPI

/// The findings on the encoding hardware.
package enum HardwareFindings {
  /// The longest wait for a driver.
  static let patience = Duration(seconds: 3)

  /// The device nodes of graphics hardware.
  package static var nodes: [String] { RenderNode.all().map(\.path) }

  /// Returns the findings on every render node, or on `node` only.
  package static func all(node: String?) -> [Finding] {
    let nodes = node.map { [RenderNode(path: $0)] } ?? RenderNode.all()
    guard !nodes.isEmpty else { return [Finding(.vaapi, "no render node in /dev/dri: the processor encodes")] }
    return nodes.map(finding)
  }

  private static func finding(of node: RenderNode) -> Finding {
    do throws(EncoderError) {
      let capabilities = try DriverQuery.capabilities(of: node, within: patience)
      guard !capabilities.encoders.isEmpty else {
        return Finding(
          .vaapiUnusable, "\(node.path): \(capabilities.vendor) offers no encoder of H.264 or HEVC",
          mends: drivers(of: node))
      }
      let entries = VAAPICapabilities.EntryPoint.allCases.filter { entry in
        capabilities.encoders.contains { $0.entryPoint == entry }
      }
      let codecs = VideoCodec.allCases.compactMap { codec in
        profiles(of: codec, among: capabilities.encoders).map { "\(codec.title) \($0)" }
      }
      return Finding(
        .vaapi,
        "\(node.path): \(capabilities.vendor), \(codecs.joined(separator: "; ")) by "
          + entries.map(\.rawValue).joined(separator: " and "))
    } catch .permission(let reason) {
      return NodeAccess(path: node.path).finding(usual: "render")
        ?? Finding(.renderMode, reason, mends: [.command("ls -l \(ShellWord.quoted(node.path))")])
    } catch {
      return Finding(.vaapiUnusable, "\(node.path): \(error)", mends: drivers(of: node))
    }
  }

  /// Returns `true` if the driver of the encoder with this name has several quality levels, in an order.
  ///
  /// - Parameters:
  ///   - name: the encoder's name, which has that of its driver.
  ///   - node: the device node of the driver; nil for any node.
  static func offersLevels(ofEncoder name: String, node: String?) -> Bool {
    let nodes = node.map { [RenderNode(path: $0)] } ?? RenderNode.all()
    return nodes.contains { node in
      guard let capabilities = try? DriverQuery.capabilities(of: node, within: patience) else { return false }
      return name.hasPrefix("VA-API (\(capabilities.vendor))") && capabilities.offersQualityLevels
    }
  }

  /// Returns the names of the profiles of `codec`, each once; nil if there are none.
  private static func profiles(of codec: VideoCodec, among encoders: [VAAPICapabilities.Encoder]) -> String? {
    let names = encoders.reduce(into: [String]()) { list, encoder in
      guard encoder.profile.codec == codec, !list.contains(encoder.profile.name) else { return }
      list.append(encoder.profile.name)
    }
    return names.isEmpty ? nil : names.joined(separator: ", ")
  }

  /// Returns the packages with a driver, by the GPU's vendor.
  private static func drivers(of node: RenderNode) -> [Mend] {
    let name = node.path.split(separator: "/").last ?? ""
    // An unreadable vendor counts as unknown: both packages are named then.
    let vendor = (try? AttributeFile.text("/sys/class/drm/\(name)/device/vendor")) ?? nil
    let packages =
      switch vendor {
      case "0x8086": "intel-media-va-driver"
      case "0x1002": "mesa-va-drivers"
      default: "mesa-va-drivers intel-media-va-driver"
      }
    return [.asRoot("apt-get install \(packages)"), .command("nightjar devices")]
  }
}

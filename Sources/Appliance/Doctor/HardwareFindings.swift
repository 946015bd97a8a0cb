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
    guard !nodes.isEmpty else { return [Finding(.vaapi, "no render node in /dev/dri: x264 encodes")] }
    return nodes.map(finding)
  }

  private static func finding(of node: RenderNode) -> Finding {
    do throws(EncoderError) {
      let capabilities = try DriverQuery.capabilities(of: node, within: patience)
      guard !capabilities.encoders.isEmpty else {
        return Finding(
          .vaapiUnusable, "\(node.path): \(capabilities.vendor) offers no H.264 encoder", mends: drivers(of: node))
      }
      let entries = VAAPICapabilities.EntryPoint.allCases.filter { entry in
        capabilities.encoders.contains { $0.entryPoint == entry }
      }
      let profiles = capabilities.encoders.reduce(into: [String]()) { list, encoder in
        if !list.contains(encoder.profile.rawValue) { list.append(encoder.profile.rawValue) }
      }
      return Finding(
        .vaapi,
        "\(node.path): \(capabilities.vendor), H.264 \(profiles.joined(separator: ", ")) by "
          + entries.map(\.rawValue).joined(separator: " and "))
    } catch .permission(let reason) {
      return NodeAccess(path: node.path).finding(usual: "render")
        ?? Finding(.renderMode, reason, mends: [.command("ls -l \(ShellWord.quoted(node.path))")])
    } catch {
      return Finding(.vaapiUnusable, "\(node.path): \(error)", mends: drivers(of: node))
    }
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

import Glibc
import Platform

/// A video device node of this host.
public struct CameraListing: Sendable {
  /// The path of the node, such as `/dev/video0`.
  public let path: String
  /// Links that name the same device permanently, such as `/dev/v4l/by-id/usb-046d_HD_Pro_Webcam…`.
  public let links: [String]
  /// The device's description of itself; nil if the device could not be opened.
  public let identity: DeviceIdentity?
  /// The camera's capabilities; nil if the device is no camera or could not be opened.
  public let capabilities: CameraCapabilities?
  /// The reason why `--source auto` skips the node; nil if it does not.
  public let obstacle: CaptureError?

  /// A text that says which camera cannot be used, and why; nil if the camera can be used.
  public var complaint: String? {
    guard let obstacle else { return nil }
    let reason = obstacle.description
    if reason.hasPrefix(path), let identity { return "\(path) (\(identity.card))\(reason.dropFirst(path.count))" }
    // A reason that contains the path needs no prefix.
    if reason.contains(path) { return reason }
    return "\(path)\(identity.map { " (\($0.card))" } ?? ""): \(reason)"
  }

  /// Creates a listing.
  package init(
    path: String, links: [String], identity: DeviceIdentity?, capabilities: CameraCapabilities?,
    obstacle: CaptureError?
  ) {
    self.path = path
    self.links = links
    self.identity = identity
    self.capabilities = capabilities
    self.obstacle = obstacle
  }
}

/// The video devices of this host at the time of the list's creation.
public struct CameraList: Sendable {
  /// All nodes, by number.
  public let entries: [CameraListing]

  /// Lists `/dev/video*`. Nodes that cannot be opened are listed with the reason.
  public init() {
    let links = Self.links()
    entries = Self.nodes().map { Self.listing(of: $0, links: links) }
  }

  /// Creates a list of these entries.
  package init(entries: [CameraListing]) {
    self.entries = entries
  }

  /// The first camera that can be used; nil if there is none.
  public var firstUsable: CameraListing? { entries.first { $0.obstacle == nil } }

  /// The nodes skipped before the first usable camera, each with its reason; all nodes if no camera can be used. Nodes
  /// that are no cameras are left out.
  public var passedOver: [CameraListing] {
    entries.prefix { $0.obstacle != nil }.filter {
      if case .notCapture = $0.obstacle { return false }
      return true
    }
  }

  /// Returns `/dev/video0`, `/dev/video2`, … by number.
  private static func nodes() -> [String] {
    var numbers: [Int] = []
    Directory.forEachName(in: "/dev") { name in
      if let number = number(of: name) { numbers.append(number) }
    }
    return numbers.sorted().map { "/dev/video\($0)" }
  }

  /// Returns 7 for `video7`.
  package static func number(of name: String) -> Int? {
    guard name.hasPrefix("video") else { return nil }
    let digits = name.dropFirst(5)
    guard (1...4).contains(digits.count), digits.utf8.allSatisfy({ (0x30...0x39).contains($0) }) else { return nil }
    return Int(digits)
  }

  /// Returns the links of `/dev/v4l/by-id`, by the node that each link leads to.
  private static func links() -> [String: [String]] {
    var links: [String: [String]] = [:]
    Directory.forEachName(in: "/dev/v4l/by-id") { name in
      let link = "/dev/v4l/by-id/\(name)"
      guard let target = realpath(link, nil) else { return }
      links[String(cString: target), default: []].append(link)
      free(target)
    }
    return links.mapValues { $0.sorted() }
  }

  private static func listing(of path: String, links: [String: [String]]) -> CameraListing {
    let links = links[path] ?? []
    do throws(CaptureError) {
      let device = try V4L2Device(path: path)
      let obstacle = CaptureError.notCapture(
        path: path, name: device.identity.card, role: device.identity.role)
      guard device.identity.role == .camera || device.identity.role == .mediaController else {
        return CameraListing(
          path: path, links: links, identity: device.identity, capabilities: nil, obstacle: obstacle)
      }
      let capabilities = device.capabilities()
      return CameraListing(
        path: path, links: links, identity: device.identity, capabilities: capabilities,
        obstacle: device.identity.role == .mediaController ? obstacle : Self.obstacle(capabilities))
    } catch {
      return CameraListing(path: path, links: links, identity: nil, capabilities: nil, obstacle: error)
    }
  }

  /// Returns the reason why none of the camera's formats can be used.
  private static func obstacle(_ capabilities: CameraCapabilities) -> CaptureError? {
    do throws(CaptureError) {
      _ = try FormatNegotiation.choose(FormatRequest(), from: capabilities)
      return nil
    } catch {
      return error
    }
  }
}

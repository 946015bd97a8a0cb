import Platform

/// A DRM render node: the device file of a GPU for computing and encoding without a display.
public struct RenderNode: Hashable, Sendable {
  /// The path of the device file, such as `/dev/dri/renderD128`.
  public let path: String

  /// Creates the node at `path`, which need not exist.
  public init(path: String) {
    self.path = path
  }

  /// Returns the nodes in `directory`, in the order of their numbers; empty if the directory does not exist.
  public static func all(in directory: String = "/dev/dri") -> [RenderNode] {
    var numbers: [Int] = []
    Directory.forEachName(in: directory) { name in
      // The kernel assigns numbers of three digits: 128 to 191.
      guard name.hasPrefix("renderD"), name.utf8.count <= 12, let number = Int(name.dropFirst(7)) else { return }
      numbers.append(number)
    }
    return numbers.sorted().map { RenderNode(path: "\(directory)/renderD\($0)") }
  }
}

import Media

/// A DRM render node: the device file of a GPU for those who compute and encode without a display.
public struct RenderNode: Hashable, Sendable {
  /// The device file, `/dev/dri/renderD128`.
  public let path: String

  /// The node at `path`, whether it exists or not.
  public init(path: String) {
    self.path = path
  }

  /// The nodes in `directory`, in the order of their numbers; none where there is no such directory.
  public static func all(in directory: String = "/dev/dri") -> [RenderNode] {
    var numbers: [Int] = []
    Directory.forEachName(in: directory) { name in
      // Three digits are what the kernel gives out: 128 to 191.
      guard name.hasPrefix("renderD"), name.utf8.count <= 12, let number = Int(name.dropFirst(7)) else { return }
      numbers.append(number)
    }
    return numbers.sorted().map { RenderNode(path: "\(directory)/renderD\($0)") }
  }
}

import ArgumentParser
import Capture
import Media

/// What `--source` says.
enum SourceSelection: Hashable {
  /// The first camera, or the synthetic one.
  case auto
  /// The synthetic camera.
  case test
  /// A camera by its device node.
  case device(String)
  /// A YUV4MPEG2 file.
  case file(String)

  init(text: String) throws {
    switch text {
    case "auto": self = .auto
    case "test": self = .test
    case _ where text.hasPrefix("file:"):
      let path = String(text.dropFirst("file:".count))
      guard !path.isEmpty else { throw ValidationError("write file:CLIP.y4m") }
      self = .file(path)
    case _ where text.hasPrefix("/"): self = .device(text)
    default:
      throw ValidationError("choose auto, test, a device such as /dev/video0, or file:CLIP.y4m")
    }
  }

  var isFile: Bool {
    if case .file = self { return true }
    return false
  }

  /// Whether a camera may come of it.
  var isCamera: Bool {
    switch self {
    case .auto, .device: true
    case .test, .file: false
    }
  }
}

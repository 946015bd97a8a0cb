// list-hardware [RENDER NODE…]: prints the cameras of this machine, and what its graphics drivers encode.
import Capture
import Media
import VAAPI

// snippet.cameras
for camera in CameraList().entries {
  print("\(camera.path) \(camera.complaint ?? camera.identity?.card ?? "")")
  for format in camera.capabilities?.formats ?? [] { print("  \(format.pixelFormat) \(format.name)") }
}
// snippet.end

let named = CommandLine.arguments.dropFirst().map { RenderNode(path: $0) }

// snippet.encoders
for node in named.isEmpty ? RenderNode.all() : named {
  do throws(EncoderError) {
    let capabilities = try VAAPICapabilities(of: node)
    print("\(node.path) \(capabilities.vendor)")
    for encoder in capabilities.encoders {
      print("  \(encoder.profile) \(encoder.entryPoint.rawValue) \(encoder.minimumSize) to \(encoder.maximumSize)")
    }
  } catch {
    // No driver, or no permission: the error says what to do.
    print("\(node.path) \(error)")
  }
}
// snippet.end

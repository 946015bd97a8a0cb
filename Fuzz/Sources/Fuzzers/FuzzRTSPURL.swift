import RTSP

/// Any text as a request URI: what is written of it can stand in a header, and names the same when it is read again.
enum FuzzRTSPURL {
  static func take(_ input: UnsafeRawBufferPointer) {
    do throws(RequestURLError) {
      guard case .resource(let url) = try RequestTarget(String(decoding: input, as: UTF8.self)) else { return }
      precondition(url.path.hasPrefix("/") && !url.path.utf8.contains { $0 < 0x20 || $0 == 0x7f })
      precondition(!url.path.split(separator: "/").contains { $0 == "." || $0 == ".." })
      let base = url.base(authority: "[2001:db8::1]:8554", scheme: .rtsps)
      precondition(base.hasSuffix("/") && !base.hasSuffix("//"))
      precondition(base.utf8.allSatisfy { (0x21...0x7e).contains($0) && !",;\"<>#?".utf8.contains($0) })
      // A second track at its end is the path's own.
      guard RequestURL.trackPrefix.isEmpty || !isTrack(url.path) else { return }
      let again = try RequestURL(base + "trackID=7")
      precondition(again.path == url.path && again.track == 7 && again.query == nil)
      precondition(again.authority == url.authority ?? "[2001:db8::1]:8554" && again.scheme == url.scheme ?? .rtsps)
    } catch {
      precondition(!error.description.isEmpty && error.description.utf8.count < 400)
    }
  }

  static func isTrack(_ path: String) -> Bool {
    path.split(separator: "/").last?.hasPrefix(RequestURL.trackPrefix) ?? false
  }
}

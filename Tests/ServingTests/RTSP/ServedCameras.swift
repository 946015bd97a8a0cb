#if X264
  import Serving
  import Foundation
  import Media
  import Platform
  import Streaming
  import TestSupport
  import Testing

  /// Cameras that are served behind one port, and may be exchanged.
  final class ServedCameras {
    let server: RTSPServer
    let directory: TemporaryDirectory
    private(set) var pipelines: [String: Pipeline] = [:]
    private var groups: [String: RTSPServerConfiguration.Group] = [:]

    /// Cameras by name; each has another size, so that a player tells which it is.
    init(
      _ sizes: [String: PictureSize], groups: [String: RTSPServerConfiguration.Group] = [:],
      _ configure: (inout RTSPServerConfiguration) -> Void = { _ in }
    ) throws {
      directory = try TemporaryDirectory()
      var configuration = RTSPServerConfiguration(listeners: [.init(address: "127.0.0.1", port: 0)])
      configuration.startPatience = Duration(seconds: 60)
      configure(&configuration)
      server = try RTSPServer(configuration, presentations: [])
      self.groups = groups
      for (name, size) in sizes { pipelines[name] = try ServedCamera.pipeline(size) }
      try serve()
    }

    deinit {
      server.stop()
      for pipeline in pipelines.values { Self.end(pipeline) }
    }

    private static func end(_ pipeline: Pipeline) {
      pipeline.stop()
      _ = pipeline.waitUntilEnd()
    }

    private func serve() throws {
      try server.setPresentations(
        pipelines.map { Presentation(name: $0.key, pipeline: $0.value, group: groups[$0.key]) })
    }

    /// Exchanges a camera, or takes it away, and ends the one before: after it is told where `isToldFirst`, else as a
    /// camera ends by itself.
    func set(_ name: String, _ size: PictureSize?, isToldFirst: Bool = true) throws {
      let former = pipelines[name]
      if !isToldFirst { former.map(Self.end) }
      pipelines[name] = try size.map { try ServedCamera.pipeline($0) }
      try serve()
      if isToldFirst { former.map(Self.end) }
    }

    /// Changes or removes a camera's group.
    func set(_ name: String, group: RTSPServerConfiguration.Group?) throws {
      groups[name] = group
      try serve()
    }

    /// Frames that a camera says its viewers did not get.
    func missedFrames(_ name: String) -> Int { pipelines[name]?.missedFrames ?? 0 }

    var port: Int { server.listeners[0].port }

    func client(_ name: String, host: String = "127.0.0.1") throws -> RTSPClient {
      try RTSPClient(host: host, port: port, path: name)
    }

    func url(_ name: String, user: String = "") -> String { "rtsp://\(user)127.0.0.1:\(port)/\(name)" }

    /// Starts ffmpeg, which decodes so many pictures and ends; it fails at the first fault.
    func ffmpeg(_ url: String, transport: String = "tcp", frames: Int = 20) throws -> Subprocess {
      try Subprocess(
        ["ffmpeg", "-nostdin", "-v", "info", "-err_detect", "explode"] + FFmpegTransport.options(transport)
          + ["-i", url, "-frames:v", "\(frames)", "-f", "null", "-"], in: directory)
    }

    /// Starts GStreamer, which decodes so many pictures and ends.
    func gstreamer(_ url: String, protocols: String, frames: Int = 20, options: String = "") throws -> Subprocess {
      try Subprocess(
        [
          "sh", "-c",
          "exec gst-launch-1.0 -v rtspsrc location=\(url) protocols=\(protocols) latency=100 \(options) ! rtph264depay ! "
            + "avdec_h264 ! \(countingSink(frames))",
        ], in: directory)
    }
  }

  /// Expects that ffmpeg has decoded pictures of that size, all that it was to, without a complaint.
  func expectDecoded(_ process: Subprocess, _ size: PictureSize, limit: Double = 120) throws {
    let result = try process.wait(limit: limit)
    #expect(result.status == 0, "\(result.error.suffix(2000))")
    #expect(result.error.contains("\(size)"), "\(result.error.suffix(2000))")
    for complaint in ["error while decoding", "non-existing PPS", "concealing", "RTP: missed", "Frame num gap"] {
      #expect(!result.error.contains(complaint), "\(result.error.suffix(2000))")
    }
  }

  /// Expects that GStreamer has got its pictures of that size.
  func expectPlayed(_ process: Subprocess, _ size: PictureSize, limit: Double = 120) throws {
    let result = try process.wait(limit: limit)
    #expect(result.hasPlayed, "\(result.outputText.suffix(2000))\(result.error)")
    #expect(
      result.outputText.contains("width=(int)\(size.width), height=(int)\(size.height)"),
      "\(result.outputText.suffix(2000))")
  }
#endif

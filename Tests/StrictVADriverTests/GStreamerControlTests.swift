import Foundation
import TestSupport
import Testing

/// GStreamer's `vah264enc` and its kin: a second control, written apart from ffmpeg's encoder. It needs packed
/// headers.
@Suite struct GStreamerControlTests {
  struct Case: Sendable, CustomTestStringConvertible {
    var element = "vah264enc"
    var width = 640
    var height = 480
    var knobs: [String: String] = [:]
    var options = ["rate-control=cqp", "qpi=20", "qpp=20"]
    var minimum = 38.0

    var testDescription: String {
      let set = knobs.sorted { $0.key < $1.key }.map { "\($0.key)=\($0.value)" }
      return ([element, "\(width)x\(height)"] + set + options).joined(separator: " ")
    }
  }

  static let cases = [
    Case(),
    Case(width: 1918, height: 1078, knobs: ["SEGMENTS": "3"]),
    Case(width: 1920, height: 1080, knobs: ["SYNC_BUFFER": "0"]),
    Case(options: ["rate-control=cqp", "qpi=20", "qpp=20", "cabac=false", "key-int-max=4"]),
    Case(element: "vah264lpenc", knobs: ["ENTRYPOINT": "lp"]),
    Case(options: ["rate-control=cbr", "bitrate=20000"], minimum: 30),
    Case(width: 1280, height: 720, options: ["rate-control=vbr", "bitrate=16000"], minimum: 30),
    Case(element: "vah265enc"), Case(element: "vah265enc", width: 1918, height: 1078, knobs: ["SEGMENTS": "3"]),
    // With a constant QP, it leaves cu_qp_delta_enabled_flag 0 although that is required.
    Case(
      element: "vah265enc", knobs: ["HEVC": "required"], options: ["rate-control=cbr", "bitrate=20000"], minimum: 30),
    Case(
      element: "vah265enc", knobs: ["HEVC": "cb16,ctb32"], options: ["rate-control=cbr", "bitrate=20000"], minimum: 30),
    Case(element: "vah265lpenc", knobs: ["ENTRYPOINT": "lp", "HEVC": "simple"]),
  ]

  @Test(arguments: cases) func `encodes without a violation and decodes to the same pictures`(_ each: Case) throws {
    let driver = try StrictDriver()
    let directory = driver.directory
    let isHEVC = each.element.hasPrefix("vah265")
    let pictures = Pictures(width: each.width, height: each.height, codec: isHEVC ? "hevc" : "h264")
    let count = 10
    try pictures.make(count, at: directory.path("in"), in: directory)
    let references = each.element.hasSuffix("lpenc") ? [] : ["b-frames=0"]
    let result = try driver.run(
      [
        "gst-launch-1.0", "-q", "filesrc", "location=\(directory.path("in"))", "!", "rawvideoparse", "format=nv12",
        "width=\(each.width)", "height=\(each.height)", "framerate=30/1",
        // Without these it would round the rows up to four bytes.
        "plane-strides=<\(each.width),\(each.width)>", "plane-offsets=<0,\(each.width * each.height)>",
        "frame-size=\(pictures.frameBytes)", "!", each.element,
      ] + references + each.options
        + [
          "!", "video/x-\(isHEVC ? "h265" : "h264"),stream-format=byte-stream", "!", "filesink",
          "location=\(directory.path("out.\(pictures.codec)"))",
        ],
      knobs: each.knobs,
      // A registry of its own: which elements exist depends on the driver.
      environment: ["GST_REGISTRY": directory.path("registry"), "GST_PLUGIN_SYSTEM_PATH_1_0": plugins(directory)])
    #expect(result.status == 0, "\(result.error)")
    try pictures.check(count, from: driver, minimum: each.minimum)
  }

  /// A directory with only the plug-ins used: a whole registry takes seconds to make.
  private func plugins(_ directory: TemporaryDirectory) throws -> String {
    let found = try Subprocess.run(["gst-inspect-1.0", "coreelements"], in: directory).outputText
    guard let line = found.split(separator: "\n").first(where: { $0.contains("Filename") }),
      let file = line.split(separator: " ").last
    else { throw StrictDriver.Missing(description: "no GStreamer: install gstreamer1.0-plugins-bad") }
    let from = URL(fileURLWithPath: String(file)).deletingLastPathComponent()
    let target = directory.url.appendingPathComponent("plugins")
    try FileManager.default.createDirectory(at: target, withIntermediateDirectories: true)
    for name in ["coreelements", "rawparse", "va"] {
      let plugin = from.appendingPathComponent("libgst\(name).so")
      guard FileManager.default.fileExists(atPath: plugin.path) else {
        throw StrictDriver.Missing(description: "no \(plugin.path): install gstreamer1.0-plugins-bad")
      }
      try FileManager.default.createSymbolicLink(
        at: target.appendingPathComponent("libgst\(name).so"), withDestinationURL: plugin)
    }
    return target.path
  }
}

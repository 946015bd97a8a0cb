import Appliance
import Foundation
import Media
import Streaming
import TestSupport
import Testing

@Suite struct ApplianceConfigurationTests {
  private func load(
    _ text: String, _ arguments: [String] = [], _ environment: [String: String] = [:]
  ) throws -> (configuration: ApplianceConfiguration, path: String) {
    let directory = try TemporaryDirectory()
    let path = directory.path("box.toml")
    try text.write(toFile: path, atomically: false, encoding: .utf8)
    let configuration = try ApplianceConfiguration.load(
      arguments: ["--config=\(path)"] + arguments, environment: environment, checkSyntax: { _ in })
    return (configuration, path)
  }

  @Test func `each value keeps its origin, and a default value has none`() throws {
    let (configuration, path) = try load(
      "rtsp = ':8555'\n\nbitrate = '1M'\nfps = 10\n[[camera]]\nsource = 'test'\nsize = '320x240'\n",
      ["--fps", "15", "--no-load-adaptation", "--to=rtp://h:6000", "--to", "rtp://h:6002"],
      ["NIGHTJAR_BITRATE": "2M"])
    let camera = configuration.cameras[0]
    #expect(camera.encoding.bitrate == 2_000_000)
    #expect(camera.options["bitrate"]?.origin == .environment("NIGHTJAR_BITRATE"))
    #expect(camera.frameRate?.framesPerSecond == 15 && camera.options["fps"]?.origin == .commandLine)
    #expect(camera.size == PictureSize(width: 320, height: 240))
    #expect(camera.options["size"]?.origin == .file(path, line: 7))
    #expect(camera.destinations.map(\.port) == [6000, 6002])
    #expect(!camera.adaptation.followsLoad && camera.options["load-adaptation"]?.origin == .commandLine)
    #expect(camera.name == "camera" && camera.options["name"] == nil)
    #expect(configuration.rtsp.rtsp?.port == 8555 && configuration.options["rtsp"]?.origin == .file(path, line: 1))
    #expect(configuration.overridden.map(\.option.name) == ["fps"])
  }

  /// The options, the level that is given, and `true` if the level is chosen by measurement.
  @Test(
    arguments: [
      ("", nil, true), ("vaapi-quality = 'auto'", .auto, true), ("vaapi-quality = 3", .level(3), false),
      ("vaapi-quality = '3'", .level(3), false), ("encoder = 'vaapi'", nil, true), ("encoder = 'x264'", nil, false),
      ("preset = 'ultra-low-latency'", nil, false), ("source = 'file:clip.y4m'\nrate = 'max'", nil, false),
      ("preset = 'active-transcoding'\nvaapi-quality = 'auto'", .auto, true),
    ] as [(String, CameraEncoding.HardwareQuality?, Bool)])
  func `the quality level is chosen unless it is given`(
    options: String, level: CameraEncoding.HardwareQuality?, isChosen: Bool
  ) throws {
    let source = options.contains("source") ? "" : "source = 'test'\n"
    let camera = try load(source + options + "\n").configuration.cameras[0]
    #expect(camera.encoding.vaapiQuality == level)
    #expect(camera.governsQuality == isChosen)
  }

  #if X264
    @Test func `the preset and the quality level are chosen each by itself`() throws {
      for (options, governsPreset, governsLevel) in [
        ("", true, true), ("x264-preset = 'veryfast'", false, true), ("vaapi-quality = 2", true, false),
        ("encoder = 'x264'", true, false), ("encoder = 'vaapi'", false, true),
      ] {
        let camera = try load("source = 'test'\n\(options)\n").configuration.cameras[0]
        #expect(camera.governsEffort == governsPreset && camera.governsQuality == governsLevel, "\(options)")
      }
    }
  #endif

  @Test func `a sound at a port that nobody requested gives way to another camera`() throws {
    let (configuration, _) = try load(
      """
      rtsp = true
      [[camera]]
      name = 'a'
      source = 'test'
      to = ['rtp://h:5004', 'rtp://h:5104', 'rtp://other:5204', 'rtp://239.1.2.3:5304', 'rtp://h:5403?payload=mp2t']
      [[camera]]
      name = 'b'
      source = 'test'
      to = ['rtp://h:5008', 'rtp://h:5107', 'rtp://h:5208', 'rtp://h:5407']
      rtsp-multicast = '239.1.2.3:5306'
      """)
    let taken = configuration.cameras.map { $0.destinations.map(\.soundPort.isTaken) }
    // Only what a transport stream carries beside the pictures needs no port.
    #expect(taken[0] == [true, true, false, true, false])
    #expect(taken[1] == [false, false, false, false])
    // Without the other camera, it is the same destination, and its setting has changed.
    let (alone, _) = try load(
      """
      [[camera]]
      name = 'a'
      source = 'test'
      to = ['rtp://h:5004', 'rtp://h:5104', 'rtp://other:5204', 'rtp://239.1.2.3:5304', 'rtp://h:5403?payload=mp2t']
      """)
    #expect(alone.cameras[0].destinations == configuration.cameras[0].destinations)
    #expect(alone.cameras[0].destinations.allSatisfy { !$0.soundPort.isTaken })
    #expect(alone.cameras[0].changes(from: configuration.cameras[0]) == [.setting(.to)])
  }

  @Test func `a sound keeps a port that RTCP beside it leaves free`() throws {
    let (configuration, _) = try load(
      """
      [[camera]]
      name = 'a'
      source = 'test'
      to = ['rtp://h:5004?rtcp=mux', 'rtp://h:5104', 'rtp://h:5204?rtcp=mux']
      [[camera]]
      name = 'b'
      source = 'test'
      to = ['rtp://h:5007?rtcp=mux', 'rtp://h:5107', 'rtp://h:5209']
      """)
    #expect(configuration.cameras[0].destinations.map(\.soundPort.isTaken) == [false, true, false])
  }

  @Test func `changes are those of values, whatever words give them`() throws {
    let old = try load("bitrate = '2M'\nkeyframe-interval = '500ms'\nrtsp = 8554\nduration = '1m'\n").configuration
    let same = try load("bitrate = 2000000\nkeyframe-interval = 0.5\nrtsp = ':8554'\nduration = 60\n").configuration
    #expect(same.cameras[0].changes(from: old.cameras[0]).isEmpty && same.changes(from: old).isEmpty)
    let new = try load("bitrate = '2M'\nintra-refresh = true\nrtsp = true\nduration = '2m'\n").configuration
    #expect(
      new.cameras[0].changes(from: old.cameras[0]) == [.setting(.keyFrameInterval), .setting(.intraRefresh)])
    #expect(new.changes(from: old) == [.rtsp, .duration])
    #expect(new.changes(from: old).filter(\.isForStart) == [.duration])
  }

  @Test func `settings of the start stay as they were, and all others follow`() throws {
    let old = try load("control = 'none'\nduration = '1m'\nrtsp = 8554\nstats-json = '-'\n").configuration
    let new = try load(
      "events-file = 'e'\ntrace = 't'\ntrace-limit = '2M'\nlock-memory = true\ncpu-budget = '30%'\nrtsp = 8555\n"
    ).configuration
    let starting = Set(ApplianceSetting.allCases.filter(\.isForStart))
    #expect(new.changes(from: old) == starting.union([.rtsp]))
    let kept = new.keepingStart(of: old)
    #expect(kept.changes(from: old) == [.rtsp] && kept.changes(from: new) == starting)
    #expect(kept.options["control"] == old.options["control"] && kept.options["trace"] == nil)
    #expect(kept.options["rtsp"] == new.options["rtsp"])
  }

  @Test func `every setting has one row, and the row the setting's name`() {
    #expect(CameraConfiguration.settings.map(\.name) == CameraSetting.allCases)
    #expect(ApplianceConfiguration.settings.map(\.name) == ApplianceSetting.allCases)
    for setting in CameraConfiguration.settings { #expect(setting.option.name == setting.name.rawValue) }
  }

  @Test(arguments: [
    (["--quantizer", "20"], "--quantizer is for --rate-control cqp only"),
    (["--size", "99x99"], "--size 99x99: width and height must be even"),
    (["--to", "rtp://h:2", "--to", "rtp://h:2?mtu=600"], "--to: h port 2 is given twice"),
    (["--to", "rtp://h:4", "--to", "rtp://h:5"], "--to: h port 5 is given twice: rtp://h:4 and rtp://h:5"),
    (["--to", "rtp://h:4?audio=6", "--to", "rtp://h:6"], "--to: h port 6 is given twice"),
    (["--trace", "-"], "--trace: name a file"),
    (["--users", "/x"], "--users is for --rtsp, --rtsps, --https and --http only"),
  ])
  func `a fault of the command line is told in its words`(arguments: [String], words: String) throws {
    let error = try #require(throws: CommandLineError.self) { _ = try load("", arguments) }
    #expect(error.description.hasPrefix(words), "\(error)")
  }
}

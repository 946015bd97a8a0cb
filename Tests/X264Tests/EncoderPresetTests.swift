import Encoding
import Foundation
import Media
import Platform
import TestSupport
import Testing

#if X264
  import X264
#endif

@Suite struct EncoderPresetTests {
  private static let size = PictureSize(width: 640, height: 360)

  @Test func `live capture is what an encoder does unless told otherwise`() {
    let settings = EncoderPreset.liveCapture.settings
    #expect(settings == EncoderSettings())
    #expect(
      settings.configuration(size: Self.size, frameRate: .thirty, color: .bt709, processors: 4)
        == EncoderConfiguration(size: Self.size, frameRate: .thirty, bitrate: 1_500_000, color: .bt709))
    #expect(settings.keyFrameInterval == Duration(seconds: 2))
  }

  @Test func `every name is one that people can type, and every preset is possible at every size`() throws {
    #expect(
      EncoderPreset.allCases.map(\.rawValue) == [
        "ultra-low-latency", "live-capture", "active-transcoding", "background-transcoding",
      ])
    for preset in EncoderPreset.allCases {
      for (width, height) in [(16, 16), (640, 360), (1920, 1080), (3840, 2160), (16_384, 16_384)] {
        let configuration = preset.settings.configuration(
          size: PictureSize(width: width, height: height), frameRate: .thirty, color: .bt709, processors: 2)
        try configuration.check()
      }
    }
  }

  @Test func `every field can be another`() {
    var settings = EncoderPreset.backgroundTranscoding.settings
    settings.profile = .main
    settings.rateControl = .constantQuantizer(30)
    settings.bufferSeconds = 3
    settings.slices = 5
    settings.threads = 3
    settings.lookahead = 7
    settings.x264Preset = "faster"
    settings.vaapiQuality = 2
    settings.prefersLowPower = true
    let configuration = settings.configuration(
      size: Self.size, frameRate: .thirty, bitrate: 777_000, color: .jpeg, processors: 2)
    #expect(
      configuration
        == EncoderConfiguration(
          size: Self.size, frameRate: .thirty, bitrate: 777_000, color: .jpeg, profile: .main,
          rateControl: .constantQuantizer(30), bufferSeconds: 3, slices: 5, threads: 3, lookahead: 7,
          x264Preset: "faster", vaapiQuality: 2, prefersLowPower: true))
    // Impossible ones are found by the configuration, with the limit.
    settings.slices = 0
    #expect(throws: EncoderError.self) {
      try settings.configuration(size: Self.size, frameRate: .thirty, color: .jpeg, processors: 2).check()
    }
  }

  #if X264
    @Test(arguments: [
      (EncoderPreset.ultraLowLatency, "Constrained Baseline", 60, 4, 0),
      (.liveCapture, "Constrained Baseline", 60, 1, 0), (.activeTranscoding, "Main", 60, 1, 10),
      (.backgroundTranscoding, "High", 300, 1, 40),
    ])
    func `each makes the profile, the key frames and the slices that it promises`(
      preset: EncoderPreset, profile: String, interval: Int, slices: Int, delay: Int
    ) throws {
      let scene = try Scene(size: Self.size, frames: 30)
      let settings = preset.settings
      let configuration = settings.configuration(
        size: Self.size, frameRate: .thirty, color: .bt709, processors: 1)
      let encoder = try X264Encoder(configuration)
      try encoder.prepare()
      let pool = try FramePool(size: Self.size)
      var clock = KeyFrameClock(interval: settings.keyFrameInterval)
      var recording = Recording()
      let count = interval + 30
      for index in 0..<count {
        let frame = try scene.frame(index, from: pool)
        let time = frame.timestamp
        let isKey = clock.isDue(at: time, frameInterval: FrameRate.thirty.interval)
        try encoder.encode(frame, keyFrame: isKey) { recording.add($0) }
        if isKey { clock.keyFrameDelivered(at: time) }
      }
      #expect(recording.pictures.count == count - delay)
      try encoder.flush { recording.add($0) }
      #expect(recording.keys == [0, interval])
      #expect(recording.slices == Array(repeating: slices, count: count))
      let probe = try recording.probe()
      #expect(probe.complaints.isEmpty, "\(probe.complaints)")
      for (name, value) in [
        ("profile", "\(profile)"), ("width", "640"), ("height", "360"), ("has_b_frames", "0"),
        ("nb_read_frames", "\(count)"), ("r_frame_rate", "30/1"),
      ] {
        #expect(probe.values[name] == value, "\(name)")
      }
      // No frame is larger than the buffer.
      let buffer = Double(configuration.bitrate) * settings.bufferSeconds
      #expect(recording.pictures.allSatisfy { Double($0.bytes * 8) <= buffer * 1.1 })
    }
  #endif
}

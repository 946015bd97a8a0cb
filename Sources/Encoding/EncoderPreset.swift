import Media
import Platform

/// The purpose of a stream. Each preset selects a set of values: see ``settings``.
///
/// | | ultra-low-latency | live-capture | active-transcoding | background-transcoding |
/// |---|---|---|---|---|
/// | profile | baseline | baseline | main | high |
/// | key frame every | 2 s | 2 s | 2 s | 10 s |
/// | rate control | CBR | CBR | VBR | VBR |
/// | VBV buffer | 0.1 s | 0.5 s | 1 s | 2 s |
/// | slices | 4 | 1 | 1 | 1 |
/// | slices sent one by one | yes | – | – | – |
/// | threads | auto | auto | auto | auto |
/// | lookahead | – | – | 10 frames | 40 frames |
/// | x264 preset | ultrafast | ultrafast | veryfast | medium |
/// | VA-API quality | 7 | the driver's | 4 | 1 |
///
/// For HEVC there is one slice, one thread and no lookahead, and the profile is Main.
///
/// The program `nightjar` begins live-capture with another x264 preset and profile, and changes the preset and the VA-API quality
/// while it streams (`--x264-preset auto`, `--vaapi-quality auto`).
public enum EncoderPreset: String, CaseIterable, Sendable {
  /// A viewer steers by the picture: no frame is much larger than another, and its slices are sent one by one.
  case ultraLowLatency = "ultra-low-latency"
  /// A camera that viewers watch; the default.
  case liveCapture = "live-capture"
  /// Viewers watch live but do not react to the picture: some frames of delay give better pictures.
  case activeTranscoding = "active-transcoding"
  /// No viewer waits: the best pictures for the bits.
  case backgroundTranscoding = "background-transcoding"

  /// The preset's values.
  public var settings: EncoderSettings {
    var settings = EncoderSettings()
    switch self {
    case .ultraLowLatency:
      settings.bufferSeconds = 0.1
      settings.slices = 4
      settings.streamsSlices = true
      settings.vaapiQuality = 7
    case .liveCapture: break
    case .activeTranscoding:
      settings.profile = .main
      settings.rateControl = .variableBitrate
      settings.bufferSeconds = 1
      settings.lookahead = 10
      settings.x264Preset = "veryfast"
      settings.vaapiQuality = 4
    case .backgroundTranscoding:
      settings.profile = .high
      settings.keyFrameInterval = Duration(seconds: 10)
      settings.rateControl = .variableBitrate
      settings.bufferSeconds = 2
      settings.lookahead = 40
      settings.x264Preset = "medium"
      settings.vaapiQuality = 1
    }
    return settings
  }
}

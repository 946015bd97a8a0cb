public import Media

/// How to encode, whatever the picture: ``EncoderPreset/settings`` or ``init()``, and any of it changed. With a size, a
/// rate and a bitrate it becomes an `EncoderConfiguration`.
public struct EncoderSettings: Hashable, Sendable {
  /// What a decoder must be able to do; the SPS says so.
  public var profile = H264Profile.baseline
  /// The longest time from one key frame to the next, for a ``KeyFrameClock``: encoders make none of their own.
  public var keyFrameInterval = MediaTime(seconds: 2)
  /// How the bits are spent.
  public var rateControl = RateControl.constantBitrate
  /// The VBV buffer in seconds of the bitrate: no frame is larger than this much of the stream.
  public var bufferSeconds = 0.5
  /// Slices in a picture; fewer where it has not so many rows of macroblocks. Several threads of x264 make a multiple
  /// of their number.
  public var slices = 1
  /// x264's threads; nil for ``EncoderSelector/threads(for:at:processors:)``.
  public var threads: Int?
  /// How many frames x264 may hold back to plan its bits.
  public var lookahead = 0
  /// x264's name for speed against quality.
  public var x264Preset = "ultrafast"
  /// VA-API's quality level, 1 for the best; nil leaves it to the driver. A driver that offers fewer takes its last.
  public var vaapiQuality: Int?
  /// Whether VA-API's low-power entry point is preferred where a driver has both.
  public var prefersLowPower = false
  /// Whether x264's slices leave one by one, each as soon as it is coded.
  public var streamsSlices = false
  /// The most bytes of a slice, in place of ``slices``; nil for no such limit. x264 alone.
  public var sliceBytes: Int?
  /// Whether pictures are refreshed column by column within ``keyFrameInterval``, and key frames come on request alone.
  /// x264 alone.
  public var refreshes = false

  /// When key frames come by the clock, for a ``KeyFrameClock``: never where pictures are refreshed instead.
  public var clockedKeyFrameInterval: MediaTime { refreshes ? MediaTime(seconds: 1e9) : keyFrameInterval }

  private func refreshFrames(at frameRate: FrameRate) -> Int {
    let limits = EncoderConfiguration.refreshLimits
    let frames = (keyFrameInterval.seconds * frameRate.framesPerSecond).rounded()
    return min(max(Int(frames), limits.lowerBound), limits.upperBound)
  }

  /// The values of ``EncoderPreset/liveCapture``.
  public init() {}

  /// These settings for pictures of `size` at `frameRate`. `bitrate` is in bits a second, nil for
  /// ``BitrateLadder/bitrate(for:at:)``; `processors` is how many this machine has. Nothing is checked here:
  /// `EncoderConfiguration.check()` does, and every encoder calls it.
  public func configuration(
    size: PictureSize, frameRate: FrameRate, bitrate: Int? = nil, color: ColorDescription, processors: Int
  ) -> EncoderConfiguration {
    EncoderConfiguration(
      size: size, frameRate: frameRate, bitrate: bitrate ?? BitrateLadder.bitrate(for: size, at: frameRate),
      color: color, profile: profile, rateControl: rateControl, bufferSeconds: bufferSeconds,
      slices: min(slices, max(1, (size.height + 15) / 16)),
      threads: threads ?? EncoderSelector.threads(for: size, at: frameRate, processors: processors),
      lookahead: lookahead, x264Preset: x264Preset, vaapiQuality: vaapiQuality, prefersLowPower: prefersLowPower,
      streamsSlices: streamsSlices, sliceBytes: sliceBytes,
      refreshFrames: refreshes ? refreshFrames(at: frameRate) : nil)
  }
}

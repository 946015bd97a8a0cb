public import Media
public import Platform

/// The settings of an encoder, independent of the picture: ``EncoderPreset/settings`` or ``init()``, which the caller
/// may change. With a size, a rate and a bitrate they become an `EncoderConfiguration`.
public struct EncoderSettings: Hashable, Sendable {
  /// The codec of the stream. ``slices``, ``threads``, ``lookahead``, ``streamsSlices``, ``sliceBytes`` and ``refreshes`` are
  /// for H.264: HEVC has one slice in a picture, and no picture is held back.
  public var codec = VideoCodec.h264
  /// The H.264 profile that a decoder must support; the SPS states it.
  public var profile = H264Profile.baseline
  /// The maximum time from one key frame to the next, for a ``KeyFrameClock``: encoders insert none by themselves.
  public var keyFrameInterval = Duration(seconds: 2)
  /// The rate control.
  public var rateControl = RateControl.constantBitrate
  /// The VBV buffer in seconds of the bitrate. No frame is larger than the buffer.
  public var bufferSeconds = 0.5
  /// The number of slices in a picture; fewer if the picture has fewer rows of macroblocks. Several threads of x264
  /// make a multiple of their number.
  public var slices = 1
  /// The number of x264's threads; nil for ``EncoderSelector/threads(for:at:processors:)``.
  public var threads: Int?
  /// The number of frames that x264 may hold back to plan its bits.
  public var lookahead = 0
  /// The name of x264's preset, a choice of speed against quality; for HEVC, of x265's preset with that name.
  public var x264Preset = "ultrafast"
  /// The VA-API quality level, 1 for the best; nil for the driver's default. A driver with fewer levels uses its last.
  public var vaapiQuality: Int?
  /// `true` prefers VA-API's low-power entry point if a driver has both.
  public var prefersLowPower = false
  /// `true` sends x264's slices one by one, each as soon as it is coded.
  public var streamsSlices = false
  /// The maximum number of bytes in a slice, instead of ``slices``; nil for no limit. x264 only.
  public var sliceBytes: Int?
  /// `true` refreshes pictures column by column within ``keyFrameInterval``; key frames then come on request only. x264
  /// only.
  public var refreshes = false

  /// The interval of a ``KeyFrameClock``. With ``refreshes`` it is so long that the clock requests no key frame.
  public var clockedKeyFrameInterval: Duration { refreshes ? Duration(seconds: 1e9) : keyFrameInterval }

  private func refreshFrames(at frameRate: FrameRate) -> Int {
    let limits = EncoderConfiguration.refreshLimits
    let frames = (keyFrameInterval.seconds * frameRate.framesPerSecond).rounded()
    return min(max(Int(frames), limits.lowerBound), limits.upperBound)
  }

  /// Creates the settings of ``EncoderPreset/liveCapture``.
  public init() {}

  /// Returns these settings for pictures of `size` at `frameRate`. `bitrate` is in bits per second, nil for
  /// ``BitrateLadder/bitrate(for:at:)``; `processors` is the number of the host's processors. This function checks
  /// nothing: `EncoderConfiguration.check()` does, and every encoder calls it.
  public func configuration(
    size: PictureSize, frameRate: FrameRate, bitrate: Int? = nil, color: ColorDescription, processors: Int
  ) -> EncoderConfiguration {
    let bitrate = bitrate ?? BitrateLadder.bitrate(for: size, at: frameRate)
    guard codec == .h264 else {
      return EncoderConfiguration(
        size: size, frameRate: frameRate, bitrate: bitrate, color: color, rateControl: rateControl,
        bufferSeconds: bufferSeconds, x264Preset: x264Preset, vaapiQuality: vaapiQuality,
        prefersLowPower: prefersLowPower, codec: codec)
    }
    return EncoderConfiguration(
      size: size, frameRate: frameRate, bitrate: bitrate, color: color, profile: profile, rateControl: rateControl,
      bufferSeconds: bufferSeconds, slices: min(slices, max(1, (size.height + 15) / 16)),
      threads: threads ?? EncoderSelector.threads(for: size, at: frameRate, processors: processors),
      lookahead: lookahead, x264Preset: x264Preset, vaapiQuality: vaapiQuality, prefersLowPower: prefersLowPower,
      streamsSlices: streamsSlices, sliceBytes: sliceBytes,
      refreshFrames: refreshes ? refreshFrames(at: frameRate) : nil)
  }
}

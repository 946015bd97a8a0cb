public import Media

#if X264
  import X264
#endif

/// Which encoder is wanted.
public enum EncoderChoice: String, CaseIterable, Sendable {
  /// The best one that this machine has.
  case auto
  /// x264, in software.
  case x264
}

/// Makes the encoder that was asked for.
public enum EncoderSelector {
  /// An encoder for `configuration`, ready to encode.
  ///
  /// - Throws: ``EncoderError`` where it cannot be had.
  public static func makeEncoder(
    _ choice: EncoderChoice, _ configuration: EncoderConfiguration
  ) throws(EncoderError) -> any VideoEncoder {
    switch choice {
    case .auto, .x264:
      #if X264
        return try X264Encoder(configuration)
      #else
        throw .unavailable("this build has no x264: build it with the package trait X264")
      #endif
    }
  }

  /// How many threads `--threads auto` stands for: one up to 1080p30, which one core encodes in half its time,
  /// otherwise one for each such share, no more than `processors`; every thread costs a slice.
  public static func threads(for size: PictureSize, at frameRate: FrameRate, processors: Int) -> Int {
    let share = 1920 * 1088 * 30.0
    let wanted = (Double(size.pixels) * frameRate.framesPerSecond / share).rounded(.up)
    return max(1, min(Int(wanted), processors, 8))
  }

  /// x264's preset names, fastest first.
  public static var x264Presets: [String] {
    #if X264
      return X264Encoder.presets
    #else
      return []
    #endif
  }
}

/// A level of HEVC: its rows of ITU-T H.265 tables A.8 and A.9.
public struct HEVCLevel: Hashable, Sendable {
  /// `general_level_idc`: thirty times the level's number.
  public let identifier: UInt8
  /// `MaxLumaPs`, luma samples in a picture.
  public let pictureSamples: Int
  /// `MaxLumaSr`, luma samples a second.
  public let samplesPerSecond: Int
  /// `MaxBR` of the Main tier, in units of 1000 bit/s for Main profile.
  public let bitrate: Int
  /// `MaxBR` of the High tier; nil for levels without one.
  public let highBitrate: Int?
  /// `MaxCPB` of the Main tier, in units of 1000 bits for Main profile.
  public let codedPictureBuffer: Int
  /// `MaxCPB` of the High tier; nil for levels without one.
  public let highCodedPictureBuffer: Int?

  private init(
    _ identifier: UInt8, _ samples: Int, _ rate: Int, _ bitrate: (Int, Int?), _ buffer: (Int, Int?)
  ) {
    self.identifier = identifier
    (pictureSamples, samplesPerSecond) = (samples, rate)
    (self.bitrate, highBitrate) = bitrate
    (codedPictureBuffer, highCodedPictureBuffer) = buffer
  }

  /// Both tables, lowest level first.
  public static let all = [
    HEVCLevel(30, 36_864, 552_960, (128, nil), (350, nil)),
    HEVCLevel(60, 122_880, 3_686_400, (1_500, nil), (1_500, nil)),
    HEVCLevel(63, 245_760, 7_372_800, (3_000, nil), (3_000, nil)),
    HEVCLevel(90, 552_960, 16_588_800, (6_000, nil), (6_000, nil)),
    HEVCLevel(93, 983_040, 33_177_600, (10_000, nil), (10_000, nil)),
    HEVCLevel(120, 2_228_224, 66_846_720, (12_000, 30_000), (12_000, 30_000)),
    HEVCLevel(123, 2_228_224, 133_693_440, (20_000, 50_000), (20_000, 50_000)),
    HEVCLevel(150, 8_912_896, 267_386_880, (25_000, 100_000), (25_000, 100_000)),
    HEVCLevel(153, 8_912_896, 534_773_760, (40_000, 160_000), (40_000, 160_000)),
    HEVCLevel(156, 8_912_896, 1_069_547_520, (60_000, 240_000), (60_000, 240_000)),
    HEVCLevel(180, 35_651_584, 1_069_547_520, (60_000, 240_000), (60_000, 240_000)),
    HEVCLevel(183, 35_651_584, 2_139_095_040, (120_000, 480_000), (120_000, 480_000)),
    HEVCLevel(186, 35_651_584, 4_278_190_080, (240_000, 800_000), (240_000, 800_000)),
  ]

  /// Returns the lowest level and tier whose limits the stream meets: picture size and each of its sides (clause A.4.1),
  /// sample rate, and, with rate control, bitrate and buffer. The Main tier comes first, because decoders rarely support the
  /// High tier. Returns level 6.2 of the High tier where none suffices.
  ///
  /// - Parameters:
  ///   - size: The size of the coded picture.
  ///   - frameRate: The frame rate.
  ///   - peak: The highest bitrate, in bits a second.
  ///   - buffer: The coded picture buffer, in bits.
  public static func lowest(
    size: PictureSize, frameRate: FrameRate, peak: Int, buffer: Int
  ) -> (identifier: UInt8, isHighTier: Bool) {
    let sufficient = all.filter { level in
      size.pixels <= level.pictureSamples
        && max(size.width * size.width, size.height * size.height) <= 8 * level.pictureSamples
        && Double(size.pixels) * frameRate.framesPerSecond <= Double(level.samplesPerSecond)
    }
    if let level = sufficient.first(where: {
      peak <= $0.bitrate * 1_000 && buffer <= $0.codedPictureBuffer * 1_000
    }) {
      return (level.identifier, false)
    }
    let high = sufficient.first {
      peak <= ($0.highBitrate ?? 0) * 1_000 && buffer <= ($0.highCodedPictureBuffer ?? 0) * 1_000
    }
    return (high?.identifier ?? 186, true)
  }
}

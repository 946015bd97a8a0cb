/// A row of ITU-T H.264 table A-1: the limits of a level.
public struct H264Level: Hashable, Sendable {
  /// `level_idc`: ten times the level's number.
  public let identifier: UInt8
  /// `MaxMBPS`, macroblocks a second.
  public let macroblocksPerSecond: Int
  /// `MaxFS`, macroblocks in a frame.
  public let frameSize: Int
  /// `MaxBR`, in units of 1000 bit/s; 5/4 of it for High profile (table A-2).
  public let bitrate: Int
  /// `MaxCPB`, in units of 1000 bits; 5/4 of it for High profile.
  public let codedPictureBuffer: Int

  private init(_ identifier: UInt8, _ macroblocksPerSecond: Int, _ frameSize: Int, _ bitrate: Int, _ buffer: Int) {
    self.identifier = identifier
    self.macroblocksPerSecond = macroblocksPerSecond
    self.frameSize = frameSize
    self.bitrate = bitrate
    codedPictureBuffer = buffer
  }

  /// Table A-1 except level 1b, lowest first.
  public static let all = [
    H264Level(10, 1_485, 99, 64, 175), H264Level(11, 3_000, 396, 192, 500),
    H264Level(12, 6_000, 396, 384, 1_000), H264Level(13, 11_880, 396, 768, 2_000),
    H264Level(20, 11_880, 396, 2_000, 2_000), H264Level(21, 19_800, 792, 4_000, 4_000),
    H264Level(22, 20_250, 1_620, 4_000, 4_000), H264Level(30, 40_500, 1_620, 10_000, 10_000),
    H264Level(31, 108_000, 3_600, 14_000, 14_000), H264Level(32, 216_000, 5_120, 20_000, 20_000),
    H264Level(40, 245_760, 8_192, 20_000, 25_000), H264Level(41, 245_760, 8_192, 50_000, 62_500),
    H264Level(42, 522_240, 8_704, 50_000, 62_500), H264Level(50, 589_824, 22_080, 135_000, 135_000),
    H264Level(51, 983_040, 36_864, 240_000, 240_000), H264Level(52, 2_073_600, 36_864, 240_000, 240_000),
    H264Level(60, 4_177_920, 139_264, 240_000, 240_000), H264Level(61, 8_355_840, 139_264, 480_000, 480_000),
    H264Level(62, 16_711_680, 139_264, 800_000, 800_000),
  ]

  /// Returns the lowest level whose limits the stream meets: frame size and each of its sides (clause A.3.1),
  /// macroblock rate, and, with rate control, bitrate and buffer. Returns 6.2 where no level suffices. `peak` is the
  /// highest bitrate in bits a second; `buffer` is the coded picture buffer in bits.
  public static func lowest(
    size: PictureSize, frameRate: FrameRate, profile: H264Profile, peak: Int, buffer: Int
  ) -> UInt8 {
    let columns = (size.width + 15) / 16
    let rows = (size.height + 15) / 16
    let rate = Double(columns * rows) * frameRate.framesPerSecond
    let factor = profile == .high ? 1_250 : 1_000
    let fitting = all.first { level in
      columns * rows <= level.frameSize
        && max(columns * columns, rows * rows) <= 8 * level.frameSize
        && rate <= Double(level.macroblocksPerSecond)
        && peak <= level.bitrate * factor && buffer <= level.codedPictureBuffer * factor
    }
    return fitting?.identifier ?? 62
  }
}

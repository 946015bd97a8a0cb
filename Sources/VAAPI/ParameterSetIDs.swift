import Media

/// The ids of the parameter sets that nightjar writes for VA-API. They depend on what the sets hold, so that a receiver which has
/// lost new sets decodes nothing by the former ones (ITU-T H.264 clause 7.4.1.2.1, H.265 clause 7.4.2.4.2).
///
/// | | SPS | PPS |
/// |---|---|---|
/// | H.264 | 27…30, and 31 for a small rendition; x264 has 1…26 | 27…86; x264 has 1…26 |
/// | HEVC | 1…12, VPS too; x265 has 0 | 1…60 |
///
/// A driver that writes its own sets or slice headers chooses the ids, which are then 0.
struct ParameterSetIDs: Hashable, Sendable {
  /// `seq_parameter_set_id`, and that of the VPS.
  var sequence = 0
  /// `pic_parameter_set_id`.
  var picture = 0

  /// The number of PPS ids for each shape and rendition.
  private static let steps = 15

  /// Creates ids of 0.
  init() {}

  /// Creates the ids for a stream: one PPS for each shape, rendition and power of two of the pixels, and as many SPS as there is
  /// room for. The level does not tell sizes apart: 1280x720 and 960x540 have the same one. Each size of the ladder by which
  /// nightjar makes pictures smaller (1920x1080, 1280x720, 960x540, 640x360) has another power, and neighbours another SPS.
  init(_ configuration: EncoderConfiguration) {
    let shape = configuration.size.width < configuration.size.height ? 1 : 0
    let kind = shape + (configuration.isSmallRendition ? 2 : 0)
    let power = Int.bitWidth - 1 - configuration.size.pixels.leadingZeroBitCount
    let step = Self.steps * kind + power % Self.steps
    switch configuration.codec {
    case .h264:
      sequence = configuration.isSmallRendition ? 31 : 27 + 2 * shape + power % 2
      picture = 27 + step
    case .hevc:
      sequence = 1 + 3 * kind + power % 3
      picture = 1 + step
    }
  }
}

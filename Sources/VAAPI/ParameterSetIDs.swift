import Media

/// The ids of the parameter sets that nightjar writes for VA-API. They depend on what the sets hold, so that a receiver which has
/// lost new sets decodes nothing by the former ones (ITU-T H.264 clause 7.4.1.2.1, H.265 clause 7.4.2.4.2).
///
/// | | SPS | PPS |
/// |---|---|---|
/// | H.264 | 27…30, and 31 for a small rendition; x264 has 1…26 | the same, and 32 for a small rendition that is tall |
/// | HEVC | 1…12, VPS too; x265 has 0 | 1…52 |
///
/// A driver that writes its own sets or slice headers chooses the ids, which are then 0.
struct ParameterSetIDs: Hashable, Sendable {
  /// `seq_parameter_set_id`, and that of the VPS.
  var sequence = 0
  /// `pic_parameter_set_id`.
  var picture = 0

  /// Creates ids of 0.
  init() {}

  /// Creates the ids for a stream of `level` (`level_idc`): one for each shape and rendition, and as many for the levels as
  /// there is room for. Neighbouring levels differ.
  init(_ configuration: EncoderConfiguration, level: UInt8) {
    let shape = configuration.size.width < configuration.size.height ? 1 : 0
    let kind = shape + (configuration.isSmallRendition ? 2 : 0)
    switch configuration.codec {
    case .h264:
      let rank = H264Level.all.firstIndex { $0.identifier == level } ?? 0
      sequence = configuration.isSmallRendition ? 31 : 27 + 2 * shape + rank % 2
      picture = configuration.isSmallRendition ? sequence + shape : sequence
    case .hevc:
      let rank = HEVCLevel.all.firstIndex { $0.identifier == level } ?? 0
      sequence = 1 + 3 * kind + rank % 3
      picture = 1 + HEVCLevel.all.count * kind + rank
    }
  }
}

/// The values of the sequence parameter set of a stream without B-frames and with one reference: progressive, 8-bit
/// 4:2:0, `pic_order_cnt_type` 0.
///
/// Type 2 would suffice (output order is decoding order) and be a few bits shorter. Type 0 is what ffmpeg, GStreamer
/// and Chromium write, and hardware encoders are tested with their streams.
public struct SequenceParameters: Hashable, Sendable {
  /// The profile.
  public var profile: H264Profile
  /// `level_idc`.
  public var levelIDC: UInt8
  /// The picture's size after cropping; even.
  public var size: PictureSize
  /// The colour description of the samples.
  public var color: ColorDescription
  /// The nominal frame rate, for the VUI's timing.
  public var frameRate: FrameRate
  /// `seq_parameter_set_id`, 0…31.
  public var identifier = 0

  /// Creates parameters of these values, with the id 0.
  public init(
    profile: H264Profile, levelIDC: UInt8, size: PictureSize, color: ColorDescription, frameRate: FrameRate
  ) {
    self.profile = profile
    self.levelIDC = levelIDC
    self.size = size
    self.color = color
    self.frameRate = frameRate
  }

  /// `log2_max_frame_num_minus4` + 4.
  public static let frameNumberBits = 8
  /// `log2_max_pic_order_cnt_lsb_minus4` + 4.
  public static let orderCountBits = 10
  /// `max_num_ref_frames`.
  public static let referenceFrames: UInt32 = 1
  /// `log2_max_mv_length_horizontal` and `_vertical`: any motion vector that the standard allows.
  public static let motionVectorBits: UInt32 = 15

  /// The picture's columns and rows of macroblocks.
  public var macroblocks: (columns: Int, rows: Int) { ((size.width + 15) / 16, (size.height + 15) / 16) }

  /// `frame_crop_right_offset` and `frame_crop_bottom_offset`, in units of two samples.
  public var cropping: (right: UInt32, bottom: UInt32) {
    (UInt32(macroblocks.columns * 16 - size.width) / 2, UInt32(macroblocks.rows * 16 - size.height) / 2)
  }

  /// `num_units_in_tick` and `time_scale`: the nominal rate, two ticks a frame.
  public var timing: SequenceParameterSet.Timing { Self.timing(of: frameRate) }

  /// Returns the VUI's timing for `frameRate`. The rate is not marked as fixed, because a camera slows down in the
  /// dark.
  public static func timing(of frameRate: FrameRate) -> SequenceParameterSet.Timing {
    // A numerator whose double does not fit 32 bits stays, and the denominator is halved instead; it is large then.
    let doubles = frameRate.numerator <= UInt32.max / 2
    return SequenceParameterSet.Timing(
      unitsInTick: doubles ? frameRate.denominator : max(1, frameRate.denominator / 2),
      timeScale: doubles ? frameRate.numerator * 2 : frameRate.numerator, isFixedFrameRate: false)
  }

  /// Writes the SPS with its start code: clause 7.3.2.1.1.
  public func write(to writer: inout BitWriter) {
    writer.begin(header: 0x67)
    writer.bits(UInt32(profile.identifier), 8)
    writer.bits(UInt32(profile.constraintFlags), 8)
    writer.bits(UInt32(levelIDC), 8)
    writer.unsigned(UInt32(identifier))
    if profile == .high {
      writer.unsigned(1)  // chroma_format_idc
      writer.unsigned(0)  // bit_depth_luma_minus8
      writer.unsigned(0)  // bit_depth_chroma_minus8
      writer.flag(false)  // qpprime_y_zero_transform_bypass_flag
      writer.flag(false)  // seq_scaling_matrix_present_flag
    }
    writer.unsigned(UInt32(Self.frameNumberBits - 4))
    writer.unsigned(0)  // pic_order_cnt_type
    writer.unsigned(UInt32(Self.orderCountBits - 4))
    writer.unsigned(Self.referenceFrames)
    writer.flag(false)  // gaps_in_frame_num_value_allowed_flag
    writer.unsigned(UInt32(macroblocks.columns - 1))
    writer.unsigned(UInt32(macroblocks.rows - 1))
    writer.flag(true)  // frame_mbs_only_flag
    writer.flag(true)  // direct_8x8_inference_flag
    let crop = cropping
    writer.flag(crop.right > 0 || crop.bottom > 0)
    if crop.right > 0 || crop.bottom > 0 {
      for offset in [0, crop.right, 0, crop.bottom] { writer.unsigned(offset) }
    }
    Self.writeVUI(color: color, timing: timing, to: &writer)
    writer.trailingBits()
  }

  /// Writes `vui_parameters_present_flag` and `vui_parameters()`, clause E.1.1: colours, timing, and no reordering.
  static func writeVUI(
    color: ColorDescription, timing: SequenceParameterSet.Timing, references: UInt32 = referenceFrames,
    to writer: inout BitWriter
  ) {
    writer.flag(true)
    color.writeVideoSignal(to: &writer)
    writer.flag(false)  // chroma_loc_info_present_flag
    writer.flag(true)  // timing_info_present_flag
    writer.bits(timing.unitsInTick, 32)
    writer.bits(timing.timeScale, 32)
    writer.flag(timing.isFixedFrameRate)
    writer.flag(false)  // nal_hrd_parameters_present_flag
    writer.flag(false)  // vcl_hrd_parameters_present_flag
    writer.flag(false)  // pic_struct_present_flag
    writer.flag(true)  // bitstream_restriction_flag
    writer.flag(true)  // motion_vectors_over_pic_boundaries_flag
    // max_bytes_per_pic_denom, max_bits_per_mb_denom, the motion vectors' lengths, max_num_reorder_frames,
    // max_dec_frame_buffering.
    for value in [0, 0, motionVectorBits, motionVectorBits, 0, references] { writer.unsigned(value) }
  }
}

extension SequenceParameterSet {
  /// Returns the SPS with its VUI replaced. A driver that writes its own parameter sets omits the colours, and without
  /// `max_num_reorder_frames` a decoder holds pictures back. It serves a stream without B-frames.
  ///
  /// - Throws: ``ParameterSetError`` where `nalUnit` is no SPS.
  public static func replacingVUI(
    in nalUnit: [UInt8], color: ColorDescription, frameRate: FrameRate
  ) throws(ParameterSetError) -> [UInt8] {
    let set = try SequenceParameterSet(nalUnit: nalUnit)
    var reader = BitReader(RawByteSequencePayload.removingEmulationPrevention(nalUnit.dropFirst()))
    var writer = BitWriter(capacity: nalUnit.count + 64)
    writer.begin(header: nalUnit[0])
    for _ in 0..<set.vuiPosition { writer.flag(try reader.flag()) }
    SequenceParameters.writeVUI(
      color: color, timing: SequenceParameters.timing(of: frameRate), references: UInt32(max(1, set.referenceFrames)),
      to: &writer)
    writer.trailingBits()
    return Array(writer.bytes.dropFirst(AnnexB.startCode.count))
  }
}

extension H264Profile {
  /// `profile_idc`.
  public var identifier: UInt8 {
    switch self {
    case .baseline: 66
    case .main: 77
    case .high: 100
    }
  }

  /// The byte of `constraint_set0_flag` (highest bit) and the following flags. Baseline is Constrained Baseline, and
  /// its flags say that a Main profile decoder suffices.
  public var constraintFlags: UInt8 {
    switch self {
    case .baseline: 0xc0
    case .main: 0x40
    case .high: 0
    }
  }
}

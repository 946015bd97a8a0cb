/// The values of the video and the sequence parameter set of a stream without B pictures and with one reference: Main profile,
/// progressive, one temporal sub-layer, 8-bit 4:2:0.
public struct HEVCSequenceParameters: Hashable, Sendable {
  /// `general_level_idc`: thirty times the level.
  public var levelIDC: UInt8
  /// `general_tier_flag`.
  public var isHighTier: Bool
  /// The picture's size after cropping; even.
  public var size: PictureSize
  /// The colour description of the samples.
  public var color: ColorDescription
  /// The nominal frame rate, for the timing of VPS and VUI.
  public var frameRate: FrameRate
  /// `vps_video_parameter_set_id` and `sps_seq_parameter_set_id`, 0…15: the VPS has the same id as the SPS.
  public var identifier = 0
  /// The base-2 logarithm of a minimum coding block's side, 3…6.
  public var minimumCodingBlockLog2 = 3
  /// The base-2 logarithm of a coding tree block's side, 4…6.
  public var codingTreeBlockLog2 = 5
  /// The base-2 logarithm of a minimum transform block's side, 2…5.
  public var minimumTransformBlockLog2 = 2
  /// The base-2 logarithm of a largest transform block's side, up to 5.
  public var maximumTransformBlockLog2 = 5
  /// `max_transform_hierarchy_depth_inter`.
  public var interTransformDepth = 2
  /// `max_transform_hierarchy_depth_intra`.
  public var intraTransformDepth = 2
  /// `amp_enabled_flag`: asymmetric motion partitions.
  public var hasAsymmetricPartitions = false
  /// `sample_adaptive_offset_enabled_flag`.
  public var hasSampleAdaptiveOffset = false
  /// `sps_temporal_mvp_enabled_flag`.
  public var hasTemporalMotionVectors = false
  /// `strong_intra_smoothing_enabled_flag`.
  public var hasStrongIntraSmoothing = false

  /// Creates parameters of these values; see the other properties for the defaults.
  public init(
    levelIDC: UInt8, isHighTier: Bool = false, size: PictureSize, color: ColorDescription, frameRate: FrameRate
  ) {
    self.levelIDC = levelIDC
    self.isHighTier = isHighTier
    self.size = size
    self.color = color
    self.frameRate = frameRate
  }

  /// `log2_max_pic_order_cnt_lsb_minus4` + 4.
  public static let orderCountBits = 8
  /// `sps_max_dec_pic_buffering_minus1` + 1: the picture and its reference.
  public static let pictureBuffers: UInt32 = 2

  /// The picture's size in whole minimum coding blocks.
  public var codedSize: PictureSize {
    let block = 1 << minimumCodingBlockLog2
    func whole(_ side: Int) -> Int { (side + block - 1) / block * block }
    return PictureSize(width: whole(size.width), height: whole(size.height))
  }

  /// `vui_num_units_in_tick` and `vui_time_scale`: the nominal rate, one tick a picture.
  public var timing: HEVCSequenceParameterSet.Timing {
    HEVCSequenceParameterSet.Timing(unitsInTick: frameRate.denominator, timeScale: frameRate.numerator)
  }

  private var profileTierLevel: HEVCProfileTierLevel { .main(levelIDC: levelIDC, isHighTier: isHighTier) }

  /// Writes the VPS with its start code: clause 7.3.2.1.
  public func writeVideoParameterSet(to writer: inout BitWriter) {
    writer.begin(HEVCNALUnitHeader(type: .videoParameterSet))
    writer.bits(UInt32(identifier), 4)
    writer.bits(3, 2)  // the base layer is in the stream
    writer.bits(0, 6)  // vps_max_layers_minus1
    writer.bits(0, 3)  // vps_max_sub_layers_minus1
    writer.flag(true)  // vps_temporal_id_nesting_flag
    writer.bits(0xffff, 16)
    profileTierLevel.write(to: &writer)
    writeOrdering(to: &writer)
    writer.bits(0, 6)  // vps_max_layer_id
    writer.unsigned(0)  // vps_num_layer_sets_minus1
    writer.flag(true)  // vps_timing_info_present_flag
    writer.bits(timing.unitsInTick, 32)
    writer.bits(timing.timeScale, 32)
    writer.flag(false)  // vps_poc_proportional_to_timing_flag
    writer.unsigned(0)  // vps_num_hrd_parameters
    writer.flag(false)  // vps_extension_flag
    writer.trailingBits()
  }

  /// Writes the SPS with its start code: clause 7.3.2.2.
  public func write(to writer: inout BitWriter) {
    writer.begin(HEVCNALUnitHeader(type: .sequenceParameterSet))
    writer.bits(UInt32(identifier), 4)  // sps_video_parameter_set_id
    writer.bits(0, 3)  // sps_max_sub_layers_minus1
    writer.flag(true)  // sps_temporal_id_nesting_flag
    profileTierLevel.write(to: &writer)
    writer.unsigned(UInt32(identifier))
    writer.unsigned(1)  // chroma_format_idc
    let coded = codedSize
    writer.unsigned(UInt32(coded.width))
    writer.unsigned(UInt32(coded.height))
    Self.writeWindow(of: size, in: coded, to: &writer)
    writer.unsigned(0)  // bit_depth_luma_minus8
    writer.unsigned(0)  // bit_depth_chroma_minus8
    writer.unsigned(UInt32(Self.orderCountBits - 4))
    writeOrdering(to: &writer)
    writer.unsigned(UInt32(minimumCodingBlockLog2 - 3))
    writer.unsigned(UInt32(codingTreeBlockLog2 - minimumCodingBlockLog2))
    writer.unsigned(UInt32(minimumTransformBlockLog2 - 2))
    writer.unsigned(UInt32(maximumTransformBlockLog2 - minimumTransformBlockLog2))
    writer.unsigned(UInt32(interTransformDepth))
    writer.unsigned(UInt32(intraTransformDepth))
    writer.flag(false)  // scaling_list_enabled_flag
    writer.flag(hasAsymmetricPartitions)
    writer.flag(hasSampleAdaptiveOffset)
    writer.flag(false)  // pcm_enabled_flag
    // The sets are in the slice headers, where a driver writes them that writes slice headers itself: with a set here, its
    // own would begin with another flag.
    writer.unsigned(0)  // num_short_term_ref_pic_sets
    writer.flag(false)  // long_term_ref_pics_present_flag
    writer.flag(hasTemporalMotionVectors)
    writer.flag(hasStrongIntraSmoothing)
    Self.writeVUI(color: color, timing: timing, to: &writer)
    writer.flag(false)  // sps_extension_present_flag
    writer.trailingBits()
  }

  /// Writes `conformance_window_flag` and the offsets of 4:2:0 pictures of `size` in the corner of coded ones.
  static func writeWindow(of size: PictureSize, in coded: PictureSize, to writer: inout BitWriter) {
    let (right, bottom) = (UInt32(coded.width - size.width) / 2, UInt32(coded.height - size.height) / 2)
    writer.flag(right > 0 || bottom > 0)
    if right > 0 || bottom > 0 { for offset in [0, right, 0, bottom] { writer.unsigned(offset) } }
  }

  /// Writes `vps_sub_layer_ordering_info_present_flag`, or that of the SPS, and what follows it: no reordering.
  private func writeOrdering(to writer: inout BitWriter) {
    writer.flag(true)
    writer.unsigned(Self.pictureBuffers - 1)
    writer.unsigned(0)  // max_num_reorder_pics
    writer.unsigned(0)  // max_latency_increase_plus1: no limit is expressed
  }

  /// Writes `vui_parameters_present_flag` and `vui_parameters()`, clause E.2.1: colours and timing.
  static func writeVUI(
    color: ColorDescription, timing: HEVCSequenceParameterSet.Timing, to writer: inout BitWriter
  ) {
    writer.flag(true)
    color.writeVideoSignal(to: &writer)
    writer.flag(false)  // chroma_loc_info_present_flag
    writer.bits(0, 3)  // neutral chroma, field sequence, frame and field information
    writer.flag(false)  // default_display_window_flag
    writer.flag(true)  // vui_timing_info_present_flag
    writer.bits(timing.unitsInTick, 32)
    writer.bits(timing.timeScale, 32)
    writer.flag(false)  // vui_poc_proportional_to_timing_flag
    writer.flag(false)  // vui_hrd_parameters_present_flag
    writer.flag(false)  // bitstream_restriction_flag
  }
}

extension HEVCSequenceParameterSet {
  /// Returns the SPS with its VUI replaced, and with the conformance window for pictures of `size`: a driver that writes its own
  /// parameter sets omits the colours, and VA-API tells it of no window.
  ///
  /// - Parameters:
  ///   - nalUnit: The SPS, without a start code.
  ///   - color: The colours of the new VUI.
  ///   - frameRate: The frame rate of the new VUI.
  ///   - size: The picture's size after cropping at the right and the bottom; nil keeps the window.
  /// - Throws: ``ParameterSetError`` where `nalUnit` is no SPS, or no SPS of 4:2:0 pictures of at least `size`.
  public static func replacingVUI(
    in nalUnit: [UInt8], color: ColorDescription, frameRate: FrameRate, size: PictureSize? = nil
  ) throws(ParameterSetError) -> [UInt8] {
    let set = try HEVCSequenceParameterSet(nalUnit: nalUnit)
    var reader = try HEVCParameterSetReading.reader(nalUnit, .sequence)
    var writer = BitWriter(capacity: nalUnit.count + 64)
    writer.begin(HEVCNALUnitHeader(type: .sequenceParameterSet))
    var start = 0
    if let size, size != set.size {
      guard set.chromaFormatIDC == 1, size.width <= set.codedSize.width, size.height <= set.codedSize.height else {
        throw .value("conformance window")
      }
      for _ in 0..<set.windowPosition.lowerBound { writer.flag(try reader.flag()) }
      HEVCSequenceParameters.writeWindow(of: size, in: set.codedSize, to: &writer)
      try reader.skip(set.windowPosition.count)
      start = set.windowPosition.upperBound
    }
    for _ in start..<set.vuiPosition.lowerBound { writer.flag(try reader.flag()) }
    HEVCSequenceParameters.writeVUI(
      color: color, timing: Timing(unitsInTick: frameRate.denominator, timeScale: frameRate.numerator), to: &writer)
    try reader.skip(set.vuiPosition.count)
    let hasExtensions = try reader.flag()
    writer.flag(hasExtensions)
    // The flags of the extensions, and what they hold, as they are.
    if hasExtensions { writer.bits(try reader.bits(8), 8) }
    while reader.hasMoreData { writer.flag(try reader.flag()) }
    writer.trailingBits()
    return Array(writer.bytes.dropFirst(AnnexB.startCode.count))
  }
}

/// The values of the picture parameter set of a stream with one reference, without tiles and without weighted prediction.
public struct HEVCPictureParameters: Hashable, Sendable {
  /// `pps_pic_parameter_set_id`, 0…63.
  public var identifier = 0
  /// `pps_seq_parameter_set_id`, 0…15.
  public var sequenceParameterSet = 0
  /// `init_qp_minus26` + 26, 0…51: the base of the slice headers' quantizers.
  public var initialQuantizer: Int
  /// `cu_qp_delta_enabled_flag`: the quantizer may change within a picture, which rate control needs.
  public var hasQuantizerChanges = true
  /// `diff_cu_qp_delta_depth`.
  public var quantizerChangeDepth = 0
  /// `sign_data_hiding_enabled_flag`.
  public var hidesSigns = false
  /// `transform_skip_enabled_flag`.
  public var skipsTransforms = false
  /// `pps_loop_filter_across_slices_enabled_flag`.
  public var filtersAcrossSlices = true

  /// Creates values with this initial quantizer; see the other properties for the defaults.
  public init(initialQuantizer: Int = 26) { self.initialQuantizer = initialQuantizer }

  /// Writes the PPS with its start code: clause 7.3.2.3.
  public func write(to writer: inout BitWriter) {
    writer.begin(HEVCNALUnitHeader(type: .pictureParameterSet))
    writer.unsigned(UInt32(identifier))
    writer.unsigned(UInt32(sequenceParameterSet))
    writer.flag(false)  // dependent_slice_segments_enabled_flag
    writer.flag(false)  // output_flag_present_flag
    writer.bits(0, 3)  // num_extra_slice_header_bits
    writer.flag(hidesSigns)
    writer.flag(false)  // cabac_init_present_flag
    writer.unsigned(0)  // num_ref_idx_l0_default_active_minus1
    writer.unsigned(0)  // num_ref_idx_l1_default_active_minus1
    writer.signed(Int32(initialQuantizer) - 26)
    writer.flag(false)  // constrained_intra_pred_flag
    writer.flag(skipsTransforms)
    writer.flag(hasQuantizerChanges)
    if hasQuantizerChanges { writer.unsigned(UInt32(quantizerChangeDepth)) }
    writer.signed(0)  // pps_cb_qp_offset
    writer.signed(0)  // pps_cr_qp_offset
    writer.flag(false)  // pps_slice_chroma_qp_offsets_present_flag
    writer.flag(false)  // weighted_pred_flag
    writer.flag(false)  // weighted_bipred_flag
    writer.flag(false)  // transquant_bypass_enabled_flag
    writer.flag(false)  // tiles_enabled_flag
    writer.flag(false)  // entropy_coding_sync_enabled_flag
    writer.flag(filtersAcrossSlices)
    writer.flag(false)  // deblocking_filter_control_present_flag
    writer.flag(false)  // pps_scaling_list_data_present_flag
    writer.flag(false)  // lists_modification_present_flag
    writer.unsigned(0)  // log2_parallel_merge_level_minus2
    writer.flag(false)  // slice_segment_header_extension_present_flag
    writer.flag(false)  // pps_extension_present_flag
    writer.trailingBits()
  }
}

extension BitWriter {
  /// Begins a NAL unit of HEVC with a four-byte start code and `header`. The previous NAL unit must have ended with
  /// ``trailingBits()``.
  public mutating func begin(_ header: HEVCNALUnitHeader) {
    let (first, second) = header.bytes
    begin(header: first)
    // The second byte is never zero: `nuh_temporal_id_plus1` is at least 1. So no emulation arises from it.
    bits(UInt32(second), 8)
  }
}

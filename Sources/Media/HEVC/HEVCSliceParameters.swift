/// The values of a slice segment header of HEVC (ITU-T H.265 clause 7.3.6.1), in a stream of ``HEVCSequenceParameters`` and
/// ``HEVCPictureParameters``: every picture is one slice, and refers to the picture before it unless it is an IDR picture.
public struct HEVCSliceParameters: Hashable, Sendable {
  /// `true` for an IDR picture, whose slice is an I slice.
  public var isIDR: Bool
  /// `true` for a B slice that refers to the picture before it by both lists; `false` for a P slice. Some hardware codes no P
  /// slices. The pictures stay in order.
  public var isBidirectional: Bool
  /// `slice_pic_order_cnt_lsb`, of ``HEVCSequenceParameters/orderCountBits`` bits; 0 for an IDR picture.
  public var orderCount: Int
  /// `slice_qp_delta`, relative to the initial quantizer of the PPS.
  public var quantizerDelta: Int

  /// `MaxNumMergeCand`: the most that the standard allows.
  public static let mergeCandidates = 5
  /// The `nal_unit_type` of IDR pictures.
  public static let keyFrameType = HEVCNALUnitType.idrWRADL
  /// The `nal_unit_type` of the other pictures.
  public static let pictureType = HEVCNALUnitType.trailR

  /// Creates a header of these values.
  public init(isIDR: Bool, isBidirectional: Bool, orderCount: Int, quantizerDelta: Int) {
    self.isIDR = isIDR
    self.isBidirectional = isBidirectional
    self.orderCount = orderCount
    self.quantizerDelta = quantizerDelta
  }

  /// `nal_unit_type`.
  public var unitType: HEVCNALUnitType { isIDR ? Self.keyFrameType : Self.pictureType }

  /// `slice_type`.
  public var sliceType: HEVCSliceHeader.SliceType { isIDR ? .intra : isBidirectional ? .bidirectional : .predicted }

  /// Writes start code, NAL unit header and slice segment header, without `byte_alignment()`: the slice's data must follow that
  /// at ``BitWriter/bitCount``. The last bit is a one, as ``BitWriter/padUnfinishedByte()`` needs.
  public func write(
    to writer: inout BitWriter, sequence: HEVCSequenceParameters, picture: HEVCPictureParameters
  ) {
    writer.begin(HEVCNALUnitHeader(type: unitType))
    writer.flag(true)  // first_slice_segment_in_pic_flag
    if isIDR { writer.flag(false) }  // no_output_of_prior_pics_flag
    writer.unsigned(UInt32(picture.identifier))
    writer.unsigned(UInt32(sliceType.rawValue))
    if !isIDR { writeReferences(to: &writer, sequence) }
    if sequence.hasSampleAdaptiveOffset {
      writer.flag(true)  // slice_sao_luma_flag
      writer.flag(true)  // slice_sao_chroma_flag
    }
    if !isIDR {
      writer.flag(false)  // num_ref_idx_active_override_flag
      if isBidirectional {
        writer.flag(false)  // mvd_l1_zero_flag
        if sequence.hasTemporalMotionVectors { writer.flag(true) }  // collocated_from_l0_flag
      }
      writer.unsigned(UInt32(5 - Self.mergeCandidates))
    }
    writer.signed(Int32(quantizerDelta))
    if picture.filtersAcrossSlices { writer.flag(true) }  // slice_loop_filter_across_slices_enabled_flag
  }

  /// Writes `slice_pic_order_cnt_lsb` to `slice_temporal_mvp_enabled_flag`: the picture before is the only reference.
  private func writeReferences(to writer: inout BitWriter, _ sequence: HEVCSequenceParameters) {
    writer.bits(UInt32(orderCount), HEVCSequenceParameters.orderCountBits)
    writer.flag(false)  // short_term_ref_pic_set_sps_flag
    writer.unsigned(1)  // num_negative_pics
    writer.unsigned(0)  // num_positive_pics
    writer.unsigned(0)  // delta_poc_s0_minus1
    writer.flag(true)  // used_by_curr_pic_s0_flag
    if sequence.hasTemporalMotionVectors { writer.flag(true) }  // slice_temporal_mvp_enabled_flag
  }
}

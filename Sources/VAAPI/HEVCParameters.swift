import CVA
import Media

/// The parameters of an HEVC stream as libva's structures, created once and updated for each picture. A picture is one slice.
final class HEVCParameters {
  let sequenceParameters: HEVCSequenceParameters
  let pictureParameters: HEVCPictureParameters
  /// The VPS, SPS and PPS with start codes; the driver puts them before an IDR picture.
  let packedSets: [UInt8]
  /// `true` if the pictures between IDR pictures are B slices with the same list twice.
  private let needsBothLists: Bool
  private let sequence: UnsafeMutablePointer<VAEncSequenceParameterBufferHEVC>
  private let picture: UnsafeMutablePointer<VAEncPictureParameterBufferHEVC>
  private let slice: UnsafeMutablePointer<VAEncSliceParameterBufferHEVC>
  private var writer = BitWriter(capacity: 128)

  init(_ sets: HEVCSequenceParameters, _ pictureSet: HEVCPictureParameters, needsBothLists: Bool) {
    sequenceParameters = sets
    pictureParameters = pictureSet
    self.needsBothLists = needsBothLists
    var headers = BitWriter()
    sets.writeVideoParameterSet(to: &headers)
    sets.write(to: &headers)
    pictureSet.write(to: &headers)
    packedSets = headers.bytes
    sequence = .allocate(capacity: 1)
    picture = .allocate(capacity: 1)
    slice = .allocate(capacity: 1)
    sequence.initialize(to: VAEncSequenceParameterBufferHEVC())
    picture.initialize(to: VAEncPictureParameterBufferHEVC())
    slice.initialize(to: VAEncSliceParameterBufferHEVC())
    fillSequence()
    fillPicture()
    fillSlice()
  }

  deinit {
    sequence.deallocate()
    picture.deallocate()
    slice.deallocate()
  }

  /// Adds the sequence's buffer; `bitrate` is 0 if the driver does not control the rate.
  func addSequence(to buffers: PictureBuffers, bitrate: Int, frameRate: FrameRate) throws(EncoderError) {
    sequence.pointee.intra_period = RateParameters.nominalKeyFramePeriod(at: frameRate)
    sequence.pointee.intra_idr_period = sequence.pointee.intra_period
    sequence.pointee.bits_per_second = UInt32(bitrate)
    try buffers.add(VAEncSequenceParameterBufferType, sequence)
  }

  /// Adds the picture's buffer. The picture is reconstructed in `reconstructed` and refers to `reference`, whose
  /// position was `referencePosition`.
  func addPicture(
    to buffers: PictureBuffers, _ position: PicturePosition, reconstructed: VASurfaceID, reference: VASurfaceID,
    referencePosition: PicturePosition, codedBuffer: VABufferID
  ) throws(EncoderError) {
    picture.pointee.decoded_curr_pic = Self.entry(reconstructed, position, flags: 0)
    let entry =
      position.isIDR
      ? Self.noPicture : Self.entry(reference, referencePosition, flags: UInt32(VA_PICTURE_HEVC_RPS_ST_CURR_BEFORE))
    picture.pointee.reference_frames.0 = entry
    slice.pointee.ref_pic_list0.0 = entry
    slice.pointee.ref_pic_list1.0 = needsBothLists ? entry : Self.noPicture
    picture.pointee.coded_buf = codedBuffer
    picture.pointee.collocated_ref_pic_index = hasTemporalMotionVectors(position) ? 0 : 0xff
    let type = position.isIDR ? HEVCSliceParameters.keyFrameType : HEVCSliceParameters.pictureType
    picture.pointee.nal_unit_type = type.rawValue
    picture.pointee.pic_fields.bits.idr_pic_flag = position.isIDR ? 1 : 0
    // 1 is I, 2 is P, also where the slices are B slices of past pictures.
    picture.pointee.pic_fields.bits.coding_type = position.isIDR ? 1 : 2
    try buffers.add(VAEncPictureParameterBufferType, picture)
  }

  /// Adds the slice; if `packed`, it follows its packed header.
  func addSlice(
    to buffers: PictureBuffers, _ position: PicturePosition, quantizer: Int, packed: Bool
  ) throws(EncoderError) {
    let header = HEVCSliceParameters(
      isIDR: position.isIDR, isBidirectional: needsBothLists,
      orderCount: position.pictureCount & (1 << HEVCSequenceParameters.orderCountBits - 1),
      quantizerDelta: quantizer - pictureParameters.initialQuantizer)
    slice.pointee.slice_type = UInt8(header.sliceType.rawValue)
    slice.pointee.slice_qp_delta = Int8(header.quantizerDelta)
    slice.pointee.slice_fields.bits.slice_temporal_mvp_enabled_flag = hasTemporalMotionVectors(position) ? 1 : 0
    if packed {
      writer.reset()
      header.write(to: &writer, sequence: sequenceParameters, picture: pictureParameters)
      let bitCount = writer.bitCount
      writer.padUnfinishedByte()
      try buffers.add(packed: UInt32(VAEncPackedHeaderSlice.rawValue), writer.bytes, bitCount: bitCount)
    }
    try buffers.add(VAEncSliceParameterBufferType, slice)
  }

  private func hasTemporalMotionVectors(_ position: PicturePosition) -> Bool {
    sequenceParameters.hasTemporalMotionVectors && !position.isIDR
  }

  private func fillSequence() {
    let sets = sequenceParameters
    let coded = sets.codedSize
    let timing = sets.timing
    sequence.pointee.general_profile_idc = 1
    sequence.pointee.general_level_idc = sets.levelIDC
    sequence.pointee.general_tier_flag = sets.isHighTier ? 1 : 0
    sequence.pointee.ip_period = 1
    sequence.pointee.pic_width_in_luma_samples = UInt16(coded.width)
    sequence.pointee.pic_height_in_luma_samples = UInt16(coded.height)
    sequence.pointee.seq_fields.bits.chroma_format_idc = 1
    sequence.pointee.seq_fields.bits.strong_intra_smoothing_enabled_flag = sets.hasStrongIntraSmoothing ? 1 : 0
    sequence.pointee.seq_fields.bits.amp_enabled_flag = sets.hasAsymmetricPartitions ? 1 : 0
    sequence.pointee.seq_fields.bits.sample_adaptive_offset_enabled_flag = sets.hasSampleAdaptiveOffset ? 1 : 0
    sequence.pointee.seq_fields.bits.sps_temporal_mvp_enabled_flag = sets.hasTemporalMotionVectors ? 1 : 0
    sequence.pointee.seq_fields.bits.low_delay_seq = 1
    sequence.pointee.log2_min_luma_coding_block_size_minus3 = UInt8(sets.minimumCodingBlockLog2 - 3)
    sequence.pointee.log2_diff_max_min_luma_coding_block_size = UInt8(
      sets.codingTreeBlockLog2 - sets.minimumCodingBlockLog2)
    sequence.pointee.log2_min_transform_block_size_minus2 = UInt8(sets.minimumTransformBlockLog2 - 2)
    sequence.pointee.log2_diff_max_min_transform_block_size = UInt8(
      sets.maximumTransformBlockLog2 - sets.minimumTransformBlockLog2)
    sequence.pointee.max_transform_hierarchy_depth_inter = UInt8(sets.interTransformDepth)
    sequence.pointee.max_transform_hierarchy_depth_intra = UInt8(sets.intraTransformDepth)
    sequence.pointee.vui_parameters_present_flag = 1
    sequence.pointee.vui_fields.bits.vui_timing_info_present_flag = 1
    sequence.pointee.vui_num_units_in_tick = timing.unitsInTick
    sequence.pointee.vui_time_scale = timing.timeScale
  }

  private func fillPicture() {
    withUnsafeMutableBytes(of: &picture.pointee.reference_frames) { Self.empty($0) }
    picture.pointee.slice_pic_parameter_set_id = UInt8(pictureParameters.identifier)
    picture.pointee.pic_init_qp = UInt8(pictureParameters.initialQuantizer)
    picture.pointee.diff_cu_qp_delta_depth = UInt8(pictureParameters.quantizerChangeDepth)
    picture.pointee.pic_fields.bits.reference_pic_flag = 1
    picture.pointee.pic_fields.bits.sign_data_hiding_enabled_flag = pictureParameters.hidesSigns ? 1 : 0
    picture.pointee.pic_fields.bits.transform_skip_enabled_flag = pictureParameters.skipsTransforms ? 1 : 0
    picture.pointee.pic_fields.bits.cu_qp_delta_enabled_flag = pictureParameters.hasQuantizerChanges ? 1 : 0
    picture.pointee.pic_fields.bits.pps_loop_filter_across_slices_enabled_flag =
      pictureParameters.filtersAcrossSlices ? 1 : 0
  }

  private func fillSlice() {
    let block = 1 << sequenceParameters.codingTreeBlockLog2
    let coded = sequenceParameters.codedSize
    withUnsafeMutableBytes(of: &slice.pointee.ref_pic_list0) { Self.empty($0) }
    withUnsafeMutableBytes(of: &slice.pointee.ref_pic_list1) { Self.empty($0) }
    slice.pointee.num_ctu_in_slice = UInt32(
      ((coded.width + block - 1) / block) * ((coded.height + block - 1) / block))
    slice.pointee.slice_pic_parameter_set_id = UInt8(pictureParameters.identifier)
    slice.pointee.max_num_merge_cand = UInt8(HEVCSliceParameters.mergeCandidates)
    slice.pointee.slice_fields.bits.last_slice_of_pic_flag = 1
    let offset: UInt32 = sequenceParameters.hasSampleAdaptiveOffset ? 1 : 0
    slice.pointee.slice_fields.bits.slice_sao_luma_flag = offset
    slice.pointee.slice_fields.bits.slice_sao_chroma_flag = offset
    slice.pointee.slice_fields.bits.slice_loop_filter_across_slices_enabled_flag =
      pictureParameters.filtersAcrossSlices ? 1 : 0
    slice.pointee.slice_fields.bits.collocated_from_l0_flag = 1
  }

  private static func empty(_ list: UnsafeMutableRawBufferPointer) {
    let pictures = list.bindMemory(to: VAPictureHEVC.self)
    for index in pictures.indices { pictures[index] = noPicture }
  }

  private static func entry(_ surface: VASurfaceID, _ position: PicturePosition, flags: UInt32) -> VAPictureHEVC {
    var entry = VAPictureHEVC()
    entry.picture_id = surface
    entry.pic_order_cnt = Int32(position.pictureCount)
    entry.flags = flags
    return entry
  }

  private static var noPicture: VAPictureHEVC {
    var entry = VAPictureHEVC()
    entry.picture_id = VASurfaceID(VA_INVALID_SURFACE)
    entry.flags = UInt32(VA_PICTURE_HEVC_INVALID)
    return entry
  }
}

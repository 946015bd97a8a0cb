import CVA
import Media

/// A picture's position in the stream: the values that ITU-T H.264 clause 7.4.3 relates to the previous picture. HEVC has
/// ``pictureCount`` alone.
struct PicturePosition {
  var isIDR = true
  /// `frame_num`.
  var frameNumber = 0
  /// The picture order count since the IDR picture, which grows by two with each picture.
  var orderCount = 0
  /// `idr_pic_id`.
  var idrPictureID = 0

  /// The number of pictures since the IDR picture: `PicOrderCntVal` of HEVC.
  var pictureCount: Int { orderCount / 2 }

  /// The order count at which an IDR picture is due. The count must not wrap, although its lowest bits do.
  static let orderCountLimit = 1 << 30

  /// Returns the position after this one.
  func next(isIDR: Bool) -> PicturePosition {
    guard !isIDR else {
      return PicturePosition(isIDR: true, frameNumber: 0, orderCount: 0, idrPictureID: (idrPictureID + 1) & 0xff)
    }
    return PicturePosition(
      isIDR: false, frameNumber: (frameNumber + 1) & (1 << SequenceParameters.frameNumberBits - 1),
      orderCount: orderCount + 2, idrPictureID: idrPictureID)
  }
}

/// The stream's parameters as libva's structures, created once and updated for each picture.
final class H264Parameters {
  let sequenceParameters: SequenceParameters
  let pictureParameters: PictureParameterSet
  /// The SPS and PPS with start codes; the driver puts them before an IDR picture.
  let packedSets: [UInt8]
  /// The number of slices in a picture.
  let sliceCount: Int
  private let rowsPerSlice: Int
  private let sequence: UnsafeMutablePointer<VAEncSequenceParameterBufferH264>
  private let picture: UnsafeMutablePointer<VAEncPictureParameterBufferH264>
  private let slice: UnsafeMutablePointer<VAEncSliceParameterBufferH264>
  private var writer = BitWriter(capacity: 128)

  init(_ sets: SequenceParameters, _ pictureSet: PictureParameterSet, slices: Int, powerOfTwoRows: Bool) {
    sequenceParameters = sets
    pictureParameters = pictureSet
    let rows = sets.macroblocks.rows
    var each = (rows + slices - 1) / slices
    if powerOfTwoRows { each = 1 << (Int.bitWidth - (each - 1).leadingZeroBitCount) }
    rowsPerSlice = each
    sliceCount = (rows + each - 1) / each
    var headers = BitWriter()
    sets.write(to: &headers)
    pictureSet.write(to: &headers)
    packedSets = headers.bytes
    sequence = .allocate(capacity: 1)
    picture = .allocate(capacity: 1)
    slice = .allocate(capacity: 1)
    sequence.initialize(to: VAEncSequenceParameterBufferH264())
    picture.initialize(to: VAEncPictureParameterBufferH264())
    slice.initialize(to: VAEncSliceParameterBufferH264())
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
    picture.pointee.CurrPic = Self.entry(reconstructed, position, flags: 0)
    let entry =
      position.isIDR
      ? Self.noPicture
      : Self.entry(reference, referencePosition, flags: UInt32(VA_PICTURE_H264_SHORT_TERM_REFERENCE))
    picture.pointee.ReferenceFrames.0 = entry
    slice.pointee.RefPicList0.0 = entry
    picture.pointee.coded_buf = codedBuffer
    picture.pointee.frame_num = UInt16(position.frameNumber)
    picture.pointee.pic_fields.bits.idr_pic_flag = position.isIDR ? 1 : 0
    try buffers.add(VAEncPictureParameterBufferType, picture)
  }

  /// Adds the slices; if `packed`, each follows its packed header.
  func addSlices(
    to buffers: PictureBuffers, _ position: PicturePosition, quantizer: Int, packed: Bool
  ) throws(EncoderError) {
    let (columns, rows) = sequenceParameters.macroblocks
    for index in 0..<sliceCount {
      let firstRow = index * rowsPerSlice
      let header = SliceHeader(
        firstMacroblock: firstRow * columns, isIDR: position.isIDR, frameNumber: position.frameNumber,
        idrPictureID: position.idrPictureID,
        orderCount: position.orderCount & (1 << SequenceParameters.orderCountBits - 1),
        quantizerDelta: quantizer - pictureParameters.initialQuantizer, usesCABAC: pictureParameters.usesCABAC,
        pictureParameterSet: pictureParameters.identifier)
      slice.pointee.macroblock_address = UInt32(header.firstMacroblock)
      slice.pointee.num_macroblocks = UInt32(min(rowsPerSlice, rows - firstRow) * columns)
      slice.pointee.slice_type = header.sliceType
      slice.pointee.idr_pic_id = UInt16(header.idrPictureID)
      slice.pointee.pic_order_cnt_lsb = UInt16(header.orderCount)
      slice.pointee.slice_qp_delta = Int8(header.quantizerDelta)
      if packed {
        writer.reset()
        header.write(to: &writer)
        let bitCount = writer.bitCount
        writer.padUnfinishedByte()
        try buffers.add(packed: UInt32(VAEncPackedHeaderSlice.rawValue), writer.bytes, bitCount: bitCount)
      }
      try buffers.add(VAEncSliceParameterBufferType, slice)
    }
  }

  private func fillSequence() {
    let sets = sequenceParameters
    let crop = sets.cropping
    let timing = sets.timing
    // The ids are in the packed headers alone, here and in the other buffers: Intel's driver keeps the quality level, the buffer
    // and the frame rate of SPS 0, and would encode by those of another one, which nobody has set.
    sequence.pointee.level_idc = sets.levelIDC
    sequence.pointee.ip_period = 1
    sequence.pointee.max_num_ref_frames = SequenceParameters.referenceFrames
    sequence.pointee.picture_width_in_mbs = UInt16(sets.macroblocks.columns)
    sequence.pointee.picture_height_in_mbs = UInt16(sets.macroblocks.rows)
    sequence.pointee.seq_fields.bits.chroma_format_idc = 1
    sequence.pointee.seq_fields.bits.frame_mbs_only_flag = 1
    sequence.pointee.seq_fields.bits.direct_8x8_inference_flag = 1
    sequence.pointee.seq_fields.bits.log2_max_frame_num_minus4 = UInt32(SequenceParameters.frameNumberBits - 4)
    sequence.pointee.seq_fields.bits.log2_max_pic_order_cnt_lsb_minus4 = UInt32(SequenceParameters.orderCountBits - 4)
    sequence.pointee.frame_cropping_flag = crop.right > 0 || crop.bottom > 0 ? 1 : 0
    sequence.pointee.frame_crop_right_offset = crop.right
    sequence.pointee.frame_crop_bottom_offset = crop.bottom
    sequence.pointee.vui_parameters_present_flag = 1
    sequence.pointee.vui_fields.bits.timing_info_present_flag = 1
    sequence.pointee.vui_fields.bits.bitstream_restriction_flag = 1
    sequence.pointee.vui_fields.bits.log2_max_mv_length_horizontal = SequenceParameters.motionVectorBits
    sequence.pointee.vui_fields.bits.log2_max_mv_length_vertical = SequenceParameters.motionVectorBits
    sequence.pointee.vui_fields.bits.motion_vectors_over_pic_boundaries_flag = 1
    sequence.pointee.num_units_in_tick = timing.unitsInTick
    sequence.pointee.time_scale = timing.timeScale
  }

  private func fillPicture() {
    withUnsafeMutableBytes(of: &picture.pointee.ReferenceFrames) { Self.empty($0) }
    picture.pointee.pic_init_qp = UInt8(pictureParameters.initialQuantizer)
    picture.pointee.pic_fields.bits.reference_pic_flag = 1
    picture.pointee.pic_fields.bits.entropy_coding_mode_flag = pictureParameters.usesCABAC ? 1 : 0
    picture.pointee.pic_fields.bits.transform_8x8_mode_flag = pictureParameters.uses8x8Transform ? 1 : 0
    picture.pointee.pic_fields.bits.deblocking_filter_control_present_flag = 1
  }

  private func fillSlice() {
    withUnsafeMutableBytes(of: &slice.pointee.RefPicList0) { Self.empty($0) }
    slice.pointee.RefPicList1 = slice.pointee.RefPicList0
    slice.pointee.macroblock_info = VABufferID(VA_INVALID_ID)
  }

  private static func empty(_ list: UnsafeMutableRawBufferPointer) {
    let pictures = list.bindMemory(to: VAPictureH264.self)
    for index in pictures.indices { pictures[index] = noPicture }
  }

  private static func entry(_ surface: VASurfaceID, _ position: PicturePosition, flags: UInt32) -> VAPictureH264 {
    var entry = VAPictureH264()
    entry.picture_id = surface
    entry.frame_idx = UInt32(position.frameNumber)
    entry.flags = flags
    entry.TopFieldOrderCnt = Int32(position.orderCount)
    entry.BottomFieldOrderCnt = Int32(position.orderCount)
    return entry
  }

  private static var noPicture: VAPictureH264 {
    var entry = VAPictureH264()
    entry.picture_id = VASurfaceID(VA_INVALID_SURFACE)
    entry.flags = UInt32(VA_PICTURE_H264_INVALID)
    return entry
  }
}

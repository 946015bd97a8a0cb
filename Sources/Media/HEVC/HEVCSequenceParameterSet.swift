/// A parsed sequence parameter set of HEVC (ITU-T H.265 clause 7.3.2.2 and Annex E), with the fields that a sender and a
/// receiver need.
public struct HEVCSequenceParameterSet: Hashable, Sendable {
  /// The VUI's timing, clause E.3.1.
  public struct Timing: Hashable, Sendable {
    /// `vui_num_units_in_tick`.
    public var unitsInTick: UInt32
    /// `vui_time_scale`: a picture lasts `vui_num_units_in_tick / vui_time_scale` seconds.
    public var timeScale: UInt32

    /// Creates a timing of these values.
    public init(unitsInTick: UInt32, timeScale: UInt32) {
      self.unitsInTick = unitsInTick
      self.timeScale = timeScale
    }
  }

  /// `sps_video_parameter_set_id`, 0…15.
  public internal(set) var videoParameterSet: UInt8 = 0
  /// The number of temporal sub-layers, 1…7.
  public internal(set) var subLayers = 1
  /// `sps_temporal_id_nesting_flag`.
  public internal(set) var isTemporallyNested = false
  /// Profile, tier and level.
  public internal(set) var profileTierLevel = HEVCProfileTierLevel.main(levelIDC: 0)
  /// `sps_seq_parameter_set_id`, 0…15.
  public internal(set) var identifier: UInt8 = 0
  /// `chroma_format_idc`: 0 for monochrome, 1 for 4:2:0, 2 for 4:2:2, 3 for 4:4:4.
  public internal(set) var chromaFormatIDC: UInt8 = 1
  /// Bits in a luma sample, 8…16.
  public internal(set) var lumaBitDepth: UInt8 = 8
  /// Bits in a chroma sample, 8…16.
  public internal(set) var chromaBitDepth: UInt8 = 8
  /// The picture's size in whole minimum coding blocks.
  public internal(set) var codedSize = PictureSize(width: 0, height: 0)
  /// The conformance window: the cropping of ``codedSize``, in luma samples.
  public internal(set) var cropping = SequenceParameterSet.Cropping()
  /// The picture's size after cropping.
  public internal(set) var size = PictureSize(width: 0, height: 0)
  /// The pictures that a decoder holds at most, of the highest sub-layer: `sps_max_dec_pic_buffering_minus1` + 1.
  public internal(set) var pictureBuffers = 1
  /// `sps_max_num_reorder_pics` of the highest sub-layer.
  public internal(set) var reorderPictures = 0
  /// The side of a minimum coding block in luma samples, 8…64.
  public internal(set) var minimumCodingBlock = 8
  /// The side of a coding tree block in luma samples, 16…64.
  public internal(set) var codingTreeBlock = 16
  /// The colour description of the samples; unspecified where the VUI has none.
  public internal(set) var color = ColorDescription.unspecified
  /// The VUI's timing; nil where there is none.
  public internal(set) var timing: Timing?
  /// `min_spatial_segmentation_idc` of the VUI, 0 where there is none.
  public internal(set) var spatialSegmentation = 0
  /// `true` if the SPS has the range extension, which only the profiles above Main 10 use.
  public internal(set) var hasRangeExtension = false

  /// `separate_colour_plane_flag`.
  var hasSeparatePlanes = false
  /// The number of bits of `slice_pic_order_cnt_lsb`, 4…16.
  package internal(set) var orderCountBits = 4
  /// The short-term reference picture sets, at most 64.
  var referenceSets: [HEVCReferencePictureSet] = []
  /// `long_term_ref_pics_present_flag`.
  var hasLongTermReferences = false
  /// The `lt_ref_pic_poc_lsb_sps` and `used_by_curr_pic_lt_sps_flag`, at most 32.
  var longTermReferences: [(lsb: Int, isUsed: Bool)] { longTerm.map { ($0.lsb, $0.isUsed) } }
  private var longTerm: [LongTerm] = []
  /// The positions in the payload of `vui_parameters_present_flag`, and of what follows the VUI.
  private(set) var vuiPosition = 0..<0
  /// The positions in the payload of `conformance_window_flag`, and of what follows the window.
  private(set) var windowPosition = 0..<0

  private struct LongTerm: Hashable, Sendable {
    let lsb: Int
    let isUsed: Bool
  }

  /// The frame rate by the VUI's timing; nil where the timing is missing or zero.
  public var frameRate: FrameRate? { timing.flatMap { FrameRate($0.timeScale, $0.unitsInTick) } }

  /// The number of coding tree blocks in a picture.
  var codingTreeBlocks: Int {
    func count(_ side: Int) -> Int { (side + codingTreeBlock - 1) / codingTreeBlock }
    return count(codedSize.width) * count(codedSize.height)
  }

  /// Parses an SPS NAL unit of the base layer, header first.
  ///
  /// - Throws: ``ParameterSetError`` for invalid data.
  public init(nalUnit: [UInt8]) throws(ParameterSetError) {
    var reader = try HEVCParameterSetReading.reader(nalUnit, .sequence)
    try readBeginning(&reader)
    try readSize(&reader)
    lumaBitDepth = 8 + UInt8(try reader.unsigned(to: 8, "bit_depth_luma_minus8"))
    chromaBitDepth = 8 + UInt8(try reader.unsigned(to: 8, "bit_depth_chroma_minus8"))
    orderCountBits = 4 + (try reader.unsigned(to: 12, "log2_max_pic_order_cnt_lsb_minus4"))
    try readOrdering(&reader)
    try readBlocks(&reader)
    try readTools(&reader)
    try readReferences(&reader)
    _ = try reader.bits(2)  // sps_temporal_mvp_enabled_flag, strong_intra_smoothing_enabled_flag
    let start = reader.position
    if try reader.flag() { try readVUI(&reader) }
    vuiPosition = start..<reader.position
    if try reader.flag() {  // sps_extension_present_flag
      hasRangeExtension = try reader.flag()
      // Multilayer, 3D and screen content extensions, and reserved bits: what follows is for decoders.
      try reader.skip(7)
    }
  }

  /// Reads `sps_seq_parameter_set_id` alone; nil where it is missing or impossible.
  package static func identifier(nalUnit: [UInt8]) -> Int? {
    var set = HEVCSequenceParameterSet()
    guard var reader = try? HEVCParameterSetReading.reader(nalUnit, .sequence), (try? set.readBeginning(&reader)) != nil
    else { return nil }
    return Int(set.identifier)
  }

  private init() {}

  /// Reads `sps_video_parameter_set_id` to `sps_seq_parameter_set_id`.
  private mutating func readBeginning(_ reader: inout BitReader) throws(ParameterSetError) {
    videoParameterSet = UInt8(try reader.bits(4))
    subLayers = Int(try reader.bits(3)) + 1
    guard subLayers <= 7 else { throw .value("sps_max_sub_layers_minus1") }
    isTemporallyNested = try reader.flag()
    profileTierLevel = try HEVCProfileTierLevel(&reader, subLayers: subLayers)
    identifier = UInt8(try reader.unsigned(to: 15, "sps_seq_parameter_set_id"))
  }

  /// Reads `chroma_format_idc` to `conf_win_bottom_offset`.
  private mutating func readSize(_ reader: inout BitReader) throws(ParameterSetError) {
    chromaFormatIDC = UInt8(try reader.unsigned(to: 3, "chroma_format_idc"))
    if chromaFormatIDC == 3 { hasSeparatePlanes = try reader.flag() }
    let limit = UInt32(PictureSize.limit)
    let width = try reader.unsigned(to: limit, "picture width")
    let height = try reader.unsigned(to: limit, "picture height")
    guard width > 0, height > 0 else { throw .value("picture size") }
    codedSize = PictureSize(width: width, height: height)
    let start = reader.position
    if try reader.flag() {  // conformance_window_flag
      let unitX = chromaFormatIDC == 1 || chromaFormatIDC == 2 ? 2 : 1
      let unitY = chromaFormatIDC == 1 ? 2 : 1
      cropping.left = try reader.unsigned(to: limit, "conformance window") * unitX
      cropping.right = try reader.unsigned(to: limit, "conformance window") * unitX
      cropping.top = try reader.unsigned(to: limit, "conformance window") * unitY
      cropping.bottom = try reader.unsigned(to: limit, "conformance window") * unitY
    }
    windowPosition = start..<reader.position
    guard cropping.left + cropping.right < width, cropping.top + cropping.bottom < height else {
      throw .value("conformance window")
    }
    size = PictureSize(
      width: width - cropping.left - cropping.right, height: height - cropping.top - cropping.bottom)
  }

  /// Reads `sps_sub_layer_ordering_info_present_flag` and what follows for each sub-layer.
  private mutating func readOrdering(_ reader: inout BitReader) throws(ParameterSetError) {
    let count = try reader.flag() ? subLayers : 1
    for _ in 0..<count {
      pictureBuffers = 1 + (try reader.unsigned(to: 15, "sps_max_dec_pic_buffering_minus1"))
      reorderPictures = try reader.unsigned(to: 15, "sps_max_num_reorder_pics")
      _ = try reader.unsigned()  // sps_max_latency_increase_plus1
    }
  }

  /// Reads the sizes of coding and transform blocks.
  private mutating func readBlocks(_ reader: inout BitReader) throws(ParameterSetError) {
    let minimum = 3 + (try reader.unsigned(to: 3, "log2_min_luma_coding_block_size_minus3"))
    let largest = minimum + (try reader.unsigned(to: 3, "log2_diff_max_min_luma_coding_block_size"))
    guard (4...6).contains(largest) else { throw .value("coding tree block size") }
    (minimumCodingBlock, codingTreeBlock) = (1 << minimum, 1 << largest)
    guard codedSize.width.isMultiple(of: minimumCodingBlock), codedSize.height.isMultiple(of: minimumCodingBlock) else {
      throw .value("picture size")
    }
    let transform = 2 + (try reader.unsigned(to: 3, "log2_min_luma_transform_block_size_minus2"))
    let difference = try reader.unsigned(to: 3, "log2_diff_max_min_luma_transform_block_size")
    guard transform < minimum, transform + difference <= min(largest, 5) else { throw .value("transform block size") }
    _ = try reader.unsigned(to: 4, "max_transform_hierarchy_depth_inter")
    _ = try reader.unsigned(to: 4, "max_transform_hierarchy_depth_intra")
  }

  /// Reads `scaling_list_enabled_flag` to `pcm_loop_filter_disabled_flag`.
  private mutating func readTools(_ reader: inout BitReader) throws(ParameterSetError) {
    if try reader.flag(), try reader.flag() { try reader.skipHEVCScalingLists() }
    _ = try reader.bits(2)  // amp_enabled_flag, sample_adaptive_offset_enabled_flag
    guard try reader.flag() else { return }  // pcm_enabled_flag
    _ = try reader.bits(8)  // both bit depths
    _ = try reader.unsigned(to: 2, "log2_min_pcm_luma_coding_block_size_minus3")
    _ = try reader.unsigned(to: 2, "log2_diff_max_min_pcm_luma_coding_block_size")
    _ = try reader.flag()  // pcm_loop_filter_disabled_flag
  }

  private mutating func readReferences(_ reader: inout BitReader) throws(ParameterSetError) {
    let sets = try reader.unsigned(to: 64, "num_short_term_ref_pic_sets")
    for index in 0..<sets {
      referenceSets.append(
        try HEVCReferencePictureSet(&reader, index: index, among: referenceSets, isInSlice: false))
    }
    hasLongTermReferences = try reader.flag()
    guard hasLongTermReferences else { return }
    let count = try reader.unsigned(to: 32, "num_long_term_ref_pics_sps")
    for _ in 0..<count {
      longTerm.append(LongTerm(lsb: Int(try reader.bits(orderCountBits)), isUsed: try reader.flag()))
    }
  }

  /// Reads `vui_parameters()`, clause E.2.1.
  private mutating func readVUI(_ reader: inout BitReader) throws(ParameterSetError) {
    try color.readVideoSignal(&reader)
    if try reader.flag() {  // chroma_loc_info_present_flag
      _ = try reader.unsigned(to: 5, "chroma_sample_loc_type_top_field")
      _ = try reader.unsigned(to: 5, "chroma_sample_loc_type_bottom_field")
    }
    _ = try reader.bits(3)  // neutral chroma, field sequence, frame and field information
    if try reader.flag() { for _ in 0..<4 { _ = try reader.unsigned() } }  // default display window
    if try reader.flag() {  // vui_timing_info_present_flag
      timing = Timing(unitsInTick: try reader.bits(32), timeScale: try reader.bits(32))
      if try reader.flag() { _ = try reader.unsigned() }  // vui_num_ticks_poc_diff_one_minus1
      if try reader.flag() { try reader.skipHEVCReferenceDecoder(subLayers: subLayers) }
    }
    guard try reader.flag() else { return }  // bitstream_restriction_flag
    _ = try reader.bits(3)
    spatialSegmentation = try reader.unsigned(to: 4095, "min_spatial_segmentation_idc")
    for _ in 0..<4 { _ = try reader.unsigned() }
  }
}

extension BitReader {
  /// Skips `scaling_list_data()`, ITU-T H.265 clause 7.3.4.
  mutating func skipHEVCScalingLists() throws(ParameterSetError) {
    for size in 0..<4 {
      for matrix in stride(from: 0, to: 6, by: size == 3 ? 3 : 1) {
        guard try flag() else {  // scaling_list_pred_mode_flag
          _ = try unsigned(to: UInt32(matrix), "scaling_list_pred_matrix_id_delta")
          continue
        }
        if size > 1 { _ = try signed() }  // scaling_list_dc_coef_minus8
        for _ in 0..<min(64, 1 << (4 + 2 * size)) { _ = try signed() }
      }
    }
  }

  /// Skips `hrd_parameters()` with the common part, clause E.2.2.
  mutating func skipHEVCReferenceDecoder(subLayers: Int) throws(ParameterSetError) {
    let (hasNAL, hasVCL) = (try flag(), try flag())
    var hasSubPictures = false
    if hasNAL || hasVCL {
      hasSubPictures = try flag()
      if hasSubPictures { try skip(19) }
      try skip(hasSubPictures ? 12 : 8)  // scales
      try skip(15)  // lengths of the delays
    }
    for _ in 0..<subLayers {
      let isFixed = try flag()
      let isFixedWithin = isFixed ? true : try flag()
      var isLowDelay = false
      if isFixedWithin { _ = try unsigned() } else { isLowDelay = try flag() }
      let count = isLowDelay ? 1 : 1 + (try unsigned(to: 31, "cpb_cnt_minus1"))
      for _ in 0..<((hasNAL ? 1 : 0) + (hasVCL ? 1 : 0)) * count {
        for _ in 0..<(hasSubPictures ? 4 : 2) { _ = try unsigned() }
        _ = try flag()  // cbr_flag
      }
    }
  }
}

/// A parsed sequence parameter set (ITU-T H.264 clause 7.3.2.1.1 and Annex E), with the fields that a sender needs.
public struct SequenceParameterSet: Sendable {
  /// The VUI's timing, clause E.2.1.
  public struct Timing: Hashable, Sendable {
    /// `num_units_in_tick`.
    public var unitsInTick: UInt32
    /// `time_scale`: a frame lasts `2 × num_units_in_tick / time_scale` seconds.
    public var timeScale: UInt32
    /// `fixed_frame_rate_flag`.
    public var isFixedFrameRate: Bool

    /// Creates a timing of these values.
    public init(unitsInTick: UInt32, timeScale: UInt32, isFixedFrameRate: Bool) {
      self.unitsInTick = unitsInTick
      self.timeScale = timeScale
      self.isFixedFrameRate = isFixedFrameRate
    }
  }

  /// The cropping of the coded picture, in luma samples.
  public struct Cropping: Hashable, Sendable {
    /// Columns at the left.
    public var left = 0
    /// Columns at the right.
    public var right = 0
    /// Rows at the top.
    public var top = 0
    /// Rows at the bottom.
    public var bottom = 0
  }

  /// `seq_parameter_set_id`, 0…31.
  public private(set) var identifier: UInt8 = 0
  /// `profile_idc`.
  public private(set) var profileIDC: UInt8 = 0
  /// The byte of `constraint_set0_flag` (highest bit) to `constraint_set5_flag`.
  public private(set) var constraintFlags: UInt8 = 0
  /// `level_idc`, ten times the level.
  public private(set) var levelIDC: UInt8 = 0
  /// `chroma_format_idc`: 0 for monochrome, 1 for 4:2:0, 2 for 4:2:2, 3 for 4:4:4.
  public private(set) var chromaFormatIDC: UInt8 = 1
  /// Bits in a luma sample, 8…14.
  public private(set) var lumaBitDepth: UInt8 = 8
  /// Bits in a chroma sample, 8…14.
  public private(set) var chromaBitDepth: UInt8 = 8
  /// `max_num_ref_frames`, 0…16.
  public private(set) var referenceFrames = 0
  /// `frame_mbs_only_flag`: `true` if the stream has no fields.
  public private(set) var isProgressive = true
  /// The picture's size in whole macroblocks.
  public private(set) var codedSize = PictureSize(width: 0, height: 0)
  /// The cropping of ``codedSize``.
  public private(set) var cropping = Cropping()
  /// The picture's size after cropping.
  public private(set) var size = PictureSize(width: 0, height: 0)
  /// The colour description of the samples; unspecified where the VUI has none.
  public private(set) var color = ColorDescription.unspecified
  /// The VUI's timing; nil where there is none.
  public private(set) var timing: Timing?
  /// `max_num_reorder_frames`; nil where the VUI has no bitstream restriction.
  public private(set) var reorderFrames: UInt32?

  /// The position of `num_units_in_tick` in the payload, for ``replacingTiming(in:with:)``.
  private var timingPosition: Int?
  /// The position of `vui_parameters_present_flag` in the payload, for `replacingVUI`.
  private(set) var vuiPosition = 0

  /// Parses an SPS NAL unit, header byte first.
  ///
  /// - Throws: ``ParameterSetError`` for invalid data.
  public init(nalUnit: [UInt8]) throws(ParameterSetError) {
    guard let header = nalUnit.first, header & 0x1f == 7, nalUnit.count <= ParameterSets.lengthLimit else {
      throw .notSequenceParameterSet
    }
    var reader = BitReader(RawByteSequencePayload.removingEmulationPrevention(nalUnit.dropFirst()))
    profileIDC = UInt8(try reader.bits(8))
    constraintFlags = UInt8(try reader.bits(8))
    levelIDC = UInt8(try reader.bits(8))
    identifier = UInt8(try reader.unsigned(to: 31, "seq_parameter_set_id"))
    try readHighProfileFields(&reader)
    try readOrderAndReferences(&reader)
    try readSize(&reader)
    vuiPosition = reader.position
    if try reader.flag() { try readVUI(&reader) }
  }

  /// Returns the SPS with its VUI timing replaced; nil where it has no timing.
  ///
  /// An encoder with timestamps on a 90 kHz base writes that base as if it were the frame rate; players show "90k fps".
  /// Both values have a fixed length, so this function overwrites them in place.
  ///
  /// - Throws: ``ParameterSetError`` where `nalUnit` is no SPS.
  public static func replacingTiming(
    in nalUnit: [UInt8], with timing: Timing
  ) throws(ParameterSetError) -> [UInt8]? {
    guard let position = try SequenceParameterSet(nalUnit: nalUnit).timingPosition else { return nil }
    var payload = RawByteSequencePayload.removingEmulationPrevention(nalUnit.dropFirst())
    let values = UInt64(timing.unitsInTick) << 32 | UInt64(timing.timeScale)
    for index in 0..<65 {
      let bit = index < 64 ? values >> UInt64(63 - index) & 1 == 1 : timing.isFixedFrameRate
      let mask = UInt8(0x80) >> UInt8((position + index) & 7)
      if bit { payload[(position + index) >> 3] |= mask } else { payload[(position + index) >> 3] &= ~mask }
    }
    return nalUnit.prefix(1) + RawByteSequencePayload.addingEmulationPrevention(payload)
  }

  /// Returns `true` if an SPS of this `profile_idc` has the fields that only the high profiles have. It uses no array, because
  /// that could allocate.
  package static func hasHighFields(profile: Int) -> Bool {
    switch profile {
    case 44, 83, 86, 100, 110, 118, 122, 128, 134, 135, 138, 139, 244: true
    default: false
    }
  }

  /// Reads the fields that only the high profiles have.
  private mutating func readHighProfileFields(_ reader: inout BitReader) throws(ParameterSetError) {
    guard Self.hasHighFields(profile: Int(profileIDC)) else { return }
    chromaFormatIDC = UInt8(try reader.unsigned(to: 3, "chroma_format_idc"))
    if chromaFormatIDC == 3 { _ = try reader.flag() }  // separate_colour_plane_flag
    let (luma, chroma) = (try reader.unsigned(), try reader.unsigned())
    guard luma <= 6, chroma <= 6 else { throw .value("bit depth") }
    (lumaBitDepth, chromaBitDepth) = (8 + UInt8(luma), 8 + UInt8(chroma))
    _ = try reader.flag()  // qpprime_y_zero_transform_bypass_flag
    guard try reader.flag() else { return }
    for list in 0..<(chromaFormatIDC == 3 ? 12 : 8) where try reader.flag() {
      try reader.skipScalingList(list < 6 ? 16 : 64)
    }
  }

  /// Reads `log2_max_frame_num_minus4` to `gaps_in_frame_num_value_allowed_flag`.
  private mutating func readOrderAndReferences(_ reader: inout BitReader) throws(ParameterSetError) {
    _ = try reader.unsigned()  // log2_max_frame_num_minus4
    switch try reader.unsigned() {  // pic_order_cnt_type
    case 0:
      _ = try reader.unsigned()
    case 1:
      _ = try reader.flag()
      _ = try reader.signed()
      _ = try reader.signed()
      let cycle = try reader.unsigned(to: 255, "num_ref_frames_in_pic_order_cnt_cycle")
      for _ in 0..<cycle { _ = try reader.signed() }
    case 2: break
    default: throw .value("pic_order_cnt_type")
    }
    referenceFrames = try reader.unsigned(to: 16, "max_num_ref_frames")
    _ = try reader.flag()
  }

  private mutating func readSize(_ reader: inout BitReader) throws(ParameterSetError) {
    let macroblocks = try reader.unsigned()
    let mapUnits = try reader.unsigned()
    let limit = UInt32(PictureSize.limit / 16)
    guard macroblocks < limit, mapUnits < limit else { throw .value("picture size") }
    let frameOnly = try reader.flag()
    isProgressive = frameOnly
    if !frameOnly { _ = try reader.flag() }  // mb_adaptive_frame_field_flag
    _ = try reader.flag()  // direct_8x8_inference_flag
    let width = Int(macroblocks + 1) * 16
    let height = Int(mapUnits + 1) * 16 * (frameOnly ? 1 : 2)
    codedSize = PictureSize(width: width, height: height)
    if try reader.flag() {
      let (left, right) = (try reader.unsigned(), try reader.unsigned())
      let (top, bottom) = (try reader.unsigned(), try reader.unsigned())
      let unitX = chromaFormatIDC == 1 || chromaFormatIDC == 2 ? 2 : 1
      let unitY = (chromaFormatIDC == 1 ? 2 : 1) * (frameOnly ? 1 : 2)
      cropping = Cropping(
        left: Int(left) * unitX, right: Int(right) * unitX, top: Int(top) * unitY, bottom: Int(bottom) * unitY)
      guard cropping.left + cropping.right < width, cropping.top + cropping.bottom < height else {
        throw .value("frame cropping")
      }
    }
    size = PictureSize(
      width: width - cropping.left - cropping.right, height: height - cropping.top - cropping.bottom)
  }

  private mutating func readVUI(_ reader: inout BitReader) throws(ParameterSetError) {
    try color.readVideoSignal(&reader)
    if try reader.flag() {  // chroma_loc_info_present_flag
      _ = try reader.unsigned()
      _ = try reader.unsigned()
    }
    if try reader.flag() {  // timing_info_present_flag
      timingPosition = reader.position
      timing = Timing(
        unitsInTick: try reader.bits(32), timeScale: try reader.bits(32), isFixedFrameRate: try reader.flag())
    }
    let nalHRD = try reader.flag()
    if nalHRD { try Self.skipHRD(&reader) }
    let vclHRD = try reader.flag()
    if vclHRD { try Self.skipHRD(&reader) }
    if nalHRD || vclHRD { _ = try reader.flag() }  // low_delay_hrd_flag
    _ = try reader.flag()  // pic_struct_present_flag
    guard try reader.flag() else { return }  // bitstream_restriction_flag
    _ = try reader.flag()
    for _ in 0..<4 { _ = try reader.unsigned() }
    reorderFrames = try reader.unsigned()
    _ = try reader.unsigned()  // max_dec_frame_buffering
  }

  /// Skips `hrd_parameters()`, clause E.1.2.
  private static func skipHRD(_ reader: inout BitReader) throws(ParameterSetError) {
    let count = try reader.unsigned(to: 31, "cpb_cnt_minus1")
    _ = try reader.bits(8)
    for _ in 0...count {
      _ = try reader.unsigned()
      _ = try reader.unsigned()
      _ = try reader.flag()
    }
    _ = try reader.bits(20)
  }
}

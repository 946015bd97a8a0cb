package import Media

/// The fields of a sequence parameter set on which the syntax of slice headers depends (ITU-T H.264 clause 7.3.2.1.1).
package struct SequenceSyntax: Hashable, Sendable {
  /// `seq_parameter_set_id`, 0…31.
  package let identifier: Int
  /// `separate_colour_plane_flag`.
  let hasSeparatePlanes: Bool
  /// The number of bits of `frame_num`: `log2_max_frame_num_minus4` + 4.
  package let frameNumberBits: Int
  /// `pic_order_cnt_type`, 0…2.
  let orderCountType: Int
  /// The number of bits of `pic_order_cnt_lsb`.
  let orderCountBits: Int
  /// `delta_pic_order_always_zero_flag`.
  let isDeltaAlwaysZero: Bool
  /// `gaps_in_frame_num_value_allowed_flag`: numbers may be left out without a loss.
  package let allowsGaps: Bool
  /// The width in macroblocks, at most 1056.
  package let widthInMacroblocks: Int
  /// The height in map units, at most 1056: rows of macroblocks where the sequence has frames only, otherwise those of a field.
  package let heightInMapUnits: Int
  /// `frame_mbs_only_flag`.
  package let isFrameOnly: Bool
  /// `mb_adaptive_frame_field_flag`: the macroblocks of a frame come in pairs, one above the other.
  package let isAdaptive: Bool

  /// Reads the fields of an SPS; nil for fields that are missing or impossible.
  package init?(_ unit: NALUnit) {
    guard unit.type == .sequenceParameterSet, unit.bytes.count <= ParameterSets.lengthLimit else { return nil }
    var reader = HeaderBits(unit)
    guard let profile = reader.bits(8), reader.bits(16) != nil, let identifier = reader.unsigned(), identifier <= 31
    else { return nil }
    self.identifier = identifier
    guard let hasSeparatePlanes = Self.readHighFields(of: profile, &reader) else { return nil }
    self.hasSeparatePlanes = hasSeparatePlanes
    guard let frameNumber = reader.unsigned(), frameNumber <= 12, let type = reader.unsigned(), type <= 2 else {
      return nil
    }
    (frameNumberBits, orderCountType) = (frameNumber + 4, type)
    switch type {
    case 0:
      guard let count = reader.unsigned(), count <= 12 else { return nil }
      (orderCountBits, isDeltaAlwaysZero) = (count + 4, true)
    case 1:
      guard let flag = reader.flag(), reader.signed() != nil, reader.signed() != nil, let cycle = reader.unsigned(),
        cycle <= 255
      else { return nil }
      for _ in 0..<cycle { guard reader.signed() != nil else { return nil } }
      (orderCountBits, isDeltaAlwaysZero) = (0, flag)
    default: (orderCountBits, isDeltaAlwaysZero) = (0, true)
    }
    // max_num_ref_frames stands before the flag.
    guard reader.unsigned() != nil, let gaps = reader.flag(), let width = reader.unsigned(), width < Self.sideLimit,
      let height = reader.unsigned(), height < Self.sideLimit, let isFrameOnly = reader.flag()
    else { return nil }
    (allowsGaps, widthInMacroblocks, heightInMapUnits) = (gaps, width + 1, height + 1)
    self.isFrameOnly = isFrameOnly
    guard !isFrameOnly else {
      isAdaptive = false
      return
    }
    guard let isAdaptive = reader.flag() else { return nil }
    self.isAdaptive = isAdaptive
  }

  /// Reads the number of an SPS alone; nil where it is missing or impossible.
  package static func identifier(of unit: NALUnit) -> Int? {
    var reader = HeaderBits(unit)
    guard reader.bits(24) != nil, let identifier = reader.unsigned(), identifier <= 31 else { return nil }
    return identifier
  }

  /// The limit of a picture's side in macroblocks: the greatest level has 1055, and libavcodec decodes no larger picture
  /// than 16384 samples.
  private static let sideLimit = 1056

  /// Reads the fields that only the high profiles have. Returns `separate_colour_plane_flag`; nil for missing fields.
  private static func readHighFields(of profile: Int, _ reader: inout HeaderBits) -> Bool? {
    guard SequenceParameterSet.hasHighFields(profile: profile) else { return false }
    guard let chroma = reader.unsigned(), chroma <= 3 else { return nil }
    var isSeparate = false
    if chroma == 3 {
      guard let flag = reader.flag() else { return nil }
      isSeparate = flag
    }
    // Both bit depths, and the lossless flag.
    guard reader.unsigned() != nil, reader.unsigned() != nil, reader.flag() != nil, let hasMatrix = reader.flag() else {
      return nil
    }
    guard hasMatrix else { return isSeparate }
    for list in 0..<(chroma == 3 ? 12 : 8) {
      guard let isPresent = reader.flag() else { return nil }
      if isPresent { guard reader.skipScalingList(list < 6 ? 16 : 64) != nil else { return nil } }
    }
    return isSeparate
  }
}

/// The fields of a picture parameter set on which the syntax of slice headers depends (clause 7.3.2.2).
package struct PictureSyntax: Hashable, Sendable {
  /// `pic_parameter_set_id`, 0…255.
  package let identifier: Int
  /// `seq_parameter_set_id`, 0…31.
  package let sequence: Int
  /// `bottom_field_pic_order_in_frame_present_flag`.
  let hasBottomOrder: Bool
  /// `redundant_pic_cnt_present_flag`; `false` where it could not be read.
  let hasRedundantCount: Bool

  /// Reads the fields of a PPS; nil for fields that are missing or impossible.
  package init?(_ unit: NALUnit) {
    guard unit.type == .pictureParameterSet else { return nil }
    var reader = HeaderBits(unit)
    guard let identifier = reader.unsigned(), identifier <= 255, let sequence = reader.unsigned(), sequence <= 31,
      reader.flag() != nil, let hasBottomOrder = reader.flag()
    else { return nil }
    (self.identifier, self.sequence, self.hasBottomOrder) = (identifier, sequence, hasBottomOrder)
    hasRedundantCount = Self.readRedundantCount(&reader) ?? false
  }

  /// Reads the number of a PPS alone; nil where it is missing or impossible.
  package static func identifier(of unit: NALUnit) -> Int? {
    var reader = HeaderBits(unit)
    guard let identifier = reader.unsigned(), identifier <= 255 else { return nil }
    return identifier
  }

  /// Reads on up to `redundant_pic_cnt_present_flag`; nil for groups of slices, which libavcodec does not decode, and for
  /// missing fields.
  private static func readRedundantCount(_ reader: inout HeaderBits) -> Bool? {
    // Both numbers of references, weighted prediction, the initial quantizers, the deblocking filter and constrained
    // intra prediction stand before the flag.
    guard reader.unsigned() == 0, reader.unsigned() != nil, reader.unsigned() != nil, reader.bits(3) != nil,
      reader.signed() != nil, reader.signed() != nil, reader.signed() != nil, reader.bits(2) != nil
    else { return nil }
    return reader.flag()
  }
}

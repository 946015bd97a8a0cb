extension HeaderBits {
  /// Reads the first fields of a slice header (ITU-T H.264 clause 7.3.3); nil where bits are missing. Allocates nothing,
  /// unlike ``SliceHeader/Beginning``.
  consuming func sliceBeginning() -> (firstMacroblock: Int, type: Int, pictureParameterSet: Int)? {
    guard let first = unsigned(), let type = unsigned(), let set = unsigned() else { return nil }
    return (first, type, set)
  }

  /// Reads the first fields of a picture parameter set (clause 7.3.2.2); nil where bits are missing.
  consuming func pictureParameterSetBeginning() -> (identifier: Int, sequence: Int, sliceGroups: Int)? {
    // entropy_coding_mode_flag and bottom_field_pic_order_in_frame_present_flag stand before the slice groups.
    guard let identifier = unsigned(), let sequence = unsigned(), bits(2) != nil, let groups = unsigned() else {
      return nil
    }
    return (identifier, sequence, groups + 1)
  }
}

extension NALUnit {
  /// The first fields of this slice's header; nil where they are missing.
  package var sliceBeginning: (firstMacroblock: Int, type: Int, pictureParameterSet: Int)? {
    HeaderBits(self).sliceBeginning()
  }

  /// The first fields of this picture parameter set; nil where they are missing.
  package var pictureParameterSetBeginning: (identifier: Int, sequence: Int, sliceGroups: Int)? {
    HeaderBits(self).pictureParameterSetBeginning()
  }
}

extension AccessUnit {
  /// The `idr_pic_id` of an access unit that is an IDR picture of frames with its SPS (ITU-T H.264 clauses 7.3.2.1.1
  /// and 7.3.3). Nil for any other picture, and where a scaling matrix or a separate colour plane precedes the needed
  /// fields. Allocates nothing.
  public var idrPictureID: Int? {
    var frameNumberBits: Int?
    for unit in nalUnits {
      switch unit.type {
      case .sequenceParameterSet: frameNumberBits = HeaderBits(unit).frameNumberBits()
      case .idrSlice:
        guard let frameNumberBits else { return nil }
        return HeaderBits(unit).idrPictureID(frameNumberBits: frameNumberBits)
      default: continue
      }
    }
    return nil
  }
}

extension HeaderBits {
  /// Returns the number of bits in `frame_num`, from an SPS.
  fileprivate consuming func frameNumberBits() -> Int? {
    guard let profile = bits(8), bits(16) != nil, unsigned() != nil else { return nil }
    if SequenceParameterSet.hasHighFields(profile: profile) {
      // chroma_format_idc, both bit depths, the lossless flag, and seq_scaling_matrix_present_flag.
      guard let chroma = unsigned(), chroma < 3, unsigned() != nil, unsigned() != nil, bits(1) != nil, bits(1) == 0
      else { return nil }
    }
    guard let length = unsigned(), length <= 12 else { return nil }
    return length + 4
  }

  /// Returns `idr_pic_id`, from a slice of an IDR picture.
  fileprivate consuming func idrPictureID(frameNumberBits: Int) -> Int? {
    // first_mb_in_slice, slice_type, pic_parameter_set_id, frame_num.
    guard unsigned() != nil, unsigned() != nil, unsigned() != nil, bits(frameNumberBits) != nil else { return nil }
    return unsigned()
  }
}

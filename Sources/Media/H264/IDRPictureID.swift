extension AccessUnit {
  /// The `idr_pic_id` of an access unit that is an IDR picture of frames with its SPS (ITU-T H.264 clauses 7.3.2.1.1
  /// and 7.3.3). Nil for any other picture, and where a scaling matrix or a separate colour plane precedes the needed
  /// fields. Allocates nothing.
  public var idrPictureID: Int? {
    var frameNumberBits: Int?
    for unit in nalUnits {
      switch unit.type {
      case .sequenceParameterSet: frameNumberBits = LeadingBits(unit).frameNumberBits()
      case .idrSlice:
        guard let frameNumberBits else { return nil }
        return LeadingBits(unit).idrPictureID(frameNumberBits: frameNumberBits)
      default: continue
      }
    }
    return nil
  }
}

/// The first 128 bits of a NAL unit's payload, without emulation prevention.
struct LeadingBits {
  private var rest: UInt128 = 0
  private var count = 0

  init(_ unit: NALUnit) {
    var zeros = 0
    for byte in unit.bytes.dropFirst() {
      if zeros >= 2, byte == 3 {
        zeros = 0
        continue
      }
      zeros = byte == 0 ? zeros + 1 : 0
      rest |= UInt128(byte) << UInt128(120 - count)
      count += 8
      if count == 128 { break }
    }
  }

  /// Reads `u(n)`, at most 63 bits; nil where the bits are missing.
  mutating func bits(_ length: Int) -> Int? {
    guard length <= count else { return nil }
    guard length > 0 else { return 0 }
    let value = Int(rest >> UInt128(128 - length))
    rest <<= UInt128(length)
    count -= length
    return value
  }

  /// Reads `ue(v)`, at most 32 bits.
  mutating func unsigned() -> Int? {
    let zeros = rest.leadingZeroBitCount
    guard zeros < 32, bits(zeros) != nil, let value = bits(zeros + 1) else { return nil }
    return value - 1
  }

  /// Returns the number of bits in `frame_num`, from an SPS.
  consuming func frameNumberBits() -> Int? {
    guard let profile = bits(8), bits(16) != nil, unsigned() != nil else { return nil }
    if Self.isHigh(profile) {
      // chroma_format_idc, both bit depths, the lossless flag, and seq_scaling_matrix_present_flag.
      guard let chroma = unsigned(), chroma < 3, unsigned() != nil, unsigned() != nil, bits(1) != nil, bits(1) == 0
      else { return nil }
    }
    guard let length = unsigned(), length <= 12 else { return nil }
    return length + 4
  }

  /// Returns `true` if an SPS of `profile` has the fields of the high profiles. It uses no array, because that could
  /// allocate.
  private static func isHigh(_ profile: Int) -> Bool {
    switch profile {
    case 44, 83, 86, 100, 110, 118, 122, 128, 134, 135, 138, 139, 244: true
    default: false
    }
  }

  /// Returns `idr_pic_id`, from a slice of an IDR picture.
  consuming func idrPictureID(frameNumberBits: Int) -> Int? {
    // first_mb_in_slice, slice_type, pic_parameter_set_id, frame_num.
    guard unsigned() != nil, unsigned() != nil, unsigned() != nil, bits(frameNumberBits) != nil else { return nil }
    return unsigned()
  }
}

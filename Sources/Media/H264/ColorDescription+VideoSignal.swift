/// The fields of `vui_parameters()` up to the colours, which are alike in H.264 (clause E.1.1) and HEVC (clause E.2.1).
extension ColorDescription {
  /// Writes the fields before `chroma_loc_info_present_flag`.
  func writeVideoSignal(to writer: inout BitWriter) {
    writer.flag(false)  // aspect_ratio_info_present_flag
    writer.flag(false)  // overscan_info_present_flag
    let hasCodes = primaries != 2 || transfer != 2 || matrix != 2
    writer.flag(hasCodes || isFullRange)  // video_signal_type_present_flag
    guard hasCodes || isFullRange else { return }
    writer.bits(5, 3)  // video_format: unspecified
    writer.flag(isFullRange)
    writer.flag(hasCodes)
    guard hasCodes else { return }
    for code in [primaries, transfer, matrix] { writer.bits(UInt32(code), 8) }
  }

  /// Reads the fields before `chroma_loc_info_present_flag`. A value that they lack stays.
  mutating func readVideoSignal(_ reader: inout BitReader) throws(ParameterSetError) {
    if try reader.flag(), try reader.bits(8) == 255 { _ = try reader.bits(32) }  // sample aspect ratio
    if try reader.flag() { _ = try reader.flag() }  // overscan
    guard try reader.flag() else { return }  // video_signal_type_present_flag
    _ = try reader.bits(3)
    isFullRange = try reader.flag()
    guard try reader.flag() else { return }
    primaries = UInt8(try reader.bits(8))
    transfer = UInt8(try reader.bits(8))
    matrix = UInt8(try reader.bits(8))
  }
}

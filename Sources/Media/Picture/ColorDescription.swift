/// The colour description of a picture's samples, in the codes of ITU-T H.264 Annex E (the same as H.273).
///
/// It travels with every frame from the driver to the H.264 VUI, so that no encoder and no switch between encoders
/// shifts the picture's colours.
public struct ColorDescription: Hashable, Sendable, CustomStringConvertible {
  /// `colour_primaries`, table E-3; 2 is unspecified.
  public var primaries: UInt8
  /// `transfer_characteristics`, table E-4; 2 is unspecified.
  public var transfer: UInt8
  /// `matrix_coefficients`, table E-5; 2 is unspecified.
  public var matrix: UInt8
  /// `video_full_range_flag`: luma 0…255 instead of 16…235.
  public var isFullRange: Bool

  /// Creates a description from the codes of Annex E.
  public init(primaries: UInt8, transfer: UInt8, matrix: UInt8, isFullRange: Bool) {
    self.primaries = primaries
    self.transfer = transfer
    self.matrix = matrix
    self.isFullRange = isFullRange
  }

  /// HDTV: BT.709 throughout, limited range.
  public static let bt709 = ColorDescription(primaries: 1, transfer: 1, matrix: 1, isFullRange: false)
  /// SDTV: SMPTE 170M throughout, limited range.
  public static let smpte170M = ColorDescription(primaries: 6, transfer: 6, matrix: 6, isFullRange: false)
  /// JPEG by JFIF: sRGB primaries and transfer, BT.601 matrix, full range.
  public static let jpeg = ColorDescription(primaries: 1, transfer: 13, matrix: 6, isFullRange: true)
  /// No codes, limited range.
  public static let unspecified = ColorDescription(primaries: 2, transfer: 2, matrix: 2, isFullRange: false)

  /// `bt709/iec61966-2-1/smpte170m full range`, in the words that ffprobe uses.
  public var description: String {
    let primariesName =
      [1: "bt709", 2: "unknown", 4: "bt470m", 5: "bt470bg", 6: "smpte170m", 7: "smpte240m", 9: "bt2020"][
        primaries] ?? "primaries \(primaries)"
    let transferName =
      [
        1: "bt709", 2: "unknown", 4: "gamma22", 6: "smpte170m", 7: "smpte240m", 8: "linear", 13: "iec61966-2-1",
        16: "smpte2084",
      ][transfer] ?? "transfer \(transfer)"
    let matrixName =
      [1: "bt709", 2: "unknown", 5: "bt470bg", 6: "smpte170m", 7: "smpte240m", 9: "bt2020nc", 10: "bt2020c"][
        matrix] ?? "matrix \(matrix)"
    let range = isFullRange ? "full" : "limited"
    if primariesName == transferName && transferName == matrixName { return "\(matrixName) \(range) range" }
    return "\(primariesName)/\(transferName)/\(matrixName) \(range) range"
  }
}

import Media

/// Converts Y'CbCr of another matrix or range to that of JFIF: BT.601 in full range.
///
/// The path through R'G'B' is linear, so one step replaces it: Y' gets a share of Cb and Cr, and those are mixed.
/// (libyuv's factors end at 2, but BT.709 needs larger ones.)
struct JFIFSamples {
  // In units of 1/16384.
  private let luma: Int32
  private let lumaOffset: Int32
  private let lumaOfCb, lumaOfCr: Int32
  private let cbOfCb, cbOfCr, crOfCb, crOfCr: Int32

  /// Creates a converter; nil if samples of `color` in a picture of `size` already have that meaning.
  init?(_ color: ColorDescription, size: PictureSize) {
    // For an unknown matrix, the one that players assume for pictures of that size.
    let isUnknown = color.matrix == 2
    let matrix: UInt8 = isUnknown ? (color.isFullRange || min(size.width, size.height) <= 576 ? 6 : 1) : color.matrix
    let (red, blue) = Self.weights(of: matrix)
    guard !color.isFullRange || red != 0.299 else { return nil }
    let (lumaScale, chromaScale) = color.isFullRange ? (1.0, 1.0) : (255.0 / 219, 255.0 / 224)
    let green = 1 - red - blue
    // R' - Y' = redOfCr Cr, B' - Y' = blueOfCb Cb, and G' - Y' follows from the weights.
    let (redOfCr, blueOfCb) = (2 * (1 - red), 2 * (1 - blue))
    let (greenOfCb, greenOfCr) = (-blue * blueOfCb / green, -red * redOfCr / green)
    let ofCb = 0.587 * greenOfCb + 0.114 * blueOfCb
    let ofCr = 0.299 * redOfCr + 0.587 * greenOfCr
    func fixed(_ value: Double) -> Int32 { Int32((value * 16384).rounded()) }
    luma = fixed(lumaScale)
    lumaOffset = color.isFullRange ? 0 : 16
    (lumaOfCb, lumaOfCr) = (fixed(ofCb * chromaScale), fixed(ofCr * chromaScale))
    (cbOfCb, cbOfCr) = (fixed((blueOfCb - ofCb) * chromaScale / 1.772), fixed(-ofCr * chromaScale / 1.772))
    (crOfCb, crOfCr) = (fixed(-ofCb * chromaScale / 1.402), fixed((redOfCr - ofCr) * chromaScale / 1.402))
  }

  /// Returns Kr and Kb of `matrix_coefficients`, H.264 table E-5; BT.601's for matrices that no camera has.
  private static func weights(of matrix: UInt8) -> (red: Double, blue: Double) {
    switch matrix {
    case 1: (0.2126, 0.0722)
    case 4: (0.30, 0.11)
    case 7: (0.212, 0.087)
    case 9, 10: (0.2627, 0.0593)
    default: (0.299, 0.114)
    }
  }

  /// Converts `planes` to planes without padding, with chroma of half the width and height.
  func convert(
    _ planes: NV12Planes, luma target: UnsafeMutablePointer<UInt8>, cb: UnsafeMutablePointer<UInt8>,
    cr: UnsafeMutablePointer<UInt8>
  ) {
    let width = planes.size.width
    for row in 0..<planes.size.height / 2 {
      let pairs = planes.chroma + row * planes.chromaStride
      let (upper, lower) = (planes.luma + 2 * row * planes.lumaStride, planes.luma + (2 * row + 1) * planes.lumaStride)
      let (upperTarget, lowerTarget) = (target + 2 * row * width, target + (2 * row + 1) * width)
      let (cbTarget, crTarget) = (cb + row * (width / 2), cr + row * (width / 2))
      for column in 0..<width / 2 {
        let (blue, red) = (Int32(pairs[2 * column]) - 128, Int32(pairs[2 * column + 1]) - 128)
        cbTarget[column] = Self.sample(blue &* cbOfCb &+ red &* cbOfCr &+ Self.middle)
        crTarget[column] = Self.sample(blue &* crOfCb &+ red &* crOfCr &+ Self.middle)
        let share = blue &* lumaOfCb &+ red &* lumaOfCr
        let (left, right) = (2 * column, 2 * column + 1)
        upperTarget[left] = Self.sample((Int32(upper[left]) &- lumaOffset) &* luma &+ share)
        upperTarget[right] = Self.sample((Int32(upper[right]) &- lumaOffset) &* luma &+ share)
        lowerTarget[left] = Self.sample((Int32(lower[left]) &- lumaOffset) &* luma &+ share)
        lowerTarget[right] = Self.sample((Int32(lower[right]) &- lumaOffset) &* luma &+ share)
      }
    }
  }

  /// The value 128 in units of 1/16384.
  private static let middle: Int32 = 128 << 14

  /// Returns a sample, rounded and clamped.
  @inline(__always)
  private static func sample(_ value: Int32) -> UInt8 {
    UInt8(truncatingIfNeeded: min(max((value &+ 8192) >> 14, 0), 255))
  }
}

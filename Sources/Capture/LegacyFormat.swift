import Media

/// A pixel format that libv4lconvert opens, with what its decoder needs to be safe.
///
/// The library decodes many formats without looking at the buffer's length, so it gets only the formats of this
/// table, after their lengths were checked against it. The table holds the source formats of libv4lconvert 1.22 that
/// the pixel converter does not take itself. OV511 and OV518 are missing because the library starts a separate
/// program for them, and HM12 because its picture is padded to tiles.
struct LegacyFormat {
  /// What the samples are before conversion: decides what they mean afterwards.
  enum Samples {
    /// R'G'B', HSV or a sensor's mosaic: becomes BT.601, limited range.
    case rgb
    /// Y'CbCr whose samples pass unchanged.
    case ycbcr
    /// Y'CbCr out of a JPEG: full range.
    case jpeg
  }

  /// Whether the decoder looks at the bytes from one row to the next, or takes rows to follow each other.
  enum Rows {
    case padded
    case tight
  }

  /// The format.
  let pixelFormat: PixelFormat
  /// Bits that the decoder reads for each pixel; 0 where the picture is compressed.
  let bitsPerPixel: Int
  /// What the samples are.
  let samples: Samples
  /// How rows follow each other.
  let rows: Rows
  /// Lower is cheaper.
  let cost: Int

  /// The format of a code; nil where the library does not open it.
  static func of(_ format: PixelFormat) -> LegacyFormat? {
    all.first { $0.pixelFormat == format }
  }

  /// Whether the decoder finds the end of the picture in the bits themselves.
  var isCompressed: Bool { bitsPerPixel == 0 }
  /// Whether the picture has no colour: the last resort.
  var isGrey: Bool { cost == Self.greyCost }

  /// The fewest bytes of a picture that the decoder may be given, or nil where its rows are padded in a way that the
  /// decoder does not understand.
  func leastBytes(size: PictureSize, stride: Int) -> Int? {
    guard !isCompressed else { return 1 }
    let pixels = size.width * size.height
    let tight = (pixels * bitsPerPixel + 7) / 8
    switch rows {
    case .padded:
      let row = (size.width * bitsPerPixel + 7) / 8
      return stride >= row ? max(tight, stride * (size.height - 1) + row) : nil
    case .tight:
      // The driver's stride is of the first plane, or of the packed row.
      return stride == 0 || stride == size.width || stride * 8 == size.width * bitsPerPixel ? tight : nil
    }
  }

  private static let greyCost = 20

  private static func entries(
    _ codes: [String], bits: Int, _ samples: Samples, _ rows: Rows, cost: Int
  ) -> [LegacyFormat] {
    codes.compactMap { code in
      PixelFormat(code).map {
        LegacyFormat(pixelFormat: $0, bitsPerPixel: bits, samples: samples, rows: rows, cost: cost)
      }
    }
  }

  private static let all: [LegacyFormat] =
    // 4:2:0 in odd orders.
    entries(["S501", "S505", "S508", "CITV", "KONI", "S920", "M420"], bits: 12, .ycbcr, .tight, cost: 3)
    + entries(["YVYU"], bits: 16, .ycbcr, .padded, cost: 4)
    + entries(["NV16", "NV61"], bits: 16, .ycbcr, .tight, cost: 4)
    + entries(["RGB3", "BGR3"], bits: 24, .rgb, .padded, cost: 5)
    + entries(["HSV3"], bits: 24, .rgb, .tight, cost: 6)
    + entries(["RGBP"], bits: 16, .rgb, .padded, cost: 6)
    + entries(["RGB4", "BGR4", "BX24", "XR24", "BA24", "AR24"], bits: 32, .rgb, .padded, cost: 6)
    + entries(["HSV4"], bits: 32, .rgb, .tight, cost: 6)
    + entries(["CPIA"], bits: 0, .ycbcr, .tight, cost: 7)
    + entries(["PJPG", "JPGL"], bits: 0, .jpeg, .tight, cost: 7)
    // A sensor's mosaic.
    + entries(["BA81", "GBRG", "GRBG", "RGGB"], bits: 8, .rgb, .padded, cost: 8)
    + entries(["S680"], bits: 8, .rgb, .tight, cost: 8)
    + entries(["pBAA", "pGAA", "pgAA", "pRAA"], bits: 10, .rgb, .tight, cost: 8)
    + entries(["BG10", "GB10", "BA10", "RG10", "BYR2", "GB16", "GR16", "RG16"], bits: 16, .rgb, .tight, cost: 8)
    + entries(["S561", "S910", "SONX", "P207", "M310", "JL20", "905C", "S401"], bits: 0, .rgb, .tight, cost: 9)
    + entries(["Y04", "Y06"], bits: 8, .ycbcr, .tight, cost: greyCost)
    + entries(["Y10B"], bits: 10, .ycbcr, .tight, cost: greyCost)
    + entries(["Y16"], bits: 16, .ycbcr, .tight, cost: greyCost)
}

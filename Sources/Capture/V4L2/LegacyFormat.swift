import CLinux
package import Media

/// A pixel format that libv4lconvert opens, with the facts that keep its decoder safe.
///
/// The library decodes many formats without checking the buffer's length. So it gets only the formats of this table,
/// after their lengths were checked. The table holds the source formats of libv4lconvert 1.22 whose pictures all have
/// the same length and that the pixel converter does not convert itself. It leaves out
///
/// - the compressions of old webcams (SPCA561, SN9C10X, SN9C2028, MR97310A, SQ905C and similar ones): given a damaged
///   picture, those five write far outside their memory, and a loose plug suffices for that;
/// - OV511 and OV518, for which the library starts a separate program;
/// - HM12, whose picture is padded to tiles;
/// - HSV, for which the library writes beyond the end of a 4:2:0 picture, in wrong colours.
package struct LegacyFormat {
  /// The kind of the samples before conversion, which decides their meaning afterwards.
  enum Samples {
    /// R'G'B' or a sensor's mosaic: becomes BT.601, limited range.
    case rgb
    /// Y'CbCr samples, which pass unchanged.
    case ycbcr
  }

  /// The decoder's way through the rows of a picture.
  enum Rows {
    /// The decoder honours the number of bytes from one row to the next.
    case padded
    /// The decoder expects rows without a gap between them.
    case tight
    /// The decoder writes whole blocks of up to 16x8 samples, even beyond the picture's edge.
    case blocks
  }

  /// The format.
  let pixelFormat: PixelFormat
  /// The number of bits that the decoder reads per pixel.
  let bitsPerPixel: Int
  /// The kind of the samples.
  let samples: Samples
  /// The decoder's treatment of rows.
  let rows: Rows
  /// `true` if the conversion to 4:2:0 must go through R'G'B'. The library's direct conversion swaps red and blue of
  /// RGB565 and reads beyond the picture's end.
  var isIndirect: Bool { pixelFormat.fourCC == nightjar_V4L2_PIX_FMT_RGB565 }
  /// The cost of the conversion; lower is cheaper.
  let cost: Int

  /// Returns the entry for a format; nil if the library does not open it.
  package static func of(_ format: PixelFormat) -> LegacyFormat? {
    all.first { $0.pixelFormat == format }
  }

  /// `true` if the picture has no colour: the last resort.
  var isGrey: Bool { cost == Self.greyCost }

  /// Returns the smallest number of bytes of a picture that is safe for the decoder. Returns nil if the decoder does
  /// not understand the rows' padding, or cannot stay within the size.
  package func leastBytes(size: PictureSize, stride: Int) -> Int? {
    let pixels = size.width * size.height
    let tight = (pixels * bitsPerPixel + 7) / 8
    switch rows {
    case .padded:
      let row = (size.width * bitsPerPixel + 7) / 8
      return stride >= row ? max(tight, stride * (size.height - 1) + row) : nil
    case .blocks where !size.width.isMultiple(of: 16) || !size.height.isMultiple(of: 8):
      return nil
    case .tight, .blocks:
      // The driver's stride belongs to the first plane, or to the packed row.
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
    // 4:2:0 in unusual orders.
    entries(["S501", "S505", "S508", "CITV", "KONI", "S920", "M420"], bits: 12, .ycbcr, .blocks, cost: 3)
    + entries(["YVYU"], bits: 16, .ycbcr, .padded, cost: 4)
    + entries(["NV16", "NV61"], bits: 16, .ycbcr, .tight, cost: 4)
    + entries(["RGB3", "BGR3"], bits: 24, .rgb, .padded, cost: 5)
    + entries(["RGBP"], bits: 16, .rgb, .tight, cost: 7)
    + entries(["RGB4", "BGR4", "BX24", "XR24", "BA24", "AR24"], bits: 32, .rgb, .padded, cost: 6)
    // A sensor's mosaic.
    + entries(["BA81", "GBRG", "GRBG", "RGGB"], bits: 8, .rgb, .padded, cost: 8)
    + entries(["S680"], bits: 8, .rgb, .tight, cost: 8)
    + entries(["pBAA", "pGAA", "pgAA", "pRAA"], bits: 10, .rgb, .tight, cost: 8)
    + entries(["BG10", "GB10", "BA10", "RG10", "BYR2", "GB16", "GR16", "RG16"], bits: 16, .rgb, .tight, cost: 8)
    + entries(["Y04", "Y06"], bits: 8, .ycbcr, .tight, cost: greyCost)
    + entries(["Y10B"], bits: 10, .ycbcr, .tight, cost: greyCost)
    + entries(["Y16"], bits: 16, .ycbcr, .tight, cost: greyCost)
}

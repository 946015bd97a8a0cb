import CLinux
package import Media

/// A driver's description of its pictures' colours, in V4L2 codes.
///
/// Each value may be 0, "default"; then V4L2's own rules give its meaning (the comments at `enum v4l2_colorspace`,
/// `v4l2_xfer_func`, `v4l2_ycbcr_encoding` and `v4l2_quantization` in `videodev2.h`).
package struct CameraColor: Hashable, Sendable {
  /// `enum v4l2_colorspace`.
  var colorspace: UInt32 = 0
  /// `enum v4l2_xfer_func`.
  var transfer: UInt32 = 0
  /// `enum v4l2_ycbcr_encoding`.
  var encoding: UInt32 = 0
  /// `enum v4l2_quantization`.
  var quantization: UInt32 = 0
  /// The kind of signal, which decides the meaning of the default colour space.
  var signal = Signal.other

  /// Creates a description with the codes of the driver.
  package init(
    colorspace: UInt32 = 0, transfer: UInt32 = 0, encoding: UInt32 = 0, quantization: UInt32 = 0,
    signal: Signal = .other
  ) {
    self.colorspace = colorspace
    self.transfer = transfer
    self.encoding = encoding
    self.quantization = quantization
    self.signal = signal
  }

  /// The kinds of signal that `V4L2_MAP_COLORSPACE_DEFAULT` distinguishes.
  package enum Signal: Hashable, Sendable {
    /// A television standard is set: SMPTE 170M.
    case standardDefinition
    /// Digital video timings are set: BT.709.
    case highDefinition
    /// A webcam or sensor: sRGB.
    case other
  }

  /// Returns the meaning of the converted NV12 samples for the device's format.
  package func description(of format: PixelFormat) -> ColorDescription {
    if LegacyFormat.of(format)?.samples == .rgb {
      // libv4lconvert converts everything but Y'CbCr to BT.601, limited range; primaries and curve stay.
      return ColorDescription(
        primaries: primariesCode, transfer: transferCode, matrix: Self.matrix601, isFullRange: false)
    }
    return ColorDescription(
      primaries: primariesCode, transfer: transferCode, matrix: matrixCode,
      isFullRange: isFullRange(of: format))
  }

  private static let matrix601: UInt8 = 6

  /// `V4L2_MAP_COLORSPACE_DEFAULT`.
  private var effectiveColorspace: v4l2_colorspace {
    guard colorspace == V4L2_COLORSPACE_DEFAULT.rawValue else { return v4l2_colorspace(rawValue: colorspace) }
    return switch signal {
    case .standardDefinition: V4L2_COLORSPACE_SMPTE170M
    case .highDefinition: V4L2_COLORSPACE_REC709
    case .other: V4L2_COLORSPACE_SRGB
    }
  }

  /// `V4L2_MAP_XFER_FUNC_DEFAULT`.
  private var effectiveTransfer: v4l2_xfer_func {
    guard transfer == V4L2_XFER_FUNC_DEFAULT.rawValue else { return v4l2_xfer_func(rawValue: transfer) }
    return switch effectiveColorspace {
    case V4L2_COLORSPACE_OPRGB: V4L2_XFER_FUNC_OPRGB
    case V4L2_COLORSPACE_SMPTE240M: V4L2_XFER_FUNC_SMPTE240M
    case V4L2_COLORSPACE_DCI_P3: V4L2_XFER_FUNC_DCI_P3
    case V4L2_COLORSPACE_RAW: V4L2_XFER_FUNC_NONE
    case V4L2_COLORSPACE_SRGB, V4L2_COLORSPACE_JPEG: V4L2_XFER_FUNC_SRGB
    default: V4L2_XFER_FUNC_709
    }
  }

  /// `V4L2_MAP_YCBCR_ENC_DEFAULT`.
  private var effectiveEncoding: v4l2_ycbcr_encoding {
    guard encoding == V4L2_YCBCR_ENC_DEFAULT.rawValue else { return v4l2_ycbcr_encoding(rawValue: encoding) }
    return switch effectiveColorspace {
    case V4L2_COLORSPACE_REC709, V4L2_COLORSPACE_DCI_P3: V4L2_YCBCR_ENC_709
    case V4L2_COLORSPACE_BT2020: V4L2_YCBCR_ENC_BT2020
    case V4L2_COLORSPACE_SMPTE240M: V4L2_YCBCR_ENC_SMPTE240M
    default: V4L2_YCBCR_ENC_601
    }
  }

  /// Applies `V4L2_MAP_QUANTIZATION_DEFAULT` with two exceptions. uvcvideo reports a webcam's MJPEG as sRGB with the
  /// default quantization, which strictly means limited range, but JFIF pictures are full range. Pictures with luma
  /// only come from sensors that use all values, as the kernel's own test pattern does.
  private func isFullRange(of format: PixelFormat) -> Bool {
    switch v4l2_quantization(rawValue: quantization) {
    case V4L2_QUANTIZATION_FULL_RANGE: true
    case V4L2_QUANTIZATION_LIM_RANGE: false
    default: format.isJPEG || effectiveColorspace == V4L2_COLORSPACE_JPEG || Self.isGrey(format)
    }
  }

  private static func isGrey(_ format: PixelFormat) -> Bool {
    format.fourCC == nightjar_V4L2_PIX_FMT_GREY || LegacyFormat.of(format)?.isGrey == true
  }

  /// ITU-T H.264 table E-3.
  private var primariesCode: UInt8 {
    switch effectiveColorspace {
    case V4L2_COLORSPACE_REC709, V4L2_COLORSPACE_SRGB, V4L2_COLORSPACE_JPEG: 1
    case V4L2_COLORSPACE_470_SYSTEM_M: 4
    case V4L2_COLORSPACE_470_SYSTEM_BG: 5
    case V4L2_COLORSPACE_SMPTE170M: 6
    case V4L2_COLORSPACE_SMPTE240M: 7
    case V4L2_COLORSPACE_BT2020: 9
    case V4L2_COLORSPACE_DCI_P3: 11
    default: 2
    }
  }

  /// ITU-T H.264 table E-4.
  private var transferCode: UInt8 {
    switch effectiveTransfer {
    case V4L2_XFER_FUNC_709:
      switch effectiveEncoding {
      case V4L2_YCBCR_ENC_XV601, V4L2_YCBCR_ENC_XV709: 11
      default:
        // The same curve has three codes, by the standard that defines it.
        switch effectiveColorspace {
        case V4L2_COLORSPACE_SMPTE170M, V4L2_COLORSPACE_470_SYSTEM_M, V4L2_COLORSPACE_470_SYSTEM_BG: 6
        case V4L2_COLORSPACE_BT2020: 14
        default: 1
        }
      }
    case V4L2_XFER_FUNC_SRGB: 13
    // opRGB's exponent is 2.19921875.
    case V4L2_XFER_FUNC_OPRGB: 4
    case V4L2_XFER_FUNC_SMPTE240M: 7
    case V4L2_XFER_FUNC_NONE: 8
    case V4L2_XFER_FUNC_DCI_P3: 17
    case V4L2_XFER_FUNC_SMPTE2084: 16
    default: 2
    }
  }

  /// ITU-T H.264 table E-5.
  private var matrixCode: UInt8 {
    switch effectiveEncoding {
    case V4L2_YCBCR_ENC_601, V4L2_YCBCR_ENC_XV601, V4L2_YCBCR_ENC_SYCC:
      // The same coefficients, under the name of the standard of the primaries.
      effectiveColorspace == V4L2_COLORSPACE_470_SYSTEM_BG ? 5 : Self.matrix601
    case V4L2_YCBCR_ENC_709, V4L2_YCBCR_ENC_XV709: 1
    case V4L2_YCBCR_ENC_BT2020: 9
    case V4L2_YCBCR_ENC_BT2020_CONST_LUM: 10
    case V4L2_YCBCR_ENC_SMPTE240M: 7
    default: 2
    }
  }
}

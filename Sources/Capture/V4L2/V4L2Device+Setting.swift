import CLinux
import Glibc
import Media

/// The device's settings and its answers: `VIDIOC_S_FMT`, `VIDIOC_S_PARM`.
extension V4L2Device {
  /// Sets format and size.
  ///
  /// - Returns: the format that the driver granted, which can be used.
  /// - Throws: ``CaptureError`` if the driver refuses or grants something other than the choice.
  func setFormat(_ choice: FormatChoice, for request: FormatRequest) throws(CaptureError) -> DriverFormat {
    var argument = DriverFormat.request(choice.format, size: choice.size, type: bufferType)
    try require("VIDIOC_S_FMT", nightjar_VIDIOC_S_FMT, &argument)
    var format = DriverFormat(argument)
    guard format.pixelFormat == choice.format else {
      throw .implausible(path: path, "offers \(choice.format) but gives \(format.pixelFormat)")
    }
    if format.size != choice.size, request.isSizeExplicit {
      throw .sizeNotOffered(request.size, nearest: format.size, format: choice.format)
    }
    if let flaw = format.flaw { throw .implausible(path: path, flaw) }
    switch v4l2_field(rawValue: format.field) {
    case V4L2_FIELD_ANY, V4L2_FIELD_NONE, V4L2_FIELD_INTERLACED, V4L2_FIELD_INTERLACED_TB, V4L2_FIELD_INTERLACED_BT:
      break
    default: throw .interlaced(path: path)
    }
    format.color.signal = signal
    return format
  }

  /// Sets the rate.
  ///
  /// - Returns: the rate that the driver granted; the requested rate if the driver reports none.
  /// - Throws: ``CaptureError`` if the driver does not grant an explicitly requested rate.
  func setRate(_ choice: FormatChoice, for request: FormatRequest) throws(CaptureError) -> FrameRate {
    var argument = v4l2_streamparm()
    argument.type = bufferType
    guard control(nightjar_VIDIOC_G_PARM, &argument) == 0,
      argument.parm.capture.capability & nightjar_V4L2_CAP_TIMEPERFRAME != 0
    else { return choice.frameRate }
    argument.parm.capture.timeperframe = v4l2_fract(
      numerator: choice.frameRate.denominator, denominator: choice.frameRate.numerator)
    try require("VIDIOC_S_PARM", nightjar_VIDIOC_S_PARM, &argument)
    guard let rate = FrameRate(interval: argument.parm.capture.timeperframe) else { return choice.frameRate }
    // 30 fps in units of 100 ns is 30.00003: the driver means the requested rate.
    if rate.isSame(as: choice.frameRate) { return choice.frameRate }
    if request.isRateExplicit {
      throw .rateNotOffered(request.frameRate, nearest: rate, size: choice.size, format: request.format)
    }
    return rate
  }

  /// The kind of signal at the input.
  private var signal: CameraColor.Signal {
    var standard: v4l2_std_id = 0
    if control(nightjar_VIDIOC_G_STD, &standard) == 0, standard != 0 { return .standardDefinition }
    var timings = v4l2_dv_timings()
    return control(nightjar_VIDIOC_G_DV_TIMINGS, &timings) == 0 ? .highDefinition : .other
  }
}

import CLinux
import Glibc
import Media

/// What the device is told: `VIDIOC_S_FMT`, `VIDIOC_S_PARM`, and what it answers.
extension V4L2Device {
  /// Sets format and size.
  ///
  /// - Returns: what the driver made of it, which can be used.
  /// - Throws: ``CaptureError`` where the driver refuses, or answers something else than what was chosen.
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
  /// - Returns: what the driver made of it; the rate asked for where it does not say.
  /// - Throws: ``CaptureError`` where that is not the rate explicitly wished.
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
    // 30 fps in units of 100 ns is 30.00003: what was meant is the rate that was asked for.
    if rate.isSame(as: choice.frameRate) { return choice.frameRate }
    if request.isRateExplicit {
      throw .rateNotOffered(request.frameRate, nearest: rate, size: choice.size, format: request.format)
    }
    return rate
  }

  /// What kind of signal the input carries.
  private var signal: CameraColor.Signal {
    var standard: v4l2_std_id = 0
    if control(nightjar_VIDIOC_G_STD, &standard) == 0, standard != 0 { return .standardDefinition }
    var timings = v4l2_dv_timings()
    return control(nightjar_VIDIOC_G_DV_TIMINGS, &timings) == 0 ? .highDefinition : .other
  }
}

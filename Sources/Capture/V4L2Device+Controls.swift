import CLinux
import Glibc
import Media

/// What has controls (`VIDIOC_QUERYCTRL`): a video device.
protocol ControlledDevice: AnyObject, Sendable {
  /// What it was opened by.
  var path: String { get }
  /// The value of control `identifier` (`V4L2_CID_*`); nil where there is none, or none that can be read.
  func value(of identifier: UInt32) -> CInt?
  /// What control `identifier` is unless somebody sets it; nil where there is none.
  func usualValue(of identifier: UInt32) -> CInt?
  /// Whether control `identifier` is there to be set, and `value` in its range.
  func canSet(_ identifier: UInt32, to value: CInt) -> Bool
  /// Sets a control: 0, or the `errno` of the driver's refusal.
  func set(_ identifier: UInt32, to value: CInt) -> CInt
}

extension V4L2Device: ControlledDevice {
  func value(of identifier: UInt32) -> CInt? {
    var argument = v4l2_control(id: identifier, value: 0)
    return control(nightjar_VIDIOC_G_CTRL, &argument) == 0 ? argument.value : nil
  }

  func usualValue(of identifier: UInt32) -> CInt? {
    var query = v4l2_queryctrl()
    query.id = identifier
    return control(nightjar_VIDIOC_QUERYCTRL, &query) == 0 ? query.default_value : nil
  }

  func canSet(_ identifier: UInt32, to value: CInt) -> Bool {
    var query = v4l2_queryctrl()
    query.id = identifier
    guard control(nightjar_VIDIOC_QUERYCTRL, &query) == 0 else { return false }
    // One that is grabbed by a running stream is asked, so that its refusal is heard.
    let useless =
      nightjar_V4L2_CTRL_FLAG_DISABLED | nightjar_V4L2_CTRL_FLAG_READ_ONLY | nightjar_V4L2_CTRL_FLAG_INACTIVE
    guard query.flags & useless == 0, query.minimum <= value, value <= query.maximum else { return false }
    return query.step <= 1 || (Int(value) - Int(query.minimum)).isMultiple(of: Int(query.step))
  }

  func set(_ identifier: UInt32, to value: CInt) -> CInt {
    var argument = v4l2_control(id: identifier, value: value)
    return control(nightjar_VIDIOC_S_CTRL, &argument)
  }
}

extension V4L2Camera {
  /// Whether it may deliver fewer pictures where it is dark: `V4L2_CID_EXPOSURE_AUTO_PRIORITY`, by the name of
  /// exposure_dynamic_framerate, is there and on.
  public var slowsInTheDark: Bool { device.value(of: nightjar_V4L2_CID_EXPOSURE_AUTO_PRIORITY) == 1 }
}

extension ControlledDevice {
  /// Looks for pictures that are turned or mirrored before anybody has asked here. That may be how the camera hangs, or
  /// what a program left that was killed and could not put it back: nobody can tell, so it is told and nothing is changed.
  ///
  /// - Throws: ``CaptureError/turnedBefore(path:control:value:usual:)`` for the first such control.
  func checkTurn() throws(CaptureError) {
    for (identifier, name) in [
      (nightjar_V4L2_CID_HFLIP, "horizontal_flip"), (nightjar_V4L2_CID_VFLIP, "vertical_flip"),
      (nightjar_V4L2_CID_ROTATE, "rotate"),
    ] {
      guard let value = value(of: identifier), let usual = usualValue(of: identifier), value != usual else { continue }
      throw .turnedBefore(path: path, control: name, value: Int(value), usual: Int(usual))
    }
  }

  /// How the sensor's pictures have to be turned to stand upright, by `V4L2_CID_CAMERA_SENSOR_ROTATION`: the kernel
  /// gives it in degrees counter-clockwise (V4L2 specification, "Camera Control Reference"). Not at all where the
  /// driver does not say.
  ///
  /// - Throws: ``CaptureError/mounting(path:degrees:)`` for an angle that no picture is turned by.
  func mounting() throws(CaptureError) -> Orientation {
    guard let degrees = value(of: nightjar_V4L2_CID_CAMERA_SENSOR_ROTATION) else { return .upright }
    // 360 is allowed by the specification's range.
    guard (0...360).contains(degrees), let rotation = Rotation(rawValue: Int(degrees) % 360) else {
      throw .mounting(path: path, degrees: Int(degrees))
    }
    return Orientation(rotation.inverse)
  }
}

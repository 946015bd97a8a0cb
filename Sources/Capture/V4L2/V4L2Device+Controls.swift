import CLinux
import Glibc
package import Media

/// A device with controls (`VIDIOC_QUERYCTRL`): a video device.
package protocol ControlledDevice: AnyObject, Sendable {
  /// The path that the device was opened by.
  var path: String { get }
  /// Returns the value of control `identifier` (`V4L2_CID_*`); nil if there is no such control, or if it cannot be
  /// read.
  func value(of identifier: UInt32) -> CInt?
  /// Returns the default value of control `identifier`; nil if there is no such control.
  func usualValue(of identifier: UInt32) -> CInt?
  /// Returns `true` if control `identifier` can be set and `value` is in its range.
  func canSet(_ identifier: UInt32, to value: CInt) -> Bool
  /// Sets a control. Returns 0, or the `errno` of the driver's refusal.
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
    // A control that a running stream has grabbed is tried, so that its refusal is reported.
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
  /// `true` if the camera may deliver fewer pictures in the dark: `V4L2_CID_EXPOSURE_AUTO_PRIORITY`, named
  /// exposure_dynamic_framerate, exists and is on.
  public var slowsInTheDark: Bool { device.value(of: nightjar_V4L2_CID_EXPOSURE_AUTO_PRIORITY) == 1 }
}

extension ControlledDevice {
  /// Detects pictures that are rotated or mirrored before the appliance sets anything. That may be due to the camera's
  /// position, or to a killed program that could not restore the controls. The two cannot be told apart, so the method
  /// reports the control and changes nothing.
  ///
  /// - Throws: ``CaptureError/turnedBefore(path:control:value:usual:)`` for the first such control.
  package func checkRotation() throws(CaptureError) {
    for (identifier, name) in [
      (nightjar_V4L2_CID_HFLIP, "horizontal_flip"), (nightjar_V4L2_CID_VFLIP, "vertical_flip"),
      (nightjar_V4L2_CID_ROTATE, "rotate"),
    ] {
      guard let value = value(of: identifier), let usual = usualValue(of: identifier), value != usual else { continue }
      throw .turnedBefore(path: path, control: name, value: Int(value), usual: Int(usual))
    }
  }

  /// Returns the rotation that makes the sensor's pictures upright, by `V4L2_CID_CAMERA_SENSOR_ROTATION`. The kernel
  /// gives that in degrees counter-clockwise (V4L2 specification, "Camera Control Reference"). Returns no rotation if
  /// the driver reports none.
  ///
  /// - Throws: ``CaptureError/mounting(path:degrees:)`` for an angle by which no picture is rotated.
  package func mounting() throws(CaptureError) -> Orientation {
    guard let degrees = value(of: nightjar_V4L2_CID_CAMERA_SENSOR_ROTATION) else { return .upright }
    // The specification's range allows 360.
    guard (0...360).contains(degrees), let rotation = Rotation(rawValue: Int(degrees) % 360) else {
      throw .mounting(path: path, degrees: Int(degrees))
    }
    return Orientation(rotation.inverse)
  }
}

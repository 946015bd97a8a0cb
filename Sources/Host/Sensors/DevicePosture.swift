package import Media

/// A device's posture: the edge that is up, seen from the device's front, by its name in `iio-sensor-proxy`
/// (`AccelerometerOrientation`).
package enum DevicePosture: String, CaseIterable, Hashable, Sendable {
  /// The device is upright.
  case normal
  /// The device is upside down.
  case bottomUp = "bottom-up"
  /// The left edge is up: the device is rotated clockwise by 90 degrees.
  case leftUp = "left-up"
  /// The right edge is up: the device is rotated anticlockwise by 90 degrees.
  case rightUp = "right-up"

  /// The direction of a camera that is fixed to the device.
  package enum Facing: Hashable, Sendable {
    /// The user's direction of view: the camera on the back, or a camera without a screen.
    case away
    /// The direction towards the user: the camera beside a screen.
    case user
  }

  /// Returns the rotation that makes such a camera's picture upright.
  ///
  /// A camera that is rotated clockwise sees the world rotated anticlockwise, so its picture is rotated clockwise too.
  /// For a camera that faces the user, the rotation is the opposite one.
  package func rotation(facing: Facing = .away) -> Rotation {
    switch self {
    case .normal: .none
    case .bottomUp: .half
    case .leftUp: facing == .away ? .quarter : .threeQuarters
    case .rightUp: facing == .away ? .threeQuarters : .quarter
    }
  }
}

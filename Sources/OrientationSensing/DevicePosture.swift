public import Media

/// Which edge of the device is up, as `iio-sensor-proxy` names it (`AccelerometerOrientation`), seen by whoever looks
/// at the device's front.
public enum DevicePosture: String, CaseIterable, Hashable, Sendable {
  /// As it was made to stand.
  case normal
  /// Upside down.
  case bottomUp = "bottom-up"
  /// Its left edge is up: turned clockwise by a quarter.
  case leftUp = "left-up"
  /// Its right edge is up: turned anticlockwise by a quarter.
  case rightUp = "right-up"

  /// Which way a camera that is fixed to the device looks.
  public enum Facing: Hashable, Sendable {
    /// As its user does: the camera on the back, or one with no screen about it.
    case away
    /// At its user: the camera beside a screen.
    case user
  }

  /// The turn that sets such a camera's picture upright.
  ///
  /// A camera that is turned clockwise sees the world turned anticlockwise, so that its picture is turned clockwise
  /// too. One that looks at the user turns the other way round, seen from where it looks.
  public func rotation(facing: Facing = .away) -> Rotation {
    switch self {
    case .normal: .none
    case .bottomUp: .half
    case .leftUp: facing == .away ? .quarter : .threeQuarters
    case .rightUp: facing == .away ? .threeQuarters : .quarter
    }
  }
}

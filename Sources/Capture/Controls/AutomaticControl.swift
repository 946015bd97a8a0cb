import CLinux

/// An automatic control, which sets other controls, and its values that let those be set.
struct AutomaticControl {
  /// The automatic's `V4L2_CID_*`.
  let identifier: UInt32
  /// The automatic's values that leave the other controls alone, the best first.
  let manual: [Int64]
  /// The controls that the automatic sets.
  let dependents: [UInt32]
  /// `true` if a sensor lock turns the automatic off.
  let belongsToSensorLock: Bool

  /// The automatics of the specification ("Camera Control Reference", "User Controls").
  static let all: [AutomaticControl] = [
    // V4L2_EXPOSURE_MANUAL, and _SHUTTER_PRIORITY, which leaves the exposure time alone.
    AutomaticControl(
      identifier: nightjar_V4L2_CID_EXPOSURE_AUTO, manual: [1, 2],
      dependents: [nightjar_V4L2_CID_EXPOSURE_ABSOLUTE, nightjar_V4L2_CID_EXPOSURE], belongsToSensorLock: true),
    // V4L2_EXPOSURE_APERTURE_PRIORITY leaves the iris alone.
    AutomaticControl(
      identifier: nightjar_V4L2_CID_EXPOSURE_AUTO, manual: [1, 3], dependents: [nightjar_V4L2_CID_IRIS_ABSOLUTE],
      belongsToSensorLock: false),
    AutomaticControl(
      identifier: nightjar_V4L2_CID_AUTOGAIN, manual: [0], dependents: [nightjar_V4L2_CID_GAIN],
      belongsToSensorLock: true),
    AutomaticControl(
      identifier: nightjar_V4L2_CID_AUTO_WHITE_BALANCE, manual: [0],
      dependents: [
        nightjar_V4L2_CID_WHITE_BALANCE_TEMPERATURE, nightjar_V4L2_CID_RED_BALANCE, nightjar_V4L2_CID_BLUE_BALANCE,
      ], belongsToSensorLock: true),
    AutomaticControl(
      identifier: nightjar_V4L2_CID_AUTO_N_PRESET_WHITE_BALANCE, manual: [0],
      dependents: [
        nightjar_V4L2_CID_WHITE_BALANCE_TEMPERATURE, nightjar_V4L2_CID_RED_BALANCE, nightjar_V4L2_CID_BLUE_BALANCE,
      ], belongsToSensorLock: true),
    AutomaticControl(
      identifier: nightjar_V4L2_CID_FOCUS_AUTO, manual: [0],
      dependents: [nightjar_V4L2_CID_FOCUS_ABSOLUTE, nightjar_V4L2_CID_FOCUS_RELATIVE], belongsToSensorLock: true),
    AutomaticControl(
      identifier: nightjar_V4L2_CID_HUE_AUTO, manual: [0], dependents: [nightjar_V4L2_CID_HUE],
      belongsToSensorLock: false),
    AutomaticControl(
      identifier: nightjar_V4L2_CID_AUTOBRIGHTNESS, manual: [0], dependents: [nightjar_V4L2_CID_BRIGHTNESS],
      belongsToSensorLock: false),
    AutomaticControl(
      identifier: nightjar_V4L2_CID_CHROMA_AGC, manual: [0], dependents: [nightjar_V4L2_CID_CHROMA_GAIN],
      belongsToSensorLock: false),
  ]

  /// Returns the rank of setting `identifier` to `value` among other controls. Automatics are turned off before their
  /// dependents are set, and turned on after that.
  static func rank(of identifier: UInt32, value: Int64) -> Int {
    if let row = all.first(where: { $0.identifier == identifier }) { return row.manual.contains(value) ? 0 : 3 }
    return all.contains { $0.dependents.contains(identifier) } ? 2 : 1
  }

  /// Returns those of `targets` that can apply together. If one of them turns an automatic on, the controls that it
  /// sets are left to it.
  static func effective(_ targets: [ControlWriter.Target]) -> [ControlWriter.Target] {
    let taken = all.filter { row in
      targets.contains { $0.control.identifier == row.identifier && !row.manual.contains($0.value) }
    }.flatMap(\.dependents)
    return targets.filter { !taken.contains($0.control.identifier) }
  }

  /// Returns the value that turns the automatic off; nil if the camera has no such value.
  func manualValue(of control: CameraControl) -> Int64? { manual.first { control.permits($0) } }

  /// Returns the automatic among `controls` that keeps `control` from being set, and its values that would not, the
  /// best first.
  static func obstacle(
    to control: CameraControl, among controls: [CameraControl]
  ) -> (automatic: CameraControl, manual: [Int64])? {
    for row in all where row.dependents.contains(control.identifier) {
      guard let automatic = controls.first(where: { $0.identifier == row.identifier }), let value = automatic.value,
        !row.manual.contains(value)
      else { continue }
      let manual = row.manual.filter(automatic.permits)
      if !manual.isEmpty { return (automatic, manual) }
    }
    return nil
  }
}

extension CameraControl {
  /// Returns the error that says why the control is inactive, and what to set.
  func inactivity(among controls: [CameraControl]) -> CameraControlError {
    guard let (automatic, manual) = AutomaticControl.obstacle(to: self, among: controls) else {
      return .inactive(name: name, because: nil, mend: nil)
    }
    let value = automatic.value.map(automatic.text) ?? "on"
    return .inactive(name: name, because: "\(automatic.name) is \(value)", mend: "\(automatic.name)=\(manual[0])")
  }
}

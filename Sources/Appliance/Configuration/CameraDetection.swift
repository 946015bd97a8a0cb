package import Detection
import Platform

/// The settings of a camera's detectors, whose findings become alerts.
package struct CameraDetection: Hashable, Sendable {
  /// The sensitivity for noise; nil for no alerts of noise.
  package var noise: NoiseSensitivity?
  /// `true` looks for crying.
  package var crying = false
  /// The sensitivity for movement; nil for no alerts of movement.
  package var movement: MovementSensitivity?
  /// The parts of the picture in which movement does not count.
  package var masks: [MovementMask] = []

  /// `true` if anything in the room is looked for.
  var isOn: Bool { noise != nil || crying || movement != nil }

  /// The settings of the detectors of sound; nil if they find nothing that anybody wants.
  var sound: SoundDetector.Settings? {
    guard noise != nil || crying else { return nil }
    return SoundDetector.Settings(sensitivity: noise ?? .medium, detectsCrying: crying)
  }

  /// The settings of the detector of movement; nil for none.
  var movementSettings: MovementDetector.Settings? {
    movement.map { MovementDetector.Settings(sensitivity: $0, masks: masks) }
  }

  /// Reports settings without effect.
  func check(_ faults: inout SettingFaults) {
    if movement == nil, !masks.isEmpty { faults.add("\(.movementMask) is for \(.movement) only") }
  }

  /// Parses `off`, `low`, `medium`, `high`, or decibels as in `12dB`.
  static func noise(_ text: String) throws(ValueError) -> NoiseSensitivity? {
    switch text {
    case "off": return .none
    case "low": return .some(.low)
    case "medium": return .some(.medium)
    case "high": return .some(.high)
    default:
      let isDecibel = text.lowercased().hasSuffix("db")
      let limits = NoiseSensitivity.limits
      guard let value = SettingValues.decimal(isDecibel ? text.dropLast(2) : text[...]), limits.contains(value) else {
        throw ValueError(
          """
          choose off, low, medium, high, or \(Int(limits.lowerBound)) to \(Int(limits.upperBound)) dB above the \
          background, as in 12dB
          """)
      }
      return .some(NoiseSensitivity(decibels: value))
    }
  }

  /// Parses `off`, `low`, `medium`, `high`.
  static func movement(_ text: String) throws(ValueError) -> MovementSensitivity? {
    if text == "off" { return .none }
    guard let sensitivity = MovementSensitivity(rawValue: text) else {
      throw ValueError("choose off, low, medium or high")
    }
    return .some(sensitivity)
  }

  /// Parses `0,0,100,20`: left, top, width and height in percent of the picture.
  static func mask(_ text: String) throws(ValueError) -> MovementMask {
    let numbers = text.split(separator: ",", omittingEmptySubsequences: false).map(SettingValues.decimal)
    if numbers.count == 4, let x = numbers[0], let y = numbers[1], let width = numbers[2], let height = numbers[3],
      let mask = MovementMask(x: x / 100, y: y / 100, width: width / 100, height: height / 100)
    {
      return mask
    }
    throw ValueError(
      "write left, top, width and height in percent of the camera's picture, within 0 to 100, as in 0,0,100,20")
  }
}

package import Host

/// The settings that restrict the stream when the host is too hot or too slow.
package struct CameraAdaptation: Hashable, Sendable {
  /// The temperatures at which the host counts as hot.
  package enum Thermal: Hashable, Sendable {
    /// The trip points of the zones apply.
    case auto
    /// No adaptation to temperature.
    case off
    /// These thresholds apply to all zones.
    case thresholds(ThermalThresholds)

    init(text: String) throws(ValueError) {
      switch text {
      case "auto": self = .auto
      case "off": self = .off
      default:
        let values = text.split(separator: ",", omittingEmptySubsequences: false).map { Double($0) }
        guard values.count == 3, let fair = values[0], let serious = values[1], let critical = values[2],
          let thresholds = ThermalThresholds(fair: fair, serious: serious, critical: critical)
        else { throw ValueError("choose auto, off, or three rising temperatures from -40 to 150, as in 65,75,85") }
        self = .thresholds(thresholds)
      }
    }
  }

  package var thermal = Thermal.auto
  /// `true` if the stream takes less when encoding takes too long.
  package var followsLoad = true
}

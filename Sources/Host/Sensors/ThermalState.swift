/// The machine's thermal state, in four steps.
package enum ThermalState: Int, Comparable, CaseIterable, Sendable {
  /// The temperature is normal.
  case nominal
  /// The machine is warm; the appliance does nothing about it.
  case fair
  /// The machine is hot: the kernel throttles the processor, or is about to.
  case serious
  /// The temperature is close to the point where the kernel switches the machine off.
  case critical

  /// The state's name: `nominal`, `fair`, `serious`, `critical`.
  package var name: String {
    switch self {
    case .nominal: "nominal"
    case .fair: "fair"
    case .serious: "serious"
    case .critical: "critical"
    }
  }

  /// Returns `true` if `left` is cooler.
  package static func < (left: ThermalState, right: ThermalState) -> Bool { left.rawValue < right.rawValue }
}

/// The temperatures in °C from which a zone is ``ThermalState/fair``, serious and critical.
package struct ThermalThresholds: Hashable, Sendable {
  /// The lowest fair temperature.
  package let fair: Double
  /// The lowest serious temperature.
  package let serious: Double
  /// The lowest critical temperature.
  package let critical: Double

  /// The plausible temperatures: no electronics works colder or hotter.
  package static let plausible = -40.0...150.0

  /// Creates thresholds; nil where the temperatures do not rise or are implausible.
  package init?(fair: Double, serious: Double, critical: Double) {
    guard fair < serious, serious < critical, Self.plausible.contains(fair), Self.plausible.contains(critical) else {
      return nil
    }
    (self.fair, self.serious, self.critical) = (fair, serious, critical)
  }

  /// Derives thresholds from a zone's trip points (`Documentation/driver-api/thermal/sysfs-api.rst`); nil where they
  /// are not usable.
  ///
  /// At `passive` the kernel begins to throttle: that is serious, and fair begins 5 °C lower. Critical begins at `hot`,
  /// or 5 °C below `critical`, where the kernel switches the machine off. A missing one is assumed to be 10 °C from the
  /// other.
  package init?(passive: Double?, hot: Double?, critical: Double?) {
    let last = hot ?? critical.map { $0 - 5 }
    switch (passive, last) {
    case (nil, nil): return nil
    case (let passive?, nil): self.init(fair: passive - 5, serious: passive, critical: passive + 10)
    case (nil, let last?): self.init(fair: last - 15, serious: last - 10, critical: last)
    case (let passive?, let last?):
      // Some firmware does not throttle before it switches off.
      let serious = min(passive, last - 5)
      self.init(fair: serious - 5, serious: serious, critical: last)
    }
  }

  /// Returns the state at `temperature`.
  func state(at temperature: Double) -> ThermalState {
    if temperature >= critical { return .critical }
    if temperature >= serious { return .serious }
    return temperature >= fair ? .fair : .nominal
  }
}

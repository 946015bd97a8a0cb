/// How hot the machine is, in four steps.
public enum ThermalState: Int, Comparable, CaseIterable, Sendable {
  /// As it should be.
  case nominal
  /// Warm; nothing is done about it.
  case fair
  /// Hot: the kernel throttles the processor, or is about to.
  case serious
  /// Close to where the kernel switches the machine off.
  case critical

  /// `nominal`, `fair`, `serious`, `critical`.
  public var name: String {
    switch self {
    case .nominal: "nominal"
    case .fair: "fair"
    case .serious: "serious"
    case .critical: "critical"
    }
  }

  /// The cooler one first.
  public static func < (left: ThermalState, right: ThermalState) -> Bool { left.rawValue < right.rawValue }
}

/// The temperatures in °C from which a zone is ``ThermalState/fair``, serious and critical.
public struct ThermalThresholds: Hashable, Sendable {
  /// From here on fair.
  public let fair: Double
  /// From here on serious.
  public let serious: Double
  /// From here on critical.
  public let critical: Double

  /// What temperatures are taken for: no electronics is colder or hotter, and works.
  public static let plausible = -40.0...150.0

  /// Three temperatures; nil where they do not rise, or are none.
  public init?(fair: Double, serious: Double, critical: Double) {
    guard fair < serious, serious < critical, Self.plausible.contains(fair), Self.plausible.contains(critical) else {
      return nil
    }
    (self.fair, self.serious, self.critical) = (fair, serious, critical)
  }

  /// What follows from a zone's trip points (`Documentation/driver-api/thermal/sysfs-api.rst`); nil where they tell
  /// nothing.
  ///
  /// At `passive` the kernel begins to throttle: that is serious, and fair 5 °C before. At `hot`, or 5 °C before
  /// `critical`, where it switches the machine off, it is critical. Where one of them is missing it is taken to be 10 °C
  /// from the other.
  init?(passive: Double?, hot: Double?, critical: Double?) {
    let last = hot ?? critical.map { $0 - 5 }
    switch (passive, last) {
    case (nil, nil): return nil
    case (let passive?, nil): self.init(fair: passive - 5, serious: passive, critical: passive + 10)
    case (nil, let last?): self.init(fair: last - 15, serious: last - 10, critical: last)
    case (let passive?, let last?):
      // Some firmware throttles no sooner than it gives up.
      let serious = min(passive, last - 5)
      self.init(fair: serious - 5, serious: serious, critical: last)
    }
  }

  /// The state at `temperature`.
  func state(at temperature: Double) -> ThermalState {
    if temperature >= critical { return .critical }
    if temperature >= serious { return .serious }
    return temperature >= fair ? .fair : .nominal
  }
}

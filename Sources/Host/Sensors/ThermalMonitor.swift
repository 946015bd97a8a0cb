package import Platform

/// A monitor of the machine's thermal zones: the hottest zone's state, with hysteresis, so that a restricted stream
/// that cools the machine does not immediately rise again. A value type; its owner reads it every second or two.
package struct ThermalMonitor {
  /// A reading of the monitor.
  package struct Reading: Equatable, Sendable {
    /// The thermal state.
    package var state: ThermalState
    /// The temperature of the zone that determines the state, in °C.
    package var temperature: Double
    /// That zone's ``ThermalZone/type``.
    package var zone: String

    /// Creates a reading.
    package init(state: ThermalState, temperature: Double, zone: String) {
      (self.state, self.temperature, self.zone) = (state, temperature, zone)
    }
  }

  /// The distance below a threshold, in °C, that the temperature must keep for ``coolingTime`` before the state falls.
  /// The state rises at the second reading.
  package static let margin = 3.0
  /// The time that a lower temperature must last; see ``margin``.
  package static let coolingTime = Duration(seconds: 10)

  /// The usable zones.
  package private(set) var zones: [ThermalZone] = []
  /// The unusable zones, with the reason.
  package private(set) var passedOver: [(zone: ThermalZone, reason: String)] = []
  private var thresholds: [ThermalThresholds] = []
  private let root: String
  private let given: ThermalThresholds?
  private var state = ThermalState.nominal
  private var coolerSince: Instant?
  private var wasHotter = false

  /// Creates a monitor of the zones under `root`, the mount point of sysfs. `thresholds` override the zones' trip
  /// points.
  package init(root: String = "/sys", thresholds given: ThermalThresholds? = nil) {
    self.root = root
    self.given = given
    lookAgain()
  }

  /// Searches the zones again, because a driver that is loaded later may add some. The state is kept.
  package mutating func lookAgain() {
    var usable: [(ThermalZone, ThermalThresholds)] = []
    var passedOver: [(ThermalZone, String)] = []
    for zone in ThermalZone.all(root: root) {
      if !zone.isEnabled {
        passedOver.append((zone, "it is disabled"))
      } else if zone.temperature() == nil {
        passedOver.append((zone, "it reports no temperature"))
      } else if let thresholds = given ?? zone.thresholds {
        usable.append((zone, thresholds))
      } else {
        passedOver.append((zone, "its trip points are unusable"))
      }
    }
    zones = usable.map(\.0)
    thresholds = usable.map(\.1)
    self.passedOver = passedOver
  }

  /// Reads the zones; returns nil where no zone gives a temperature.
  package mutating func read(at now: Instant) -> Reading? {
    var hottest: (index: Int, state: ThermalState, temperature: Double)?
    // The state with a margin added to the temperature: the state falls when this one does.
    var held = ThermalState.nominal
    for (index, zone) in zones.enumerated() {
      guard let temperature = zone.temperature() else { continue }
      let state = thresholds[index].state(at: temperature)
      held = max(held, thresholds[index].state(at: temperature + Self.margin))
      if hottest.map({ (state, temperature) > ($0.state, $0.temperature) }) ?? true {
        hottest = (index, state, temperature)
      }
    }
    guard let hottest else { return nil }
    follow(hottest.state, held: held, at: now)
    return Reading(state: state, temperature: hottest.temperature, zone: zones[hottest.index].type)
  }

  private mutating func follow(_ measured: ThermalState, held: ThermalState, at now: Instant) {
    if measured > state {
      if wasHotter { state = measured }
      wasHotter.toggle()
      coolerSince = nil
      return
    }
    wasHotter = false
    guard held < state else {
      coolerSince = nil
      return
    }
    guard let since = coolerSince else {
      coolerSince = now
      return
    }
    guard now - since >= Self.coolingTime else { return }
    state = held
    coolerSince = nil
  }
}

public import Media

/// What the machine's thermal zones come to: the hottest one's state, with hysteresis, so that a stream that does less
/// and cools the machine does not go back to more at once. A value; its owner asks it every second or two.
public struct ThermalMonitor {
  /// What it says.
  public struct Reading: Equatable, Sendable {
    /// The state.
    public var state: ThermalState
    /// The temperature of the zone that it comes from, in °C.
    public var temperature: Double
    /// That zone's ``ThermalZone/type``.
    public var zone: String
  }

  /// How far below a threshold it must be, in °C, for how long, until it is believed to be cooler. Hotter is believed
  /// at the second reading.
  public static let margin = 3.0
  /// See ``margin``.
  public static let coolingTime = MediaTime(seconds: 10)

  /// The zones that can be used.
  public private(set) var zones: [ThermalZone] = []
  /// Those that are not, and why.
  public private(set) var passedOver: [(zone: ThermalZone, reason: String)] = []
  private var thresholds: [ThermalThresholds] = []
  private let root: String
  private let given: ThermalThresholds?
  private var state = ThermalState.nominal
  private var coolerSince: MediaTime?
  private var wasHotter = false

  /// The zones under `root`, where sysfs is mounted; with `thresholds` instead of what their trip points say.
  public init(root: String = "/sys", thresholds given: ThermalThresholds? = nil) {
    self.root = root
    self.given = given
    lookAgain()
  }

  /// Looks which zones there are: some come with a driver that is loaded later. How hot it is stays what it was.
  public mutating func lookAgain() {
    var usable: [(ThermalZone, ThermalThresholds)] = []
    var passedOver: [(ThermalZone, String)] = []
    for zone in ThermalZone.all(root: root) {
      if !zone.isEnabled {
        passedOver.append((zone, "it is disabled"))
      } else if zone.temperature() == nil {
        passedOver.append((zone, "it tells no temperature"))
      } else if let thresholds = given ?? zone.thresholds {
        usable.append((zone, thresholds))
      } else {
        passedOver.append((zone, "its trip points tell nothing"))
      }
    }
    zones = usable.map(\.0)
    thresholds = usable.map(\.1)
    self.passedOver = passedOver
  }

  /// Reads the zones; nil where none tells anything.
  public mutating func read(at now: MediaTime) -> Reading? {
    var hottest: (index: Int, state: ThermalState, temperature: Double)?
    // How hot it is with a margin added: what it must fall below to be cooler.
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

  private mutating func follow(_ measured: ThermalState, held: ThermalState, at now: MediaTime) {
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

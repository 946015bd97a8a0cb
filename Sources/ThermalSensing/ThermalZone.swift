import Glibc
import Media

/// A temperature sensor of the kernel's thermal subsystem, `thermal_zoneN` in sysfs
/// (`Documentation/driver-api/thermal/sysfs-api.rst`). Temperatures are in °C; sysfs has thousandths.
///
/// A value is read from its driver, over whatever bus or firmware that uses: this belongs on a thread of its own.
public struct ThermalZone: Sendable {
  /// The zone's directory.
  public let path: String
  /// What it is a sensor of, in its driver's words: `x86_pkg_temp`, `cpu-thermal`, `acpitz`.
  public let type: String
  /// What its trip points say; nil where it has none that do.
  public let thresholds: ThermalThresholds?
  /// Kept, because it is read every other second.
  private let temperaturePath: String

  /// How many zones are looked at.
  public static let limit = 64
  /// How many trip points of a zone are.
  static let tripLimit = 16

  /// The zones under `root`, where sysfs is mounted, by number; what cannot be read is left out.
  public static func all(root: String = "/sys") -> [ThermalZone] {
    let folder = "\(root)/class/thermal"
    var numbers: [Int] = []
    Directory.forEachName(in: folder) { name in
      guard numbers.count < limit, name.hasPrefix("thermal_zone"), let number = Int(name.dropFirst(12)) else { return }
      numbers.append(number)
    }
    return numbers.sorted().map { ThermalZone(path: "\(folder)/thermal_zone\($0)") }
  }

  private init(path: String) {
    self.path = path
    temperaturePath = "\(path)/temp"
    type = AttributeFile.printable(Self.text("\(path)/type") ?? "unnamed")
    var trips: [String: Double] = [:]
    for index in 0..<Self.tripLimit {
      guard let kind = Self.text("\(path)/trip_point_\(index)_type") else { break }
      guard let value = Self.temperature("\(path)/trip_point_\(index)_temp"), value > 0 else { continue }
      // The lowest of a kind is the first to be passed.
      trips[kind] = min(value, trips[kind] ?? value)
    }
    thresholds = ThermalThresholds(passive: trips["passive"], hot: trips["hot"], critical: trips["critical"])
  }

  /// What it measures now, in °C; nil where it cannot be read, or says what no machine survives.
  public func temperature() -> Double? { Self.temperature(temperaturePath) }

  /// Whether the kernel looks after it: one that is disabled measures nothing.
  var isEnabled: Bool { Self.text("\(path)/mode") != "disabled" }

  private static func temperature(_ path: String) -> Double? {
    guard let value = AttributeFile.integer(path) else { return nil }
    let temperature = Double(value) / 1000
    return ThermalThresholds.plausible.contains(temperature) ? temperature : nil
  }

  private static func text(_ path: String) -> String? { try? AttributeFile.text(path) }
}

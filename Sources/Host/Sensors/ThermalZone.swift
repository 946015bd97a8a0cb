import Glibc
import Platform

/// A temperature sensor of the kernel's thermal subsystem, `thermal_zoneN` in sysfs
/// (`Documentation/driver-api/thermal/sysfs-api.rst`). Temperatures are in °C; sysfs has thousandths.
///
/// Reading a value calls the zone's driver, over any bus or firmware. So a zone belongs on a thread of its own.
package struct ThermalZone: Sendable {
  /// The zone's directory.
  package let path: String
  /// The driver's name for the zone's type: `x86_pkg_temp`, `cpu-thermal`, `acpitz`.
  package let type: String
  /// The thresholds from the trip points; nil where they are not usable.
  package let thresholds: ThermalThresholds?
  /// Stored, because it is used every other second.
  private let temperaturePath: String

  /// The limit of zones that are examined.
  package static let limit = 64
  /// The limit of a zone's trip points that are examined.
  static let tripLimit = 16

  /// Returns the zones under `root`, the mount point of sysfs, by number, without unreadable ones.
  package static func all(root: String = "/sys") -> [ThermalZone] {
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
      // The lowest trip point of a kind is reached first.
      trips[kind] = min(value, trips[kind] ?? value)
    }
    thresholds = ThermalThresholds(passive: trips["passive"], hot: trips["hot"], critical: trips["critical"])
  }

  /// Returns the current temperature in °C; nil where it cannot be read or is implausible.
  package func temperature() -> Double? { Self.temperature(temperaturePath) }

  /// `true` if the kernel monitors the zone: a disabled zone measures nothing.
  var isEnabled: Bool { Self.text("\(path)/mode") != "disabled" }

  private static func temperature(_ path: String) -> Double? {
    guard let value = AttributeFile.integer(path) else { return nil }
    let temperature = Double(value) / 1000
    return ThermalThresholds.plausible.contains(temperature) ? temperature : nil
  }

  private static func text(_ path: String) -> String? { try? AttributeFile.text(path) }
}

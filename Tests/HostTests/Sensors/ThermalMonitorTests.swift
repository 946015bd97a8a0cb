import Foundation
import Host
import Media
import Platform
import TestSupport
import Testing

/// Thermal zones in a sysfs of the test's own.
@Suite struct ThermalMonitorTests {
  private struct Sysfs {
    let directory: TemporaryDirectory
    var root: String { directory.url.path }

    init() throws {
      directory = try TemporaryDirectory()
    }

    func write(_ number: Int, _ files: [String: String]) throws {
      let zone = "\(root)/class/thermal/thermal_zone\(number)"
      try FileManager.default.createDirectory(atPath: zone, withIntermediateDirectories: true)
      for (name, text) in files { try Data((text + "\n").utf8).write(to: URL(fileURLWithPath: "\(zone)/\(name)")) }
    }

    func heat(_ number: Int, _ temperature: String) throws { try write(number, ["temp": temperature]) }
  }

  /// As an Intel laptop's.
  private static let package = [
    "type": "x86_pkg_temp", "mode": "enabled", "temp": "45000", "trip_point_0_type": "passive",
    "trip_point_0_temp": "80000", "trip_point_1_type": "critical", "trip_point_1_temp": "100000",
  ]

  @Test(
    arguments: [
      (80.0, nil, 100.0, 75.0, 80.0, 95.0), (nil, 90, 100, 75, 80, 90), (nil, nil, 105, 85, 90, 100),
      (70, nil, nil, 65, 70, 80), (99, 95, 100, 85, 90, 95),
    ] as [(Double?, Double?, Double?, Double, Double, Double)])
  func `thresholds follow from trip points`(
    passive: Double?, hot: Double?, critical: Double?, fair: Double, serious: Double, last: Double
  ) {
    #expect(
      ThermalThresholds(passive: passive, hot: hot, critical: critical)
        == ThermalThresholds(fair: fair, serious: serious, critical: last))
  }

  @Test func `no trip points are no thresholds, and neither are temperatures that do not rise`() {
    #expect(ThermalThresholds(passive: nil, hot: nil, critical: nil) == nil)
    #expect(ThermalThresholds(fair: 70, serious: 70, critical: 80) == nil)
    #expect(ThermalThresholds(fair: 70, serious: 80, critical: 400) == nil)
    #expect(ThermalThresholds(fair: .nan, serious: 80, critical: 90) == nil)
  }

  @Test func `hotter is believed at the second reading, cooler only after ten seconds below the margin`() throws {
    let sysfs = try Sysfs()
    try sysfs.write(0, Self.package)
    var monitor = ThermalMonitor(root: sysfs.root)
    #expect(monitor.read(at: .zero)?.state == .nominal)
    try sysfs.heat(0, "81000")
    #expect(monitor.read(at: Instant(seconds: 2))?.state == .nominal)
    let hot = monitor.read(at: Instant(seconds: 4))
    #expect(hot == ThermalMonitor.Reading(state: .serious, temperature: 81, zone: "x86_pkg_temp"))
    // Below the threshold, but not by the margin.
    try sysfs.heat(0, "78000")
    for time in 3...20 { #expect(monitor.read(at: Instant(seconds: Double(time) * 2))?.state == .serious) }
    try sysfs.heat(0, "76000")
    #expect(monitor.read(at: Instant(seconds: 50))?.state == .serious)
    #expect(monitor.read(at: Instant(seconds: 58))?.state == .serious)
    #expect(monitor.read(at: Instant(seconds: 60))?.state == .fair)
    try sysfs.heat(0, "45000")
    #expect(monitor.read(at: Instant(seconds: 62))?.state == .fair)
    #expect(monitor.read(at: Instant(seconds: 72))?.state == .nominal)
  }

  @Test func `one hot reading between cool ones is noise`() throws {
    let sysfs = try Sysfs()
    try sysfs.write(0, Self.package)
    var monitor = ThermalMonitor(root: sysfs.root)
    for time in 0..<10 {
      try sysfs.heat(0, time.isMultiple(of: 2) ? "99000" : "45000")
      #expect(monitor.read(at: Instant(seconds: Double(time)))?.state == .nominal)
    }
  }

  @Test func `the hottest zone counts, whatever the others say`() throws {
    let sysfs = try Sysfs()
    try sysfs.write(0, Self.package)
    try sysfs.write(7, ["type": "soc", "temp": "97000", "trip_point_0_type": "hot", "trip_point_0_temp": "96000"])
    var monitor = ThermalMonitor(root: sysfs.root)
    #expect(monitor.zones.map(\.type) == ["x86_pkg_temp", "soc"])
    _ = monitor.read(at: .zero)
    #expect(monitor.read(at: Instant(seconds: 2)) == .init(state: .critical, temperature: 97, zone: "soc"))
  }

  @Test(arguments: ["", "hot", "-274000", "99999999", "0x30", "4.5", String(repeating: "9", count: 4000)])
  func `nonsense is not listened to, at the start and later`(temperature: String) throws {
    let sysfs = try Sysfs()
    try sysfs.write(0, Self.package.merging(["temp": temperature]) { $1 })
    try sysfs.write(1, Self.package)
    var monitor = ThermalMonitor(root: sysfs.root)
    #expect(monitor.zones.count == 1)
    #expect(monitor.passedOver.map(\.reason) == ["it reports no temperature"])
    try sysfs.heat(1, temperature)
    #expect(monitor.read(at: .zero) == nil)
  }

  @Test func `a zone that is disabled or has no trip points is passed over, unless temperatures are given`() throws {
    let sysfs = try Sysfs()
    try sysfs.write(0, Self.package.merging(["mode": "disabled"]) { $1 })
    try sysfs.write(
      1, ["type": "acpitz", "temp": "66000", "trip_point_0_type": "active", "trip_point_0_temp": "50000"])
    try sysfs.write(2, ["type": "wifi", "temp": "50000", "trip_point_0_type": "critical", "trip_point_0_temp": "-1"])
    #expect(ThermalMonitor(root: sysfs.root).zones.isEmpty)
    var given = ThermalMonitor(root: sysfs.root, thresholds: ThermalThresholds(fair: 40, serious: 60, critical: 90))
    #expect(given.zones.map(\.type) == ["acpitz", "wifi"])
    _ = given.read(at: .zero)
    #expect(given.read(at: Instant(seconds: 2))?.state == .serious)
  }

  @Test func `a zone that comes later is found by another look`() throws {
    let sysfs = try Sysfs()
    try sysfs.write(0, Self.package.merging(["temp": "-274000"]) { $1 })
    var monitor = ThermalMonitor(root: sysfs.root)
    #expect(monitor.read(at: .zero) == nil)
    try sysfs.heat(0, "97000")
    monitor.lookAgain()
    _ = monitor.read(at: .zero)
    #expect(monitor.read(at: Instant(seconds: 2))?.state == .critical)
    // What it has come to stays.
    monitor.lookAgain()
    #expect(monitor.read(at: Instant(seconds: 4))?.state == .critical)
    #expect(monitor.passedOver.isEmpty)
  }

  @Test func `without thermal zones nothing is said`() throws {
    var monitor = ThermalMonitor(root: try Sysfs().root)
    #expect(monitor.read(at: .zero) == nil)
    // This machine's own, whatever they are.
    var own = ThermalMonitor()
    if let reading = own.read(at: .zero) { #expect(ThermalThresholds.plausible.contains(reading.temperature)) }
  }
}

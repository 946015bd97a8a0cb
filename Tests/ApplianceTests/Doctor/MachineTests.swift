import Appliance
import Foundation
import Host
import Media
import Platform
import TestSupport
import Testing

/// Findings about a machine that is described in files of the test's own, or in another program's words.
@Suite struct MachineTests {
  private static func write(_ files: [String: String], in folder: String) throws {
    try FileManager.default.createDirectory(atPath: folder, withIntermediateDirectories: true)
    for (name, text) in files { try Data((text + "\n").utf8).write(to: URL(fileURLWithPath: "\(folder)/\(name)")) }
  }

  @Test func `heat is told by the kernel's own trip points, and is gone when it is cooler`() throws {
    let sysfs = try TemporaryDirectory()
    let none = MachineFindings.temperature(thresholds: nil, root: sysfs.url.path)
    #expect(none.kind == .temperature && none.text == "the kernel knows no sensor: nightjar cannot see heat")
    let zone = sysfs.path("class/thermal/thermal_zone0")
    try Self.write(
      [
        "type": "cpu-thermal", "trip_point_0_type": "passive", "trip_point_0_temp": "80000",
        "trip_point_1_type": "critical", "trip_point_1_temp": "100000",
      ], in: zone)
    for (degrees, key) in [
      ("45000", "temperature"), ("85000", "temperature-high"), ("98000", "temperature-critical"),
      ("50000", "temperature"),
    ] {
      try Self.write(["temp": degrees], in: zone)
      let finding = MachineFindings.temperature(thresholds: nil, root: sysfs.url.path)
      #expect(finding.kind.rawValue == key, "\(finding)")
      #expect(finding.figures["celsius"] == (Double(degrees) ?? 0) / 1000 && finding.text.contains("cpu-thermal"))
      #expect(finding.mends.isEmpty == (finding.status == .ok))
    }
    let given = try #require(ThermalThresholds(fair: 20, serious: 30, critical: 40))
    #expect(MachineFindings.temperature(thresholds: given, root: sysfs.url.path).kind == .temperatureCritical)
  }

  @Test(
    arguments: [
      (0, true, "clock-wrong"), (4_200_000_000, true, "clock-wrong"), (1_800_000_000, true, "clock"),
      (1_800_000_000, nil, "clock"), (1_800_000_000, false, "clock-free"),
    ] as [(Int64, Bool?, String)])
  func `a clock is wrong by its year, and free where nothing synchronizes it`(
    now: Int64, isSynchronized: Bool?, key: String
  ) throws {
    let finding = ClockCondition(now: now, isSynchronized: isSynchronized).finding
    #expect(finding.kind.rawValue == key, "\(finding)")
    let date = try Subprocess.run(["date", "-u", "-d", "@\(now)", "+%F %T UTC"], in: TemporaryDirectory())
    #expect(finding.text.contains(date.outputText.trimmingCharacters(in: .newlines)), "\(finding)")
  }

  @Test(
    arguments: [
      ("LoadState=not-found\nActiveState=inactive\n", ["service"]),
      ("LoadState=loaded\nActiveState=active\nSubState=running\nUnitFileState=enabled\nNRestarts=0\n", ["service"]),
      (
        "LoadState=loaded\nActiveState=active\nSubState=running\nUnitFileState=disabled\nNRestarts=4\n",
        ["service-disabled", "service-restarts", "service"]
      ),
      ("LoadState=loaded\nActiveState=inactive\nUnitFileState=enabled\nNRestarts=0\n", ["service-stopped"]),
      (
        "LoadState=loaded\nActiveState=failed\nResult=exit-code\nExecMainStatus=65\nNRestarts=0\n", ["service-failed"]
      ),
      (
        "LoadState=loaded\nActiveState=activating\nSubState=auto-restart\nResult=exit-code\nNRestarts=0\n",
        ["service-restarts"]
      ),
      ("LoadState=bad-setting\nActiveState=inactive\n", ["service-broken"]),
      ("LoadState=error\nActiveState=inactive\n", ["service-broken"]),
      ("LoadState=masked\nActiveState=inactive\n", ["service-masked"]), ("", ["service-silent"]),
      ("\u{0}=\n===\nLoadState\n", ["service-silent"]),
    ])
  func `a unit is what systemctl says of it`(text: String, keys: [String]) {
    let findings = ServiceState(parsing: text).findings
    #expect(Set(findings.map(\.kind.rawValue)) == Set(keys), "\(findings)")
    for finding in findings where finding.status != .ok { #expect(!finding.mends.isEmpty) }
  }

  @Test(
    arguments: [
      ("480", " 2.00", "on", ["usb"]), ("12", " 2.00", "on", ["usb-slow"]),
      ("480", " 3.20", "auto", ["usb-slow", "usb-sleep"]),
      ("5000", " 3.00", "auto", ["usb", "usb-sleep"]), ("12", " 1.10", "on", ["usb"]),
    ])
  func `a USB link is slow where its camera could do more`(
    speed: String, version: String, control: String, keys: [String]
  ) throws {
    let directory = try TemporaryDirectory()
    let device = directory.path("sys/devices/usb1/1-2")
    try Self.write(["speed": speed, "version": version], in: device)
    try Self.write(["control": control], in: "\(device)/power")
    let interface = "\(device)/1-2:1.0"
    let entry = directory.path("sys/class/video4linux/video7")
    for folder in [interface, entry] {
      try FileManager.default.createDirectory(atPath: folder, withIntermediateDirectories: true)
    }
    try FileManager.default.createSymbolicLink(atPath: "\(entry)/device", withDestinationPath: interface)
    try Data().write(to: URL(fileURLWithPath: directory.path("video7")))
    let link = try #require(USBLink(node: directory.path("video7"), sysfs: directory.path("sys")))
    #expect(link.port == "1-2")
    #expect(link.findings.map(\.kind.rawValue) == keys, "\(link.findings)")
    #expect(USBLink(node: directory.path("sys"), sysfs: directory.path("sys")) == nil)
    // Its mend, as it stands.
    guard let sleep = link.findings.first(where: { $0.kind == .usbSleep }),
      case .command(let command)? = sleep.mends.first
    else { return }
    #expect(try runMend(command, in: directory).status == 0)
    let mended = try #require(USBLink(node: directory.path("video7"), sysfs: directory.path("sys")))
    #expect(!mended.findings.contains { $0.kind == .usbSleep })
  }

  @Test func `a program that does not end is not waited for`() {
    let start = Instant.now()
    #expect(CommandOutput.text(["sleep", "100"], patience: Duration(seconds: 0.3)) == nil)
    #expect((Instant.now() - start).seconds < 30)
    #expect(CommandOutput.text(["echo", "a b"], patience: Duration(seconds: 30)) == "a b\n")
    #expect(CommandOutput.text(["/no/such/program"], patience: Duration(seconds: 30)) == nil)
  }
}

import Foundation
import Host
import Media
import Platform
import TestSupport
import Testing

/// Accelerometers in a sysfs of the test's own.
@Suite struct AccelerometerTests {
  /// A sysfs with devices.
  struct Sysfs {
    let directory: TemporaryDirectory

    init() throws {
      directory = try TemporaryDirectory()
    }

    var root: String { directory.url.path }

    func device(_ number: Int) -> String { "\(root)/bus/iio/devices/iio:device\(number)" }

    func write(_ number: Int, _ files: [String: String]) throws {
      try FileManager.default.createDirectory(atPath: device(number), withIntermediateDirectories: true)
      for (name, text) in files {
        try Data((text + "\n").utf8).write(to: URL(fileURLWithPath: "\(device(number))/\(name)"))
      }
    }

    /// udev's database: a file of that name with these lines.
    func writeUdev(_ name: String, _ lines: String...) throws -> String {
      let folder = directory.url.appendingPathComponent("udev-data")
      try FileManager.default.createDirectory(at: folder, withIntermediateDirectories: true)
      try Data((lines.joined(separator: "\n") + "\n").utf8).write(to: folder.appendingPathComponent(name))
      return folder.path
    }

    func remove(_ number: Int) throws {
      try FileManager.default.removeItem(atPath: device(number))
    }
  }

  static let plain = [
    "name": "bma250", "in_accel_x_raw": "523", "in_accel_y_raw": "13", "in_accel_z_raw": "5",
    "in_accel_scale": "0.019163",
  ]

  @Test func `raw values become metres per second squared by offset and scale`() throws {
    let sysfs = try Sysfs()
    try sysfs.write(
      0,
      Self.plain.merging([
        "in_accel_offset": "10", "in_accel_y_offset": "-3", "in_accel_z_scale": "0.5", "in_accel_z_raw": "-4",
      ]) { $1 })
    let accelerometer = try Accelerometer.first(root: sysfs.root)
    #expect(accelerometer.name == "bma250")
    let sample = try accelerometer.read()
    #expect(abs(sample.x - 533 * 0.019163) < 1e-9)
    #expect(abs(sample.y - 10 * 0.019163) < 1e-9)
    #expect(abs(sample.z - 3) < 1e-9)
  }

  /// Readings and quirks of real devices, with the postures that iio-sensor-proxy's own tests expect of them.
  @Test(
    arguments: [
      ("523", "13", "5", "0.019163", DevicePosture.normal), ("8", "521", "-67", "0.019163", .rightUp),
      ("24", "0", "-21", "0.306457", .normal), ("15", "-25", "-14", "0.306457", .leftUp),
    ], ["in_accel_mount_matrix", "in_mount_matrix", "mount_matrix"])
  func `a mount matrix turns readings as iio-sensor-proxy does`(
    reading: (String, String, String, String, DevicePosture), name: String
  ) throws {
    let sysfs = try Sysfs()
    try sysfs.write(
      3,
      [
        "in_accel_x_raw": reading.0, "in_accel_y_raw": reading.1, "in_accel_z_raw": reading.2,
        "in_accel_scale": reading.3, name: "0, -1, 0; -1, 0, 0; 0, 0, 1",
      ])
    let sample = try Accelerometer.first(root: sysfs.root).read()
    var detector = OrientationDetector()
    _ = try detector.note(sample, at: .zero)
    #expect(try detector.note(sample, at: Instant(seconds: 0.3)) == reading.4)
  }

  @Test func `the first one with three axes is taken, and one in a laptop's base is not`() throws {
    let sysfs = try Sysfs()
    try sysfs.write(0, ["name": "als", "in_illuminance_raw": "5"])
    try sysfs.write(1, Self.plain.merging(["label": "accel-base"]) { $1 })
    try sysfs.write(2, Self.plain.merging(["location": "base"]) { $1 })
    try sysfs.write(3, ["name": "dummy", "in_accel_x_raw": "34", "in_accel_x_scale": "0.000001"])
    #expect(throws: SensorError.axes(device: sysfs.device(3), missing: ["y", "z"])) {
      try Accelerometer.first(root: sysfs.root)
    }
    try sysfs.write(11, Self.plain.merging(["name": "eleven"]) { $1 })
    try sysfs.write(10, Self.plain.merging(["name": "ten", "label": "accel-display"]) { $1 })
    #expect(try Accelerometer.first(root: sysfs.root).name == "ten")
  }

  @Test func `no sensor is said so`() throws {
    let sysfs = try Sysfs()
    #expect(throws: SensorError.noAccelerometer(root: sysfs.root)) { try Accelerometer.first(root: sysfs.root) }
    try sysfs.write(0, ["name": "als", "in_illuminance_raw": "5"])
    #expect(throws: SensorError.noAccelerometer(root: sysfs.root)) { try Accelerometer.first(root: sysfs.root) }
  }

  @Test(arguments: ["nan", "inf", "", "12 34", "1e999", "\u{1b}[2J"])
  func `a value that is no number is said so`(text: String) throws {
    let sysfs = try Sysfs()
    try sysfs.write(0, Self.plain)
    let accelerometer = try Accelerometer.first(root: sysfs.root)
    try sysfs.write(0, ["in_accel_z_raw": text])
    let path = "\(sysfs.device(0))/in_accel_z_raw"
    #expect(throws: SensorError.notANumber(path: path, text: text.replacing("\u{1b}", with: "?"))) {
      try accelerometer.read()
    }
    try sysfs.write(0, Self.plain.merging(["in_accel_scale": text]) { $1 })
    #expect(throws: SensorError.self) { try Accelerometer.first(root: sysfs.root) }
  }

  @Test(arguments: [
    "", "1, 0, 0", "1, 0, 0; 0, 1, 0", "1, 0, 0; 0, 1, 0; 0, 0", "1, 0, 0; 0, 1, 0; 0, 0, nan",
    "1, 0, 0; 1, 0, 0; 0, 0, 1", "0, 0, 0; 0, 0, 0; 0, 0, 0", "1, 0, 0; 0, 1, 0; 0, 0, 1; 0, 0, 0",
    "a, b, c; d, e, f; g, h, i",
  ])
  func `a mount matrix that is none is said so`(text: String) throws {
    #expect(MountMatrix(text) == nil)
    let sysfs = try Sysfs()
    try sysfs.write(0, Self.plain.merging(["in_mount_matrix": text]) { $1 })
    #expect(throws: SensorError.mountMatrix(path: "\(sysfs.device(0))/in_mount_matrix", text: text)) {
      try Accelerometer.first(root: sysfs.root)
    }
    #expect(try Accelerometer.first(root: sysfs.root, mountMatrix: .identity).mountMatrix == .identity)
  }

  static let turned = "0, 1, 0; -1, 0, 0; 0, 0, 1"

  @Test(arguments: [("243:7", "c243:7"), (nil, "+iio:iio:device4"), ("../etc", "+iio:iio:device4")])
  func `the mount matrix of udev's hardware database goes before the kernel's`(
    number: String?, file: String
  ) throws {
    let sysfs = try Sysfs()
    try sysfs.write(4, Self.plain.merging(["in_mount_matrix": "1, 0, 0; 0, 1, 0; 0, 0, 1"]) { $1 })
    if let number { try sysfs.write(4, ["dev": number]) }
    let other = try sysfs.writeUdev("c1:1", "E:ACCEL_MOUNT_MATRIX=-1, 0, 0; 0, -1, 0; 0, 0, 1")
    #expect(try Accelerometer.first(root: sysfs.root, udev: other).mountMatrix == .identity)
    // As systemd 257 writes such a file.
    let udev = try sysfs.writeUdev(
      file, "I:2291374", "E:NO_ACCEL_MOUNT_MATRIX=1", "E:ACCEL_LOCATION=display", "E:ACCEL_MOUNT_MATRIX=\(Self.turned)",
      "G:systemd", "Q:systemd", "V:1")
    let found = try Accelerometer.first(root: sysfs.root, udev: udev)
    #expect(found.mountMatrix == MountMatrix(Self.turned))
    let sample = try found.read()
    #expect(abs(sample.x - 13 * 0.019163) < 1e-9 && abs(sample.y + 523 * 0.019163) < 1e-9)
    // Another sysfs has nothing to do with this machine's own database.
    #expect(try Accelerometer.first(root: sysfs.root).mountMatrix == .identity)
    #expect(try Accelerometer.first(root: sysfs.root, udev: udev, mountMatrix: .identity).mountMatrix == .identity)
  }

  @Test func `a matrix of udev's that is none leaves it to the kernel, or is said so`() throws {
    let sysfs = try Sysfs()
    try sysfs.write(0, Self.plain)
    let udev = try sysfs.writeUdev("+iio:iio:device0", "E:ACCEL_MOUNT_MATRIX=1, 0, 0; 1, 0, 0; 0, 0, 1")
    #expect(
      throws: SensorError.mountMatrix(path: "\(udev)/+iio:iio:device0", text: "1, 0, 0; 1, 0, 0; 0, 0, 1")
    ) { try Accelerometer.first(root: sysfs.root, udev: udev) }
    try sysfs.write(0, ["mount_matrix": Self.turned])
    #expect(try Accelerometer.first(root: sysfs.root, udev: udev).mountMatrix == MountMatrix(Self.turned))
    // As iio-sensor-proxy takes an empty one: a correction of a wrong kernel.
    _ = try sysfs.writeUdev("+iio:iio:device0", "E:ACCEL_MOUNT_MATRIX=")
    #expect(try Accelerometer.first(root: sysfs.root, udev: udev).mountMatrix == .identity)
    // Nor does an endless one fill memory.
    let path = "\(udev)/+iio:iio:device0"
    try FileManager.default.removeItem(atPath: path)
    try FileManager.default.createSymbolicLink(atPath: path, withDestinationPath: "/dev/zero")
    #expect(try Accelerometer.first(root: sysfs.root, udev: udev).mountMatrix == MountMatrix(Self.turned))
  }

  @Test func `endless files and pipes neither fill memory nor block`() throws {
    let sysfs = try Sysfs()
    try sysfs.write(0, Self.plain)
    let accelerometer = try Accelerometer.first(root: sysfs.root)
    let path = "\(sysfs.device(0))/in_accel_x_raw"
    try FileManager.default.removeItem(atPath: path)
    try FileManager.default.createSymbolicLink(atPath: path, withDestinationPath: "/dev/zero")
    #expect(throws: SensorError.self) { try accelerometer.read() }
    try FileManager.default.removeItem(atPath: path)
    #expect(mkfifo(path, 0o600) == 0)
    #expect(throws: SensorError.notANumber(path: path, text: "")) { try accelerometer.read() }
  }

  @Test func `one that vanishes is said so, for good`() throws {
    let sysfs = try Sysfs()
    try sysfs.write(0, Self.plain)
    let accelerometer = try Accelerometer.first(root: sysfs.root)
    try sysfs.remove(0)
    #expect(throws: SensorError.vanished(device: sysfs.device(0))) { try accelerometer.read() }
    #expect(SensorError.vanished(device: "").isFinal)
  }

  @Test func `the source reports rotations and faults, and continues after temporary ones`() throws {
    let sysfs = try Sysfs()
    try sysfs.write(0, Self.plain)
    let interrupt = try Interrupt()
    let source = try OrientationSensor.open(root: sysfs.root, busAddress: "unix:path=/nonexistent")
    #expect(source.name == "accelerometer bma250")
    #expect(try source.next(interrupt: interrupt) == .leftUp)
    try sysfs.write(0, ["in_accel_x_raw": "0", "in_accel_y_raw": "-520"])
    #expect(try source.next(interrupt: interrupt) == .normal)
    try sysfs.write(0, ["in_accel_x_raw": "nan"])
    let error = #expect(throws: SensorError.self) { try source.next(interrupt: interrupt) }
    #expect(error?.isFinal == false)
    try sysfs.write(0, ["in_accel_x_raw": "0", "in_accel_y_raw": "520"])
    #expect(try source.next(interrupt: interrupt) == .bottomUp)
    try sysfs.remove(0)
    #expect(throws: SensorError.vanished(device: sysfs.device(0))) { try source.next(interrupt: interrupt) }
    interrupt.fire()
    #expect(try source.next(interrupt: interrupt) == nil)
  }
}

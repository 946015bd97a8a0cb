import Glibc
import Platform

/// An accelerometer of the kernel's Industrial I/O subsystem, read through sysfs
/// (`Documentation/ABI/testing/sysfs-bus-iio`).
///
/// Each value is a file that is read again each time. A read waits only for the driver's own bus transfer: a
/// millisecond or two over I²C. So an accelerometer belongs on a thread of its own.
package struct Accelerometer: Sendable {
  /// The device's directory, such as `/sys/bus/iio/devices/iio:device0`.
  package let path: String
  /// The driver's name for the device.
  package let name: String
  /// The sensor's mount matrix.
  package let mountMatrix: MountMatrix
  private let axes: [Axis]

  private struct Axis: Sendable {
    let path: String
    let offset: Double
    let scale: Double
  }

  /// The limit of devices that are examined.
  package static let deviceLimit = 64

  /// Returns the first accelerometer with three axes under `root`, except one in the base of a laptop.
  ///
  /// - Parameters:
  ///   - root: The mount point of sysfs.
  ///   - udev: The directory of udev's database; nil for the usual one with the usual `root`, else for none.
  ///   - mountMatrix: The mount matrix, where neither udev nor the kernel has one.
  /// - Throws: ``SensorError``.
  package static func first(
    root: String = "/sys", udev: String? = nil, mountMatrix: MountMatrix? = nil
  ) throws(SensorError) -> Accelerometer {
    let udev = udev ?? (root == "/sys" ? UdevDatabase.usualDirectory : nil)
    var failure: SensorError?
    for device in devices(root: root) {
      do throws(SensorError) {
        if let found = try Accelerometer(path: device, udev: udev, mountMatrix: mountMatrix) { return found }
      } catch {
        failure = failure ?? error
      }
    }
    throw failure ?? .noAccelerometer(root: root)
  }

  /// Creates the accelerometer with the directory `path`; nil for another device, or for one in the base of a laptop.
  /// The mount matrix is `mountMatrix`, else that of udev's database in `udev`, else the kernel's.
  ///
  /// - Throws: ``SensorError`` for an accelerometer that cannot be used.
  package init?(path: String, udev: String? = nil, mountMatrix: MountMatrix? = nil) throws(SensorError) {
    let present = ["x", "y", "z"].filter { Self.exists("\(path)/in_accel_\($0)_raw") }
    guard !present.isEmpty, try Self.text("\(path)/label") != "accel-base",
      try Self.text("\(path)/location") != "base"
    else { return nil }
    guard present.count == 3 else {
      throw .axes(device: path, missing: ["x", "y", "z"].filter { !present.contains($0) })
    }
    var axes: [Axis] = []
    for axis in present {
      // An attribute of one axis takes precedence over that of all axes.
      func value(_ attribute: String) throws(SensorError) -> Double? {
        if let own = try Self.number("\(path)/in_accel_\(axis)_\(attribute)") { return own }
        return try Self.number("\(path)/in_accel_\(attribute)")
      }
      axes.append(
        Axis(path: "\(path)/in_accel_\(axis)_raw", offset: try value("offset") ?? 0, scale: try value("scale") ?? 1))
    }
    self.path = path
    self.axes = axes
    name = try Self.text("\(path)/name") ?? "unnamed"
    if let mountMatrix {
      self.mountMatrix = mountMatrix
    } else {
      self.mountMatrix = try Self.mountMatrix(in: path, udev: udev)
    }
  }

  /// Returns the current acceleration, in m/s² along the device's axes.
  ///
  /// - Throws: ``SensorError``.
  package func read() throws(SensorError) -> Acceleration {
    var values = (0.0, 0.0, 0.0)
    for (index, axis) in axes.enumerated() {
      guard let raw = try Self.number(axis.path) else { throw .vanished(device: path) }
      let value = (raw + axis.offset) * axis.scale
      switch index {
      case 0: values.0 = value
      case 1: values.1 = value
      default: values.2 = value
      }
    }
    return mountMatrix.applied(to: Acceleration(x: values.0, y: values.1, z: values.2))
  }

  private static func devices(root: String) -> [String] {
    let folder = "\(root)/bus/iio/devices"
    var numbers: [Int] = []
    Directory.forEachName(in: folder) { name in
      guard numbers.count < deviceLimit, name.hasPrefix("iio:device"), let number = Int(name.dropFirst(10)) else {
        return
      }
      numbers.append(number)
    }
    return numbers.sorted().map { "\(folder)/iio:device\($0)" }
  }

  /// Returns the mount matrix of udev's database, else the kernel's. The database corrects wrong kernel values and
  /// takes precedence, as in iio-sensor-proxy (`setup_mount_matrix`).
  private static func mountMatrix(in device: String, udev: String?) throws(SensorError) -> MountMatrix {
    var failure: SensorError?
    if let udev {
      let database = UdevDatabase(directory: udev, device: device, number: try text("\(device)/dev"))
      if let text = try database.property("ACCEL_MOUNT_MATRIX") {
        if text.isEmpty { return .identity }
        if let matrix = MountMatrix(text) { return matrix }
        failure = .mountMatrix(path: database.path, text: AttributeFile.printable(text))
      }
    }
    for name in ["in_accel_mount_matrix", "in_mount_matrix", "mount_matrix"] {
      let path = "\(device)/\(name)"
      guard let text = try text(path) else { continue }
      guard let matrix = MountMatrix(text) else { throw .mountMatrix(path: path, text: AttributeFile.printable(text)) }
      return matrix
    }
    if let failure { throw failure }
    return .identity
  }

  private static func exists(_ path: String) -> Bool { access(path, F_OK) == 0 }

  /// Returns the finite number in a file; nil where the file does not exist or its device is gone.
  private static func number(_ path: String) throws(SensorError) -> Double? {
    guard let text = try text(path) else { return nil }
    guard let value = Number.parse(text), value.isFinite else {
      throw .notANumber(path: path, text: AttributeFile.printable(text))
    }
    return value
  }

  private static func text(_ path: String) throws(SensorError) -> String? {
    do throws(SystemFailure) {
      return try AttributeFile.text(path)
    } catch {
      throw .read(path: path, errorNumber: error.errorNumber)
    }
  }
}

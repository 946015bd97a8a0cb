import Glibc
import Platform

/// udev's data on one device of the IIO subsystem, from its rules and its hardware database (`60-sensor.hwdb`): the
/// file that `udevadm info` reads.
struct UdevDatabase {
  /// The file's path. Its name is the number of the device's node (`c243:0`), or the device's name where it has no node
  /// (`+iio:iio:device0`). The rule is that of systemd's `sd_device_get_device_id`.
  let path: String

  /// udev's directory for the files.
  static let usualDirectory = "/run/udev/data"
  /// The size limit for reading a file, in bytes.
  static let limit = 65_536

  /// - Parameters:
  ///   - directory: the directory of the files.
  ///   - device: the device's directory in sysfs.
  ///   - number: the content of its file `dev`, such as `243:0`; nil where there is none.
  init(directory: String, device: String, number: String?) {
    let isNumber = number.map { !$0.isEmpty && $0.utf8.allSatisfy { (48...58).contains($0) } } ?? false
    let name = device.split(separator: "/").last ?? ""
    path = "\(directory)/" + (isNumber ? "c\(number ?? "")" : "+iio:\(name)")
  }

  /// Returns the value of property `name` (a line `E:NAME=value`); nil where the property or the file does not exist.
  ///
  /// - Throws: ``SensorError/read(path:errorNumber:)``.
  func property(_ name: String) throws(SensorError) -> String? {
    let bytes: [UInt8]
    do throws(SystemFailure) {
      bytes = try FileDescriptor(path, O_RDONLY).read(upTo: Self.limit)
    } catch {
      if error.errorNumber == ENOENT || error.errorNumber == ENOTDIR { return nil }
      throw .read(path: path, errorNumber: error.errorNumber)
    }
    let prefix = "E:\(name)="
    let line = bytes.split(separator: UInt8(ascii: "\n")).first { $0.starts(with: prefix.utf8) }
    return line.map { String(decoding: $0.dropFirst(prefix.utf8.count), as: UTF8.self) }
  }
}

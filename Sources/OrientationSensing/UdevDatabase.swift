import Glibc

/// What udev knows of one device of the IIO subsystem, from its rules and its hardware database
/// (`60-sensor.hwdb`): the file that `udevadm info` reads.
struct UdevDatabase {
  /// The file: named after the number of the device's node (`c243:0`), or after the device where it has none
  /// (`+iio:iio:device0`), as `sd_device_get_device_id` of systemd has it.
  let path: String

  /// Where udev keeps it.
  static let usualDirectory = "/run/udev/data"
  /// How much of a file is read, in bytes.
  static let limit = 65_536

  /// - Parameters:
  ///   - directory: where the files are.
  ///   - device: the device's directory in sysfs.
  ///   - number: what its file `dev` holds, such as `243:0`; nil where there is none.
  init(directory: String, device: String, number: String?) {
    let isNumber = number.map { !$0.isEmpty && $0.utf8.allSatisfy { (48...58).contains($0) } } ?? false
    let name = device.split(separator: "/").last ?? ""
    path = "\(directory)/" + (isNumber ? "c\(number ?? "")" : "+iio:\(name)")
  }

  /// The value of property `name` (a line `E:NAME=value`); nil where it is not there, or there is no file.
  ///
  /// - Throws: ``SensorError/read(path:errorNumber:)``.
  func property(_ name: String) throws(SensorError) -> String? {
    let descriptor = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY)
    guard descriptor >= 0 else {
      if errno == ENOENT || errno == ENOTDIR { return nil }
      throw .read(path: path, errorNumber: errno)
    }
    defer { close(descriptor) }
    var bytes = [UInt8](repeating: 0, count: Self.limit)
    var filled = 0
    while filled < bytes.count {
      let count = bytes.withUnsafeMutableBytes {
        read(descriptor, $0.baseAddress.map { $0 + filled }, $0.count - filled)
      }
      if count < 0, errno == EINTR { continue }
      guard count >= 0 else { throw .read(path: path, errorNumber: errno) }
      if count == 0 { break }
      filled += count
    }
    let prefix = "E:\(name)="
    let line = bytes[..<filled].split(separator: UInt8(ascii: "\n")).first { $0.starts(with: prefix.utf8) }
    return line.map { String(decoding: $0.dropFirst(prefix.utf8.count), as: UTF8.self) }
  }
}

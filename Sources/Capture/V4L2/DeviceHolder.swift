import Glibc
import Platform

/// A process that has a device open.
public struct DeviceHolder: Hashable, Sendable, CustomStringConvertible {
  /// The process's ID (PID).
  public let processID: Int32
  /// The process's name, as in `ps`.
  public let name: String

  /// Creates a holder.
  public init(processID: Int32, name: String) {
    self.processID = processID
    self.name = name
  }

  /// A text such as `ffmpeg (process 1234)`.
  public var description: String { "\(name) (process \(processID))" }

  /// The largest number of processes listed.
  static let limit = 4

  /// Returns the processes that have the device at `path` open, as far as `/proc` shows them to this user; none if
  /// there is no device.
  public static func holders(ofDeviceAt path: String) -> [DeviceHolder] {
    var status = stat()
    guard stat(path, &status) == 0, status.st_mode & S_IFMT == S_IFCHR else { return [] }
    return holders(of: status.st_rdev, except: -1)
  }

  /// Returns the processes that have `device` open, as far as `/proc` shows them to this user. `ownDescriptor` of this
  /// process does not count.
  static func holders(of device: dev_t, except ownDescriptor: CInt) -> [DeviceHolder] {
    let own = getpid()
    var found: [DeviceHolder] = []
    Directory.forEachName(in: "/proc") { entry in
      guard found.count < limit, let process = Int32(entry), process > 0 else { return }
      var holds = false
      Directory.forEachName(in: "/proc/\(entry)/fd") { name in
        guard !holds, let descriptor = Int32(name), process != own || descriptor != ownDescriptor else { return }
        var status = stat()
        guard stat("/proc/\(entry)/fd/\(name)", &status) == 0 else { return }
        holds = status.st_mode & S_IFMT == S_IFCHR && status.st_rdev == device
      }
      if holds { found.append(DeviceHolder(processID: process, name: processName(entry))) }
    }
    return found
  }

  /// Returns the processes that have a socket with one of these inodes open, as far as `/proc` shows them to this user.
  public static func holders(ofSockets inodes: Set<String>) -> [DeviceHolder] {
    let names = Set(inodes.map { "socket:[\($0)]" })
    var found: [DeviceHolder] = []
    Directory.forEachName(in: "/proc") { entry in
      guard found.count < limit, let process = Int32(entry), process > 0 else { return }
      var holds = false
      Directory.forEachName(in: "/proc/\(entry)/fd") { name in
        guard !holds else { return }
        var target = [CChar](repeating: 0, count: 64)
        guard readlink("/proc/\(entry)/fd/\(name)", &target, target.count) > 0 else { return }
        holds = names.contains(String(cBuffer: target))
      }
      if holds { found.append(DeviceHolder(processID: process, name: processName(entry))) }
    }
    return found
  }

  private static func processName(_ process: String) -> String {
    let name = (try? AttributeFile.text("/proc/\(process)/comm")).flatMap { $0 } ?? ""
    return name.isEmpty ? "a program" : DriverText.text(name.utf8)
  }
}

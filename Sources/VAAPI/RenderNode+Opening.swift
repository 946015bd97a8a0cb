import Glibc
import Media
import Platform

extension RenderNode {
  /// Opens the node for reading and writing.
  ///
  /// - Throws: ``EncoderError/unavailable(_:)`` if the file does not exist or is not a render node.
  ///   ``EncoderError/permission(_:)`` if the user has no access; the error names the group that has.
  func open() throws(EncoderError) -> FileDescriptor {
    guard !path.isEmpty, path.utf8.count < Int(PATH_MAX) else {
      throw .unavailable("a render node's path of \(path.utf8.count) bytes: it has 1 to \(PATH_MAX - 1)")
    }
    let descriptor: FileDescriptor
    do throws(SystemFailure) {
      // Non-blocking: a FIFO at this path must not block the program.
      descriptor = try FileDescriptor(path, O_RDWR | O_NONBLOCK)
    } catch {
      throw openingError(error.errorNumber)
    }
    var status = stat()
    guard fstat(descriptor.number, &status) == 0, Self.isRenderNode(status) else {
      throw .unavailable("\(path) is not a render node: choose one of /dev/dri/renderD128 to renderD191")
    }
    return descriptor
  }

  /// Returns `true` if the file is a character device of the DRM subsystem with a render node's minor number. libdrm
  /// makes the same check.
  private static func isRenderNode(_ status: stat) -> Bool {
    guard status.st_mode & S_IFMT == S_IFCHR else { return false }
    // makedev(3)'s layout.
    let device = UInt64(status.st_rdev)
    let major = (device >> 8) & 0xfff | (device >> 32) & ~0xfff
    let minor = device & 0xff | (device >> 12) & ~0xff
    var directory = stat()
    return minor >> 6 == 2 && stat("/sys/dev/char/\(major):\(minor)/device/drm", &directory) == 0
  }

  private func openingError(_ code: CInt) -> EncoderError {
    switch code {
    case ENOENT, ENOTDIR, ENODEV, ENXIO:
      return .unavailable("no render node \(path): is there a GPU, and its kernel driver loaded?")
    case EACCES, EPERM:
      var status = stat()
      guard stat(path, &status) == 0 else {
        return .permission("permission denied on the way to \(path)")
      }
      let user = Self.name(ofUser: geteuid())
      // Membership in a group without access does not help.
      guard status.st_mode & 0o060 == 0o060, status.st_gid != 0 else {
        return .permission(
          "permission denied on \(path), which is of mode \(String(status.st_mode & 0o777, radix: 8)) and group "
            + "\(Self.name(ofGroup: status.st_gid)): give it to the group render with mode 660 (a udev rule)")
      }
      let group = Self.name(ofGroup: status.st_gid)
      return .permission(
        "permission denied on \(path); add the user to the group \(group) (sudo usermod -aG \(group) \(user))")
    default:
      return .unavailable("cannot open \(path): \(String(cString: strerror(code)))")
    }
  }

  /// Returns the group's name, or its number if it has no name.
  private static func name(ofGroup identifier: gid_t) -> String {
    guard let entry = getgrgid(identifier), let name = entry.pointee.gr_name else { return "\(identifier)" }
    return String(cString: name)
  }

  /// Returns the user's name, or its number if it has no name.
  private static func name(ofUser identifier: uid_t) -> String {
    guard let entry = getpwuid(identifier), let name = entry.pointee.pw_name else { return "\(identifier)" }
    return String(cString: name)
  }
}

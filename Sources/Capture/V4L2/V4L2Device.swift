import CLinux
import Glibc
import Platform

/// An open video device: the descriptor, and one function to call it.
final class V4L2Device: @unchecked Sendable {
  // Sendable: nothing changes after `init`, and the kernel serializes the calls.

  /// The path that the device was opened by.
  let path: String
  /// The descriptor; non-blocking.
  var descriptor: CInt { file.number }
  private let file: FileDescriptor
  /// The device's description of itself.
  let identity: DeviceIdentity
  private let number: dev_t

  /// Opens `path` and queries its identity.
  ///
  /// - Throws: ``CaptureError`` if the path is no video device or may not be opened. The device's purpose is not
  ///   checked: see ``requireCapture()``.
  init(path: String) throws(CaptureError) {
    guard !path.utf8.contains(0), path.utf8.count < Int(PATH_MAX) else { throw .noDevice(path: path) }
    var status = stat()
    if stat(path, &status) == 0, status.st_mode & S_IFMT != S_IFCHR { throw .notVideo(path: path) }
    let opened: FileDescriptor
    do throws(SystemFailure) {
      opened = try FileDescriptor(path, O_RDWR | O_NONBLOCK)
    } catch {
      switch error.errorNumber {
      case ENOENT, ENODEV, ENXIO, ENOTDIR: throw .noDevice(path: path)
      case EACCES, EPERM: throw .noPermission(path: path)
      case EBUSY: throw .busy(path: path, holders: DeviceHolder.holders(of: status.st_rdev, except: -1))
      default: throw .refused(path: path, call: "open", errorNumber: error.errorNumber)
      }
    }
    var capability = v4l2_capability()
    guard fstat(opened.number, &status) == 0,
      Self.control(opened.number, nightjar_VIDIOC_QUERYCAP, &capability) == 0
    else { throw .notVideo(path: path) }
    self.path = path
    file = opened
    number = status.st_rdev
    identity = DeviceIdentity(capability)
  }

  /// The type of the device's capture queue, for every call that needs it.
  var bufferType: UInt32 {
    identity.isMultiPlanar
      ? V4L2_BUF_TYPE_VIDEO_CAPTURE_MPLANE.rawValue : V4L2_BUF_TYPE_VIDEO_CAPTURE.rawValue
  }

  /// The device's name for the user: `HD Pro Webcam C920 (/dev/video0)`.
  var name: String { "\(identity.card) (\(path))" }

  /// The device's directory in sysfs, whatever path it was opened by.
  var systemDirectory: String {
    let number = UInt64(number)
    return "/sys/dev/char/\(nightjar_device_major(number)):\(nightjar_device_minor(number))"
  }

  /// Checks that the device delivers pictures.
  ///
  /// - Throws: ``CaptureError/notCapture(path:name:role:)`` if it does not.
  func requireCapture() throws(CaptureError) {
    switch identity.role {
    case .camera, .mediaController: return
    default: throw .notCapture(path: path, name: identity.card, role: identity.role)
    }
  }

  /// Calls `ioctl(2)`. Returns 0, or the `errno` of its failure. A call interrupted by a signal is repeated.
  func control<Argument>(_ request: UInt, _ argument: inout Argument) -> CInt {
    Self.control(descriptor, request, &argument)
  }

  /// Calls `ioctl(2)` and throws on failure.
  ///
  /// - Throws: ``CaptureError``.
  func require<Argument>(_ call: String, _ request: UInt, _ argument: inout Argument) throws(CaptureError) {
    let errorNumber = control(request, &argument)
    guard errorNumber == 0 else { throw failure(call, errorNumber) }
  }

  /// Returns the error for a call that failed with `errorNumber`.
  func failure(_ call: String, _ errorNumber: CInt) -> CaptureError {
    switch errorNumber {
    case ENODEV: .disconnected(path: path)
    case EBUSY: .busy(path: path, holders: DeviceHolder.holders(of: number, except: descriptor))
    default: .refused(path: path, call: call, errorNumber: errorNumber)
    }
  }

  private static func control<Argument>(
    _ descriptor: CInt, _ request: UInt, _ argument: inout Argument
  ) -> CInt {
    do throws(SystemFailure) {
      try withUnsafeMutablePointer(to: &argument) { pointer throws(SystemFailure) in
        _ = try syscall("ioctl") { nightjar_ioctl(descriptor, request, pointer) }
      }
      return 0
    } catch {
      return error.errorNumber
    }
  }
}

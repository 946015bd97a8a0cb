import CLinux
import Glibc
import Media

/// Hears of video devices that come or change, from the kernel and from udev (`NETLINK_KOBJECT_UEVENT`).
///
/// A message is only a reason to look: nothing in it is relied on. Those of anybody but the kernel and root are passed
/// over, and so are those that are longer than any of these.
struct DeviceEventSocket: ~Copyable {
  /// What to `poll` for `POLLIN`.
  let fileDescriptor: CInt
  private let memory: UnsafeMutableRawBufferPointer

  /// The longest message that is read: the kernel's own have at most 2 KiB of variables and a path (`UEVENT_BUFFER_SIZE`),
  /// udev's are longer by its properties.
  static let lengthLimit = 8192
  /// How many messages are read at a time; what is left wakes again.
  private static let burst = 64

  /// A socket that hears everything from here on.
  ///
  /// - Throws: ``SystemFailure`` where there is none to be had, as under a service's `RestrictAddressFamilies=`.
  init() throws(SystemFailure) {
    let descriptor = nightjar_device_events()
    guard descriptor >= 0 else { throw SystemFailure("netlink socket for device events") }
    fileDescriptor = descriptor
    memory = .allocate(byteCount: Self.lengthLimit, alignment: 8)
  }

  deinit {
    close(fileDescriptor)
    memory.deallocate()
  }

  /// Reads what waits; whether any of it says that a video device may be there now.
  borrowing func take() -> Bool {
    var isWorthALook = false
    for _ in 0..<Self.burst {
      var sender = nightjar_device_event_sender()
      let length = nightjar_take_device_event(fileDescriptor, memory.baseAddress, memory.count, &sender)
      guard length >= 0 else {
        switch errno {
        case EINTR: continue
        // More than the kernel could keep: among it may be what is waited for.
        case ENOBUFS: isWorthALook = true
        default: return isWorthALook
        }
        continue
      }
      guard length <= memory.count, Self.isTrusted(sender) else { continue }
      if Self.announcesVideo(UnsafeRawBufferPointer(rebasing: memory[..<length])) { isWorthALook = true }
    }
    return isWorthALook
  }

  /// Whether it is the kernel's, or root's to a group: only root can send to one, but anybody to a socket of his own
  /// user that he knows the number of.
  static func isTrusted(_ sender: nightjar_device_event_sender) -> Bool {
    sender.group != 0 && (sender.port == 0 || sender.user == 0)
  }

  /// Whether the variables of `message` are those of a video device that is not being removed. The kernel's begin with
  /// `ACTION@PATH`, udev's with a header that starts with `libudev` (systemd's `sd-device/device-monitor.c`).
  static func announcesVideo(_ message: UnsafeRawBufferPointer) -> Bool {
    var variables = message[...]
    if message.starts(with: Array("libudev\0".utf8)) {
      // 8 bytes of text, 4 of a number, 4 of the header's length, then where the variables begin, in host order.
      guard message.count >= 24 else { return false }
      let offset = Int(message.loadUnaligned(fromByteOffset: 16, as: UInt32.self))
      guard offset <= message.count else { return false }
      variables = message[offset...]
    }
    var isVideo = false
    for variable in variables.split(separator: 0) {
      if variable.elementsEqual("SUBSYSTEM=video4linux".utf8) { isVideo = true }
      if variable.elementsEqual("ACTION=remove".utf8) || variable.elementsEqual("ACTION=unbind".utf8) { return false }
    }
    return isVideo
  }
}

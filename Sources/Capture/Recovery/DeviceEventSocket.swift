package import CLinux
import Glibc
import Platform

/// Receives events about video devices that appear or change, from the kernel and from udev (`NETLINK_KOBJECT_UEVENT`).
///
/// A message only triggers a search; nothing relies on its contents. Messages from senders other than the kernel and
/// root are ignored. Messages longer than ``lengthLimit`` are ignored too.
package struct DeviceEventSocket: ~Copyable {
  /// The descriptor to `poll` for `POLLIN`.
  var fileDescriptor: CInt { descriptor.number }
  private let descriptor: FileDescriptor
  private let memory: UnsafeMutableRawBufferPointer

  /// The longest message that is read, in bytes. The kernel's messages have at most 2 KiB of variables and a path
  /// (`UEVENT_BUFFER_SIZE`); udev's messages add its properties.
  static let lengthLimit = 8192
  /// The number of messages read at a time. Remaining messages wake the poll again.
  private static let burst = 64

  /// Creates a socket that receives all events from now on.
  ///
  /// - Throws: ``SystemFailure`` if the system offers none, as under a service's `RestrictAddressFamilies=`.
  init() throws(SystemFailure) {
    descriptor = try FileDescriptor(from: "netlink socket for device events", nightjar_device_events)
    memory = .allocate(byteCount: Self.lengthLimit, alignment: 8)
  }

  deinit {
    memory.deallocate()
  }

  /// Reads the waiting messages. Returns `true` if any of them says that a video device may be present.
  borrowing func take() -> Bool {
    var isWorthALook = false
    for _ in 0..<Self.burst {
      var sender = nightjar_device_event_sender()
      let length = uninterrupted {
        nightjar_take_device_event(fileDescriptor, memory.baseAddress, memory.count, &sender)
      }
      guard length >= 0 else {
        guard errno == ENOBUFS else { return isWorthALook }
        // The kernel dropped messages; the expected event may be among them.
        isWorthALook = true
        continue
      }
      guard length <= memory.count, Self.isTrusted(sender) else { continue }
      if Self.announcesVideo(UnsafeRawBufferPointer(rebasing: memory[..<length])) { isWorthALook = true }
    }
    return isWorthALook
  }

  /// Returns `true` if the sender is the kernel, or root to a group. Only root can send to a group, but any process can
  /// send to a socket of its own user whose number it knows.
  package static func isTrusted(_ sender: nightjar_device_event_sender) -> Bool {
    sender.group != 0 && (sender.port == 0 || sender.user == 0)
  }

  /// Returns `true` if the variables of `message` belong to a video device that is not being removed. The kernel's
  /// messages begin with `ACTION@PATH`. udev's messages begin with a header that starts with `libudev` (systemd's
  /// `sd-device/device-monitor.c`).
  package static func announcesVideo(_ message: UnsafeRawBufferPointer) -> Bool {
    var variables = message[...]
    if message.starts(with: Array("libudev\0".utf8)) {
      // 8 bytes of text, 4 of a number, 4 of the header's length, then the offset of the variables, in host order.
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

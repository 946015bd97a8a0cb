import CLinux
import Glibc

/// A USB/IP connection to the kernel's virtual host controller, as the device's side
/// (Documentation/usb/usbip_protocol.rst).
///
/// While it lives the camera is plugged in; its end is a true unplug.
final class USBIPLink {
  /// The command of the host.
  enum Command {
    /// A control transfer, with the data of one that goes to the device.
    case control(sequence: UInt32, SetupPacket, data: [UInt8])
    /// A transfer that the device may fill when it has something.
    case bulkIn(sequence: UInt32, endpoint: UInt32, capacity: Int)
    /// The same in packets, each of which has its time.
    case isochronousIn(IsochronousTransfer)
    /// A transfer that it does not want any more.
    case unlink(sequence: UInt32, of: UInt32)
  }

  /// An isochronous transfer, and where in its memory each packet goes.
  struct IsochronousTransfer {
    let sequence: UInt32
    let packets: [(offset: Int, length: Int)]
  }

  let descriptor: CInt
  private var input: [UInt8] = []
  private var chunk = [UInt8](repeating: 0, count: 8192)
  private static let headerLength = 48
  /// No control transfer of a camera is longer; a host that says otherwise is not believed.
  private static let dataLimit = 4096
  /// The same of packets: the kernel's own limit.
  private static let packetLimit = 1024
  private static let packetHeaderLength = 16

  /// Plugs the camera into port `port` of the SuperSpeed hub.
  init(port: Int) throws(CameraToolError) {
    var ends: [CInt] = [-1, -1]
    guard socketpair(AF_UNIX, CInt(SOCK_STREAM.rawValue) | CInt(SOCK_CLOEXEC.rawValue), 0, &ends) == 0 else {
      throw .system("socketpair", errorNumber: errno)
    }
    // The kernel keeps its end by itself.
    defer { close(ends[1]) }
    Self.keepHubsAwake()
    let controller = "/sys/devices/platform/vhci_hcd.0/attach"
    let file = open(controller, O_WRONLY | O_CLOEXEC)
    // Ports 8 to 15 are those of the SuperSpeed hub; 5 is USB_SPEED_SUPER.
    let words = Array("\(8 + port) \(ends[1]) 65538 5".utf8)
    let written = file < 0 ? -1 : write(file, words, words.count)
    let reason = errno
    if file >= 0 { close(file) }
    guard written == words.count else {
      close(ends[0])
      throw .system("plugging in at \(controller)", errorNumber: reason)
    }
    descriptor = ends[0]
  }

  deinit { close(descriptor) }

  /// The virtual host controller does not wake a hub that sleeps when a camera is unplugged: the kernel would take the
  /// next one that is plugged in for the same, and give up on it.
  private static func keepHubsAwake() {
    for bus in 1...9 {
      let control = open("/sys/devices/platform/vhci_hcd.0/usb\(bus)/power/control", O_WRONLY | O_CLOEXEC)
      guard control >= 0 else { continue }
      _ = write(control, "on", 2)
      close(control)
    }
  }

  /// Takes what has come, without waiting; false where the host has let go.
  func receive(_ body: (Command) -> Void) -> Bool {
    let count = recv(descriptor, &chunk, chunk.count, CInt(MSG_DONTWAIT))
    guard count > 0 else { return count < 0 && (errno == EAGAIN || errno == EINTR) }
    input += chunk[0..<count]
    var start = 0
    while let (command, end) = command(at: start) {
      if let command { body(command) }
      start = end
    }
    input.removeFirst(start)
    return true
  }

  /// The command at `start`, nil for one that no camera knows, and where it ends; nil where it is not whole yet.
  private func command(at start: Int) -> (Command?, end: Int)? {
    let body = start + Self.headerLength
    guard input.count >= body else { return nil }
    func word(_ index: Int) -> UInt32 {
      input[(start + index * 4)..<(start + index * 4 + 4)].reduce(0) { $0 << 8 | UInt32($1) }
    }
    let (sequence, isIn, endpoint) = (word(1), word(3) == 1, word(4))
    switch word(0) {
    case 1:
      let length = Int(word(6))
      let data = isIn ? 0 : min(length, Self.dataLimit)
      guard input.count >= body + data else { return nil }
      if endpoint == USBDescriptors.Number.soundEndpoint {
        let count = min(Int(word(8)), Self.packetLimit)
        guard input.count >= body + count * Self.packetHeaderLength else { return nil }
        // Of an isochronous transfer, each packet's offset, length, actual length and status follow.
        let packets = (0..<count).map { (offset: Int(word(12 + 4 * $0)), length: Int(word(13 + 4 * $0))) }
        let transfer = IsochronousTransfer(sequence: sequence, packets: packets)
        return (.isochronousIn(transfer), body + count * Self.packetHeaderLength)
      }
      if endpoint != 0 { return (.bulkIn(sequence: sequence, endpoint: endpoint, capacity: length), body + data) }
      let setup = SetupPacket(input[(start + 40)..<(start + 48)])
      return (.control(sequence: sequence, setup, data: Array(input[body..<(body + data)])), body + data)
    case 2: return (.unlink(sequence: sequence, of: word(5)), body)
    default: return (nil, body)
    }
  }

  /// A transfer that was filled: a payload's header, and its part of a picture.
  struct FilledTransfer {
    let sequence: UInt32
    let header: [UInt8]
    let payload: UnsafeRawBufferPointer
  }

  /// Ends a transfer: `RET_SUBMIT`.
  ///
  /// - Parameters:
  ///   - status: 0, or minus an error number.
  ///   - taken: The number of bytes of one to the device that were taken.
  ///   - bytes: The bytes that the host gets.
  func complete(_ sequence: UInt32, status: CInt = 0, taken: Int = 0, _ bytes: ArraySlice<UInt8> = []) -> Bool {
    send(Self.header(3, sequence, status, UInt32(taken + bytes.count)) + bytes)
  }

  /// Ends all of them in one call, because calls are what costs in the rig.
  func complete(_ transfers: [FilledTransfer]) -> Bool {
    var headers: [UInt8] = []
    var lengths: [Int] = []
    for transfer in transfers {
      let length = transfer.header.count + transfer.payload.count
      let header = Self.header(3, transfer.sequence, 0, UInt32(length)) + transfer.header
      headers += header
      lengths.append(header.count)
    }
    return headers.withUnsafeBytes { headers in
      var parts: [UnsafeRawBufferPointer] = []
      var start = 0
      for (transfer, length) in zip(transfers, lengths) {
        parts.append(UnsafeRawBufferPointer(rebasing: headers[start..<(start + length)]))
        parts.append(transfer.payload)
        start += length
      }
      return send(parts)
    }
  }

  /// Ends isochronous transfers in one call, each with as many packets as were asked for.
  func complete(_ transfers: [(IsochronousTransfer, [ArraySlice<UInt8>])]) -> Bool {
    var bytes: [UInt8] = []
    for (transfer, packets) in transfers {
      let length = packets.reduce(0) { $0 + $1.count }
      bytes += Self.header(3, transfer.sequence, 0, UInt32(length), packets: UInt32(packets.count))
      for packet in packets { bytes += packet }
      for (place, packet) in zip(transfer.packets, packets) {
        for number in [place.offset, place.length, packet.count, 0] { Self.append(UInt32(number), to: &bytes) }
      }
    }
    return send(bytes)
  }

  /// Answers an unlink: `RET_UNLINK`.
  func unlinked(_ sequence: UInt32, wasPending: Bool) -> Bool {
    send(Self.header(4, sequence, wasPending ? -ECONNRESET : 0, 0))
  }

  private static func header(
    _ command: UInt32, _ sequence: UInt32, _ status: CInt, _ length: UInt32, packets: UInt32 = 0
  ) -> [UInt8] {
    var bytes: [UInt8] = []
    bytes.reserveCapacity(headerLength)
    for word in [command, sequence, 0, 0, 0, UInt32(bitPattern: status), length, 0, packets, 0, 0, 0] {
      append(word, to: &bytes)
    }
    return bytes
  }

  private static func append(_ word: UInt32, to bytes: inout [UInt8]) {
    for shift in [24, 16, 8, 0] { bytes.append(UInt8(truncatingIfNeeded: word >> UInt32(shift))) }
  }

  private func send(_ bytes: [UInt8]) -> Bool { bytes.withUnsafeBytes { send([$0]) } }

  /// Writes all of it; the kernel always reads.
  private func send(_ parts: [UnsafeRawBufferPointer]) -> Bool {
    var vectors = parts.filter { !$0.isEmpty }.map {
      iovec(iov_base: UnsafeMutableRawPointer(mutating: $0.baseAddress), iov_len: $0.count)
    }
    while !vectors.isEmpty {
      var done = writev(descriptor, vectors, CInt(vectors.count))
      if done < 0 {
        guard errno == EINTR else { return false }
        continue
      }
      while let first = vectors.first, done >= first.iov_len {
        done -= first.iov_len
        vectors.removeFirst()
      }
      if !vectors.isEmpty, done > 0 {
        vectors[0].iov_base += done
        vectors[0].iov_len -= done
      }
    }
    return true
  }
}

import CLinux
import Glibc
import Platform
import RTSP

/// Two UDP sockets, for RTP and RTCP, at neighbouring ports of this host or at those of a group. Datagrams of other hosts are ignored.
final class DatagramPair {
  /// The local ports.
  let ports: PortPair
  private let media: FileDescriptor
  private let control: FileDescriptor
  /// The only host whose datagrams count; nil takes those of any host, until the receiver has confirmed a source.
  private var host: IPAddress?
  /// The address for reports; nil until it is known.
  private var reportAddress: PeerAddress?
  /// `true` if the sender has told its port for reports, or a group has one.
  private var hasReportPort = false
  /// `true` if RTCP shares RTP's port.
  private let isMultiplexed: Bool

  /// The attempts to find two free ports.
  private static let attempts = 64
  /// The kernel's memory for datagrams that wait, as far as it grants it.
  private static let bufferBytes: CInt = 4 << 20
  /// The most datagrams that one call takes.
  private static let batch = 256

  /// Opens sockets at an even port and the next one.
  ///
  /// - Parameters:
  ///   - address: The sender; its family decides that of the sockets.
  ///   - port: The port; nil chooses a free one.
  ///   - local: The local address; nil for all interfaces.
  /// - Throws: ``ReceiverError/connection(_:)``.
  init(
    from address: PeerAddress?, port: UInt16? = nil, local: IPAddress? = nil, isMultiplexed: Bool = false
  ) throws(ReceiverError) {
    let place = local ?? .unspecified(isIPv6: address?.address.isIPv6 ?? false)
    (host, self.isMultiplexed) = (address?.address, isMultiplexed)
    for attempt in 1...Self.attempts {
      // Among the kernel's own choices: nobody expects one of these ports.
      let first = port ?? UInt16.random(in: 16_400...30_000) * 2
      do throws(SystemFailure) {
        let opened = try Self.open(place, first)
        control = try Self.open(place, first + 1)
        media = opened
        ports = PortPair(rtp: first, rtcp: first + 1)
        return
      } catch {
        guard port == nil, error.errorNumber == EADDRINUSE || error.errorNumber == EACCES, attempt < Self.attempts
        else {
          throw .connection("UDP port \(first): \(SystemFailure.text(error.errorNumber))")
        }
      }
    }
    throw .connection("no free pair of UDP ports")
  }

  /// Opens sockets at the ports of a group, and joins it. Reports go to the group too.
  ///
  /// - Throws: ``ReceiverError/connection(_:)``.
  init(joining membership: GroupMembership, ports: PortPair, isMultiplexed: Bool = false) throws(ReceiverError) {
    (host, self.isMultiplexed, self.ports) = (membership.sender, isMultiplexed, ports)
    do throws(SystemFailure) {
      let first = try Self.open(membership.group, ports.rtp, interface: membership.interface, isShared: true)
      let second = try Self.open(membership.group, ports.rtcp, interface: membership.interface, isShared: true)
      try membership.join(first)
      try membership.join(second)
      media = first
      control = second
    } catch {
      throw .connection("the group \(membership.group.text): \(SystemFailure.text(error.errorNumber))")
    }
    reportAddress = PeerAddress(
      membership.group, port: isMultiplexed ? ports.rtp : ports.rtcp, interface: membership.interface)
    hasReportPort = true
  }

  private static func open(
    _ address: IPAddress, _ port: UInt16, interface: UInt32 = 0, isShared: Bool = false
  ) throws(SystemFailure) -> FileDescriptor {
    let type = CInt(SOCK_DGRAM.rawValue | SOCK_CLOEXEC.rawValue | SOCK_NONBLOCK.rawValue)
    let made = try FileDescriptor(from: "socket") { socket(address.isIPv6 ? AF_INET6 : AF_INET, type, 0) }
    // Less memory loses datagrams in bursts, and is no failure.
    try? made.set(SOL_SOCKET, SO_RCVBUF, bufferBytes)
    let number = made.number
    // Other receivers of a group on this host have the same port.
    if isShared { try made.set(SOL_SOCKET, SO_REUSEADDR, CInt(1)) }
    try syscall("bind") {
      PeerAddress(address, port: port, interface: interface).withSocketAddress { bind(number, $0, $1) }
    }
    return made
  }

  private static func pointer(_ bytes: UnsafeRawBufferPointer) -> UnsafePointer<sockaddr> {
    bytes.baseAddress.unsafelyUnwrapped.assumingMemoryBound(to: sockaddr.self)
  }

  /// The sockets, to be polled: RTP and RTCP.
  var descriptors: (media: CInt, control: CInt) { (media.number, control.number) }

  /// Sets the server's port for reports.
  func setReportPort(_ port: UInt16, of address: PeerAddress) {
    (reportAddress, hasReportPort) = (address.with(port: port), true)
  }

  /// Passes the datagrams that have come to `body`: `isControl` is `true` for those at the port of RTCP. `body` returns `true` for one
  /// that is a part of the stream: then its sender owns the port, and one that sends anything else does not.
  func receive(
    into memory: UnsafeMutableRawBufferPointer, _ body: (UnsafeRawBufferPointer, _ isControl: Bool) -> Bool
  ) {
    for isControl in [false, true] {
      let number = isControl ? control.number : media.number
      for _ in 0..<Self.batch {
        var storage = sockaddr_storage()
        var length = socklen_t(MemoryLayout<sockaddr_storage>.size)
        let count = withUnsafeMutableBytes(of: &storage) { bytes in
          recvfrom(
            number, memory.baseAddress, memory.count, 0,
            bytes.baseAddress?.assumingMemoryBound(to: sockaddr.self), &length)
        }
        guard count >= 0 else { break }
        let sender = withUnsafeBytes(of: storage) { PeerAddress(Self.pointer($0), count: Int(length)) }
        guard count > 0, let sender, host == nil || sender.address == host else { continue }
        if body(UnsafeRawBufferPointer(rebasing: memory[..<count]), isControl), !isControl { follow(sender) }
      }
    }
  }

  private func follow(_ sender: PeerAddress) {
    host = sender.address
    // Without a better knowledge, reports go beside the port that the packets come from, also after the sender began anew.
    guard !hasReportPort, sender.port < .max else { return }
    reportAddress = isMultiplexed ? sender : sender.with(port: sender.port + 1)
  }

  /// Sends a report or a request; does nothing while the sender is not known.
  func send(_ bytes: UnsafeRawBufferPointer) {
    guard let reportAddress else { return }
    let number = isMultiplexed ? media.number : control.number
    // A report that is lost is followed by another.
    _ = reportAddress.withSocketAddress { sendto(number, bytes.baseAddress, bytes.count, 0, $0, $1) }
  }
}

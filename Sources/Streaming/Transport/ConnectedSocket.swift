import CLinux
import Glibc
package import Platform

/// A UDP socket that is connected to one viewer's port. Connected, so that the kernel looks the route up once, reports
/// that no program listens (`ECONNREFUSED`), and delivers datagrams of that viewer alone.
package struct ConnectedSocket: ~Copyable {
  private let descriptor: FileDescriptor
  /// The number of `descriptor`, read for each packet.
  package let fileDescriptor: CInt
  private let address: SocketAddress
  private let multicast: MulticastOptions
  /// `true` if the route was lost since the options were set: the interface may be another by now.
  private var isLost = false
  private(set) var isConnected = false
  private var nextAttempt = Instant.zero
  /// The `errno` of the last attempt to connect; 0 where it succeeded.
  private(set) var lastRefusal: CInt = 0

  /// The interval of attempts for a destination without a route.
  static let retryInterval = Duration.milliseconds(200)
  /// The requested size of the socket's buffer: a key frame at 20 Mbit/s. The kernel gives as much as it allows.
  static let sendBufferBytes: CInt = 2 << 20
  /// The traffic class: multimedia conferencing (RFC 4594 section 4.3), assured forwarding 41, in the upper six bits.
  static let trafficClass: CInt = 34 << 2

  /// The use of a socket.
  package enum Purpose {
    /// RTP, and RTCP too where they share the port.
    case media(withControl: Bool)
    /// RTCP.
    case control

    fileprivate var isControl: Bool { if case .control = self { true } else { false } }
    fileprivate var isRead: Bool {
      switch self {
      case .media(let withControl): withControl
      case .control: true
      }
    }
  }

  /// Creates a socket of `ports` that is to be connected to `address`.
  ///
  /// - Parameter multicast: the options for packets to a group; without meaning for other addresses.
  /// - Throws: ``SystemFailure``. A missing route is no error: it may come later.
  package init(
    to address: SocketAddress, timeToLive: UInt8?, _ purpose: Purpose, from ports: LocalPorts,
    multicast: MulticastOptions = MulticastOptions()
  ) throws(SystemFailure) {
    let socket = try ports.socket(control: purpose.isControl)
    // Not every kernel grants these options. Without them there is more waiting, or no precedence on the way.
    try? socket.set(SOL_SOCKET, SO_SNDBUF, purpose.isControl ? 65_536 : Self.sendBufferBytes)
    if !purpose.isRead { try? socket.set(SOL_SOCKET, SO_RCVBUF, CInt(0)) }
    let level = address.isIPv6 ? CInt(IPPROTO_IPV6) : CInt(IPPROTO_IP)
    try? socket.set(level, address.isIPv6 ? IPV6_TCLASS : IP_TOS, Self.trafficClass)
    if let timeToLive {
      let (unicast, multicast) =
        address.isIPv6 ? (IPV6_UNICAST_HOPS, IPV6_MULTICAST_HOPS) : (IP_TTL, IP_MULTICAST_TTL)
      try socket.set(level, address.isMulticast ? multicast : unicast, CInt(timeToLive), "ttl \(timeToLive)")
    }
    if address.isMulticast { try multicast.apply(to: socket, isIPv6: address.isIPv6) }
    self.address = address
    self.multicast = multicast
    fileDescriptor = socket.number
    descriptor = socket
  }

  /// This side's address as the other side sees it; nil while there is no route.
  var localAddress: SocketAddress? { isConnected ? SocketAddress(localOf: fileDescriptor) : nil }

  /// Connects if that is not done yet. Returns `false`, with ``lastRefusal``, if there is no route now.
  mutating func connectIfNeeded() -> Bool {
    if isConnected { return true }
    let now = Instant.now()
    guard now >= nextAttempt else { return false }
    if isLost, address.isMulticast { try? multicast.refreshed().apply(to: descriptor, isIPv6: address.isIPv6) }
    if address.withPointer({ connect(fileDescriptor, $0, address.length) }) == 0 {
      isConnected = true
      isLost = false
      lastRefusal = 0
      return true
    }
    lastRefusal = errno
    nextAttempt = now + Self.retryInterval
    return false
  }

  /// Forgets the route and this side's address, either of which may be gone. The next ``connectIfNeeded()`` looks for
  /// both again.
  mutating func disconnect(_ errorNumber: CInt) {
    var none = sockaddr()
    none.sa_family = sa_family_t(AF_UNSPEC)
    _ = connect(fileDescriptor, &none, socklen_t(MemoryLayout<sockaddr>.size))
    isConnected = false
    isLost = true
    lastRefusal = errorNumber
    nextAttempt = .now() + Self.retryInterval
  }
}

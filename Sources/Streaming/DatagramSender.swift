import CLinux
import Glibc
import Media
import RTP

/// What became of the packets of one access unit at one destination.
struct SendResult {
  /// Packets that the kernel took.
  var packets = 0
  /// Their bytes, RTP headers included.
  var bytes = 0
  /// Packets that it did not take.
  var lost = 0
  /// The `errno` of the last refusal; 0 where there was none.
  var errorNumber: CInt = 0
  /// Whether some were lost because the way out took them too slowly: others will get through.
  var isCongested = false
}

/// A connected UDP socket to one destination. Connected, so that the kernel looks the route up once, and says
/// when nobody listens (`ECONNREFUSED`).
struct DatagramSocket: ~Copyable {
  private let fileDescriptor: CInt
  private let address: SocketAddress
  private var isConnected = false
  private var nextAttempt = MediaTime.zero
  private var lastRefusal: CInt = 0

  /// How long a send waits for room in the socket's buffer while none is made, before the rest of the frame is given
  /// up. A way out that is merely slower than the buffer is large makes some all the time.
  static let patience = MediaTime(nanoseconds: 10_000_000)
  /// How often a destination without a route is tried again.
  static let retryInterval = MediaTime(nanoseconds: 1_000_000_000)
  /// What is asked for as the socket's buffer: a key frame at 20 Mbit/s. The kernel gives what it allows.
  static let sendBufferBytes: CInt = 2 << 20

  /// A socket for `destination` at `address`.
  ///
  /// - Throws: ``StreamDestinationError/socket(_:reason:)``. A missing route is no error: it may come later.
  init(to destination: StreamDestination, at address: SocketAddress) throws(StreamDestinationError) {
    self.address = address
    fileDescriptor = nightjar_udp_socket(address.family)
    guard fileDescriptor >= 0 else {
      throw .socket(destination.description, reason: SystemFailure.text(errno))
    }
    // Not every kernel grants it; a smaller buffer only means more waiting.
    _ = Self.setOption(fileDescriptor, SOL_SOCKET, SO_SNDBUF, Self.sendBufferBytes)
    if let timeToLive = destination.timeToLive {
      let (level, unicast, multicast) =
        address.isIPv6
        ? (CInt(IPPROTO_IPV6), IPV6_UNICAST_HOPS, IPV6_MULTICAST_HOPS)
        : (CInt(IPPROTO_IP), IP_TTL, IP_MULTICAST_TTL)
      let option = address.isMulticast ? multicast : unicast
      guard Self.setOption(fileDescriptor, level, option, CInt(timeToLive)) else {
        let reason = SystemFailure.text(errno)
        close(fileDescriptor)
        throw .socket(destination.description, reason: "ttl \(timeToLive): \(reason)")
      }
    }
  }

  deinit {
    close(fileDescriptor)
  }

  /// Sends all `messages`, waiting no longer than `budget` for room; what the network refuses is counted, never thrown.
  mutating func send(
    _ messages: UnsafeMutableBufferPointer<nightjar_message>, within budget: MediaTime
  ) -> SendResult {
    var result = SendResult()
    guard connectIfNeeded(&result.errorNumber) else {
      result.lost = messages.count
      return result
    }
    var index = 0
    /// Both from the first refusal for want of room; the first is moved on by each success.
    var stallLimit: MediaTime?
    var deadline: MediaTime?
    var refusals = 0
    while index < messages.count {
      let sent = nightjar_send_messages(
        fileDescriptor, messages.baseAddress.unsafelyUnwrapped + index, UInt32(min(1024, messages.count - index)))
      if sent > 0 {
        for message in messages[index..<(index + Int(sent))] { result.bytes += Int(message.sent) }
        result.packets += Int(sent)
        index += Int(sent)
        refusals = 0
        stallLimit = nil
        continue
      }
      let error = errno
      switch error {
      case EINTR:
        continue
      case ECONNREFUSED where refusals == 0:
        // The answer to an earlier packet, told on this one, which was not sent: send it again.
        result.errorNumber = error
        refusals += 1
      case EAGAIN, ENOBUFS:
        let now = MediaTime.now()
        let limit = (stall: stallLimit ?? now + Self.patience, whole: deadline ?? now + budget)
        (stallLimit, deadline) = (limit.stall, limit.whole)
        guard waitForRoom(until: min(limit.stall, limit.whole)) else {
          result.isCongested = true
          result.errorNumber = error
          result.lost += messages.count - index
          return result
        }
      case EMSGSIZE, ECONNREFUSED:
        // This packet's fault alone, or a refusal right after a refusal: go on with the next.
        result.errorNumber = error
        result.lost += 1
        index += 1
        refusals = 0
      default:
        // No route, no permission, interface gone: the rest of the frame would fail alike.
        result.errorNumber = error
        result.lost += messages.count - index
        return result
      }
    }
    return result
  }

  private mutating func connectIfNeeded(_ errorNumber: inout CInt) -> Bool {
    if isConnected { return true }
    let now = MediaTime.now()
    guard now >= nextAttempt else {
      errorNumber = lastRefusal
      return false
    }
    let result = address.withPointer { connect(fileDescriptor, $0, address.length) }
    if result == 0 {
      isConnected = true
      return true
    }
    lastRefusal = errno
    errorNumber = lastRefusal
    nextAttempt = now + Self.retryInterval
    return false
  }

  /// Waits until the socket takes more. `ENOBUFS` comes from the interface's queue, for which there is no event, so
  /// the wait is short and the send tried again.
  private func waitForRoom(until limit: MediaTime) -> Bool {
    let rest = limit - .now()
    guard rest > .zero else { return false }
    var descriptor = pollfd(fd: fileDescriptor, events: Int16(POLLOUT), revents: 0)
    _ = nightjar_poll(&descriptor, 1, min(rest.nanoseconds, 1_000_000))
    if descriptor.revents & Int16(POLLOUT) != 0 { usleep(100) }
    return true
  }

  private static func setOption(_ socket: CInt, _ level: CInt, _ option: CInt, _ value: CInt) -> Bool {
    var value = value
    return setsockopt(socket, level, option, &value, socklen_t(MemoryLayout<CInt>.size)) == 0
  }
}

/// The packets of one access unit as the kernel takes them; made once and sent to every destination.
struct MessageVector: ~Copyable {
  private var messages: UnsafeMutableBufferPointer<nightjar_message>
  private var vectors: UnsafeMutableBufferPointer<iovec>
  private var count = 0

  /// Room for `capacity` packets; more is made where an access unit needs it, and kept.
  init(capacity: Int = 256) {
    messages = .allocate(capacity: capacity)
    vectors = .allocate(capacity: capacity * 2)
  }

  deinit {
    messages.deallocate()
    vectors.deallocate()
  }

  /// Points at every packet of `batch`, whose bytes must stay until the last send.
  mutating func fill(from batch: PacketBatch) {
    if batch.count > messages.count { grow(to: batch.count) }
    count = batch.count
    for index in 0..<count {
      let packet = batch[index]
      vectors[index * 2] = iovec(
        iov_base: UnsafeMutableRawPointer(mutating: packet.header.baseAddress), iov_len: packet.header.count)
      vectors[index * 2 + 1] = iovec(
        iov_base: UnsafeMutableRawPointer(mutating: packet.payload.baseAddress), iov_len: packet.payload.count)
      var message = nightjar_message()
      message.header.msg_iov = vectors.baseAddress.map { $0 + index * 2 }
      message.header.msg_iovlen = packet.payload.isEmpty ? 1 : 2
      messages[index] = message
    }
  }

  /// The filled messages.
  var filled: UnsafeMutableBufferPointer<nightjar_message> {
    UnsafeMutableBufferPointer(rebasing: messages[..<count])
  }

  private mutating func grow(to needed: Int) {
    let capacity = max(needed, messages.count * 2)
    messages.deallocate()
    vectors.deallocate()
    messages = .allocate(capacity: capacity)
    vectors = .allocate(capacity: capacity * 2)
  }
}

import CLinux
import Foundation
import RTP
import TestSupport
import Testing

/// A UDP socket of a test's own, with what the kernel knows of each datagram.
final class TestSocket: @unchecked Sendable {
  // Sendable: a descriptor, which the kernel guards.

  /// A datagram and how it came.
  struct Datagram {
    let bytes: [UInt8]
    /// When the kernel got it, by `CLOCK_REALTIME`, in nanoseconds.
    let arrival: Int64
    /// The traffic class: DSCP and ECN.
    let trafficClass: UInt8?
    /// The port that it came from.
    let port: UInt16
  }

  let port: UInt16
  private let descriptor: Int32
  private let family: Int32

  /// Binds `port` of this machine.
  init(port: UInt16, family: Int32 = AF_INET) throws {
    self.port = port
    self.family = family
    descriptor = socket(family, Int32(SOCK_DGRAM.rawValue), 0)
    try #require(descriptor >= 0)
    var one: Int32 = 1
    var size: Int32 = 8 << 20
    let length = socklen_t(MemoryLayout<Int32>.size)
    // Beyond the system's limit where that is allowed: a busy host lets a test wait while its packets come.
    if setsockopt(descriptor, SOL_SOCKET, SO_RCVBUFFORCE, &size, length) != 0 {
      setsockopt(descriptor, SOL_SOCKET, SO_RCVBUF, &size, length)
    }
    setsockopt(descriptor, SOL_SOCKET, SO_TIMESTAMPNS, &one, length)
    if family == AF_INET6 {
      setsockopt(descriptor, Int32(IPPROTO_IPV6), IPV6_RECVTCLASS, &one, length)
    } else {
      setsockopt(descriptor, Int32(IPPROTO_IP), IP_RECVTOS, &one, length)
    }
    let result = Self.withAddress(family, port) { bind(descriptor, $0, $1) }
    guard result == 0 else { throw CocoaError(.fileReadNoPermission) }
  }

  deinit { close(descriptor) }

  /// Two of them: RTP's and RTCP's.
  static func pair(family: Int32 = AF_INET) throws -> (media: TestSocket, control: TestSocket) {
    let port = try UDPPort.free()
    return (try TestSocket(port: port, family: family), try TestSocket(port: port + 1, family: family))
  }

  private static func withAddress<R>(
    _ family: Int32, _ port: UInt16, _ body: (UnsafePointer<sockaddr>, socklen_t) -> R
  ) -> R {
    guard family == AF_INET6 else { return withLoopbackAddress(port, body) }
    var address = sockaddr_in6()
    address.sin6_family = sa_family_t(AF_INET6)
    address.sin6_port = port.bigEndian
    address.sin6_addr = in6addr_loopback
    return withUnsafePointer(to: address) {
      $0.withMemoryRebound(to: sockaddr.self, capacity: 1) { body($0, socklen_t(MemoryLayout<sockaddr_in6>.size)) }
    }
  }

  /// Sends a datagram to a port of this machine.
  func send(_ bytes: [UInt8], to port: UInt16) {
    _ = Self.withAddress(family, port) { sendto(descriptor, bytes, bytes.count, Int32(MSG_DONTWAIT), $0, $1) }
  }

  /// The next datagram; nil where none comes within `seconds`.
  func next(within seconds: Double = 20) -> Datagram? {
    var item = pollfd(fd: descriptor, events: Int16(POLLIN), revents: 0)
    guard poll(&item, 1, Int32(seconds * 1000)) == 1 else { return nil }
    var bytes = [UInt8](repeating: 0, count: 65_536)
    var control = [UInt64](repeating: 0, count: 64)
    var peer = sockaddr_in6()
    var message = msghdr()
    let count = bytes.withUnsafeMutableBytes { bytes in
      control.withUnsafeMutableBytes { control in
        withUnsafeMutablePointer(to: &peer) { peer in
          var vector = iovec(iov_base: bytes.baseAddress, iov_len: bytes.count)
          return withUnsafeMutablePointer(to: &vector) { vector in
            message.msg_iov = vector
            message.msg_iovlen = 1
            message.msg_control = control.baseAddress
            message.msg_controllen = control.count
            message.msg_name = UnsafeMutableRawPointer(peer)
            message.msg_namelen = socklen_t(MemoryLayout<sockaddr_in6>.size)
            return recvmsg(descriptor, &message, 0)
          }
        }
      }
    }
    guard count >= 0 else { return nil }
    var arrival: Int64 = 0
    var trafficClass: UInt8?
    control.withUnsafeBytes { control in
      // Each is a length, a level and a type before its data, aligned to eight bytes.
      var index = 0
      while index + 16 <= message.msg_controllen {
        let length = control.load(fromByteOffset: index, as: Int.self)
        guard length >= 16 else { break }
        let level = control.load(fromByteOffset: index + 8, as: Int32.self)
        let type = control.load(fromByteOffset: index + 12, as: Int32.self)
        if level == SOL_SOCKET, type == SO_TIMESTAMPNS {
          arrival =
            control.load(fromByteOffset: index + 16, as: Int64.self) * 1_000_000_000
            + control.load(fromByteOffset: index + 24, as: Int64.self)
        } else if (level == Int32(IPPROTO_IP) && type == IP_TOS)
          || (level == Int32(IPPROTO_IPV6) && type == IPV6_TCLASS)
        {
          trafficClass = control[index + 16]
        }
        index += (length + 7) & ~7
      }
    }
    // The port is at the same place in both families.
    return Datagram(
      bytes: Array(bytes[..<count]), arrival: arrival, trafficClass: trafficClass,
      port: UInt16(bigEndian: peer.sin6_port))
  }

  /// All that has come, and comes until nothing does for `seconds`, at most `limit`.
  func drain(quiet seconds: Double = 0.3, limit: Int = 100_000) -> [Datagram] {
    var all: [Datagram] = []
    while all.count < limit, let datagram = next(within: seconds) { all.append(datagram) }
    return all
  }

  /// The first datagram that `condition` holds for; nil where none comes within `seconds`.
  func first(within seconds: Double = 30, where condition: ([UInt8]) throws -> Bool) rethrows -> Datagram? {
    let deadline = Date(timeIntervalSinceNow: seconds)
    while Date() < deadline {
      guard let datagram = next(within: max(0, deadline.timeIntervalSinceNow)) else { return nil }
      if try condition(datagram.bytes) { return datagram }
    }
    return nil
  }
}

extension [UInt8] {
  /// The big-endian number at `index`.
  func number(at index: Int, bytes: Int) -> UInt64 {
    self[index..<index + bytes].reduce(0) { $0 << 8 | UInt64($1) }
  }

  var rtpSequenceNumber: UInt16 { UInt16(number(at: 2, bytes: 2)) }
  var rtpTimestamp: UInt32 { UInt32(number(at: 4, bytes: 4)) }
  var rtpSource: UInt32 { UInt32(number(at: 8, bytes: 4)) }
  /// `true` if it has the beginning of an IDR slice, or all of it (RFC 6184 section 5.8).
  var isRTPKeyFrame: Bool {
    guard count > 13 else { return false }
    return self[12] & 31 == 5 || (self[12] & 31 == 28 && self[13] & 0x9f == 0x85)
  }
  /// The type of each packet of a compound RTCP one, and where it begins.
  var rtcpPackets: [(type: UInt8, start: Int)] {
    var packets: [(UInt8, Int)] = []
    var index = 0
    while index + 4 <= count {
      packets.append((self[index + 1], index))
      index += 4 * (Int(number(at: index + 2, bytes: 2)) + 1)
    }
    return index == count ? packets : []
  }
}

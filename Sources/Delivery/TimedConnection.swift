import CLinux
import Glibc
import Platform

/// A TCP connection whose every call ends by its deadline, or once the program stops.
struct TimedConnection: ~Copyable {
  private let socket: FileDescriptor
  private let deadline: Instant
  private let stop: CInt

  /// Connects to `address`, until `limit` at most. Later calls end by `deadline`.
  ///
  /// - Throws: ``ExchangeError``.
  init(_ address: ResolvedAddress, limit: Instant, deadline: Instant, stop: CInt) throws(ExchangeError) {
    socket = try Self.connected(address, limit: min(limit, deadline), stop: stop)
    (self.deadline, self.stop) = (deadline, stop)
  }

  private static func connected(
    _ address: ResolvedAddress, limit: Instant, stop: CInt
  ) throws(ExchangeError) -> FileDescriptor {
    let type = CInt(SOCK_STREAM.rawValue | SOCK_CLOEXEC.rawValue | SOCK_NONBLOCK.rawValue)
    let number = Glibc.socket(address.isIPv6 ? AF_INET6 : AF_INET, type, 0)
    guard number >= 0 else { throw .system("socket: \(SystemFailure.text(errno))") }
    let made = FileDescriptor(owning: number)
    let result = address.bytes.withUnsafeBytes { bytes in
      bytes.baseAddress.map { connect(number, $0.assumingMemoryBound(to: sockaddr.self), socklen_t(bytes.count)) } ?? -1
    }
    if result == 0 { return made }
    guard errno == EINPROGRESS || errno == EINTR else { throw .system("connect: \(SystemFailure.text(errno))") }
    try wait(number, Int16(POLLOUT), until: limit, stop, "it does not take the connection")
    var (error, size): (CInt, socklen_t) = (0, 4)
    getsockopt(number, SOL_SOCKET, SO_ERROR, &error, &size)
    guard error == 0 else { throw .system("connect: \(SystemFailure.text(error))") }
    return made
  }

  /// Sends all of `bytes`.
  ///
  /// - Throws: ``ExchangeError``.
  borrowing func send(_ bytes: [UInt8]) throws(ExchangeError) {
    var sent = 0
    while sent < bytes.count {
      let number = socket.number
      let count = bytes[sent...].withUnsafeBytes { nightjar_send_bytes(number, $0.baseAddress, $0.count) }
      if count > 0 {
        sent += count
      } else if errno == EAGAIN || errno == EINTR {
        try Self.wait(socket.number, Int16(POLLOUT), until: deadline, stop, "it reads nothing")
      } else {
        throw .system("send: \(SystemFailure.text(errno))")
      }
    }
  }

  /// Returns the next bytes, at most 4096; none at the end.
  ///
  /// - Throws: ``ExchangeError``.
  borrowing func receive(until limit: Instant? = nil) throws(ExchangeError) -> [UInt8] {
    var memory = [UInt8](repeating: 0, count: 4096)
    while true {
      // Before each read: what comes without a pause ends by the deadline as well.
      try Self.wait(
        socket.number, Int16(POLLIN), until: min(limit ?? deadline, deadline), stop, "it does not answer")
      let count = nightjar_receive_bytes(socket.number, &memory, memory.count)
      if count >= 0 { return Array(memory[..<count]) }
      guard errno == EAGAIN || errno == EINTR else { throw .system("recv: \(SystemFailure.text(errno))") }
    }
  }

  private static func wait(
    _ socket: CInt, _ events: Int16, until deadline: Instant, _ stop: CInt, _ what: String
  ) throws(ExchangeError) {
    var polled = [pollfd(fd: socket, events: events, revents: 0), pollfd(fd: stop, events: Int16(POLLIN), revents: 0)]
    while true {
      let rest = (deadline - .now()).nanoseconds
      guard rest > 0 else { throw .time(what) }
      let result = nightjar_poll(&polled, 2, rest)
      if result > 0, polled[1].revents != 0 { throw .stopped }
      if result > 0 { return }
    }
  }
}

package import Glibc
import Media
import Platform

/// Lends the address of a port of 127.0.0.1 to `body`, as system calls take it.
package func withLoopbackAddress<Result>(
  _ port: UInt16, _ body: (UnsafePointer<sockaddr>, socklen_t) throws -> Result
) rethrows -> Result {
  var address = sockaddr_in()
  address.sin_family = sa_family_t(AF_INET)
  address.sin_port = port.bigEndian
  address.sin_addr.s_addr = UInt32(0x7f00_0001).bigEndian
  return try withUnsafePointer(to: &address) {
    try $0.withMemoryRebound(to: sockaddr.self, capacity: 1) {
      try body($0, socklen_t(MemoryLayout<sockaddr_in>.size))
    }
  }
}

/// `true` if this machine has IPv6. A container or a kernel may be without it.
package let hasIPv6: Bool = {
  let socket = Glibc.socket(AF_INET6, Int32(SOCK_STREAM.rawValue), 0)
  guard socket >= 0 else { return false }
  defer { close(socket) }
  var address = sockaddr_in6()
  address.sin6_family = sa_family_t(AF_INET6)
  address.sin6_addr = in6addr_loopback
  let result = withUnsafePointer(to: address) {
    $0.withMemoryRebound(to: sockaddr.self, capacity: 1) {
      bind(socket, $0, socklen_t(MemoryLayout<sockaddr_in6>.size))
    }
  }
  return result == 0
}()

/// Lets a socket keep as much as the kernel allows until somebody reads it.
func enlargeReceiveBuffer(of socket: Int32) {
  var size: Int32 = 8 << 20
  let length = socklen_t(MemoryLayout<Int32>.size)
  // Root's may be larger than others' may.
  if setsockopt(socket, SOL_SOCKET, SO_RCVBUFFORCE, &size, length) != 0 {
    setsockopt(socket, SOL_SOCKET, SO_RCVBUF, &size, length)
  }
}

/// A UDP socket on a port of 127.0.0.1 that keeps as much as the kernel allows. A receive from it ends after 0.2 s, so that a
/// thread sees when it is to end. Whoever asked closes it.
package func loopbackSocket(port: UInt16) throws -> Int32 {
  let socket = Glibc.socket(AF_INET, Int32(SOCK_DGRAM.rawValue), 0)
  enlargeReceiveBuffer(of: socket)
  var patience = timeval(tv_sec: 0, tv_usec: 200_000)
  setsockopt(socket, SOL_SOCKET, SO_RCVTIMEO, &patience, socklen_t(MemoryLayout<timeval>.size))
  guard withLoopbackAddress(port, { bind(socket, $0, $1) }) == 0 else {
    let failure = SystemFailure("bind to 127.0.0.1 port \(port)")
    close(socket)
    throw failure
  }
  return socket
}

/// A TCP connection to a port of 127.0.0.1; nil where none is accepted. Whoever asked closes it.
package func loopbackConnection(port: UInt16) -> Int32? {
  let made = Glibc.socket(AF_INET, Int32(SOCK_STREAM.rawValue), 0)
  guard withLoopbackAddress(port, { connect(made, $0, $1) }) != 0 else { return made }
  close(made)
  return nil
}

/// A TCP socket that listens on a free port of 127.0.0.1. Whoever asked closes it.
package func loopbackListener(backlog: Int32) throws -> (socket: Int32, port: UInt16) {
  let socket = try syscall("socket") { Glibc.socket(AF_INET, Int32(SOCK_STREAM.rawValue), 0) }
  try syscall("bind") { withLoopbackAddress(0) { bind(socket, $0, $1) } }
  try syscall("listen") { listen(socket, backlog) }
  var address = sockaddr_in()
  var length = socklen_t(MemoryLayout<sockaddr_in>.size)
  try withUnsafeMutablePointer(to: &address) { address in
    try address.withMemoryRebound(to: sockaddr.self, capacity: 1) { address in
      _ = try syscall("getsockname") { getsockname(socket, address, &length) }
    }
  }
  return (socket, UInt16(bigEndian: address.sin_port))
}

import Glibc
import Media
import Platform

/// A UDP socket on a port of 127.0.0.1 that keeps as much as the kernel allows. A receive from it ends after 0.2 s, so that a
/// thread sees when it is to end. Whoever asked closes it.
package func loopbackSocket(port: UInt16) throws -> Int32 {
  let socket = Glibc.socket(AF_INET, Int32(SOCK_DGRAM.rawValue), 0)
  var size: Int32 = 8 << 20
  setsockopt(socket, SOL_SOCKET, SO_RCVBUF, &size, socklen_t(MemoryLayout<Int32>.size))
  var patience = timeval(tv_sec: 0, tv_usec: 200_000)
  setsockopt(socket, SOL_SOCKET, SO_RCVTIMEO, &patience, socklen_t(MemoryLayout<timeval>.size))
  var address = sockaddr_in()
  address.sin_family = sa_family_t(AF_INET)
  address.sin_port = port.bigEndian
  address.sin_addr.s_addr = UInt32(0x7f00_0001).bigEndian
  let result = withUnsafePointer(to: &address) {
    $0.withMemoryRebound(to: sockaddr.self, capacity: 1) {
      bind(socket, $0, socklen_t(MemoryLayout<sockaddr_in>.size))
    }
  }
  guard result == 0 else {
    let failure = SystemFailure("bind to 127.0.0.1 port \(port)")
    close(socket)
    throw failure
  }
  return socket
}

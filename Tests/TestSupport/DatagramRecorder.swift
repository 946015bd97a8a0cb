public import Foundation

/// Listens on a UDP port of this machine and keeps what arrives.
public final class DatagramRecorder: @unchecked Sendable {
  // Sendable: what is mutable is touched under the lock.

  /// The port.
  public let port: UInt16
  private let socket: Int32
  private let lock = NSLock()
  private var datagrams: [Data] = []
  private var isEnding = false
  private let ended = DispatchSemaphore(value: 0)

  /// Begins to listen.
  public init() throws {
    port = try UDPPort.free()
    socket = Glibc.socket(AF_INET, Int32(SOCK_DGRAM.rawValue), 0)
    // As much as the kernel allows; and a wait that ends, so that the thread sees the end.
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
    guard result == 0 else { throw CocoaError(.fileReadNoPermission) }
    Thread { [self] in record() }.start()
  }

  private func record() {
    var buffer = [UInt8](repeating: 0, count: 65_536)
    while true {
      let count = recv(socket, &buffer, buffer.count, 0)
      let isDone = lock.withLock { () -> Bool in
        if count > 0 { datagrams.append(Data(buffer[..<count])) }
        return count <= 0 && isEnding
      }
      if isDone { break }
    }
    close(socket)
    ended.signal()
  }

  /// What has arrived so far.
  public var count: Int { lock.withLock { datagrams.count } }

  /// Waits until nothing more arrives, and ends.
  public func finish() -> [Data] {
    lock.withLock { isEnding = true }
    ended.wait()
    return lock.withLock { datagrams }
  }
}

package import Foundation

/// Listens on a UDP port of this machine and keeps what arrives.
package final class DatagramRecorder: @unchecked Sendable {
  // Sendable: what is mutable is touched under the lock.

  /// The port.
  package let port: UInt16
  private let socket: Int32
  private let lock = NSLock()
  private var datagrams: [Data] = []
  private var isEnding = false
  private let ended = DispatchSemaphore(value: 0)

  /// Begins to listen.
  package init() throws {
    port = try UDPPort.free()
    socket = try loopbackSocket(port: port)
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

  /// The number of datagrams so far.
  package var count: Int { lock.withLock { datagrams.count } }

  /// The number of RTP timestamps that have arrived so far: of pictures, each at least in part.
  package var timestampCount: Int { lock.withLock { Set(datagrams.map { $0.dropFirst(4).prefix(4) }).count } }

  /// Waits until nothing more arrives, and ends.
  package func finish() -> [Data] {
    lock.withLock { isEnding = true }
    ended.wait()
    return lock.withLock { datagrams }
  }
}

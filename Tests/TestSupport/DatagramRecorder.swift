package import Foundation
import Media

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
      // Asked before the look that finds nothing: what came between that look and the end is looked for once more.
      let isLast = lock.withLock { isEnding }
      let count = recv(socket, &buffer, buffer.count, 0)
      if count > 0 { lock.withLock { datagrams.append(Data(buffer[..<count])) } }
      if count <= 0, isLast { break }
    }
    close(socket)
    ended.signal()
  }

  /// The number of datagrams so far.
  package var count: Int { lock.withLock { datagrams.count } }

  /// The number of RTP timestamps that have arrived so far: of pictures, each at least in part.
  package var timestampCount: Int { lock.withLock { Set(datagrams.map { $0.dropFirst(4).prefix(4) }).count } }

  /// The sizes that have arrived so far in sequence parameter sets of H.264, as in `640x360`: of pictures, each at least
  /// in part.
  package var sizes: Set<String> {
    let packets = lock.withLock { datagrams }
    let sets = packets.flatMap { Self.sequenceSets(of: $0) }
    return Set(sets.compactMap { try? SequenceParameterSet(nalUnit: $0).size.description })
  }

  /// The SPS NAL units of an RTP packet, alone or in a STAP-A (RFC 6184 sections 5.6 and 5.7.1).
  private static func sequenceSets(of packet: Data) -> [[UInt8]] {
    let payload = packet.dropFirst(12)
    guard let kind = payload.first.map({ $0 & 0x1f }), kind == 7 || kind == 24 else { return [] }
    guard kind == 24 else { return [[UInt8](payload)] }
    var units: [[UInt8]] = []
    var rest = [UInt8](payload.dropFirst())
    while rest.count > 2 {
      let length = Int(rest[0]) << 8 | Int(rest[1])
      units.append([UInt8](rest.dropFirst(2).prefix(length)))
      rest = [UInt8](rest.dropFirst(2 + length))
    }
    return units.filter { $0.first.map { $0 & 0x1f } == 7 }
  }

  /// Waits until nothing more arrives, and ends.
  package func finish() -> [Data] {
    lock.withLock { isEnding = true }
    ended.wait()
    return lock.withLock { datagrams }
  }
}

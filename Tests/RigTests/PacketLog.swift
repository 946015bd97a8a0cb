import Foundation
import TestSupport

/// Listens on a UDP port of this machine and writes down when which access unit came, from RTP's headers alone
/// (RFC 3550 section 5.1).
final class PacketLog: @unchecked Sendable {
  // Sendable: what is mutable is touched under the lock.

  /// One access unit: all packets of a timestamp.
  struct Unit {
    /// When its first packet came, seconds on `CLOCK_MONOTONIC`.
    var time: Double
    var timestamp: UInt32
    var bytes: Int
  }

  let port: UInt16
  private let clockRate: Double
  private let socket: Int32
  private let lock = NSLock()
  private var list: [Unit] = []
  private var lastNumber: UInt16?
  private var gaps = 0
  private var sources: Set<UInt32> = []
  private var isEnding = false

  init(port: UInt16, clockRate: Double = 90_000) throws {
    (self.port, self.clockRate) = (port, clockRate)
    socket = try loopbackSocket(port: port)
    Thread { [self] in record() }.start()
  }

  private func record() {
    var buffer = [UInt8](repeating: 0, count: 65_536)
    while !lock.withLock({ isEnding }) {
      let count = recv(socket, &buffer, buffer.count, 0)
      guard count >= 12 else { continue }
      let time = Self.now()
      let number = UInt16(buffer[2]) << 8 | UInt16(buffer[3])
      let words = [4, 8].map { offset in buffer[offset..<offset + 4].reduce(UInt32(0)) { $0 << 8 | UInt32($1) } }
      lock.withLock {
        if let last = lastNumber, number != last &+ 1 { gaps += 1 }
        lastNumber = number
        sources.insert(words[1])
        if list.last?.timestamp == words[0] {
          list[list.count - 1].bytes += count
        } else {
          list.append(Unit(time: time, timestamp: words[0], bytes: count))
        }
      }
    }
    close(socket)
  }

  /// `CLOCK_MONOTONIC` in seconds.
  static func now() -> Double {
    var time = timespec()
    clock_gettime(CLOCK_MONOTONIC, &time)
    return Double(time.tv_sec) + Double(time.tv_nsec) / 1e9
  }

  /// The access units so far.
  var units: [Unit] { lock.withLock { list } }
  /// Packets that did not follow the one before.
  var sequenceGaps: Int { lock.withLock { gaps } }
  /// The SSRCs.
  var sourceCount: Int { lock.withLock { sources.count } }

  /// The longest and the shortest step from one RTP timestamp to the next since `start`, in seconds.
  func steps(since start: Double) -> (shortest: Double, longest: Double) {
    let units = units.filter { $0.time >= start }
    let steps = zip(units, units.dropFirst()).map {
      Double(Int32(bitPattern: $1.timestamp &- $0.timestamp)) / clockRate
    }
    return (steps.min() ?? 0, steps.max() ?? 0)
  }

  func end() { lock.withLock { isEnding = true } }
}

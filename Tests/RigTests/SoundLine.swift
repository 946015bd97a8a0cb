import Foundation
import TestSupport

/// A line of sound on a UDP port of this machine: its packets, and the clock of its sender reports (RFC 3550 section 6.4.1), which
/// come to the next port.
final class SoundLine: @unchecked Sendable {
  // Sendable: what is mutable is touched under the lock.

  let packets: PacketLog
  private let socket: Int32
  private let lock = NSLock()
  /// A point in time, on `CLOCK_MONOTONIC`, and its RTP time.
  private var report: (time: Double, timestamp: UInt32)?
  private var isEnding = false

  private static let clockRate = 48_000.0
  /// The seconds from 1900, where NTP's time begins, to 1970.
  private static let epoch = 2_208_988_800.0

  init() throws {
    packets = try PacketLog(port: try UDPPort.free(), clockRate: Self.clockRate)
    socket = try loopbackSocket(port: packets.port + 1)
    Thread { [self] in record() }.start()
  }

  var port: UInt16 { packets.port }

  private func record() {
    var buffer = [UInt8](repeating: 0, count: 2048)
    while !lock.withLock({ isEnding }) {
      let count = recv(socket, &buffer, buffer.count, 0)
      guard count >= 28, buffer[1] == 200 else { continue }
      let words = stride(from: 8, to: 20, by: 4).map { offset in
        buffer[offset..<offset + 4].reduce(UInt32(0)) { $0 << 8 | UInt32($1) }
      }
      let wall = Double(words[0]) - Self.epoch + Double(words[1]) / 4_294_967_296
      var now = timespec()
      clock_gettime(CLOCK_REALTIME, &now)
      let offset = PacketLog.now() - Double(now.tv_sec) - Double(now.tv_nsec) / 1e9
      lock.withLock { report = (wall + offset, words[2]) }
    }
    close(socket)
  }

  func end() {
    packets.end()
    lock.withLock { isEnding = true }
  }

  /// The faults in the line; empty for a good one.
  ///
  /// The RTP time goes on by 20 ms from packet to packet. Only where the program got no processor for more than 200 ms, it may
  /// make a step of whole packets. A step without such a pause would be to a time that has not come yet: packets usually leave
  /// 30 to 50 ms after their time.
  var faults: [String] {
    guard let report = lock.withLock({ report }) else { return ["no sender report came"] }
    let units = packets.units
    var faults: [String] = []
    if packets.sequenceGaps != 0 { faults.append("\(packets.sequenceGaps) gaps in the sequence numbers") }
    if packets.sourceCount != 1 { faults.append("\(packets.sourceCount) sources") }
    for (index, unit) in units.enumerated() {
      let recorded = report.time + Double(Int32(bitPattern: unit.timestamp &- report.timestamp)) / Self.clockRate
      // Sound may be 50 ms ahead before it is moved (`SoundAligner`), and a card whose bus has paused delivers a burst.
      if unit.time < recorded - 0.1 { faults.append("packet \(index) came \(recorded - unit.time) s before its time") }
      guard index > 0 else { continue }
      let ticks = Int(Int32(bitPattern: unit.timestamp &- units[index - 1].timestamp))
      guard ticks != 960 else { continue }
      if ticks % 960 != 0 || ticks < 9600 { faults.append("a step of \(ticks) ticks to packet \(index)") }
    }
    return faults
  }
}

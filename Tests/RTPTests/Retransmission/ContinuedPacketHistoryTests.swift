import Platform
import RTP
import TestSupport
import Testing

/// The packets that are kept for retransmission, where a stream goes on for one of its receivers.
@Suite struct ContinuedPacketHistoryTests {
  private static let start = Instant(seconds: 100)

  private static func packet(_ number: UInt16, bytes: Int) -> [UInt8] {
    let content = UInt8(truncatingIfNeeded: Int(number) * 7)
    return [0x80, 96, UInt8(number >> 8), UInt8(number & 0xff)] + [UInt8](repeating: content, count: bytes - 4)
  }

  private static func time(_ number: Int) -> Instant { start + .milliseconds(Int64(number) * 10) }

  /// The numbers, of those from 65,400 on, whose packets are held unchanged, with the times at which they were sent.
  private static func held(_ history: borrowing PacketHistory, at time: Instant) -> [Int] {
    var held: [Int] = []
    for index in 0..<200 {
      let number = UInt16(truncatingIfNeeded: 65_400 + index)
      let isHeld = history.withPacket(number, at: time) { packet, sent in
        Array(packet) == Self.packet(number, bytes: 1000) && sent == Self.time(index)
      }
      if isHeld == true { held.append(index) }
    }
    return held
  }

  /// A history of 200 packets of 1000 bytes, one each 10 ms, across the wrap of their numbers.
  private static func full() -> PacketHistory {
    var history = PacketHistory(packets: 1024, bytes: 1 << 20)
    for index in 0..<200 {
      packet(UInt16(truncatingIfNeeded: 65_400 + index), bytes: 1000).withUnsafeBytes {
        history.append(
          header: UnsafeRawBufferPointer(rebasing: $0[..<12]), payload: UnsafeRawBufferPointer(rebasing: $0[12...]),
          at: time(index))
      }
    }
    return history
  }

  @Test func `a history that goes on has the newest packets of the other, as many as there is room for`() {
    let full = Self.full()
    let next = UInt16(truncatingIfNeeded: 65_600)
    let now = Self.time(199)
    #expect(Self.held(full, at: now) == Array(99..<200))
    let few = PacketHistory(continuing: full, before: next, packets: 16, bytes: 1 << 20, at: now)
    #expect(Self.held(few, at: now) == Array(184..<200) && few.packetCapacity == 16)
    let small = PacketHistory(continuing: full, before: next, packets: 1024, bytes: 10_500, at: now)
    #expect(Self.held(small, at: now) == Array(190..<200) && small.byteCapacity == 10_500)
    // Those that are too old already are no work.
    let late = PacketHistory(
      continuing: full, before: next, packets: 1024, bytes: 1 << 20, at: now + .milliseconds(900))
    #expect(Self.held(late, at: now + .milliseconds(900)) == Array(189..<200))
    #expect(Self.held(late, at: now) == Array(189..<200))
    let none = PacketHistory(continuing: full, before: next, packets: 1, bytes: 1, at: now)
    #expect(Self.held(none, at: now).isEmpty)
  }
}

import Media
import Platform

/// The missing packets and the times at which they came, from the sequence numbers alone: apart from the receiver,
/// whose own count this is to check.
struct GapLedger {
  /// Packets that came, repeated ones too.
  private(set) var packets = 0
  /// Packets after which one with a higher number was there first.
  private(set) var missing = 0
  /// The number of those that came within ``limit`` of that.
  private(set) var inTime = 0
  /// The number of those that came after it.
  private(set) var late = 0
  private var delays: [Duration] = []
  private var highest: UInt16?
  private var missingSince = [Instant?](repeating: nil, count: 65_536)

  /// The time within which a missing packet has to come.
  static let limit = Duration.milliseconds(200)

  /// The median of how long the missing packets that came took; zero for none.
  var medianDelay: Duration { delays.isEmpty ? .zero : delays.sorted()[delays.count / 2] }

  /// Takes an RTP packet that came at `time`.
  mutating func note(_ packet: UnsafeRawBufferPointer, at time: Instant) {
    guard packet.count >= 12 else { return }
    packets += 1
    let number = UInt16(packet[2]) << 8 | UInt16(packet[3])
    guard let highest else { return self.highest = number }
    if number &- highest < 0x8000 {
      var lost = highest &+ 1
      while lost != number, number != highest {
        missing += 1
        missingSince[Int(lost)] = time
        lost &+= 1
      }
      self.highest = number
      missingSince[Int(number)] = nil
    } else if let since = missingSince[Int(number)] {
      missingSince[Int(number)] = nil
      delays.append(time - since)
      if time - since <= Self.limit { inTime += 1 } else { late += 1 }
    }
  }
}

package import Platform

/// A large frame whose packets leave one after the other over a part of the frame interval, so that no queue on the way
/// has to hold all of them at once.
package struct PacedFrame {
  /// The frame.
  let frame: OutgoingFrame
  private let begin: Instant
  private let spread: Duration
  private var next: Instant

  /// The shortest interval between packets.
  static let step = Duration.milliseconds(1)
  /// The number of packets that leave at once in any case.
  private static let burst = 2 * OutgoingFrame.pacedSegments

  /// The spread of a frame's packets.
  package struct Plan {
    /// The time to spread the packets over; zero for at once.
    var spread = Duration.zero
    /// The packets of an average frame.
    var usual = 0

    /// Creates a plan; without arguments, one that spreads nothing.
    package init(spread: Duration = Duration.zero, usual: Int = 0) {
      (self.spread, self.usual) = (spread, usual)
    }

    /// Returns `true` if a frame of so many packets is spread: one of more than twice the usual number.
    package func spreads(packets: Int) -> Bool {
      spread > step && packets > max(burst, 2 * usual)
    }
  }

  /// Creates a frame of which the first packets have left at `begin`, and all the others are to leave within `spread`.
  package init(frame: OutgoingFrame, begin: Instant, spread: Duration) {
    self.frame = frame
    self.begin = begin
    self.spread = spread
    next = begin + Self.step
  }

  /// The time at which the next packets may leave.
  package var deadline: Instant { next }
  /// `true` if all packets have been released.
  package var isOver: Bool { frame.released >= frame.count }

  /// Releases the packets whose time has come. Returns `false` if there are none.
  package mutating func release(at now: Instant) -> Bool {
    guard now >= next else { return false }
    let share = min(1, max(0, (now - begin).seconds / spread.seconds))
    let before = frame.released
    frame.release(Int(Double(frame.count) * share))
    next = now + Self.step
    return frame.released > before
  }
}

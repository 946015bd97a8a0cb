import Media

/// A large frame whose packets leave one after the other over a part of the frame interval, so that no queue on the way
/// has to hold all of them at once.
struct PacedFrame {
  /// The frame.
  let frame: OutgoingFrame
  private let begin: MediaTime
  private let spread: MediaTime
  private var next: MediaTime

  /// How soon packets follow each other at least.
  static let step = MediaTime(nanoseconds: 1_000_000)
  /// So few packets leave at once whatever was asked for.
  private static let burst = 2 * OutgoingFrame.pacedSegments

  /// How a frame's packets are spread.
  struct Plan {
    /// Over how long; zero for at once.
    var spread = MediaTime.zero
    /// The packets of an average frame.
    var usual = 0

    /// Whether a frame of so many packets is spread: where it is more than twice the usual one.
    func spreads(packets: Int) -> Bool {
      spread > step && packets > max(burst, 2 * usual)
    }
  }

  /// A frame of which the first packets have left at `begin`, and all the others are to leave within `spread`.
  init(frame: OutgoingFrame, begin: MediaTime, spread: MediaTime) {
    self.frame = frame
    self.begin = begin
    self.spread = spread
    next = begin + Self.step
  }

  /// When the next packets may leave.
  var deadline: MediaTime { next }
  /// Whether all have been let go.
  var isOver: Bool { frame.released >= frame.count }

  /// Lets those packets leave whose time has come; false where it has not for any.
  mutating func release(at now: MediaTime) -> Bool {
    guard now >= next else { return false }
    let share = min(1, max(0, (now - begin).seconds / spread.seconds))
    let before = frame.released
    frame.release(Int(Double(frame.count) * share))
    next = now + Self.step
    return frame.released > before
  }
}

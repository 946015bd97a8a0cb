import Media
import RTP

/// What a viewer gets that has come late: packets that others have got before, from the last key frame on, faster than the
/// stream goes on and no faster than a queue on the way bears. What is sent meanwhile is at the end of it.
struct Replay {
  /// Who gets it.
  let viewer: Viewer
  /// The next packet.
  var next: UInt16
  private let bytesPerSecond: Double
  /// Bytes that may leave by now; below zero after a packet that was larger.
  private var credit: Double
  private var filled: MediaTime

  /// What leaves at once: half of what a small queue holds.
  static let burstBytes = 32_768
  /// How many times faster than the stream it is.
  private static let speed = 3.0
  /// The least bytes a second: a slow stream's key frame would take long else.
  private static let leastBytesPerSecond = 750_000.0
  /// How soon packets follow each other at least.
  static let step = PacedFrame.step

  /// A replay for `viewer` that begins at `now` with packet `first`.
  ///
  /// - Parameter bitrate: Bits a second of the stream.
  init(to viewer: Viewer, from first: UInt16, bitrate: Int, at now: MediaTime) {
    self.viewer = viewer
    next = first
    bytesPerSecond = max(Self.leastBytesPerSecond, Double(bitrate) / 8 * Self.speed)
    credit = Double(Self.burstBytes)
    filled = now
  }

  /// When the next packets may leave.
  var deadline: MediaTime { filled + Self.step }

  /// Adds what may leave at `now`; whether anything may.
  mutating func refill(at now: MediaTime) -> Bool {
    if now > filled { credit = min(Double(Self.burstBytes), credit + (now - filled).seconds * bytesPerSecond) }
    filled = max(filled, now)
    return credit > 0
  }

  /// Whether another packet may leave.
  var allowsPacket: Bool { credit > 0 }

  /// Counts a packet that has left.
  mutating func noteSent(bytes: Int) {
    credit -= Double(bytes)
    next &+= 1
  }
}

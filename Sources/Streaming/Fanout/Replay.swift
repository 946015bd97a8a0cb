import Platform
import RTP

/// The packets for a viewer that has joined late: those that others have got before, from the last key frame on. They
/// are sent faster than the stream, but no faster than a queue on the way bears. Packets that are sent meanwhile are at
/// the replay's end.
package struct Replay {
  /// The viewer that gets the replay.
  let viewer: Viewer
  /// The sequence number of the next packet.
  var next: UInt16
  private let bytesPerSecond: Double
  /// Bytes that may leave by now; below zero after a packet that was larger.
  private var credit: Double
  private var filled: Instant

  /// The bytes that leave at once: half of what a small queue holds.
  package static let burstBytes = 32_768
  /// The replay's speed as a multiple of the stream's.
  private static let speed = 3.0
  /// The least bytes a second: without it a slow stream's key frame would take long.
  private static let leastBytesPerSecond = 750_000.0
  /// The shortest interval between packets.
  static let step = PacedFrame.step

  /// Creates a replay for `viewer` that begins at `now` with packet `first`.
  ///
  /// - Parameter bitrate: bits a second of the stream.
  init(to viewer: Viewer, from first: UInt16, bitrate: Int, at now: Instant) {
    self.viewer = viewer
    next = first
    bytesPerSecond = max(Self.leastBytesPerSecond, Double(bitrate) / 8 * Self.speed)
    credit = Double(Self.burstBytes)
    filled = now
  }

  /// The time at which the next packets may leave.
  var deadline: Instant { filled + Self.step }

  /// Adds the bytes that may leave at `now`. Returns `true` if any may.
  mutating func refill(at now: Instant) -> Bool {
    if now > filled { credit = min(Double(Self.burstBytes), credit + (now - filled).seconds * bytesPerSecond) }
    filled = max(filled, now)
    return credit > 0
  }

  /// `true` if another packet may leave.
  var allowsPacket: Bool { credit > 0 }

  /// Counts a packet that has left.
  mutating func noteSent(bytes: Int) {
    credit -= Double(bytes)
    next &+= 1
  }
}

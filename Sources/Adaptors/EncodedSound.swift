public import Platform

/// A coded packet of sound that owns its bytes: one packet of Opus (RFC 6716), which tasks and threads may keep and pass on.
public struct EncodedSound: Hashable, Sendable {
  /// The Opus packet.
  public let bytes: [UInt8]
  /// The place of the packet's first sample on the sender's clock, in samples of 48 kHz. What is between the end of one packet
  /// and the next one's position is missing.
  public let position: Int64
  /// The time of the packet's first sample on the stream's timeline, which is that of the pictures too.
  public let timestamp: Instant
  /// The time at which the packet was available, on `CLOCK_MONOTONIC`.
  public let captured: Instant

  /// Creates a packet; see the properties.
  public init(bytes: [UInt8], position: Int64, timestamp: Instant, captured: Instant = .now()) {
    self.bytes = bytes
    self.position = position
    self.timestamp = timestamp
    self.captured = captured
  }

  /// The samples of each channel in a second, whatever the sender's card records (RFC 7587 section 4.1).
  public static let sampleRate: Int64 = 48_000
}

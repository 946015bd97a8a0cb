public import Platform

/// Decoded sound of one packet, or in place of missing ones.
public struct DecodedSound: Hashable, Sendable {
  /// The samples at 48 kHz, one of each channel side by side.
  public let samples: [Int16]
  /// The number of channels, 1 or 2.
  public let channels: Int
  /// The place of the first sample on the sender's clock, in samples.
  public let position: Int64
  /// The time of the first sample on the stream's timeline.
  public let timestamp: Instant
  /// The time at which the packet was available, on `CLOCK_MONOTONIC`.
  public let captured: Instant
  /// `true` if the sound is made in place of missing packets, of the sound before them and of what the next packet repeats.
  public let isConcealed: Bool

  /// The length in samples of each channel.
  public var length: Int { samples.count / channels }
}

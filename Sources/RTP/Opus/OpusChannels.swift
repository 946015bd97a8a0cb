/// The number of sound channels in an Opus stream: one or two, as in channel mapping family 0 (RFC 7845 section
/// 5.1.1.1).
public enum OpusChannels: Int, Hashable, Sendable, CaseIterable {
  /// One channel.
  case mono = 1
  /// Left and right.
  case stereo = 2
}

public import Platform

/// An error of a decoder of sound. After each of them the decoder goes on with the next packet.
public enum SoundDecoderError: Failure, Hashable {
  /// A value of the configuration is impossible.
  case configuration(String)
  /// The packet is larger than any Opus packet. It was not read.
  case packetSize(Int, limit: Int)
  /// The packet is no Opus packet, in libopus's words.
  case packet(String)
  /// The system has no memory for the decoder.
  case memory
  /// libopus failed otherwise, in its own words.
  case library(String)
  /// The decoder was invalidated.
  case invalidated

  /// A one-line message for the terminal.
  public var description: String {
    switch self {
    case .configuration(let reason): reason
    case .packetSize(let count, let limit): "a packet of sound of \(count) bytes: at most \(limit) are decoded"
    case .packet(let reason): "a damaged packet of sound (\(reason))"
    case .memory: "no memory for a decoder of sound"
    case .library(let reason): "libopus fails: \(reason)"
    case .invalidated: "the decoder was invalidated"
    }
  }

  /// The kind of failure.
  public var kind: FailureKind {
    switch self {
    case .configuration: .usage
    case .packetSize, .packet: .data
    case .memory: .system
    case .library, .invalidated: .software
    }
  }
}

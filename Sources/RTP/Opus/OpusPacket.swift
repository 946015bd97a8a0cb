public import Platform

/// The structure of an Opus packet, RFC 6716 section 3: its duration and channels, which its first two bytes tell.
///
/// The bounds of the frames within the packet are left to the decoder, which checks them too.
public struct OpusPacket: Hashable, Sendable {
  /// The samples of each channel that the packet has at 48 kHz: 120 to ``sampleLimit``.
  public let samples: Int
  /// `true` if the packet has two channels.
  public let isStereo: Bool

  /// The limit of a packet's samples: 120 ms (RFC 6716 section 3.4, R5).
  public static let sampleLimit = 5760

  /// Parses the packet in `bytes`.
  ///
  /// - Throws: ``OpusPacketError`` for bytes that are no Opus packet.
  public init(parsing bytes: UnsafeRawBufferPointer) throws(OpusPacketError) {
    // R1: the table-of-contents byte, section 3.1.
    guard let first = bytes.first else { throw .empty }
    let frames: Int
    switch first & 3 {
    case 0: frames = 1
    case 1:
      // R3: two frames of the same size.
      guard bytes.count % 2 == 1 else { throw .unequalFrames(bytes.count) }
      frames = 2
    case 2: frames = 2
    default:
      guard bytes.count >= 2 else { throw .noFrameCount }
      frames = Int(bytes[1] & 0x3f)
    }
    samples = frames * Self.frameSamples(configuration: first >> 3)
    isStereo = first & 4 != 0
    guard frames > 0, samples <= Self.sampleLimit else { throw .duration(frames: frames, samples: samples) }
  }

  /// Returns the samples of a frame, RFC 6716 table 2.
  private static func frameSamples(configuration: UInt8) -> Int {
    switch configuration {
    // SILK: 10, 20, 40 and 60 ms.
    case 0..<12: configuration & 3 == 3 ? 2880 : 480 << Int(configuration & 3)
    // Both: 10 and 20 ms.
    case 12..<16: configuration & 1 == 0 ? 480 : 960
    // CELT: 2.5, 5, 10 and 20 ms.
    default: 120 << Int(configuration & 3)
    }
  }
}

/// The reason why bytes are no Opus packet.
public enum OpusPacketError: Failure, Hashable {
  /// No byte at all.
  case empty
  /// Two frames of one size in a number of bytes that no two can have.
  case unequalFrames(Int)
  /// The number of frames is missing.
  case noFrameCount
  /// No frame, or more sound than a packet may have.
  case duration(frames: Int, samples: Int)

  /// A one-line description for the person at the terminal.
  public var description: String {
    switch self {
    case .empty: "an Opus packet without a byte"
    case .unequalFrames(let count): "an Opus packet of \(count) bytes that should hold two frames of one size"
    case .noFrameCount: "an Opus packet that ends before its number of frames"
    case .duration(let frames, let samples):
      "an Opus packet of \(frames) frames and \(samples) samples: 1 to \(OpusPacket.sampleLimit) samples are allowed"
    }
  }

  /// The kind of failure.
  public var kind: FailureKind { .data }
}

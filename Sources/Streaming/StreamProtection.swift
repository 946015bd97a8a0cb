import RTP
public import SRTP
import Synchronization

/// What protects the packets of one stream: whoever shares it shares the packets, encrypted once.
struct StreamProtection: Hashable {
  let key: SRTPKey
  /// The stream's source. It belongs to the key: two streams of one source under one key would give both away
  /// (RFC 3711 section 9.1).
  let ssrc: UInt32
  /// How far the stream is; the same object in all copies.
  let progress = StreamProgress()
  /// Where the sources come from that follow ``ssrc``; nil where there is but one. Each has less than 32,768 packets, so that the
  /// rollover counter stays zero: receivers that come late know no other, and ffmpeg cannot be told one. Where receivers are
  /// told the counter (MIKEY), they know but the one source.
  var sources: SourceNumbers?

  static func == (one: StreamProtection, other: StreamProtection) -> Bool {
    one.ssrc == other.ssrc && one.key == other.key
  }

  func hash(into hasher: inout Hasher) {
    hasher.combine(ssrc)
    hasher.combine(key)
  }

  /// The numbering of a stream that begins: its first sequence number is in the lower half, so that a lost first packet
  /// does not make a receiver guess the rollover counter wrongly (RFC 4568 section 6.4).
  func stream(_ payloadType: RTPPayloadType) -> RTPStream {
    RTPStream(
      payloadType: payloadType, ssrc: ssrc, firstSequenceNumber: sources == nil ? .random(in: 0..<0x8000) : 0,
      timestampOffset: .random(in: 0 ... .max))
  }

  /// Whether another source is due before a picture, where `next` is its first sequence number: with a key frame rather than
  /// with any other, and in time for a large one.
  static func isSourceDue(before next: UInt16, isKeyFrame: Bool) -> Bool {
    next >= (isKeyFrame ? 20_480 : 24_576)
  }
}

/// The sources of a pipeline's protected streams: each is given out once, so that whatever key it has, its keystream is used
/// once. Any thread.
///
/// Where a key outlives the program, the next run begins somewhere else among 2^32. Two runs of `m` and `n` sources meet
/// with a chance of (m + n) / 2^32.
final class SourceNumbers: Sendable {
  private let last = Atomic(UInt32.random(in: 0 ... .max))

  /// A source that was never given out.
  func next() -> UInt32 {
    // By an odd number: all others come before one comes again.
    last.wrappingAdd(0x9e37_79b1, ordering: .relaxed).newValue
  }
}

/// How far a protected stream is: written by the send thread, read by any.
final class StreamProgress: Sendable {
  /// How often the sequence number has begun anew, for the next packet: RFC 3711's rollover counter.
  let rolloverCounter = Atomic<UInt32>(0)
  /// Whether the stream is kept while nobody gets it, because somebody may get it again: begun anew it would use its
  /// keystream twice.
  let isHeld = Atomic(false)
}

/// A protected stream that is kept ready for viewers that come by themselves, from ``Pipeline/reserve(_:)`` to
/// ``Pipeline/release(_:)``: they may come, leave and come again.
public struct ProtectedStream: Sendable {
  let protection: StreamProtection

  /// Its key.
  public var key: SRTPKey { protection.key }
  /// Its source.
  public var ssrc: UInt32 { protection.ssrc }
  /// How often its sequence number has begun anew: what a receiver must know that joins late (RFC 3711 section 3.3.1).
  public var rolloverCounter: UInt32 { protection.progress.rolloverCounter.load(ordering: .relaxed) }
}

extension StreamDestination {
  /// How the packets of a destination are protected.
  public struct Protection: Hashable, Sendable {
    /// The suite; nil is the key file's, or ``SRTPSuite/aes128CounterHMAC80`` without one.
    public var suite: SRTPSuite?
    /// The file with the key; nil is a new key at each start.
    public var keyFile: String?

    /// A protection; see the properties.
    public init(suite: SRTPSuite? = nil, keyFile: String? = nil) {
      self.suite = suite
      self.keyFile = keyFile
    }

    /// The key: the file's, or a new one.
    ///
    /// - Throws: `SRTPKeyError`, ``StreamDestinationError/otherSuite(_:_:file:)``.
    func key() throws -> SRTPKey {
      guard let keyFile else { return SRTPKey(random: suite ?? .aes128CounterHMAC80) }
      let key = try SRTPKey(contentsOf: keyFile)
      guard suite == nil || suite == key.suite else {
        throw StreamDestinationError.otherSuite(suite?.rawValue ?? "", key.suite.rawValue, file: keyFile)
      }
      return key
    }

    /// The most bytes that a packet may grow by.
    var overhead: Int {
      suite?.packetOverhead ?? SRTPSuite.allCases.reduce(0) { max($0, $1.packetOverhead) }
    }
  }
}

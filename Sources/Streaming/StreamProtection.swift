import Glibc
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
  /// Whether other sources follow ``ssrc`` (``SourceNumbers``). Each has less than 32,768 packets, so that the
  /// rollover counter stays zero: receivers that come late know no other, and ffmpeg cannot be told one. Where receivers are
  /// told the counter (MIKEY), they know but the one source.
  var hasSuccessors = false

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
      payloadType: payloadType, ssrc: ssrc, firstSequenceNumber: hasSuccessors ? 0 : .random(in: 0..<0x8000),
      timestampOffset: .random(in: 0 ... .max))
  }

  /// Whether another source is due before a picture, where `next` is its first sequence number: with a key frame rather than
  /// with any other, and in time for a large one.
  static func isSourceDue(before next: UInt16, isKeyFrame: Bool) -> Bool {
    next >= (isKeyFrame ? 20_480 : 24_576)
  }
}

/// The sources (SSRC) of this process's protected streams: each is given out once, so that whatever key a stream has, its
/// keystream is used once. Any thread.
///
/// A key of a file outlives the process, so the next process must not begin where sources were used before. Sources are
/// numbered by the time of day, in eighths of a second, from the process's start on. One lasts for 20,480 packets at least, so that
/// the numbers fall behind the clock, and a later process begins beyond them. The numbers come again after 17 years.
enum SourceNumbers {
  private static let last: Atomic<UInt32> = {
    var now = timespec()
    clock_gettime(CLOCK_REALTIME, &now)
    return Atomic(number(at: now))
  }()

  /// The number that a process begins behind, which starts at that time of day.
  static func number(at time: timespec) -> UInt32 {
    UInt32(truncatingIfNeeded: time.tv_sec * 8 + time.tv_nsec / 125_000_000)
  }

  /// The machine's own place among the 2^32, by FNV-1a of its identifier (machine-id(5)): two machines that start at once with the
  /// same key file do not begin with the same source.
  private static let machine: UInt32 = {
    let descriptor = open("/etc/machine-id", O_RDONLY | O_CLOEXEC)
    guard descriptor >= 0 else { return 0 }
    defer { close(descriptor) }
    var bytes = [UInt8](repeating: 0, count: 64)
    let count = read(descriptor, &bytes, bytes.count)
    return bytes.prefix(max(0, count)).reduce(2_166_136_261) { ($0 ^ UInt32($1)) &* 16_777_619 }
  }()

  /// A source that was never given out.
  static func next() -> UInt32 {
    // Times an odd number, which is another one for each: RFC 3550 wants sources that look random.
    last.wrappingAdd(1, ordering: .relaxed).newValue &* 0x9e37_79b1 &+ machine
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

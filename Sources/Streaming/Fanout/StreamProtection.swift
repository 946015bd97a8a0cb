package import Glibc
import Platform
import RTP
package import SRTP
import Synchronization

/// The protection of one stream's packets. Viewers that share the protection share the packets, which are encrypted
/// once.
package struct StreamProtection: Hashable {
  let key: SRTPKey
  /// The stream's source. It belongs to the key: two streams of one source under one key would reveal both (RFC 3711
  /// section 9.1).
  package let ssrc: UInt32
  /// The stream's progress; the same object in all copies.
  let progress = StreamProgress()
  /// `true` if other sources follow ``ssrc`` (``SourceNumbers``). Each has less than 32,768 packets, so that the
  /// rollover counter stays zero: receivers that join late assume zero, and ffmpeg cannot be told another value. Where
  /// receivers are told the counter (MIKEY), they know only the one source.
  var hasSuccessors = false

  package static func == (one: StreamProtection, other: StreamProtection) -> Bool {
    one.ssrc == other.ssrc && one.key == other.key
  }

  package func hash(into hasher: inout Hasher) {
    hasher.combine(ssrc)
    hasher.combine(key)
  }

  /// Returns the numbering of a new stream. Its first sequence number is in the lower half, so that a lost first packet
  /// does not make a receiver guess the rollover counter wrongly (RFC 4568 section 6.4).
  func stream(_ payload: PayloadDescription) -> RTPStream {
    RTPStream(
      payloadType: payload.payloadType, clockRate: payload.clockRate, ssrc: ssrc,
      firstSequenceNumber: hasSuccessors ? 0 : .random(in: 0..<0x8000), timestampOffset: .random(in: 0 ... .max))
  }

  /// Returns `true` if another source is due before a picture, where `next` is its first sequence number. The change
  /// comes with a key frame rather than with another picture, and in time for a large one.
  static func isSourceDue(before next: UInt16, isKeyFrame: Bool) -> Bool {
    next >= (isKeyFrame ? 20_480 : 24_576)
  }
}

/// The sources (SSRC) of this process's protected streams. Each is given out once, so that a keystream is used once,
/// whatever key a stream has. Any thread.
///
/// A key of a file outlives the process, so the next process must not begin where sources were used before. Sources are
/// numbered by the time of day at the process's start, in eighths of a second. One source lasts for at least 20,480
/// packets, so that the numbers fall behind the clock, and a later process begins beyond them. The numbers repeat after
/// 17 years.
package enum SourceNumbers {
  private static let last: Atomic<UInt32> = {
    var now = timespec()
    clock_gettime(CLOCK_REALTIME, &now)
    return Atomic(number(at: now))
  }()

  /// Returns the number of a time of day. The sources of a process that starts at that time begin after this number.
  package static func number(at time: timespec) -> UInt32 {
    UInt32(truncatingIfNeeded: time.tv_sec * 8 + time.tv_nsec / 125_000_000)
  }

  /// The host's own offset among the 2^32 numbers, by FNV-1a of its identifier (machine-id(5)). Two hosts that start at
  /// once with the same key file do not begin with the same source.
  private static let machine: UInt32 = {
    guard let identifier = try? FileDescriptor("/etc/machine-id", O_RDONLY).read(upTo: 64) else { return 0 }
    return identifier.reduce(2_166_136_261) { ($0 ^ UInt32($1)) &* 16_777_619 }
  }()

  /// Returns a source that was never given out.
  package static func next() -> UInt32 {
    // Times an odd number, which gives a different result for each: RFC 3550 wants sources that look random.
    last.wrappingAdd(1, ordering: .relaxed).newValue &* 0x9e37_79b1 &+ machine
  }
}

/// The progress of a protected stream: written by the send thread, read by any.
final class StreamProgress: Sendable {
  /// The number of times that the sequence number has wrapped, for the next packet: RFC 3711's rollover counter.
  let rolloverCounter = Atomic<UInt32>(0)
  /// `true` if the stream is kept without viewers, because another may join. A stream that began again would use its
  /// keystream twice.
  let isHeld = Atomic(false)
}

/// A protected stream that is kept ready for viewers that join on their own, from ``Pipeline/reserve(_:track:)`` to
/// ``Pipeline/release(_:)``. The viewers may join, leave and join again.
package struct ProtectedStream: Sendable {
  /// The number of its track.
  package let track: Int
  let protection: StreamProtection

  /// Its key.
  package var key: SRTPKey { protection.key }
  /// Its source.
  package var ssrc: UInt32 { protection.ssrc }
  /// The number of times that its sequence number has wrapped. A receiver that joins late must know it (RFC 3711
  /// section 3.3.1).
  package var rolloverCounter: UInt32 { protection.progress.rolloverCounter.load(ordering: .relaxed) }
}

extension StreamDestination {
  /// The protection of a destination's packets.
  package struct Protection: Hashable, Sendable {
    /// The suite; nil is the key file's, or ``SRTPSuite/aes128CounterHMAC80`` without one.
    package var suite: SRTPSuite?
    /// The file with the key; nil is a new key at each start.
    package var keyFile: String?

    /// Creates a protection; see the properties.
    package init(suite: SRTPSuite? = nil, keyFile: String? = nil) {
      self.suite = suite
      self.keyFile = keyFile
    }

    /// Returns the key: the file's, or a new one.
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

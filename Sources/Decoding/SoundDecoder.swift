public import Adaptors
public import Platform
import Synchronization

/// An Opus decoder (RFC 6716, RFC 7587). Packets go in, samples of 48 kHz come out, to any number of subscribers.
///
///     let decoder = try SoundDecoder()
///     let sound = decoder.decodedSound(.newest(50))
///     for await packet in receiver.soundPackets() { try decoder.decode(packet) }
///
/// A short gap between packets is filled, so that what follows is in its place: by the coarser copy of the last missing packet
/// that the next one carries (in-band error correction), and by libopus's concealment before it. A longer gap is left out.
///
/// The input counts as hostile: libopus gets one packet of limited size at a time. Any thread may call the decoder; calls wait
/// for each other.
public final class SoundDecoder: Sendable {
  /// The settings of a decoder.
  public struct Configuration: Hashable, Sendable {
    /// The number of channels that come out, 1 or 2, whatever the packets have.
    public var channels: Int
    /// The longest gap that is filled.
    public var maximumGap: Duration

    /// Creates a configuration; see the properties.
    public init(channels: Int = 2, maximumGap: Duration = .milliseconds(200)) {
      self.channels = channels
      self.maximumGap = maximumGap
    }

    /// Checks every value.
    ///
    /// - Throws: ``SoundDecoderError/configuration(_:)`` with the value and the limit.
    public func check() throws(SoundDecoderError) {
      guard (1...2).contains(channels) else {
        throw .configuration("a number of \(channels) channels: choose 1 or 2")
      }
      guard maximumGap >= .zero, maximumGap <= .seconds(5) else {
        throw .configuration("a gap of \(maximumGap.seconds) s to be filled: choose 0 to 5")
      }
    }
  }

  /// Counts since the decoder was created.
  public struct Counts: Hashable, Sendable {
    /// The number of packets that ``SoundDecoder/decode(_:)`` took.
    public var packets: UInt64 = 0
    /// The number of packets that were refused.
    public var refused: UInt64 = 0
    /// The samples of each channel that came out, those in gaps included.
    public var samples: UInt64 = 0
    /// The samples of each channel among them that fill gaps.
    public var samplesConcealed: UInt64 = 0
    /// The number of gaps that were too long to be filled.
    public var gaps: UInt64 = 0

    /// Creates counts of zero.
    public init() {}
  }

  private struct State {
    var counts = Counts()
    /// The handle of libopus; nil once the decoder is invalidated.
    var session: OpusSession?
    /// The position behind the last packet; nil at the beginning.
    var end: Int64?
  }

  /// The settings.
  public let configuration: Configuration
  private let state: Mutex<State>
  private let broadcast = Broadcast<DecodedSound>()

  /// The most bytes of a packet: 48 frames of 1275 bytes, and their lengths (RFC 6716 section 3.2).
  public static let packetLimit = 61_440

  /// Creates a decoder.
  ///
  /// - Throws: ``SoundDecoderError/configuration(_:)``, ``SoundDecoderError/memory``, ``SoundDecoderError/library(_:)``.
  public init(configuration: Configuration = Configuration()) throws(SoundDecoderError) {
    try configuration.check()
    self.configuration = configuration
    state = Mutex(State(session: try OpusSession(channels: configuration.channels)))
  }

  deinit { broadcast.finish() }

  /// Counts since the decoder was created.
  public var counts: Counts { state.withLock { $0.counts } }

  /// Returns a stream of the sound from now on, for one more subscriber, which keeps the newest packets. It ends with
  /// ``invalidate()``.
  public func decodedSound(_ buffering: Broadcast<DecodedSound>.Buffering = .newest(50)) -> AsyncStream<DecodedSound> {
    broadcast.stream(buffering)
  }

  /// Decodes a packet. Its sound goes to the subscribers and is returned, that in place of a gap before it first.
  ///
  /// - Throws: ``SoundDecoderError``. The place of a refused packet is a gap.
  @discardableResult
  public func decode(_ packet: EncodedSound) throws(SoundDecoderError) -> [DecodedSound] {
    try state.withLock { state throws(SoundDecoderError) in
      guard let session = state.session else { throw .invalidated }
      state.counts.packets &+= 1
      do throws(SoundDecoderError) {
        guard packet.bytes.count <= Self.packetLimit else {
          throw .packetSize(packet.bytes.count, limit: Self.packetLimit)
        }
        // A packet that is none must not be asked for what was before it.
        _ = try session.length(of: packet.bytes)
        return try decode(packet, session, &state)
      } catch {
        state.counts.refused &+= 1
        throw error
      }
    }
  }

  /// Closes the decoder and ends the subscribers' streams. Later calls throw ``SoundDecoderError/invalidated``. Idempotent.
  public func invalidate() {
    state.withLock { $0.session = nil }
    broadcast.finish()
  }

  private func decode(
    _ packet: EncodedSound, _ session: OpusSession, _ state: inout State
  ) throws(SoundDecoderError) -> [DecodedSound] {
    var sound: [DecodedSound] = []
    let (gap, isUnknown) = state.end.map { packet.position.subtractingReportingOverflow($0) } ?? (0, false)
    if gap != 0 || isUnknown {
      if !isUnknown, gap > 0, gap <= configuration.maximumGap.ticks(rate: EncodedSound.sampleRate) {
        sound = try session.fill(Int(gap), before: packet)
      } else {
        // What came before has nothing to do with this packet.
        session.reset()
        state.counts.gaps &+= 1
      }
    }
    let samples = try session.decode(packet.bytes)
    let decoded = DecodedSound(
      samples: samples, channels: session.channels, position: packet.position, timestamp: packet.timestamp,
      captured: packet.captured, isConcealed: false)
    state.end = packet.position.addingReportingOverflow(Int64(decoded.length)).partialValue
    for part in sound { state.counts.samplesConcealed &+= UInt64(part.length) }
    sound.append(decoded)
    for part in sound {
      state.counts.samples &+= UInt64(part.length)
      broadcast.send(part)
    }
    return sound
  }
}

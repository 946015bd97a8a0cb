package import Adaptors
import Media
package import Platform
import RTP

/// A picture or a packet of sound that has come.
package enum ReceivedMedia {
  case picture(EncodedPicture)
  case sound(EncodedSound)
}

/// The reception of one track's packets, up to access units with times: sockets and clocks belong to the caller.
package final class TrackReception {
  /// The way of the packets, as far as the reception depends on it.
  package struct Way {
    /// `true` for a connection, which loses nothing and keeps the order.
    var isReliable = false
    /// `true` if RTCP shares RTP's port.
    var isMultiplexed = false
    /// `true` if the packets go to a group, whose members do not all ask for the same packets.
    var isGroup = false

    /// Creates a way; without arguments, UDP with ports for each track.
    package init(isReliable: Bool = false, isMultiplexed: Bool = false, isGroup: Bool = false) {
      (self.isReliable, self.isMultiplexed, self.isGroup) = (isReliable, isMultiplexed, isGroup)
    }
  }

  /// The receiver of the packets.
  let receiver: RTPReceiver
  /// The track.
  let track: ReceivedDescription.Track
  private(set) var bytes: UInt64 = 0
  private(set) var packets: UInt64 = 0
  private(set) var lastPacket: Instant?
  private(set) var lastArrival: Instant?
  private(set) var delay: Duration?
  private let way: Way
  private let protection: TrackProtection?
  private let deliver: (ReceivedMedia) -> Void
  private var timeline: TrackTimeline
  private let clock: SessionClock
  private let wallClock: () -> Int64
  private var firstForged: Instant?
  /// The parameter sets in force: those of the session description, until the stream brings others.
  private var sets: StreamParameterSets
  /// The source of the last picture, and the number of the next one. Each session and each source has a sequence of its own.
  private var (source, number): (UInt32?, UInt64) = (nil, 0)
  /// `true` once the source has sent a picture at which a decoder can start. What comes before refers to pictures that did not.
  private var hasEntry = false
  private var takenReport: SenderReport?

  /// Creates the reception of `track`.
  ///
  /// - Throws: ``ReceiverError/unsupported(_:)`` for a payload type that RTP does not have; ``ReceiverError/key(_:)``.
  package init(
    _ track: ReceivedDescription.Track, _ way: Way, keys: TrackKeys?, _ clock: SessionClock,
    _ configuration: StreamReceiver.Configuration, at time: Instant, wallClock: @escaping () -> Int64,
    deliver: @escaping (ReceivedMedia) -> Void
  ) throws(ReceiverError) {
    guard let type = RTPPayloadType(rawValue: track.payloadType) else {
      throw .unsupported("a payload type of \(track.payloadType)")
    }
    (self.track, self.way, self.clock, self.deliver, self.wallClock) = (track, way, clock, deliver, wallClock)
    timeline = TrackTimeline(clockRate: track.contents.clockRate)
    sets = StreamParameterSets(track.contents.codec ?? .h264, track.parameterSets)
    protection = if let keys { try TrackProtection(keys) } else { nil }
    // Sound that comes late is of no use, and the next packet has a copy of it.
    let isVideo = track.contents.codec != nil
    let asks = isVideo && track.profile.hasFeedback && !way.isReliable && !way.isGroup
    let (packets, size) = isVideo ? (1024, 2048) : (128, 2048)
    let settings = RTPReceiver.Configuration(
      ssrc: keys?.controlSource ?? .random(in: 1 ... .max), contents: track.contents, payloadType: type,
      retransmissionPayloadType: track.retransmissionPayloadType.flatMap { RTPPayloadType(rawValue: $0) },
      isMultiplexed: way.isMultiplexed, isReducedSize: track.medium.isReducedSize,
      retransmission: asks ? configuration.retransmission : .reorderOnly,
      // A connection's packets may be large.
      packets: way.isReliable ? 16 : packets, maximumPacketSize: way.isReliable ? PacketSize.maximum : size,
      limits: configuration.limits, sessionBitsPerSecond: isVideo ? 2_000_000 : 64_000)
    do throws(RTCPWriterError) {
      receiver = try RTPReceiver(settings, at: time)
    } catch {
      throw .unsupported("\(error)")
    }
  }

  /// The number of packets that were not the sender's: those without the right tag.
  var packetsRefused: UInt64 { protection?.refused ?? 0 }

  /// The time since which packets come of which none has the right tag; nil where there is no such packet, or a right one.
  var forgedSince: Instant? { protection?.hasOpened == false ? firstForged : nil }

  // MARK: Packets

  /// Takes a datagram that came at the port or channel of RTP.
  package func receive(_ packet: UnsafeRawBufferPointer, at time: Instant) {
    guard let protection else { return take(packet, at: time) }
    let isControl = way.isMultiplexed && RTPMultiplexing(packet) == .rtcp
    let former = protection.forged
    protection.open(packet, isControl: isControl) { take($0, at: time) }
    if protection.forged != former { firstForged = firstForged ?? time }
  }

  /// Takes a datagram that came at the port or channel of RTCP.
  func receiveControl(_ packet: UnsafeRawBufferPointer, at time: Instant) {
    guard let protection else { return takeControl(packet, at: time) }
    protection.open(packet, isControl: true) { takeControl($0, at: time) }
  }

  private func take(_ packet: UnsafeRawBufferPointer, at time: Instant) {
    (bytes, packets) = (bytes &+ UInt64(packet.count), packets &+ 1)
    let (highest, units) = (receiver.statistics?.highestSequenceNumber, receiver.counts.accessUnits)
    // The receiver counts what it refuses.
    try? receiver.receive(packet, at: time) { take($0, at: time) }
    // Only what brings the stream on is a sign of life, and no packet that somebody repeats.
    if let statistics = receiver.statistics,
      statistics.highestSequenceNumber != highest || receiver.counts.accessUnits != units
    {
      lastPacket = time
    }
    takeReport()
  }

  private func takeControl(_ packet: UnsafeRawBufferPointer, at time: Instant) {
    try? receiver.receiveControl(packet, at: time)
    takeReport()
  }

  /// Gives up what is missing for too long.
  func poll(at time: Instant) { receiver.poll(at: time) { take($0, at: time) } }

  /// Writes the next datagram of feedback into `memory`, encrypted if the track is, and passes it to `send`, until there is none.
  func sendFeedback(
    into memory: UnsafeMutableRawBufferPointer, at time: Instant, _ send: (UnsafeRawBufferPointer) -> Void
  ) {
    while case let count = receiver.writeFeedback(into: memory, at: time), count > 0 { close(memory, count, send) }
  }

  /// Passes the last datagram of RTCP to `send`.
  func sendGoodbye(
    into memory: UnsafeMutableRawBufferPointer, at time: Instant, _ send: (UnsafeRawBufferPointer) -> Void
  ) {
    close(memory, receiver.writeGoodbye(into: memory, at: time), send)
  }

  private func close(
    _ memory: UnsafeMutableRawBufferPointer, _ count: Int, _ send: (UnsafeRawBufferPointer) -> Void
  ) {
    guard let protection else { return send(rebased(memory, count)) }
    if let packet = protection.close(memory, count) { send(packet) }
  }

  // MARK: Access units

  private func take(_ unit: borrowing ReceivedAccessUnit, at time: Instant) {
    let timestamp = timeline.proceed(to: unit.timestamp, at: time)
    lastArrival = time
    measureDelay(unit.timestamp)
    guard let codec = track.contents.codec else {
      return deliver(
        .sound(
          EncodedSound(
            bytes: Array(unit.annexB), position: timeline.position, timestamp: timestamp, captured: time)))
    }
    deliver(.picture(picture(unit, codec, timestamp, captured: time)))
  }

  /// Returns a copy of a picture, with the parameter sets that a decoder needs to start there.
  private func picture(
    _ unit: borrowing ReceivedAccessUnit, _ codec: VideoCodec, _ timestamp: Instant, captured: Instant
  ) -> EncodedPicture {
    if number == 0 || source != receiver.source {
      // 2^63 numbers are more than any source sends.
      (source, number, hasEntry) = (receiver.source, .random(in: 1 ... .max / 2), false)
    }
    defer { number += 1 }
    var (found, isEntry): (Set<ParameterSetKind>, Bool) = ([], unit.isKeyFrame)
    var named: Int?
    for index in 0..<unit.count {
      guard let part = NALUnit(unit[index]) else { continue }
      switch codec.role(of: part) {
      case .parameterSet(let kind):
        found.insert(kind)
        sets.store(part)
      case .slice, .keyFrameSlice: named = named ?? codec.pictureParameterSet(of: part)
      case .other: isEntry = isEntry || codec == .h264 && RecoveryPoint(part) != nil
      case .accessUnitDelimiter: break
      }
    }
    if isEntry, !unit.isDamaged { hasEntry = true }
    // Many cameras tell their parameter sets in the session description alone, and some send them once.
    // Sets of other sequences stay away: nobody needs them before another entry.
    let lacksSets = isEntry && found.count < (codec.hasVideoParameterSet ? 3 : 2)
    let head = lacksSets ? named.map { sets.annexB(sequenceOfPicture: $0) } : nil
    let bytes = (head ?? []) + unit.annexB
    return EncodedPicture(
      annexB: bytes, codec: codec, timestamp: timestamp, captured: captured, isDamaged: unit.isDamaged || !hasEntry,
      number: number)
  }

  /// Brings the tracks to one clock, once a sender report has come.
  private func takeReport() {
    guard let report = receiver.senderReport else { return }
    if track.contents == .opus { return clock.align(&timeline, report) }
    guard report != takenReport else { return }
    takenReport = report
    clock.take(report, on: timeline)
  }

  private func measureDelay(_ timestamp: UInt32) {
    guard let report = receiver.senderReport else { return }
    let ticks = Int64(Int32(bitPattern: timestamp &- report.rtpTimestamp))
    let span = Duration(seconds: Double(ticks) / Double(track.contents.clockRate))
    let sent = (report.ntp + span).rawValue
    let now = wallClock()
    let present = NTPTimestamp(unixSeconds: now / 1_000_000_000, nanoseconds: now % 1_000_000_000).rawValue
    delay = Duration(seconds: Double(Int64(bitPattern: present &- sent)) / 4_294_967_296)
  }
}

import Adaptors
import Media
import Platform
import RTP

/// A picture or a packet of sound that has come.
enum ReceivedMedia {
  case picture(EncodedPicture)
  case sound(EncodedSound)
}

/// The reception of one track's packets, up to access units with times: sockets and clocks belong to the caller.
final class TrackReception {
  /// The way of the packets, as far as the reception depends on it.
  struct Way {
    /// `true` for a connection, which loses nothing and keeps the order.
    var isReliable = false
    /// `true` if RTCP shares RTP's port.
    var isMultiplexed = false
    /// `true` if the packets go to a group, whose members do not all ask for the same packets.
    var isGroup = false
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
  private var takenReport: SenderReport?

  /// Creates the reception of `track`.
  ///
  /// - Throws: ``ReceiverError/unsupported(_:)`` for a payload type that RTP does not have; ``ReceiverError/key(_:)``.
  init(
    _ track: ReceivedDescription.Track, _ way: Way, keys: TrackKeys?, _ clock: SessionClock,
    _ configuration: StreamReceiver.Configuration, at time: Instant, wallClock: @escaping () -> Int64,
    deliver: @escaping (ReceivedMedia) -> Void
  ) throws(ReceiverError) {
    guard let type = RTPPayloadType(rawValue: track.payloadType) else {
      throw .unsupported("a payload type of \(track.payloadType)")
    }
    (self.track, self.way, self.clock, self.deliver, self.wallClock) = (track, way, clock, deliver, wallClock)
    timeline = TrackTimeline(clockRate: track.contents.clockRate)
    protection = if let keys { try TrackProtection(keys) } else { nil }
    // Sound that comes late is of no use, and the next packet has a copy of it.
    let asks = track.contents == .h264 && track.profile.hasFeedback && !way.isReliable && !way.isGroup
    let (packets, size) = track.contents == .h264 ? (1024, 2048) : (128, 2048)
    let settings = RTPReceiver.Configuration(
      ssrc: keys?.controlSource ?? .random(in: 1 ... .max), contents: track.contents, payloadType: type,
      retransmissionPayloadType: track.retransmissionPayloadType.flatMap { RTPPayloadType(rawValue: $0) },
      isMultiplexed: way.isMultiplexed, isReducedSize: track.medium.isReducedSize,
      retransmission: asks ? configuration.retransmission : .reorderOnly,
      // A connection's packets may be large.
      packets: way.isReliable ? 16 : packets, maximumPacketSize: way.isReliable ? PacketSize.maximum : size,
      limits: configuration.limits, sessionBitsPerSecond: track.contents == .h264 ? 2_000_000 : 64_000)
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
  func receive(_ packet: UnsafeRawBufferPointer, at time: Instant) {
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
    let former = receiver.statistics?.received
    // The receiver counts what it refuses.
    try? receiver.receive(packet, at: time) { take($0, at: time) }
    // Only packets of the stream are signs of life.
    if let received = receiver.statistics?.received, received != former { lastPacket = time }
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
    switch track.contents {
    case .opus:
      deliver(
        .sound(
          EncodedSound(
            bytes: Array(unit.annexB), position: timeline.position, timestamp: timestamp, captured: time)))
    case .h264:
      var bytes: [UInt8] = []
      // Many cameras tell their parameter sets in the session description alone.
      if unit.isKeyFrame, let sets = track.parameterSets, !hasSets(unit) {
        bytes += AnnexB.startCode + sets.sequence + AnnexB.startCode + sets.picture
      }
      bytes += unit.annexB
      deliver(
        .picture(EncodedPicture(annexB: bytes, timestamp: timestamp, captured: time, isDamaged: unit.isDamaged)))
    }
  }

  private func hasSets(_ unit: borrowing ReceivedAccessUnit) -> Bool {
    for index in 0..<unit.count where unit[index].first.map({ $0 & 0x1f }) == 7 { return true }
    return false
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

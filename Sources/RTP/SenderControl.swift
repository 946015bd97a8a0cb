public import Media

/// What the sender of a stream says by RTCP, and when: SR, or RR while nothing is sent, with SDES at the intervals
/// of RFC 3550, BYE at the end.
///
/// One value serves all viewers of a stream, because the report is the same for all; each is sent a copy.
public struct SenderControl: Sendable {
  /// The memory that a datagram needs at most: a report, a CNAME and a reason of 255 bytes each.
  public static let room = 1024

  /// Our CNAME.
  public let canonicalName: String
  /// Reports written.
  public private(set) var reports: UInt64 = 0
  /// When the next one is due; keep its bandwidth up to date.
  public var schedule: RTCPSchedule

  private var random: SplitMix64
  /// Packets sent at the last report and at the one before.
  private var packetsSent: (last: UInt64, before: UInt64) = (0, 0)

  /// A sender that begins at `time`.
  ///
  /// - Parameters:
  ///   - canonicalName: Our CNAME, at most 255 bytes: the same for all streams of one program (RFC 7022).
  ///   - sessionBitsPerSecond: The stream's bandwidth, from which the interval follows.
  ///   - minimum: The shortest interval.
  ///   - time: Now.
  ///   - seed: Of the random part of the intervals.
  /// - Throws: ``RTCPWriterError/text(_:limit:)`` for a longer CNAME than RTCP carries.
  public init(
    canonicalName: String, sessionBitsPerSecond: Double, minimum: RTCPSchedule.Minimum = .reduced,
    at time: MediaTime, seed: UInt64 = .random(in: 0 ... .max)
  ) throws(RTCPWriterError) {
    try RTCPWriter.check(canonicalName)
    self.canonicalName = canonicalName
    random = SplitMix64(seed: seed)
    schedule = RTCPSchedule(
      sessionBitsPerSecond: sessionBitsPerSecond, isSender: true, minimum: minimum, at: time, using: &random)
  }

  /// Writes the report that is due at `time`, when the wall clock shows `ntp`; returns its bytes, 0 where none is due.
  ///
  /// It is an SR where packets were sent within the last two intervals, else an RR (RFC 3550 section 6.4).
  ///
  /// - Parameters:
  ///   - stream: The stream that it reports of.
  ///   - memory: Where it goes, ``room`` bytes at least.
  ///   - time: Now, on the clock of ``schedule``.
  ///   - streamTime: What the stream's own clock shows, which a picture taken now would have as its timestamp. It may lag
  ///     behind, so that it is not what the report is due by.
  ///   - ntp: The wall clock's time; like `streamTime` it is asked for only where a report is due.
  public mutating func writeReport(
    of stream: RTPStream, into memory: UnsafeMutableRawBufferPointer, at time: MediaTime,
    streamTime: @autoclosure () -> MediaTime, ntp: @autoclosure () -> NTPTimestamp
  ) -> Int {
    precondition(memory.count >= Self.room, "a report needs \(Self.room) bytes")
    schedule.isSender = isSender(stream)
    guard schedule.expire(at: time, using: &random) else { return 0 }
    var writer = RTCPWriter(into: memory)
    do throws(RTCPWriterError) { try write(stream, to: &writer, at: streamTime(), ntp: ntp()) } catch {
      preconditionFailure("\(error)")
    }
    packetsSent = (stream.packetsSent, packetsSent.last)
    reports &+= 1
    schedule.sent(bytes: writer.count, at: time, using: &random)
    return writer.count
  }

  /// Writes a report for one viewer that is new, out of turn: a unicast sender may introduce itself at once (RFC 3550
  /// section 6.2), and until then the viewer knows neither clock nor name. Returns its bytes.
  public func writeIntroduction(
    of stream: RTPStream, into memory: UnsafeMutableRawBufferPointer, at time: MediaTime, ntp: NTPTimestamp
  ) -> Int {
    precondition(memory.count >= Self.room, "a report needs \(Self.room) bytes")
    var writer = RTCPWriter(into: memory)
    do throws(RTCPWriterError) { try write(stream, to: &writer, at: time, ntp: ntp) } catch {
      preconditionFailure("\(error)")
    }
    return writer.count
  }

  /// Writes the last datagram: the report, and BYE with `reason` of at most 255 bytes. Returns its bytes.
  public func writeGoodbye(
    of stream: RTPStream, reason: StaticString = "", into memory: UnsafeMutableRawBufferPointer, at time: MediaTime,
    ntp: NTPTimestamp
  ) -> Int {
    precondition(memory.count >= Self.room, "a report needs \(Self.room) bytes")
    var writer = RTCPWriter(into: memory)
    do throws(RTCPWriterError) {
      try write(stream, to: &writer, at: time, ntp: ntp)
      try writer.appendGoodbye(CollectionOfOne(SynchronizationSource(stream.ssrc)), reason: reason.description)
    } catch {
      preconditionFailure("\(error)")
    }
    return writer.count
  }

  /// Whether packets of `stream` were sent within the last two intervals: a sender no longer, where not.
  private func isSender(_ stream: RTPStream) -> Bool { stream.packetsSent != packetsSent.before }

  private func write(
    _ stream: RTPStream, to writer: inout RTCPWriter, at time: MediaTime, ntp: NTPTimestamp
  ) throws(RTCPWriterError) {
    if isSender(stream) {
      try writer.append(SenderReport(stream, at: time, ntp: ntp))
    } else {
      try writer.appendReceiverReport(sender: stream.ssrc)
    }
    try writer.appendCanonicalName(canonicalName, of: stream.ssrc)
  }
}

public import Platform

/// The RTCP of a stream's sender, and its timing. The sender sends SR, or RR while no media is sent, with SDES at the
/// intervals of RFC 3550. It sends BYE at the end.
///
/// One value serves all viewers of a stream, because the report is the same for all; each viewer receives a copy.
public struct SenderControl: Sendable {
  /// The memory in bytes that a datagram needs at most: a report, a CNAME and a reason of 255 bytes each.
  public static let room = 1024

  /// Our CNAME.
  public let canonicalName: String
  /// The number of reports written.
  public private(set) var reports: UInt64 = 0
  /// The schedule of the reports. Keep its bandwidth up to date.
  public var schedule: RTCPSchedule

  private var random: SplitMix64
  /// The packet counts at the last report and at the one before.
  private var packetsSent: (last: UInt64, before: UInt64) = (0, 0)

  /// Creates a sender that begins at `time`.
  ///
  /// - Parameters:
  ///   - canonicalName: Our CNAME, at most 255 bytes: the same for all streams of one program (RFC 7022).
  ///   - sessionBitsPerSecond: The stream's bandwidth, from which the interval follows.
  ///   - minimum: The minimum interval.
  ///   - time: The current time.
  ///   - seed: The seed of the random part of the intervals.
  /// - Throws: ``RTCPWriterError/text(_:limit:)`` for a CNAME that is longer than RTCP allows.
  public init(
    canonicalName: String, sessionBitsPerSecond: Double, minimum: RTCPSchedule.Minimum = .reduced,
    at time: Instant, seed: UInt64 = .random(in: 0 ... .max)
  ) throws(RTCPWriterError) {
    try RTCPWriter.check(canonicalName)
    self.canonicalName = canonicalName
    random = SplitMix64(seed: seed)
    schedule = RTCPSchedule(
      sessionBitsPerSecond: sessionBitsPerSecond, isSender: true, minimum: minimum, at: time, using: &random)
  }

  /// Writes the report that is due at `time`, when the wall clock shows `ntp`.
  ///
  /// The report is an SR if packets were sent within the last two intervals, otherwise an RR (RFC 3550 section 6.4).
  ///
  /// - Parameters:
  ///   - stream: The stream that the report describes.
  ///   - memory: The destination, at least ``room`` bytes.
  ///   - time: The current time, on the clock of ``schedule``.
  ///   - streamTime: The current time on the stream's own clock, the timestamp of a picture taken now. This clock may
  ///     lag behind, so that it does not decide when the report is due.
  ///   - ntp: The wall-clock time. Like `streamTime`, it is evaluated only if a report is due.
  /// - Returns: The number of bytes written; 0 if no report is due.
  public mutating func writeReport(
    of stream: RTPStream, into memory: UnsafeMutableRawBufferPointer, at time: Instant,
    streamTime: @autoclosure () -> Instant, ntp: @autoclosure () -> NTPTimestamp
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

  /// Writes a report for one new viewer outside the schedule, and returns its bytes. A unicast sender may introduce
  /// itself at once (RFC 3550 section 6.2). Before this report, the viewer knows neither clock nor name. With `delay`,
  /// the report also answers the viewer's reference time.
  public func writeIntroduction(
    of stream: RTPStream, answering delay: ReceiverDelay? = nil, into memory: UnsafeMutableRawBufferPointer,
    at time: Instant, ntp: NTPTimestamp
  ) -> Int {
    precondition(memory.count >= Self.room, "a report needs \(Self.room) bytes")
    var writer = RTCPWriter(into: memory)
    do throws(RTCPWriterError) {
      try write(stream, to: &writer, at: time, ntp: ntp)
      if let delay { try writer.appendReceiverDelays(sender: stream.ssrc, CollectionOfOne(delay)) }
    } catch {
      preconditionFailure("\(error)")
    }
    return writer.count
  }

  /// Writes the last datagram: the report, and BYE with a `reason` of at most 255 bytes. Returns its bytes.
  public func writeGoodbye(
    of stream: RTPStream, reason: StaticString = "", into memory: UnsafeMutableRawBufferPointer, at time: Instant,
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

  /// Returns `true` if packets of `stream` were sent within the last two intervals. Otherwise the participant is no
  /// longer a sender.
  private func isSender(_ stream: RTPStream) -> Bool { stream.packetsSent != packetsSent.before }

  private func write(
    _ stream: RTPStream, to writer: inout RTCPWriter, at time: Instant, ntp: NTPTimestamp
  ) throws(RTCPWriterError) {
    if isSender(stream) {
      try writer.append(SenderReport(stream, at: time, ntp: ntp))
    } else {
      try writer.appendReceiverReport(sender: stream.ssrc)
    }
    try writer.appendCanonicalName(canonicalName, of: stream.ssrc)
  }
}

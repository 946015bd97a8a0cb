public import Platform

extension RTPReceiver {
  /// The maximum number of NACK entries of one datagram; further ones go into the next.
  static let nackEntriesPerDatagram = 64
  /// The memory in bytes that ``writeFeedback(into:at:)`` needs at least: a report with a CNAME of 255 bytes, NACK
  /// and PLI.
  public static let feedbackRoom = 1024

  /// Takes an RTCP datagram that came at `time`. On a shared port, ``receive(_:at:deliver:)`` does so itself.
  ///
  /// - Throws: ``RTPReceiverError`` if the datagram as a whole is no RTCP. A malformed packet among others is
  ///   counted.
  public func receiveControl(_ datagram: UnsafeRawBufferPointer, at time: Instant) throws(RTPReceiverError) {
    do throws(RTPReceiverError) {
      try takeControl(datagram, at: time)
    } catch {
      counts.datagramsRefused &+= 1
      throw error
    }
  }

  func takeControl(_ datagram: UnsafeRawBufferPointer, at time: Instant) throws(RTPReceiverError) {
    var reader: RTCPReader
    do throws(RTCPError) { reader = try RTCPReader(datagram) } catch { throw .control(error) }
    schedule.counted(bytes: datagram.count)
    while true {
      do throws(RTCPError) {
        guard let packet = try reader.next() else { return }
        switch packet {
        case .senderReport(let report, _) where report.ssrc == source:
          senderReport = report
          lastSenderReportArrival = time
        case .goodbye(let sources, _):
          for source in sources where source.ssrc == self.source { hasEnded = true }
        default: break
        }
      } catch {
        counts.controlRefused &+= 1
      }
    }
  }

  /// Writes the next RTCP datagram for `time`: requests for missing packets, a PLI, and a report if one is due. Call
  /// until it returns 0.
  ///
  /// Feedback is sent at once (RFC 4585 section 3.3, immediate feedback: a session of two members is below any
  /// threshold). The retransmission policy and the PLI interval limit its rate.
  ///
  /// - Parameters:
  ///   - memory: The destination, at least ``feedbackRoom`` bytes.
  ///   - time: The current time.
  /// - Returns: The datagram's bytes; 0 for none.
  public func writeFeedback(into memory: UnsafeMutableRawBufferPointer, at time: Instant) -> Int {
    precondition(memory.count >= Self.feedbackRoom, "feedback needs \(Self.feedbackRoom) bytes")
    let isReportDue = schedule.expire(at: time, using: &random)
    var entries = 0
    var isPictureLossDue = false
    if source != nil, !hasEnded {
      entries = missing.request(from: window.head, to: window.end, at: time, into: nackEntries)
      isPictureLossDue = pictureLossDeadline.map { $0 <= time } ?? false
    }
    guard isReportDue || entries > 0 || isPictureLossDue else { return 0 }
    var writer = RTCPWriter(into: memory)
    do throws(RTCPWriterError) {
      if isReportDue || !configuration.isReducedSize { try writeReport(&writer, at: time) }
      if entries > 0, let source {
        try writer.appendNACK(sender: configuration.ssrc, media: source, entries: nackEntries[..<entries])
        counts.nacksSent &+= 1
      }
      if isPictureLossDue, let source {
        try writer.appendPictureLoss(sender: configuration.ssrc, media: source)
        lastPictureLoss = time
        counts.pictureLossesSent &+= 1
      }
    } catch {
      preconditionFailure("\(error)")
    }
    if isReportDue {
      schedule.sent(bytes: writer.count, at: time, using: &random)
    } else {
      schedule.counted(bytes: writer.count)
    }
    return writer.count
  }

  /// Requests a key frame, for a decoder that cannot go on. PLIs are repeated until an undamaged key frame comes.
  public func requestKeyFrame() { needsKeyFrame = true }

  /// Writes the last RTCP datagram: a report and BYE. Returns its bytes; `memory` has at least ``feedbackRoom``
  /// bytes.
  public func writeGoodbye(into memory: UnsafeMutableRawBufferPointer, at time: Instant) -> Int {
    precondition(memory.count >= Self.feedbackRoom, "feedback needs \(Self.feedbackRoom) bytes")
    var writer = RTCPWriter(into: memory)
    do throws(RTCPWriterError) {
      try writeReport(&writer, at: time)
      try writer.appendGoodbye(CollectionOfOne(SynchronizationSource(configuration.ssrc)))
    } catch {
      preconditionFailure("\(error)")
    }
    return writer.count
  }

  /// The time at which ``poll(at:deliver:)`` or ``writeFeedback(into:at:)`` must next be called.
  public var nextDeadline: Instant {
    var deadline = schedule.deadline
    if window.span > 0, let given = missing.deadline(of: window.head) { deadline = min(deadline, given) }
    guard source != nil, !hasEnded else { return deadline }
    if let request = missing.nextRequest(from: window.head, to: window.end) { deadline = min(deadline, request) }
    if let pictureLossDeadline { deadline = min(deadline, pictureLossDeadline) }
    return deadline
  }

  /// The time from which a PLI may be sent; `nil` if none is needed.
  private var pictureLossDeadline: Instant? {
    guard needsKeyFrame else { return nil }
    return lastPictureLoss.map { $0 + configuration.pictureLossInterval } ?? .zero
  }

  /// Writes an RR and an SDES packet, the start of every compound packet.
  private func writeReport(_ writer: inout RTCPWriter, at time: Instant) throws(RTCPWriterError) {
    let delay = senderReport == nil ? Duration.zero : time - lastSenderReportArrival
    if let source,
      let block = statistics?.reportBlock(
        of: source, lastSenderReport: senderReport?.ntp.compact ?? 0,
        delaySinceLastSenderReport: NTPTimestamp.compactSpan(delay))
    {
      try writer.appendReceiverReport(sender: configuration.ssrc, blocks: CollectionOfOne(block))
    } else {
      try writer.appendReceiverReport(sender: configuration.ssrc)
    }
    try writer.appendCanonicalName(configuration.canonicalName, of: configuration.ssrc)
    counts.reportsSent &+= 1
  }
}

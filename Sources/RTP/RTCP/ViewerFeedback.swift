public import Platform

/// The RTCP of one viewer, and the limits on answers to it. Use one object per viewer, from one thread.
///
/// The object answers NACKs from the stream's ``PacketHistory`` and keeps the viewer's report. It passes on requests
/// for a key frame, which a ``KeyFrameRequestLimiter`` shared by all viewers then limits.
public final class ViewerFeedback {
  /// The requests in one datagram.
  public struct Requests: Hashable, Sendable {
    /// `true` if the datagram requests a key frame, by PLI or by a FIR that is no repetition.
    public var keyFrame = false
    /// `true` if the viewer sent BYE.
    public var goodbye = false
    /// `true` if a receiver reported for the first time, perhaps because it joined in the middle of the stream.
    public var newReceiver = false
    /// The number of retransmitted packets.
    public var retransmissions = 0
    /// The bits a second that the receiver estimates that it can take (REMB); `nil` if it does not say so of our stream.
    public var receiverLimit: UInt64?
    /// `true` if the viewer has reported on our stream.
    public var isReport = false
    /// The receiver that has reported on our stream last.
    package var reporter: UInt32 = 0
    /// The receiver and the reference time of its extended report, to be answered by a ``ReceiverDelay``; `nil` within
    /// ``ViewerFeedback/referenceInterval`` of the one before.
    public var reference: Reference?

    /// Creates a value without requests.
    public init() {}
  }

  /// The time that a receiver sends to learn its round-trip time, RFC 3611 section 4.4.
  public struct Reference: Hashable, Sendable {
    /// The receiver.
    public var receiver: UInt32
    /// The receiver's clock when it sent the report.
    public var time: NTPTimestamp

    /// Creates a value.
    public init(receiver: UInt32, time: NTPTimestamp) {
      (self.receiver, self.time) = (receiver, time)
    }
  }

  /// The counts of one viewer.
  public struct Counts: Hashable, Sendable {
    /// The number of datagrams.
    public var datagrams: UInt64 = 0
    /// The number of datagrams that are no RTCP, and of malformed packets in others.
    public var refused: UInt64 = 0
    /// The number of PLIs for our stream.
    public var pictureLosses: UInt64 = 0
    /// The number of FIRs for our stream, without repetitions.
    public var fullIntraRequests: UInt64 = 0
    /// The number of requested packets.
    public var packetsRequested: UInt64 = 0
    /// The number of retransmitted packets.
    public var packetsRetransmitted: UInt64 = 0
    /// The number of retransmitted bytes, RTP headers included.
    public var bytesRetransmitted: UInt64 = 0
    /// The number of requested packets that were no longer held, or never sent.
    public var packetsGone: UInt64 = 0
    /// The number of requested packets beyond the viewer's limits, and of those that found no room on their way.
    public var packetsRefused: UInt64 = 0

    /// Creates counts of 0.
    public init() {}

    /// Returns the sums of both.
    package static func + (left: Counts, right: Counts) -> Counts {
      var sum = left
      sum.datagrams &+= right.datagrams
      sum.refused &+= right.refused
      sum.pictureLosses &+= right.pictureLosses
      sum.fullIntraRequests &+= right.fullIntraRequests
      sum.packetsRequested &+= right.packetsRequested
      sum.packetsRetransmitted &+= right.packetsRetransmitted
      sum.bytesRetransmitted &+= right.bytesRetransmitted
      sum.packetsGone &+= right.packetsGone
      sum.packetsRefused &+= right.packetsRefused
      return sum
    }
  }

  /// The maximum number of packets that one datagram may request; further ones count as refused.
  public static let requestsPerDatagram = 512

  /// The time between two reference times that are passed on. Browsers add one to each datagram.
  public static let referenceInterval = Duration.milliseconds(200)

  /// Our stream's source.
  public private(set) var media: UInt32
  /// The viewer's last report.
  public private(set) var reception: ReportedReception
  /// The network path to the viewer according to its last report. In a multicast group, the receiver that reported
  /// last determines the path.
  public private(set) var path = ReportedPath()
  /// The viewer's counts.
  public private(set) var counts = Counts()
  /// The amount by which the stream's sequence numbers exceed those that the viewer gets, where it has a numbering of its
  /// own.
  package var sequenceOffset: UInt16 = 0
  /// The negotiated retransmission stream; `nil` if packets are sent again unchanged.
  public private(set) var retransmissions: RetransmissionStream?

  private let readerLimits: RTCPReader.Limits
  private let allowReducedSize: Bool
  private var limiter: RetransmissionLimiter
  private var filter = FullIntraRequestFilter()
  private var members = MemberTable()
  /// The time until which receivers that seem new are taken for known ones.
  private var renaming: Instant?
  /// The time at which a reference time was passed on.
  private var lastReference: Instant?

  /// The time after a change of our source in which receivers may appear under new SSRCs. Some derive theirs from
  /// ours.
  private static let renamingTime = Duration(seconds: 20)
  private let headerMemory: UnsafeMutableRawBufferPointer

  /// Creates the feedback of a viewer that has sent nothing yet.
  ///
  /// - Parameters:
  ///   - media: Our stream's source.
  ///   - clockRate: Our stream's clock rate.
  ///   - retransmissions: This viewer's RTX stream, if negotiated (RFC 4588).
  ///   - allowReducedSize: `true` accepts feedback without a report before it (RFC 5506).
  ///   - limits: The limits of retransmission.
  ///   - readerLimits: The limits of a datagram.
  public init(
    media: UInt32, clockRate: Int64 = RTPStream.videoClockRate, retransmissions: RetransmissionStream? = nil,
    allowReducedSize: Bool = true, limits: RetransmissionLimiter.Limits = .init(),
    readerLimits: RTCPReader.Limits = .init()
  ) {
    self.media = media
    reception = ReportedReception(clockRate: clockRate)
    self.retransmissions = retransmissions
    self.allowReducedSize = allowReducedSize
    self.readerLimits = readerLimits
    limiter = RetransmissionLimiter(limits)
    headerMemory = .allocate(byteCount: RetransmissionStream.headerRoom, alignment: 8)
  }

  deinit {
    headerMemory.deallocate()
  }

  /// Returns `true` if several receivers have reported lately.
  package func isGroup(at time: Instant) -> Bool { members.isGroup(at: time) }

  /// Changes our stream's source at `time`. Requests about the former source are ignored.
  public func changeMedia(to ssrc: UInt32, at time: Instant) {
    media = ssrc
    members.forgetReports()
    renaming = time + Self.renamingTime
  }

  /// Takes an RTCP datagram from this viewer.
  ///
  /// - Parameters:
  ///   - datagram: The datagram's bytes.
  ///   - time: The arrival time.
  ///   - ntp: The arrival time on the clock of our sender reports.
  ///   - history: The packets sent.
  ///   - has: Returns `true` if the packet was sent to this viewer. Any other packet counts as gone.
  ///   - send: Sends one packet to this viewer, its two parts one after the other. Both are valid during the call.
  ///     Returns `false` if the packet found no room.
  /// - Throws: ``RTCPError`` if the datagram as a whole is no RTCP. A malformed packet among others is skipped and
  ///   counted.
  public func receive(
    _ datagram: UnsafeRawBufferPointer, at time: Instant, ntp: NTPTimestamp, history: borrowing PacketHistory,
    has: (_ sequenceNumber: UInt16) -> Bool = { _ in true },
    send: (_ header: UnsafeRawBufferPointer, _ payload: UnsafeRawBufferPointer) -> Bool
  ) throws(RTCPError) -> Requests {
    counts.datagrams &+= 1
    var reader: RTCPReader
    do throws(RTCPError) {
      reader = try RTCPReader(datagram, allowReducedSize: allowReducedSize, limits: readerLimits)
    } catch {
      counts.refused &+= 1
      throw error
    }
    var requests = Requests()
    var isAboutOther = false
    var budget = Self.requestsPerDatagram
    while true {
      do throws(RTCPError) {
        guard let packet = try reader.next() else { break }
        switch packet {
        case .senderReport(let report, let blocks):
          for block in blocks where block.ssrc == media {
            take(block, of: report.ssrc, at: time, ntp: ntp, &requests)
            // A receiver that sends as well is one.
            let isNew = members.note(report.ssrc, isReport: true, at: time)
            if isNew, time >= renaming ?? time { requests.newReceiver = true }
          }
        case .receiverReport(let sender, let blocks):
          for block in blocks where block.ssrc == media { take(block, of: sender, at: time, ntp: ntp, &requests) }
          // A browser reports each medium under another source; the one about another medium is no receiver of this one.
          isAboutOther = !blocks.isEmpty && !blocks.contains { $0.ssrc == media }
          if isAboutOther { continue }
          let isNew = members.note(sender, isReport: !blocks.isEmpty, at: time)
          if isNew, time >= renaming ?? time { requests.newReceiver = true }
        case .pictureLoss(_, media):
          counts.pictureLosses &+= 1
          requests.keyFrame = true
        case .fullIntraRequest(let sender, let entries):
          for entry in entries where entry.ssrc == media && filter.isNew(entry.sequenceNumber, from: sender) {
            counts.fullIntraRequests &+= 1
            requests.keyFrame = true
          }
        case .nack(_, media, let entries):
          for entry in entries {
            for requested in entry {
              let sequenceNumber = requested &+ sequenceOffset
              counts.packetsRequested &+= 1
              guard budget > 0 else {
                counts.packetsRefused &+= 1
                continue
              }
              budget -= 1
              guard has(sequenceNumber) else {
                counts.packetsGone &+= 1
                continue
              }
              if retransmit(sequenceNumber, at: time, history: history, send: send) { requests.retransmissions += 1 }
            }
          }
        case .goodbye(let sources, _):
          // A BYE for our own source is not the viewer's.
          if sources.contains(where: { $0.ssrc != media }) { requests.goodbye = true }
          for source in sources { members.remove(source.ssrc) }
        case .receiverLimit(_, let bits, let sources):
          if sources.contains(where: { $0.ssrc == media }) { requests.receiverLimit = bits }
        case .extendedReport(let sender, let reference?):
          if isAboutOther || lastReference.map({ time - $0 < Self.referenceInterval }) ?? false { continue }
          lastReference = time
          requests.reference = Reference(receiver: sender, time: reference)
        case .sourceDescription, .pictureLoss, .nack, .extendedReport, .other:
          break
        }
      } catch {
        counts.refused &+= 1
      }
    }
    return requests
  }

  private func take(
    _ block: ReportBlock, of reporter: UInt32, at time: Instant, ntp: NTPTimestamp, _ requests: inout Requests
  ) {
    (requests.isReport, requests.reporter) = (true, reporter)
    reception.take(block, at: time, ntp: ntp)
    // A block that refers to no sender report leaves the earlier measurement in place.
    path.take(
      roundTrip: block.lastSenderReport == 0 ? nil : reception.roundTrip, jitter: reception.jitter,
      fractionLost: reception.fractionLost)
  }

  private func retransmit(
    _ sequenceNumber: UInt16, at time: Instant, history: borrowing PacketHistory,
    send: (UnsafeRawBufferPointer, UnsafeRawBufferPointer) -> Bool
  ) -> Bool {
    // The reports of a group describe many paths: the losses of one receiver are no reason to refuse the others.
    let path = members.isGroup(at: time) ? ReportedPath() : path
    let outcome = history.withPacket(sequenceNumber, at: time) { packet, sent -> Bool in
      guard limiter.allows(sequenceNumber, bytes: packet.count, sent: sent, path: path, at: time) else { return false }
      if retransmissions != nil {
        guard let parts = retransmissions?.wrap(packet, into: headerMemory), send(parts.header, parts.payload) else {
          return false
        }
        counts.bytesRetransmitted &+= UInt64(parts.header.count + parts.payload.count)
      } else {
        guard send(packet, UnsafeRawBufferPointer(rebasing: packet[packet.count...])) else { return false }
        counts.bytesRetransmitted &+= UInt64(packet.count)
      }
      counts.packetsRetransmitted &+= 1
      return true
    }
    switch outcome {
    case true?: return true
    case false?: counts.packetsRefused &+= 1
    case nil: counts.packetsGone &+= 1
    }
    return false
  }
}

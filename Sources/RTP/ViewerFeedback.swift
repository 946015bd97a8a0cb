public import Media

/// What one viewer says by RTCP, and what answering it may cost. One object a viewer, used from one thread.
///
/// It answers NACKs from the stream's ``PacketHistory``, keeps the viewer's report, and says when it wants a key
/// frame, which a ``KeyFrameRequestLimiter`` shared by all viewers then limits.
public final class ViewerFeedback {
  /// What a datagram asked for.
  public struct Requests: Hashable, Sendable {
    /// Whether it asked for a key frame, by PLI or by a FIR that was not just repeated.
    public var keyFrame = false
    /// Whether the viewer said BYE.
    public var goodbye = false
    /// Whether a receiver reported for the first time: it may have come in the middle of the stream.
    public var newReceiver = false
    /// How many packets were retransmitted.
    public var retransmissions = 0

    /// Nothing asked for.
    public init() {}
  }

  /// What the viewer did so far.
  public struct Counts: Hashable, Sendable {
    /// Datagrams taken.
    public var datagrams: UInt64 = 0
    /// Datagrams that are no RTCP, and packets in others that are broken.
    public var refused: UInt64 = 0
    /// PLIs for our stream.
    public var pictureLosses: UInt64 = 0
    /// FIRs for our stream, without repetitions.
    public var fullIntraRequests: UInt64 = 0
    /// Packets asked for.
    public var packetsRequested: UInt64 = 0
    /// Packets retransmitted.
    public var packetsRetransmitted: UInt64 = 0
    /// Bytes retransmitted, RTP headers included.
    public var bytesRetransmitted: UInt64 = 0
    /// Packets asked for that were not held any more, or never sent.
    public var packetsGone: UInt64 = 0
    /// Packets asked for beyond what the viewer may cost.
    public var packetsRefused: UInt64 = 0

    /// Nothing yet.
    public init() {}
  }

  /// How many packets one datagram may ask for; what is beyond is counted as refused.
  public static let requestsPerDatagram = 512

  /// Our stream's source.
  public private(set) var media: UInt32
  /// What the viewer last reported.
  public private(set) var reception = ReportedReception()
  /// The way to it as its last report shows it; of a multicast group that of whichever receiver reported last.
  public private(set) var path = ReportedPath()
  /// What it did so far.
  public private(set) var counts = Counts()
  /// The retransmission stream where one was negotiated; nil where packets are sent again as they were.
  public private(set) var retransmissions: RetransmissionStream?

  private let readerLimits: RTCPReader.Limits
  private let allowReducedSize: Bool
  private var limiter: RetransmissionLimiter
  private var filter = FullIntraRequestFilter()
  private var members = MemberTable()
  /// Until when receivers that report for the first time are those from before.
  private var renaming: MediaTime?

  /// How long after a change of our source receivers may appear under other names: some derive theirs from ours.
  private static let renamingTime = MediaTime(seconds: 20)
  private let headerMemory: UnsafeMutableRawBufferPointer

  /// A viewer that has said nothing yet.
  ///
  /// - Parameters:
  ///   - media: Our stream's source.
  ///   - retransmissions: The RTX stream of this viewer, where negotiated (RFC 4588).
  ///   - allowReducedSize: Whether feedback may come without a report before it (RFC 5506).
  ///   - limits: What its NACKs may cost.
  ///   - readerLimits: What of a datagram is looked at.
  public init(
    media: UInt32, retransmissions: RetransmissionStream? = nil, allowReducedSize: Bool = true,
    limits: RetransmissionLimiter.Limits = .init(), readerLimits: RTCPReader.Limits = .init()
  ) {
    self.media = media
    self.retransmissions = retransmissions
    self.allowReducedSize = allowReducedSize
    self.readerLimits = readerLimits
    limiter = RetransmissionLimiter(limits)
    headerMemory = .allocate(byteCount: RetransmissionStream.headerRoom, alignment: 8)
  }

  deinit {
    headerMemory.deallocate()
  }

  /// Our stream has another source from `time` on: requests about the former one are nobody's any more.
  public func changeMedia(to ssrc: UInt32, at time: MediaTime) {
    media = ssrc
    renaming = time + Self.renamingTime
  }

  /// Takes an RTCP datagram that came from this viewer.
  ///
  /// - Parameters:
  ///   - datagram: Its bytes.
  ///   - time: When it came.
  ///   - ntp: The same on the clock that our sender reports carry.
  ///   - history: The packets sent.
  ///   - has: Whether this viewer was sent a packet at all; one that it was not counts as gone.
  ///   - send: Sends one packet, its two parts one after the other, to this viewer; both valid during the call.
  /// - Throws: ``RTCPError`` for what is no RTCP as a whole. A broken packet among others is skipped and counted.
  public func receive(
    _ datagram: UnsafeRawBufferPointer, at time: MediaTime, ntp: NTPTimestamp, history: borrowing PacketHistory,
    has: (_ sequenceNumber: UInt16) -> Bool = { _ in true },
    send: (_ header: UnsafeRawBufferPointer, _ payload: UnsafeRawBufferPointer) -> Void
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
    var budget = Self.requestsPerDatagram
    while true {
      do throws(RTCPError) {
        guard let packet = try reader.next() else { break }
        switch packet {
        case .senderReport(_, let blocks):
          for block in blocks where block.ssrc == media { take(block, at: time, ntp: ntp) }
        case .receiverReport(let sender, let blocks):
          for block in blocks where block.ssrc == media { take(block, at: time, ntp: ntp) }
          if members.note(sender, at: time), time >= renaming ?? time { requests.newReceiver = true }
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
            for sequenceNumber in entry {
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
          // What leaves under our own source is none of the viewer's.
          if sources.contains(where: { $0.ssrc != media }) { requests.goodbye = true }
          for source in sources { members.remove(source.ssrc) }
        case .sourceDescription, .pictureLoss, .nack, .other:
          break
        }
      } catch {
        counts.refused &+= 1
      }
    }
    return requests
  }

  private func take(_ block: ReportBlock, at time: MediaTime, ntp: NTPTimestamp) {
    reception.take(block, at: time, ntp: ntp)
    // Where the block refers to no sender report, what was measured before stays.
    path.take(
      roundTrip: block.lastSenderReport == 0 ? nil : reception.roundTrip, jitter: reception.jitter,
      fractionLost: reception.fractionLost)
  }

  private func retransmit(
    _ sequenceNumber: UInt16, at time: MediaTime, history: borrowing PacketHistory,
    send: (UnsafeRawBufferPointer, UnsafeRawBufferPointer) -> Void
  ) -> Bool {
    // Reports of a group are of many ways: the trouble of one receiver is no reason to refuse the others.
    let path = members.isGroup(at: time) ? ReportedPath() : path
    let outcome = history.withPacket(sequenceNumber, at: time) { packet, sent -> Bool in
      guard limiter.allows(sequenceNumber, bytes: packet.count, sent: sent, path: path, at: time) else { return false }
      if retransmissions != nil {
        guard let parts = retransmissions?.wrap(packet, into: headerMemory) else { return false }
        send(parts.header, parts.payload)
        counts.bytesRetransmitted &+= UInt64(parts.header.count + parts.payload.count)
      } else {
        send(packet, UnsafeRawBufferPointer(rebasing: packet[packet.count...]))
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

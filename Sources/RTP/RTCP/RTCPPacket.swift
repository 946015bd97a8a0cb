/// One packet of a received RTCP datagram, with lists lent in place: RFC 3550 section 6, RFC 3611, RFC 4585 section 6,
/// RFC 5104.
public enum RTCPPacket {
  /// The numbers of the packet types and of the feedback formats.
  enum TypeNumber {
    static let senderReport: UInt8 = 200
    static let receiverReport: UInt8 = 201
    static let sourceDescription: UInt8 = 202
    static let goodbye: UInt8 = 203
    static let transportFeedback: UInt8 = 205
    static let payloadFeedback: UInt8 = 206
    static let extendedReport: UInt8 = 207
    static let nackFormat: UInt8 = 1
    static let pictureLossFormat: UInt8 = 1
    static let fullIntraFormat: UInt8 = 4
    static let applicationFormat: UInt8 = 15
    /// Block types of an extended report, RFC 3611 sections 4.4 and 4.5.
    static let receiverReferenceBlock: UInt8 = 4
    static let receiverDelayBlock: UInt8 = 5
  }

  /// A sender report (SR) with its report blocks, RFC 3550 section 6.4.1.
  case senderReport(SenderReport, RTCPRecords<ReportBlock>)
  /// A receiver report (RR) with its sender and its report blocks, RFC 3550 section 6.4.2.
  case receiverReport(sender: UInt32, RTCPRecords<ReportBlock>)
  /// A source description (SDES), RFC 3550 section 6.5.
  case sourceDescription(SourceDescriptionItems)
  /// A BYE packet and its reason, which is often empty.
  case goodbye(RTCPRecords<SynchronizationSource>, reason: UnsafeRawBufferPointer)
  /// A generic NACK that requests packets of `media`.
  case nack(sender: UInt32, media: UInt32, RTCPRecords<NACKEntry>)
  /// A PLI: pictures of `media` were lost.
  case pictureLoss(sender: UInt32, media: UInt32)
  /// A Full Intra Request (FIR), RFC 5104 section 4.3.1.
  case fullIntraRequest(sender: UInt32, RTCPRecords<FullIntraRequestEntry>)
  /// The bits a second that a receiver estimates that it can take, over these streams (REMB,
  /// draft-alvestrand-rmcat-remb-03).
  case receiverLimit(sender: UInt32, bitsPerSecond: UInt64, RTCPRecords<SynchronizationSource>)
  /// An extended report (XR), RFC 3611, of which only the receiver's reference time is read: `nil` if it has none.
  case extendedReport(sender: UInt32, reference: NTPTimestamp?)
  /// Any other packet, APP included, to be skipped. `format` is the five bits after the padding bit.
  case other(type: UInt8, format: UInt8)

  /// Parses the packet of `type`. `body` excludes the four bytes of header and the padding.
  init(type: UInt8, format: UInt8, body: UnsafeRawBufferPointer) throws(RTCPError) {
    func part(_ start: Int, _ count: Int) throws(RTCPError) -> UnsafeRawBufferPointer {
      guard start + count <= body.count else {
        throw .body(type: type, needed: start + count, available: body.count)
      }
      return UnsafeRawBufferPointer(rebasing: body[start..<start + count])
    }
    let count = Int(format)
    switch type {
    case TypeNumber.senderReport:
      self = .senderReport(
        SenderReport(record: try part(0, SenderReport.byteCount)),
        RTCPRecords(try part(SenderReport.byteCount, count * ReportBlock.byteCount)))
    case TypeNumber.receiverReport:
      self = .receiverReport(
        sender: try part(0, 4).bigEndian(at: 0), RTCPRecords(try part(4, count * ReportBlock.byteCount)))
    case TypeNumber.sourceDescription:
      self = .sourceDescription(try SourceDescriptionItems(body, chunks: count))
    case TypeNumber.goodbye:
      let sources = try part(0, count * SynchronizationSource.byteCount)
      let rest = UnsafeRawBufferPointer(rebasing: body[sources.count...])
      var reason = UnsafeRawBufferPointer(rebasing: rest[..<0])
      if let length = rest.first {
        guard 1 + Int(length) <= rest.count else { throw .reason(Int(length), available: rest.count - 1) }
        reason = UnsafeRawBufferPointer(rebasing: rest[1..<1 + Int(length)])
      }
      self = .goodbye(RTCPRecords(sources), reason: reason)
    case TypeNumber.transportFeedback where format == TypeNumber.nackFormat:
      let sources = try part(0, 8)
      self = .nack(
        sender: sources.bigEndian(at: 0), media: sources.bigEndian(at: 4), RTCPRecords(try part(8, body.count - 8)))
    case TypeNumber.payloadFeedback where format == TypeNumber.pictureLossFormat:
      let sources = try part(0, 8)
      self = .pictureLoss(sender: sources.bigEndian(at: 0), media: sources.bigEndian(at: 4))
    case TypeNumber.payloadFeedback where format == TypeNumber.fullIntraFormat:
      // The media source is unused here: each entry has its own (RFC 5104 section 4.3.1.2).
      let sources = try part(0, 8)
      self = .fullIntraRequest(sender: sources.bigEndian(at: 0), RTCPRecords(try part(8, body.count - 8)))
    case TypeNumber.payloadFeedback where format == TypeNumber.applicationFormat && Self.isReceiverLimit(body):
      let value: UInt32 = try part(12, 4).bigEndian(at: 0)
      // Eight bits are the number of sources, six the exponent, eighteen the mantissa.
      let (mantissa, exponent) = (UInt64(value & 0x3ffff), value >> 18 & 0x3f)
      let limit = exponent > 45 ? UInt64.max : mantissa << exponent
      let sources = RTCPRecords<SynchronizationSource>(
        try part(16, Int(value >> 24) * SynchronizationSource.byteCount))
      self = .receiverLimit(sender: body.bigEndian(at: 0), bitsPerSecond: mantissa == 0 ? 0 : limit, sources)
    case TypeNumber.extendedReport:
      let sender: UInt32 = try part(0, 4).bigEndian(at: 0)
      var reference: NTPTimestamp?
      var offset = 4
      while offset < body.count {
        let header = try part(offset, 4)
        let contents = try part(offset + 4, Int(header.bigEndian(at: 2) as UInt16) * 4)
        if header[0] == TypeNumber.receiverReferenceBlock, contents.count == 8 {
          reference = NTPTimestamp(rawValue: contents.bigEndian(at: 0))
        }
        offset += 4 + contents.count
      }
      self = .extendedReport(sender: sender, reference: reference)
    default:
      self = .other(type: type, format: format)
    }
  }
}

extension RTCPPacket {
  /// Returns `true` if the body of an application's feedback begins as that of REMB does.
  private static func isReceiverLimit(_ body: UnsafeRawBufferPointer) -> Bool {
    body.count >= 12 && body.bigEndian(at: 8) as UInt32 == 0x5245_4d42
  }
}

/// A reader of the packets of one received RTCP datagram, whose bytes the caller lends.
///
/// The reader checks all lengths before it reads any packet (RFC 3550 appendix A.2). One wrong length invalidates the
/// whole datagram. The reader allocates no memory.
public struct RTCPReader {
  /// The limits of a datagram.
  public struct Limits: Hashable, Sendable {
    /// The maximum number of bytes of a datagram.
    public var bytes: Int
    /// The maximum number of packets of a datagram.
    public var packets: Int

    /// Creates limits that no honest peer reaches: the RTCP of a peer fits an Ethernet MTU.
    public init(bytes: Int = 2048, packets: Int = 64) {
      self.bytes = bytes
      self.packets = packets
    }
  }

  private let bytes: UnsafeRawBufferPointer
  private var offset = 0

  /// Creates a reader of the datagram in `bytes`.
  ///
  /// - Parameters:
  ///   - bytes: One UDP payload, lent as long as the reader is used.
  ///   - allowReducedSize: `true` accepts feedback without a report before it (RFC 5506).
  ///   - limits: The limits of the datagram.
  /// - Throws: ``RTCPError`` if the datagram as a whole is no RTCP.
  public init(
    _ bytes: UnsafeRawBufferPointer, allowReducedSize: Bool = true, limits: Limits = Limits()
  ) throws(RTCPError) {
    guard bytes.count <= limits.bytes else { throw .size(bytes.count, limit: limits.bytes) }
    self.bytes = bytes
    var packets = 0
    var start = 0
    repeat {
      guard packets < limits.packets else { throw .packets(limit: limits.packets) }
      guard start + 4 <= bytes.count else { throw .short(bytes.count - start, offset: start) }
      guard bytes[start] >> 6 == RTPHeader.version else { throw .version(bytes[start] >> 6, offset: start) }
      let length = Self.length(bytes, at: start)
      guard start + length <= bytes.count else { throw .length(length, available: bytes.count - start) }
      if bytes[start] & 0x20 != 0 {
        // Only the last packet of a compound packet has padding, RFC 3550 section 6.4.1.
        let padding = Int(bytes[start + length - 1])
        guard start + length == bytes.count, padding > 0, padding.isMultiple(of: 4), padding <= length - 4 else {
          throw .padding(padding, available: length - 4)
        }
      }
      if packets == 0, !allowReducedSize {
        let type = bytes[1]
        guard type == RTCPPacket.TypeNumber.senderReport || type == RTCPPacket.TypeNumber.receiverReport else {
          throw .firstPacket(type)
        }
      }
      packets += 1
      start += length
    } while start < bytes.count
  }

  private static func length(_ bytes: UnsafeRawBufferPointer, at start: Int) -> Int {
    (Int(bytes[start + 2]) << 8 | Int(bytes[start + 3])) * 4 + 4
  }

  /// Returns the next packet; `nil` after the last.
  ///
  /// - Throws: ``RTCPError`` for a packet with a malformed body. The next call returns the packet after it.
  public mutating func next() throws(RTCPError) -> RTCPPacket? {
    guard offset < bytes.count else { return nil }
    let start = offset
    let length = Self.length(bytes, at: start)
    offset += length
    let padding = bytes[start] & 0x20 != 0 ? Int(bytes[start + length - 1]) : 0
    return try RTCPPacket(
      type: bytes[start + 1], format: bytes[start] & 0x1f,
      body: UnsafeRawBufferPointer(rebasing: bytes[start + 4..<start + length - padding]))
  }
}

/// The kind of a datagram on a port that RTP and RTCP share.
public enum RTPMultiplexing: Hashable, Sendable {
  /// An RTP packet.
  case rtp
  /// An RTCP packet.
  case rtcp
  /// Neither RTP nor RTCP: STUN, DTLS (RFC 7983), or noise.
  case other

  /// Classifies `datagram`. The packet types 192…223 belong to RTCP, so that 64…95 are no RTP payload types there
  /// (RFC 5761 section 4).
  public init(_ datagram: UnsafeRawBufferPointer) {
    guard datagram.count >= 4, datagram[0] >> 6 == RTPHeader.version else {
      self = .other
      return
    }
    self = (192...223).contains(datagram[1]) ? .rtcp : .rtp
  }
}

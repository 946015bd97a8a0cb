public import Media

extension RTPReceiver {
  /// What is received, and within which limits.
  public struct Configuration: Sendable {
    /// Our own source, in reports and feedback.
    public var ssrc: UInt32
    /// Our CNAME, at most 255 bytes: the same for all that one participant sends (RFC 7022 says how to make one).
    public var canonicalName: String
    /// The sender's payload type.
    public var payloadType: RTPPayloadType
    /// The payload type of retransmissions where RTX was negotiated.
    public var retransmissionPayloadType: RTPPayloadType?
    /// The only source that is taken, where it is known beforehand.
    public var source: UInt32?
    /// Whether RTP and RTCP share a port, so that ``RTPReceiver/receive(_:at:deliver:)`` gets both.
    public var isMultiplexed: Bool
    /// Whether feedback may go without a report before it (`a=rtcp-rsize`, RFC 5506).
    public var isReducedSize: Bool
    /// How packets are asked for again.
    public var retransmission: RetransmissionPolicy
    /// Packets that are held while one before them is missing, rounded up to a power of two up to 16,384.
    public var packets: Int
    /// The largest packet; the reorder buffer has room for as many of this size.
    public var maximumPacketSize: Int
    /// How long after a PLI the next may follow.
    public var pictureLossInterval: MediaTime
    /// What an access unit may cost.
    public var limits: H264Depacketizer.Limits
    /// Bits a second of the session, from which the reports' interval follows.
    public var sessionBitsPerSecond: Double
    /// Seed of the reports' random intervals.
    public var seed: UInt64

    /// A configuration; see the properties.
    public init(
      ssrc: UInt32 = .random(in: 1 ... .max), canonicalName: String = "nightjar", payloadType: RTPPayloadType = .h264,
      retransmissionPayloadType: RTPPayloadType? = nil, source: UInt32? = nil, isMultiplexed: Bool = true,
      isReducedSize: Bool = true, retransmission: RetransmissionPolicy = .init(), packets: Int = 1024,
      maximumPacketSize: Int = 1500, pictureLossInterval: MediaTime = MediaTime(nanoseconds: 500_000_000),
      limits: H264Depacketizer.Limits = .init(), sessionBitsPerSecond: Double = 2_000_000,
      seed: UInt64 = .random(in: 0 ... .max)
    ) {
      self.ssrc = ssrc
      self.canonicalName = canonicalName
      self.payloadType = payloadType
      self.retransmissionPayloadType = retransmissionPayloadType
      self.source = source
      self.isMultiplexed = isMultiplexed
      self.isReducedSize = isReducedSize
      self.retransmission = retransmission
      self.packets = packets
      self.maximumPacketSize = min(max(maximumPacketSize, PacketSize.minimum), PacketSize.maximum)
      self.pictureLossInterval = pictureLossInterval
      self.limits = limits
      self.sessionBitsPerSecond = sessionBitsPerSecond
      self.seed = seed
    }
  }

  /// What the receiver did so far.
  public struct Counts: Hashable, Sendable {
    /// Datagrams refused as a whole.
    public var datagramsRefused: UInt64 = 0
    /// Packets of a source that proved to be none, or with a sequence number far from all others.
    public var packetsDropped: UInt64 = 0
    /// Packets that came twice, or after they were given up.
    public var packetsRepeated: UInt64 = 0
    /// Packets that came late without having been asked for, and in time.
    public var packetsReordered: UInt64 = 0
    /// Packets that came after they were asked for.
    public var packetsRecovered: UInt64 = 0
    /// Packets given up.
    public var packetsLost: UInt64 = 0
    /// RTX packets received.
    public var retransmissions: UInt64 = 0
    /// Packets whose H.264 was refused.
    public var payloadsRefused: UInt64 = 0
    /// Access units delivered.
    public var accessUnits: UInt64 = 0
    /// Those of them that are damaged.
    public var accessUnitsDamaged: UInt64 = 0
    /// RTCP packets that are broken, among others that are not.
    public var controlRefused: UInt64 = 0
    /// NACK packets written.
    public var nacksSent: UInt64 = 0
    /// PLIs written.
    public var pictureLossesSent: UInt64 = 0
    /// Receiver reports written.
    public var reportsSent: UInt64 = 0
  }
}

public import Media
public import Platform

extension RTPReceiver {
  /// The contents of the packets.
  public enum Contents: Hashable, Sendable, CaseIterable {
    /// H.264, RFC 6184.
    case h264
    /// HEVC, RFC 7798.
    case hevc
    /// Opus, RFC 7587. A lost packet is given up, and damages no other.
    case opus

    /// The RTP clock rate in ticks per second.
    public var clockRate: Int64 { self == .opus ? OpusPacketizer.clockRate : RTPStream.videoClockRate }

    /// The codec of the pictures; nil for sound.
    public var codec: VideoCodec? {
      switch self {
      case .h264: .h264
      case .hevc: .hevc
      case .opus: nil
      }
    }

    /// The contents of a stream of pictures of `codec`.
    public init(_ codec: VideoCodec) { self = codec == .hevc ? .hevc : .h264 }
  }

  /// The stream to receive, and the limits on it.
  public struct Configuration: Sendable {
    /// Our own source, in reports and feedback.
    public var ssrc: UInt32
    /// Our CNAME, at most 255 bytes: the same for everything that one participant sends (RFC 7022 describes how to
    /// generate one).
    public var canonicalName: String
    /// The contents of the packets.
    public var contents: Contents
    /// The sender's payload type.
    public var payloadType: RTPPayloadType
    /// The payload type of retransmissions, if RTX was negotiated.
    public var retransmissionPayloadType: RTPPayloadType?
    /// The only accepted source, if known beforehand.
    public var source: UInt32?
    /// `true` if RTP and RTCP share a port, so that ``RTPReceiver/receive(_:at:deliver:)`` gets both.
    public var isMultiplexed: Bool
    /// `true` if feedback may be sent without a report before it (`a=rtcp-rsize`, RFC 5506).
    public var isReducedSize: Bool
    /// The rules for requesting retransmissions.
    public var retransmission: RetransmissionPolicy
    /// The number of packets held while an earlier one is missing, rounded up to a power of two up to 16,384.
    public var packets: Int
    /// The maximum packet size in bytes. The reorder buffer has room for all its packets at this size.
    public var maximumPacketSize: Int
    /// The minimum time between two PLIs.
    public var pictureLossInterval: Duration
    /// The limits of an access unit.
    public var limits: AccessUnitLimits
    /// The session bandwidth in bits per second, from which the interval of the reports follows.
    public var sessionBitsPerSecond: Double
    /// The seed of the reports' random intervals.
    public var seed: UInt64

    /// Creates a configuration; see the properties.
    public init(
      ssrc: UInt32 = .random(in: 1 ... .max), canonicalName: String = "nightjar", contents: Contents = .h264,
      payloadType: RTPPayloadType = .h264, retransmissionPayloadType: RTPPayloadType? = nil, source: UInt32? = nil,
      isMultiplexed: Bool = true,
      isReducedSize: Bool = true, retransmission: RetransmissionPolicy = .init(), packets: Int = 1024,
      maximumPacketSize: Int = 1500, pictureLossInterval: Duration = .milliseconds(500),
      limits: AccessUnitLimits = .init(), sessionBitsPerSecond: Double = 2_000_000,
      seed: UInt64 = .random(in: 0 ... .max)
    ) {
      self.ssrc = ssrc
      self.canonicalName = canonicalName
      self.contents = contents
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

  /// The counts of a receiver.
  public struct Counts: Hashable, Sendable {
    /// The number of datagrams refused as a whole.
    public var datagramsRefused: UInt64 = 0
    /// The number of packets from a source that was not confirmed, or with a sequence number far from all others.
    public var packetsDropped: UInt64 = 0
    /// The number of packets that came twice, or after they were given up.
    public var packetsRepeated: UInt64 = 0
    /// The number of packets that came late but in time, and without a request.
    public var packetsReordered: UInt64 = 0
    /// The number of packets that came after a request.
    public var packetsRecovered: UInt64 = 0
    /// The number of packets given up.
    public var packetsLost: UInt64 = 0
    /// The number of RTX packets received.
    public var retransmissions: UInt64 = 0
    /// The number of packets whose contents were refused.
    public var payloadsRefused: UInt64 = 0
    /// The number of access units delivered: pictures, or packets of sound.
    public var accessUnits: UInt64 = 0
    /// The number of damaged access units among those delivered.
    public var accessUnitsDamaged: UInt64 = 0
    /// The number of malformed RTCP packets in otherwise valid datagrams.
    public var controlRefused: UInt64 = 0
    /// The number of NACK packets written.
    public var nacksSent: UInt64 = 0
    /// The number of PLIs written.
    public var pictureLossesSent: UInt64 = 0
    /// The number of receiver reports written.
    public var reportsSent: UInt64 = 0

    /// Creates counts of zero.
    public init() {}
  }
}

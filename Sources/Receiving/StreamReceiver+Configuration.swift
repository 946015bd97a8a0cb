public import Platform
public import RTP

extension StreamReceiver {
  /// The stream to receive.
  public enum Source: Hashable, Sendable {
    /// A stream of an RTSP server.
    case rtsp(StreamURL)
    /// A stream that is sent in any case, by the text of its session description (SDP).
    case sessionDescription(String)
  }

  /// The way of packets from an RTSP server.
  public enum Transport: String, Hashable, Sendable, CaseIterable {
    /// UDP, and TCP where that fails; TCP for rtsps.
    case automatic
    /// UDP: a lost packet is requested again, and delays no other. With rtsps the packets are encrypted by SRTP.
    case udp
    /// The RTSP connection itself: nothing is lost, and everything waits for what comes late.
    case tcp
    /// The server's multicast group, which all its members share.
    case multicast
  }

  /// The settings of a receiver.
  public struct Configuration: Sendable {
    /// The way of the packets.
    public var transport: Transport
    /// `true` receives the sound beside the picture, where there is Opus.
    public var receivesSound: Bool
    /// The name of the interface on which groups are joined; nil is that of the RTSP connection, or else of the route.
    public var interface: String?
    /// The user name; that of the URL comes first.
    public var user: String?
    /// The password; that of the URL comes first.
    public var password: String?
    /// The SHA-256 fingerprint of the server's certificate, 32 bytes; then nothing else of the certificate counts. Nil asks
    /// the system's authorities.
    public var certificateFingerprint: [UInt8]?
    /// The time for each step: to find the host, to connect, to answer a request.
    public var answerTimeout: Duration
    /// The time without a packet after which the stream counts as lost.
    public var silenceTimeout: Duration
    /// `true` connects again after a loss, after 1 s, 2 s, 4 s up to a minute.
    public var reconnects: Bool
    /// The rules for requesting lost packets over UDP.
    public var retransmission: RetransmissionPolicy
    /// The limits of an access unit.
    public var limits: AccessUnitLimits

    /// Creates a configuration; see the properties.
    public init(
      transport: Transport = .automatic, receivesSound: Bool = true, interface: String? = nil, user: String? = nil,
      password: String? = nil,
      certificateFingerprint: [UInt8]? = nil, answerTimeout: Duration = .seconds(10),
      silenceTimeout: Duration = .seconds(10), reconnects: Bool = true, retransmission: RetransmissionPolicy = .init(),
      limits: AccessUnitLimits = .init()
    ) {
      self.transport = transport
      self.receivesSound = receivesSound
      self.interface = interface
      self.user = user
      self.password = password
      self.certificateFingerprint = certificateFingerprint
      self.answerTimeout = answerTimeout
      self.silenceTimeout = silenceTimeout
      self.reconnects = reconnects
      self.retransmission = retransmission
      self.limits = limits
    }

    /// Checks every value.
    ///
    /// - Throws: ``ReceiverError/configuration(_:)`` with the value and the limit.
    public func check() throws(ReceiverError) {
      if let certificateFingerprint, certificateFingerprint.count != 32 {
        throw .configuration("a fingerprint of \(certificateFingerprint.count) bytes: SHA-256 has 32")
      }
      for (value, name) in [(answerTimeout, "time for an answer"), (silenceTimeout, "time without a packet")] {
        guard value >= .milliseconds(100), value <= .seconds(3600) else {
          throw .configuration("a \(name) of \(value.seconds) s: choose 0.1 to 3600")
        }
      }
    }
  }

  /// A change of a receiver's state.
  public enum Event: Hashable, Sendable {
    /// Packets may come: the server plays, or the ports of a session description are open. The text says how.
    case playing(String)
    /// The stream is lost for this reason; another attempt follows after the delay.
    case lost(ReceiverError, retry: Duration)
    /// The receiver ends for this reason.
    case ended(ReceiverError)
  }

  /// The figures of a receiver, since it was created.
  public struct Statistics: Sendable {
    /// The number of attempts to connect.
    public var attempts: UInt64 = 0
    /// `true` while packets may come.
    public var isPlaying = false
    /// The reason for the last loss, or for the end; nil before the first.
    public var lastFailure: ReceiverError?
    /// The number of bytes of RTP, headers included.
    public var bytes: UInt64 = 0
    /// The number of RTP packets that came.
    public var packets: UInt64 = 0
    /// The number of packets that SRTP refused: forged, replayed or under another key.
    public var packetsRefused: UInt64 = 0
    /// The counts of the present session.
    public var counts = RTPReceiver.Counts()
    /// The number of access units that were delivered, damaged ones included.
    public var accessUnits: UInt64 = 0
    /// The number of damaged access units among them.
    public var accessUnitsDamaged: UInt64 = 0
    /// The interarrival jitter of RFC 3550.
    public var jitter = Duration.zero
    /// The time that a retransmission takes; nil before the first.
    public var roundTrip: Duration?
    /// The time from the sender's clock reading of the last access unit to its arrival, by sender reports. It includes the
    /// difference of both hosts' clocks; nil before the first report.
    public var delay: Duration?
    /// The time at which the last access unit was complete; nil before the first.
    public var lastArrival: Instant?
    /// The figures of the sound; nil where none is received.
    public var sound: SoundStatistics?
    /// The codecs of a sound that is not received, for people; nil where there is Opus, or no sound.
    public var otherSound: String?

    /// Creates figures of zero.
    public init() {}
  }

  /// The figures of the sound, since the receiver was created.
  public struct SoundStatistics: Sendable {
    /// The number of bytes of RTP, headers included.
    public var bytes: UInt64 = 0
    /// The number of RTP packets that came.
    public var packets: UInt64 = 0
    /// The counts of the present session.
    public var counts = RTPReceiver.Counts()
    /// The interarrival jitter of RFC 3550.
    public var jitter = Duration.zero
    /// The time from the sender's clock reading of the last packet to its arrival, as of the picture.
    public var delay: Duration?
    /// The time at which the last packet came; nil before the first.
    public var lastArrival: Instant?

    /// Creates figures of zero.
    public init() {}
  }
}

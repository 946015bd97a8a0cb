import RTP
public import SRTP

/// What protects the packets of one stream: whoever shares it shares the packets, encrypted once.
struct StreamProtection: Hashable {
  let key: SRTPKey
  /// The stream's source. It belongs to the key: two streams of one source under one key would give both away
  /// (RFC 3711 section 9.1).
  let ssrc: UInt32

  /// The numbering of a stream that begins: its first sequence number is in the lower half, so that a lost first packet
  /// does not make a receiver guess the rollover counter wrongly (RFC 4568 section 6.4).
  func stream(_ payloadType: RTPPayloadType) -> RTPStream {
    RTPStream(
      payloadType: payloadType, ssrc: ssrc, firstSequenceNumber: .random(in: 0..<0x8000),
      timestampOffset: .random(in: 0 ... .max))
  }
}

extension StreamDestination {
  /// How the packets of a destination are protected.
  public struct Protection: Hashable, Sendable {
    /// The suite; nil is the key file's, or ``SRTPSuite/aes128CounterHMAC80`` without one.
    public var suite: SRTPSuite?
    /// The file with the key; nil is a new key at each start.
    public var keyFile: String?

    /// A protection; see the properties.
    public init(suite: SRTPSuite? = nil, keyFile: String? = nil) {
      self.suite = suite
      self.keyFile = keyFile
    }

    /// The key: the file's, or a new one.
    ///
    /// - Throws: `SRTPKeyError`, ``StreamDestinationError/otherSuite(_:_:file:)``.
    func key() throws -> SRTPKey {
      guard let keyFile else { return SRTPKey(random: suite ?? .aes128CounterHMAC80) }
      let key = try SRTPKey(contentsOf: keyFile)
      guard suite == nil || suite == key.suite else {
        throw StreamDestinationError.otherSuite(suite?.rawValue ?? "", key.suite.rawValue, file: keyFile)
      }
      return key
    }

    /// The most bytes that a packet may grow by.
    var overhead: Int {
      suite?.packetOverhead ?? SRTPSuite.allCases.reduce(0) { max($0, $1.packetOverhead) }
    }
  }
}

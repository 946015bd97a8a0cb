public import RTP

/// A key by MIKEY (RFC 3830), as RTSP carries it (RFC 4567): the pre-shared-key message without encryption or
/// authentication of its own. Whatever carries it must do both; here it is TLS, and nothing else.
///
/// Key and salt go together as one traffic-encrypting key, as GStreamer, live555 and others write it.
public struct MIKEYMessage: Hashable, Sendable {
  /// A stream that the key is for: one crypto session, RFC 3830 section 6.1.1.
  public struct Stream: Hashable, Sendable {
    /// Its source.
    public var ssrc: UInt32
    /// How often its sequence number has begun anew.
    public var rolloverCounter: UInt32

    /// A stream.
    public init(ssrc: UInt32, rolloverCounter: UInt32 = 0) {
      self.ssrc = ssrc
      self.rolloverCounter = rolloverCounter
    }
  }

  /// The key with its suite.
  public var key: SRTPKey
  /// The streams that it is for.
  public var streams: [Stream]

  /// The longest message that is read, in bytes.
  public static let lengthLimit = 2048

  /// A message; see the properties.
  public init(key: SRTPKey, streams: [Stream]) {
    self.key = key
    self.streams = streams
  }

  /// What a payload is, RFC 3830 table 6.1.b.
  enum PayloadType {
    static let last: UInt8 = 0
    static let keyTransport: UInt8 = 1
    static let timestamp: UInt8 = 5
    static let identifier: UInt8 = 6
    static let securityPolicy: UInt8 = 10
    static let random: UInt8 = 11
    static let keyData: UInt8 = 20
    static let generalExtension: UInt8 = 21
  }

  /// The parameters of SRTP's policy, RFC 3830 section 6.10.1 and RFC 7714 section 14.3.
  enum Parameter {
    static let cipher: UInt8 = 0
    static let cipherKeyLength: UInt8 = 1
    static let authentication: UInt8 = 2
    static let authenticationKeyLength: UInt8 = 3
    static let saltLength: UInt8 = 4
    static let pseudorandomFunction: UInt8 = 5
    static let derivationRate: UInt8 = 6
    static let isMediaEncrypted: UInt8 = 7
    static let isControlEncrypted: UInt8 = 8
    static let isMediaAuthenticated: UInt8 = 10
    static let tagLength: UInt8 = 11
    static let prefixLength: UInt8 = 12
    static let sealedTagLength: UInt8 = 20
  }

  /// AES in counter mode and AES-GCM, as ``Parameter/cipher`` numbers them.
  static let counterMode: UInt8 = 1
  static let galoisCounterMode: UInt8 = 6

  /// The message as base64: the value of `a=key-mgmt` behind `mikey `, and of `data=` in `KeyMgmt`.
  ///
  /// - Parameters:
  ///   - time: now, which the message carries.
  ///   - generator: for the message's number and nonce; no key comes from it.
  public func text(at time: NTPTimestamp, using generator: inout some RandomNumberGenerator) -> String {
    Base64.encode(bytes(at: time, using: &generator))
  }

  /// The message, RFC 3830 section 6.
  public func bytes(at time: NTPTimestamp, using generator: inout some RandomNumberGenerator) -> [UInt8] {
    let identifier = UInt32.random(in: 0 ... .max, using: &generator)
    // Version 1, pre-shared key, what follows, no answer wanted, and the standard's pseudorandom function.
    var bytes: [UInt8] = [1, 0, PayloadType.timestamp, 0]
    bytes.append(bigEndian: identifier)
    bytes += [UInt8(streams.count), 0]
    for stream in streams {
      bytes.append(0)
      bytes.append(bigEndian: stream.ssrc)
      bytes.append(bigEndian: stream.rolloverCounter)
    }
    bytes += [PayloadType.random, 0]
    bytes.append(bigEndian: time.rawValue)
    bytes += [PayloadType.securityPolicy, 16]
    bytes += (0..<16).map { _ in UInt8.random(in: 0...255, using: &generator) }
    let policy = policy
    bytes += [PayloadType.keyTransport, 0, 0]
    bytes.append(bigEndian: UInt16(policy.count * 3))
    for (type, value) in policy { bytes += [type, 1, value] }
    // A key transport without cipher and MAC, of one traffic-encrypting key without a time of its own.
    bytes += [PayloadType.last, 0]
    bytes.append(bigEndian: UInt16(4 + key.bytes.count))
    bytes += [PayloadType.last, Self.trafficKey << 4]
    bytes.append(bigEndian: UInt16(key.bytes.count))
    bytes += key.bytes
    bytes.append(0)
    return bytes
  }

  /// Types of key data, RFC 3830 section 6.13.
  static let trafficKey: UInt8 = 2
  static let trafficKeyWithSalt: UInt8 = 3

  private var policy: [(UInt8, UInt8)] {
    let suite = key.suite
    let isSealed = suite != .aes128CounterHMAC80
    var policy: [(UInt8, UInt8)] = [
      (Parameter.cipher, isSealed ? Self.galoisCounterMode : Self.counterMode),
      (Parameter.cipherKeyLength, UInt8(suite.keyLength)),
      (Parameter.authentication, isSealed ? 0 : 1),
    ]
    if !isSealed { policy.append((Parameter.authenticationKeyLength, 20)) }
    policy += [
      (Parameter.saltLength, UInt8(suite.saltLength)),
      (Parameter.isMediaEncrypted, 1), (Parameter.isControlEncrypted, 1), (Parameter.isMediaAuthenticated, 1),
    ]
    policy.append(isSealed ? (Parameter.sealedTagLength, 16) : (Parameter.tagLength, 10))
    return policy
  }
}

extension [UInt8] {
  /// Appends a number, its most significant byte first.
  mutating func append(bigEndian value: some FixedWidthInteger) {
    Swift.withUnsafeBytes(of: value.bigEndian) { append(contentsOf: $0) }
  }
}

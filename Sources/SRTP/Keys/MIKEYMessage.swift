package import RTP

/// A MIKEY message with a key (RFC 3830), as RTSP carries it (RFC 4567): the pre-shared-key message without its own
/// encryption or authentication. Its carrier must provide both; here only TLS does.
///
/// Key and salt are joined in one traffic-encrypting key (TEK), as in GStreamer, live555 and others.
package struct MIKEYMessage: Hashable, Sendable {
  /// A stream that uses the key: one crypto session, RFC 3830 section 6.1.1.
  package struct Stream: Hashable, Sendable {
    /// The stream's source.
    package var ssrc: UInt32
    /// The rollover counter (ROC): the number of wraps of the sequence number.
    package var rolloverCounter: UInt32

    /// Creates a stream.
    package init(ssrc: UInt32, rolloverCounter: UInt32 = 0) {
      self.ssrc = ssrc
      self.rolloverCounter = rolloverCounter
    }
  }

  /// The key with its suite.
  package var key: SRTPKey
  /// The streams that use the key.
  package var streams: [Stream]

  /// The maximum length of a message in bytes.
  package static let lengthLimit = 2048

  /// Creates a message; see the properties.
  package init(key: SRTPKey, streams: [Stream]) {
    self.key = key
    self.streams = streams
  }

  /// The payload types, RFC 3830 table 6.1.b.
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

  /// AES in counter mode and AES-GCM, by their numbers in ``Parameter/cipher``.
  static let counterMode: UInt8 = 1
  static let galoisCounterMode: UInt8 = 6

  /// Returns the message as base64: the value of `a=key-mgmt` after `mikey `, and of `data=` in `KeyMgmt`.
  ///
  /// - Parameters:
  ///   - time: The current time, which the message carries.
  ///   - generator: The source of the message's number and nonce; no key comes from it.
  package func text(at time: NTPTimestamp, using generator: inout some RandomNumberGenerator) -> String {
    Base64.encode(bytes(at: time, using: &generator))
  }

  /// Returns the message, RFC 3830 section 6.
  package func bytes(at time: NTPTimestamp, using generator: inout some RandomNumberGenerator) -> [UInt8] {
    let identifier = UInt32.random(in: 0 ... .max, using: &generator)
    // Version 1, pre-shared key, the next payload, no response requested, and the standard's pseudorandom function.
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
    // A key transport without cipher and MAC, with one traffic-encrypting key without a validity period.
    bytes += [PayloadType.last, 0]
    bytes.append(bigEndian: UInt16(4 + key.bytes.count))
    bytes += [PayloadType.last, Self.trafficKey << 4]
    bytes.append(bigEndian: UInt16(key.bytes.count))
    bytes += key.bytes
    bytes.append(0)
    return bytes
  }

  /// The types of key data, RFC 3830 section 6.13.
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
  /// Appends a number, most significant byte first.
  mutating func append(bigEndian value: some FixedWidthInteger) {
    Swift.withUnsafeBytes(of: value.bigEndian) { append(contentsOf: $0) }
  }
}

package import Platform
import RTP

/// The reason why a MIKEY message is refused. No case carries any part of a key.
package enum MIKEYError: Failure, Hashable {
  /// The message is not base64, ends early, is too long, or has a version other than 1.
  case syntax(String)
  /// The message requires an unsupported feature: an encrypted key, or a cipher outside ``SRTPSuite``.
  case unsupported(String)
  /// The length of the key differs from the suite's.
  case key(SRTPKeyError)

  /// A one-line description.
  package var description: String {
    switch self {
    case .syntax(let what): "a MIKEY message (RFC 3830) that cannot be read: \(what)"
    case .unsupported(let what):
      "a MIKEY message with \(what): send AES-CM-128 with HMAC-SHA1-80, or AES-GCM, in the open"
    case .key(let error): error.description
    }
  }

  /// The kind of failure.
  package var kind: FailureKind { .data }
}

extension MIKEYMessage {
  /// Parses a message in base64.
  ///
  /// - Throws: ``MIKEYError``.
  package init(text: some StringProtocol) throws(MIKEYError) {
    guard text.utf8.count <= Self.lengthLimit * 2 else { throw .syntax("\(text.utf8.count) characters") }
    guard let bytes = Base64.decode(text.utf8) else { throw .syntax("no base64") }
    try self.init(parsing: bytes)
  }

  /// Parses a message.
  ///
  /// - Throws: ``MIKEYError``. An unsupported requirement is refused, not ignored.
  package init(parsing bytes: [UInt8]) throws(MIKEYError) {
    guard bytes.count <= Self.lengthLimit else { throw .syntax("\(bytes.count) bytes") }
    var rest = Reader(bytes: bytes[...])
    guard try rest.byte() == 1 else { throw .syntax("another version than 1") }
    guard try rest.byte() == 0 else { throw .unsupported("keys by certificate, Diffie-Hellman or an answer") }
    var next = try rest.byte()
    guard try rest.byte() & 0x7f == 0 else { throw .unsupported("another pseudorandom function") }
    _ = try rest.take(4)
    let count = try rest.byte()
    guard try rest.byte() == 0 else { throw .unsupported("streams of something else than SRTP") }
    var streams: [Stream] = []
    for _ in 0..<count {
      _ = try rest.byte()
      streams.append(Stream(ssrc: try rest.number(), rolloverCounter: try rest.number()))
    }
    var policy: [UInt8: UInt8] = [:]
    var keyData: ArraySlice<UInt8>?
    while next != PayloadType.last {
      let type = next
      next = try rest.byte()
      switch type {
      case PayloadType.timestamp:
        // NTP in UTC, NTP, or a counter of four bytes.
        _ = try rest.take(try rest.byte() == 2 ? 4 : 8)
      case PayloadType.random: _ = try rest.take(Int(try rest.byte()))
      case PayloadType.identifier, PayloadType.generalExtension:
        _ = try rest.byte()
        _ = try rest.take(Int(try rest.number() as UInt16))
      case PayloadType.securityPolicy:
        _ = try rest.byte()
        guard try rest.byte() == 0 else { throw .unsupported("a policy of something else than SRTP") }
        guard policy.isEmpty else { throw .unsupported("a second policy") }
        policy = try Self.policy(try rest.take(Int(try rest.number() as UInt16)))
      case PayloadType.keyTransport:
        guard try rest.byte() == 0 else { throw .unsupported("an encrypted key") }
        guard keyData == nil else { throw .unsupported("a second key transport") }
        keyData = try rest.take(Int(try rest.number() as UInt16))
        guard try rest.byte() == 0 else { throw .unsupported("a MAC with an unknown key") }
      default: throw .unsupported("a payload of type \(type)")
      }
    }
    guard let keyData else { throw .syntax("there is no key") }
    let suite = try Self.suite(policy)
    let keyBytes = try Self.key(keyData)
    do throws(SRTPKeyError) {
      key = try SRTPKey(suite: suite, bytes: keyBytes)
    } catch {
      throw .key(error)
    }
    self.streams = streams
  }

  private static func policy(_ bytes: ArraySlice<UInt8>) throws(MIKEYError) -> [UInt8: UInt8] {
    var rest = Reader(bytes: bytes)
    var policy: [UInt8: UInt8] = [:]
    while !rest.bytes.isEmpty {
      let type = try rest.byte()
      let value = try rest.take(Int(try rest.byte()))
      // All supported values are below 256; longer ones are accepted only with leading zeros.
      guard let last = value.last, value.dropLast().allSatisfy({ $0 == 0 }) else {
        throw .unsupported("a large value of parameter \(type)")
      }
      guard policy.updateValue(last, forKey: type) == nil else { throw .syntax("parameter \(type) twice") }
    }
    return policy
  }

  /// Returns the suite of a policy. Missing parameters have the defaults of RFC 3830 section 6.10.1: AES-CM-128,
  /// HMAC-SHA1-80.
  private static func suite(_ policy: [UInt8: UInt8]) throws(MIKEYError) -> SRTPSuite {
    for (type, value) in policy {
      switch type {
      case Parameter.cipher, Parameter.cipherKeyLength, Parameter.authentication, Parameter.tagLength,
        Parameter.authenticationKeyLength, Parameter.saltLength, Parameter.sealedTagLength:
        break
      case Parameter.pseudorandomFunction, Parameter.derivationRate, Parameter.prefixLength:
        guard value == 0 else { throw .unsupported("a derivation of keys that is not the usual one") }
      case Parameter.isMediaEncrypted, Parameter.isControlEncrypted, Parameter.isMediaAuthenticated:
        guard value == 1 else { throw .unsupported("packets that are not protected") }
      default: throw .unsupported("parameter \(type)")
      }
    }
    func isEither(_ type: UInt8, _ values: UInt8...) -> Bool { policy[type].map(values.contains) ?? true }
    switch (policy[Parameter.cipher] ?? counterMode, policy[Parameter.cipherKeyLength] ?? 16) {
    case (counterMode, 16):
      // GStreamer writes the tag length as the length of the authentication key.
      guard isEither(Parameter.authentication, 1), isEither(Parameter.authenticationKeyLength, 20, 10),
        isEither(Parameter.tagLength, 10), isEither(Parameter.saltLength, 14)
      else { throw .unsupported("another authentication") }
      return .aes128CounterHMAC80
    case (galoisCounterMode, 16), (galoisCounterMode, 32):
      guard isEither(Parameter.sealedTagLength, 16), isEither(Parameter.saltLength, 12) else {
        throw .unsupported("another tag")
      }
      return policy[Parameter.cipherKeyLength] == 32 ? .aes256GCM : .aes128GCM
    default: throw .unsupported("another cipher")
    }
  }

  /// Returns key and salt of the first key, whether they are joined or separate.
  private static func key(_ bytes: ArraySlice<UInt8>) throws(MIKEYError) -> [UInt8] {
    var rest = Reader(bytes: bytes)
    guard try rest.byte() == 0 else { throw .unsupported("a second key") }
    let kind = try rest.byte()
    guard kind & 0x0f == 0 else { throw .unsupported("a key's validity, or its identifier") }
    guard [trafficKey, trafficKeyWithSalt].contains(kind >> 4) else {
      throw .unsupported("a key from which others are to be made")
    }
    let key = try rest.take(Int(try rest.number() as UInt16))
    guard kind >> 4 == trafficKeyWithSalt else { return Array(key) }
    return Array(key) + Array(try rest.take(Int(try rest.number() as UInt16)))
  }

  /// The unread part of a message.
  private struct Reader {
    var bytes: ArraySlice<UInt8>

    mutating func take(_ count: Int) throws(MIKEYError) -> ArraySlice<UInt8> {
      guard count <= bytes.count else { throw .syntax("it ends early") }
      defer { bytes = bytes.dropFirst(count) }
      return bytes.prefix(count)
    }

    mutating func byte() throws(MIKEYError) -> UInt8 {
      guard let byte = bytes.popFirst() else { throw .syntax("it ends early") }
      return byte
    }

    mutating func number<Number: FixedWidthInteger>() throws(MIKEYError) -> Number {
      try take(MemoryLayout<Number>.size).reduce(0) { $0 << 8 | Number($1) }
    }
  }
}

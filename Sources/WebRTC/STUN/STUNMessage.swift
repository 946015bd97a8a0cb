import Platform
import TLS

/// A STUN message (RFC 8489 section 5) with the attributes that ICE uses (RFC 8445 section 16.1).
///
/// The bytes come from anybody: nothing in a message is to be believed before ``hasIntegrity(key:)``.
package struct STUNMessage: Sendable {
  /// The class of a message, RFC 8489 section 5.
  package enum Class: UInt16, Sendable {
    /// A request, which gets a response.
    case request = 0
    /// An indication, which gets none.
    case indication = 1
    /// A success response.
    case success = 2
    /// An error response.
    case error = 3
  }

  /// The role that the sender of a check has, and its tie-breaker (RFC 8445 section 7.1.3).
  package enum ICERole: Hashable, Sendable {
    /// ICE-CONTROLLING.
    case controlling(tieBreaker: UInt64)
    /// ICE-CONTROLLED.
    case controlled(tieBreaker: UInt64)
  }

  /// The method: ``binding`` is the only one in use.
  package let method: UInt16
  /// The class.
  package let messageClass: Class
  /// The transaction's 12 bytes.
  package let transaction: [UInt8]
  /// USERNAME: the receiver's fragment, a colon and the sender's fragment.
  package private(set) var username: String?
  /// PRIORITY, of the candidate that the sender would have (RFC 8445 section 7.1.1).
  package private(set) var priority: UInt32?
  /// `true` if the controlling peer nominates the pair: USE-CANDIDATE.
  package private(set) var nominates = false
  /// The sender's role; `nil` if it names none.
  package private(set) var role: ICERole?
  /// Attributes that must be understood and are not: type values below 0x8000.
  package private(set) var unknownAttributes: [UInt16] = []
  /// The bytes from the header to the end of MESSAGE-INTEGRITY, whose length field is as if nothing followed it.
  private var authenticated: [UInt8] = []
  private var code: [UInt8] = []

  /// The method of connectivity checks.
  package static let binding: UInt16 = 1
  /// The size of the header in bytes.
  package static let headerBytes = 20
  /// The most bytes of a message. Checks of browsers have about 100.
  package static let byteLimit = 1024
  /// The most attributes of a message.
  package static let attributeLimit = 32
  /// RFC 8489 section 14.3: fewer than 513 bytes.
  package static let usernameLimit = 512
  static let cookie: UInt32 = 0x2112_a442

  /// The attribute types in use, RFC 8489 section 18.3 and RFC 8445 section 20.2.
  enum Attribute {
    static let username: UInt16 = 0x0006
    static let messageIntegrity: UInt16 = 0x0008
    static let errorCode: UInt16 = 0x0009
    static let unknownAttributes: UInt16 = 0x000a
    static let xorMappedAddress: UInt16 = 0x0020
    static let priority: UInt16 = 0x0024
    static let useCandidate: UInt16 = 0x0025
    static let fingerprint: UInt16 = 0x8028
    static let iceControlled: UInt16 = 0x8029
    static let iceControlling: UInt16 = 0x802a
  }

  /// Parses a datagram.
  ///
  /// - Throws: ``STUNError``.
  package init(_ bytes: UnsafeRawBufferPointer) throws(STUNError) {
    guard bytes.count <= Self.byteLimit else { throw .length(bytes.count, limit: Self.byteLimit) }
    guard bytes.count >= Self.headerBytes, bytes[0] & 0xc0 == 0, bytes.number(UInt32.self, at: 4) == Self.cookie else {
      throw .noMessage
    }
    let length = Int(bytes.number(UInt16.self, at: 2))
    guard length % 4 == 0, length == bytes.count - Self.headerBytes else {
      throw .lengthField(length, bytes: bytes.count)
    }
    let type = bytes.number(UInt16.self, at: 0)
    // The class is in the bits 4 and 8, and the method in the others.
    method = type & 0xf | type >> 1 & 0x70 | type >> 2 & 0xf80
    messageClass = Class(rawValue: type >> 4 & 1 | type >> 7 & 2).unsafelyUnwrapped
    transaction = Array(bytes[8..<Self.headerBytes])
    try parseAttributes(of: bytes)
  }

  /// Returns the fragment of the side that a check is for, from its USERNAME, without a look at the rest: most datagrams
  /// of a flood end here. `nil` if there is none.
  static func receiverFragment(of bytes: UnsafeRawBufferPointer) -> String? {
    guard (headerBytes...byteLimit).contains(bytes.count), bytes.number(UInt32.self, at: 4) == cookie else {
      return nil
    }
    var offset = headerBytes
    for _ in 0..<attributeLimit where offset + 4 <= bytes.count {
      let length = Int(bytes.number(UInt16.self, at: offset + 2))
      let start = offset + 4
      guard start + length <= bytes.count else { return nil }
      if bytes.number(UInt16.self, at: offset) == Attribute.username {
        let value = bytes[start..<start + length]
        guard let end = value.firstIndex(of: 0x3a), end - start <= ICECredentials.limit else { return nil }
        return String(validating: bytes[start..<end], as: UTF8.self)
      }
      offset = start + (length + 3) / 4 * 4
    }
    return nil
  }

  private mutating func parseAttributes(of bytes: UnsafeRawBufferPointer) throws(STUNError) {
    var offset = Self.headerBytes
    var count = 0
    while offset < bytes.count {
      count += 1
      guard count <= Self.attributeLimit else { throw .attributes(limit: Self.attributeLimit) }
      guard offset + 4 <= bytes.count else { throw .attribute(offset: offset) }
      let type = bytes.number(UInt16.self, at: offset)
      let length = Int(bytes.number(UInt16.self, at: offset + 2))
      let start = offset + 4
      let end = start + (length + 3) / 4 * 4
      guard end <= bytes.count else { throw .attribute(offset: offset) }
      let value = UnsafeRawBufferPointer(rebasing: bytes[start..<start + length])
      if type == Attribute.fingerprint {
        try Self.checkFingerprint(value, of: bytes, at: offset)
      } else if code.isEmpty {
        if type == Attribute.messageIntegrity {
          guard length == 20 else { throw .attribute(offset: offset) }
          code = Array(value)
          authenticated = Array(bytes[..<offset])
          let counted = UInt16(truncatingIfNeeded: end - Self.headerBytes)
          (authenticated[2], authenticated[3]) = (UInt8(counted >> 8), UInt8(counted & 0xff))
        } else {
          try take(type, value, at: offset)
        }
      }
      // What follows MESSAGE-INTEGRITY is not protected, and is ignored (RFC 8489 section 14.5).
      offset = end
    }
  }

  private mutating func take(
    _ type: UInt16, _ value: UnsafeRawBufferPointer, at offset: Int
  ) throws(STUNError) {
    switch type {
    case Attribute.username:
      guard value.count <= Self.usernameLimit, let text = String(validating: value, as: UTF8.self) else {
        throw .attribute(offset: offset)
      }
      username = username ?? text
    case Attribute.priority:
      guard value.count == 4 else { throw .attribute(offset: offset) }
      priority = value.number(UInt32.self, at: 0)
    case Attribute.useCandidate: nominates = true
    case Attribute.iceControlling, Attribute.iceControlled:
      guard value.count == 8 else { throw .attribute(offset: offset) }
      let tieBreaker = value.number(UInt64.self, at: 0)
      role =
        type == Attribute.iceControlling
        ? .controlling(tieBreaker: tieBreaker) : .controlled(tieBreaker: tieBreaker)
    case Attribute.xorMappedAddress, Attribute.errorCode, Attribute.unknownAttributes: break
    case ..<0x8000: unknownAttributes.append(type)
    default: break
    }
  }

  /// FINGERPRINT is the last attribute: the checksum of all that precedes it.
  private static func checkFingerprint(
    _ value: UnsafeRawBufferPointer, of bytes: UnsafeRawBufferPointer, at offset: Int
  ) throws(STUNError) {
    guard value.count == 4, offset + 8 == bytes.count else { throw .attribute(offset: offset) }
    guard value.number(UInt32.self, at: 0) == CRC32.checksum(of: bytes[..<offset]) ^ fingerprintMask else {
      throw .fingerprint
    }
  }

  /// RFC 8489 section 14.7.
  static let fingerprintMask: UInt32 = 0x5354_554e

  /// Returns `true` if the sender knows `key`, the receiver's password (RFC 8489 sections 9.1.3 and 14.5). `false`
  /// without MESSAGE-INTEGRITY.
  package func hasIntegrity(key: [UInt8]) -> Bool {
    !code.isEmpty && Secrets.isEqual(code, HashFunction.sha1.authenticationCode(of: authenticated, key: key))
  }
}

extension UnsafeRawBufferPointer {
  /// Returns the number in network byte order at `offset`, which must lie within the bytes.
  func number<Value: FixedWidthInteger & BitwiseCopyable>(_ type: Value.Type, at offset: Int) -> Value {
    Value(bigEndian: loadUnaligned(fromByteOffset: offset, as: Value.self))
  }
}

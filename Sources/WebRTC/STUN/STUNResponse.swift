import Platform
import TLS

/// A response to a connectivity check: bytes to send back to where the check came from.
///
/// Every response is authenticated by the password that the check has proved to know (RFC 8489 section 9.1.3).
package enum STUNResponse {
  /// The error codes in use, RFC 8489 section 14.8 and RFC 8445 section 7.3.1.1.
  package enum Code: Int, Sendable {
    /// The request has attributes that the server must understand and does not.
    case unknownAttribute = 420
    /// The peer claims the role that this side has.
    case roleConflict = 487

    var reason: String {
      switch self {
      case .unknownAttribute: "Unknown Attribute"
      case .roleConflict: "Role Conflict"
      }
    }
  }

  /// Returns the success response to `request` from `path`.
  package static func success(to request: STUNMessage, from path: PeerPath, key: [UInt8]) -> [UInt8] {
    var writer = Writer(.success, to: request)
    // RFC 8489 section 14.2: the port and the address, masked by the cookie and the transaction.
    let mask = [UInt8](bigEndian: STUNMessage.cookie) + request.transaction
    let port = [UInt8](bigEndian: path.port)
    let address = path.address.bytes
    var value: [UInt8] = [0, path.address.isIPv6 ? 2 : 1, port[0] ^ mask[0], port[1] ^ mask[1]]
    value += zip(address, mask).map { $0 ^ $1 }
    writer.append(STUNMessage.Attribute.xorMappedAddress, value)
    return writer.finish(key: key)
  }

  /// Returns an error response to `request`.
  package static func error(_ code: Code, to request: STUNMessage, key: [UInt8]) -> [UInt8] {
    var writer = Writer(.error, to: request)
    let digits: [UInt8] = [0, 0, UInt8(code.rawValue / 100), UInt8(code.rawValue % 100)]
    writer.append(STUNMessage.Attribute.errorCode, digits + Array(code.reason.utf8))
    if code == .unknownAttribute {
      let types = request.unknownAttributes.flatMap { [UInt8](bigEndian: $0) }
      writer.append(STUNMessage.Attribute.unknownAttributes, types)
    }
    return writer.finish(key: key)
  }

  private struct Writer {
    private var bytes: [UInt8]

    init(_ messageClass: STUNMessage.Class, to request: STUNMessage) {
      let type = request.method | (messageClass.rawValue & 1) << 4 | (messageClass.rawValue & 2) << 7
      bytes = [UInt8](bigEndian: type) + [0, 0] + [UInt8](bigEndian: STUNMessage.cookie) + request.transaction
    }

    mutating func append(_ type: UInt16, _ value: [UInt8]) {
      bytes += [UInt8](bigEndian: type) + [UInt8](bigEndian: UInt16(truncatingIfNeeded: value.count)) + value
      bytes += [UInt8](repeating: 0, count: (4 - value.count % 4) % 4)
    }

    /// Writes the length as if the message ended `more` bytes after what it has.
    private mutating func setLength(more: Int) {
      let length = [UInt8](bigEndian: UInt16(truncatingIfNeeded: bytes.count + more - STUNMessage.headerBytes))
      (bytes[2], bytes[3]) = (length[0], length[1])
    }

    mutating func finish(key: [UInt8]) -> [UInt8] {
      setLength(more: 24)
      append(
        STUNMessage.Attribute.messageIntegrity, HashFunction.sha1.authenticationCode(of: bytes, key: key))
      setLength(more: 8)
      let checksum = CRC32.checksum(of: bytes) ^ STUNMessage.fingerprintMask
      append(STUNMessage.Attribute.fingerprint, [UInt8](bigEndian: checksum))
      return bytes
    }
  }
}

extension [UInt8] {
  /// Creates the bytes of a number in network byte order.
  package init(bigEndian value: some FixedWidthInteger & BitwiseCopyable) {
    self = Swift.withUnsafeBytes(of: value.bigEndian) { Array($0) }
  }
}

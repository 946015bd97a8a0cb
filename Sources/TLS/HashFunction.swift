import COpenSSL

/// A cryptographic hash function (FIPS 180-4, RFC 1321).
package enum HashFunction: Sendable {
  /// MD5, only for Digest authentication of old players; broken for all other uses.
  case md5
  /// SHA-1, only for the message integrity of STUN (RFC 8489 section 14.5); broken for signatures.
  case sha1
  /// SHA-256.
  case sha256

  /// The size of a digest in bytes.
  package var byteCount: Int {
    switch self {
    case .md5: 16
    case .sha1: 20
    case .sha256: 32
    }
  }

  /// Returns the digest of `bytes`.
  package func digest(of bytes: some Sequence<UInt8>) -> [UInt8] {
    let data = Array(bytes)
    var digest = [UInt8](repeating: 0, count: byteCount)
    let result = EVP_Digest(data, data.count, &digest, nil, algorithm.pointer, nil)
    precondition(result == 1, "OpenSSL has no \(self): \(OpenSSLError.drain())")
    return digest
  }

  /// Returns the HMAC (RFC 2104) of `bytes` under `key`.
  package func authenticationCode(of bytes: some Sequence<UInt8>, key: [UInt8]) -> [UInt8] {
    let data = Array(bytes)
    var code = [UInt8](repeating: 0, count: byteCount)
    let result = HMAC(algorithm.pointer, key, CInt(key.count), data, data.count, &code, nil)
    precondition(result != nil, "OpenSSL has no HMAC of \(self): \(OpenSSLError.drain())")
    return code
  }

  /// OpenSSL's implementation, fetched once.
  private struct Algorithm: @unchecked Sendable {
    // Sendable: the object at the pointer is never changed and never freed.
    let pointer: OpaquePointer?

    init(_ name: String) {
      // A host whose OpenSSL is restricted to FIPS still has MD5, in its other provider.
      pointer = EVP_MD_fetch(nil, name, "-fips")
    }

    static let md5 = Algorithm("MD5")
    static let sha1 = Algorithm("SHA1")
    static let sha256 = Algorithm("SHA256")
  }

  private var algorithm: Algorithm {
    switch self {
    case .md5: .md5
    case .sha1: .sha1
    case .sha256: .sha256
    }
  }
}

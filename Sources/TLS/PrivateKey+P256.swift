import COpenSSL

/// Keys on the curve P-256 (FIPS 186-4) beside TLS.
extension PrivateKey {
  /// The length of an uncompressed point in bytes (SEC 1 section 2.3.3): 4, x and y.
  package static let pointBytes = 65
  /// The length of each number of a signature, and of a shared secret, in bytes.
  private static let numberBytes = 32

  /// The public key as an uncompressed point.
  ///
  /// - Throws: ``OpenSSLError``, also for a key on another curve.
  package var publicPoint: [UInt8] {
    get throws(OpenSSLError) {
      ERR_clear_error()
      var bytes: UnsafeMutablePointer<UInt8>?
      let count = EVP_PKEY_get1_encoded_public_key(pointer, &bytes)
      defer { CRYPTO_free(bytes, nil, 0) }
      let point = Array(UnsafeBufferPointer(start: bytes, count: bytes == nil ? 0 : count))
      guard Self.isPoint(point) else {
        throw OpenSSLError("reading the public key", reason: "it is no key on the curve P-256")
      }
      return point
    }
  }

  /// Returns `true` for an uncompressed point that is on the curve P-256.
  package static func isPoint(_ bytes: [UInt8]) -> Bool {
    defer { ERR_clear_error() }
    guard bytes.count == pointBytes, bytes[0] == 4, let key = nightjar_p256_public_key(bytes, bytes.count) else {
      return false
    }
    EVP_PKEY_free(key)
    return true
  }

  /// Returns the secret that the key shares with the owner of `point`: ECDH (SP 800-56A), the number x.
  ///
  /// - Throws: ``OpenSSLError``, also for a point that is not on the curve.
  package func sharedSecret(with point: [UInt8]) throws(OpenSSLError) -> [UInt8] {
    let step = "agreeing on a key"
    guard Self.isPoint(point) else { throw OpenSSLError(step, reason: "the other key is no point on the curve P-256") }
    ERR_clear_error()
    guard let other = nightjar_p256_public_key(point, point.count) else { throw OpenSSLError(step) }
    defer { EVP_PKEY_free(other) }
    guard let context = EVP_PKEY_CTX_new(pointer, nil) else { throw OpenSSLError(step) }
    defer { EVP_PKEY_CTX_free(context) }
    var secret = [UInt8](repeating: 0, count: Self.numberBytes)
    var count = secret.count
    guard EVP_PKEY_derive_init(context) == 1, EVP_PKEY_derive_set_peer(context, other) == 1,
      EVP_PKEY_derive(context, &secret, &count) == 1, count == secret.count
    else { throw OpenSSLError(step) }
    return secret
  }

  /// Returns the signature of `bytes` by ECDSA with SHA-256, as JSON Web Signatures have it (ES256, RFC 7518 section 3.4):
  /// its two numbers one after the other.
  ///
  /// - Throws: ``OpenSSLError``.
  package func signature(of bytes: [UInt8]) throws(OpenSSLError) -> [UInt8] {
    let step = "signing"
    ERR_clear_error()
    guard let context = EVP_MD_CTX_new() else { throw OpenSSLError(step) }
    defer { EVP_MD_CTX_free(context) }
    var count = 0
    guard EVP_DigestSignInit(context, nil, EVP_sha256(), nil, pointer) == 1,
      EVP_DigestSign(context, nil, &count, bytes, bytes.count) == 1
    else { throw OpenSSLError(step) }
    var coded = [UInt8](repeating: 0, count: count)
    guard EVP_DigestSign(context, &coded, &count, bytes, bytes.count) == 1 else { throw OpenSSLError(step) }
    let pair = coded.withUnsafeBufferPointer { bytes in
      var next = bytes.baseAddress
      return d2i_ECDSA_SIG(nil, &next, count)
    }
    guard let pair else { throw OpenSSLError(step) }
    defer { ECDSA_SIG_free(pair) }
    var numbers = [UInt8](repeating: 0, count: 2 * Self.numberBytes)
    let length = CInt(Self.numberBytes)
    let isDone = numbers.withUnsafeMutableBufferPointer { memory in
      BN_bn2binpad(ECDSA_SIG_get0_r(pair), memory.baseAddress, length) == length
        && BN_bn2binpad(ECDSA_SIG_get0_s(pair), memory.baseAddress?.advanced(by: Self.numberBytes), length) == length
    }
    guard isDone else { throw OpenSSLError(step) }
    return numbers
  }
}

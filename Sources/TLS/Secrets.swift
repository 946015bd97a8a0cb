import COpenSSL

/// The generation and comparison of secrets.
package enum Secrets {
  /// Returns random bytes from OpenSSL's generator, which the kernel seeds.
  package static func randomBytes(_ count: Int) -> [UInt8] {
    var bytes = [UInt8](repeating: 0, count: count)
    let result = RAND_priv_bytes(&bytes, CInt(count))
    // Predictable keys are worse than no service.
    precondition(result == 1, "OpenSSL has no random bytes: \(OpenSSLError.drain())")
    return bytes
  }

  /// Returns `true` if both are equal, in a time that depends only on their length.
  package static func isEqual(_ one: [UInt8], _ other: [UInt8]) -> Bool {
    one.count == other.count && CRYPTO_memcmp(one, other, one.count) == 0
  }
}

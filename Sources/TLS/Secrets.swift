import COpenSSL

/// What secrets are made of, and compared by.
package enum Secrets {
  /// Random bytes from OpenSSL's generator, which the kernel seeds.
  package static func randomBytes(_ count: Int) -> [UInt8] {
    var bytes = [UInt8](repeating: 0, count: count)
    let result = RAND_priv_bytes(&bytes, CInt(count))
    // Keys that could be guessed are worse than no service.
    precondition(result == 1, "OpenSSL has no random bytes: \(OpenSSLError.drain())")
    return bytes
  }

  /// Whether both are the same, in a time that depends on their length alone.
  package static func isEqual(_ one: [UInt8], _ other: [UInt8]) -> Bool {
    one.count == other.count && CRYPTO_memcmp(one, other, one.count) == 0
  }
}

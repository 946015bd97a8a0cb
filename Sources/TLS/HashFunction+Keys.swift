extension HashFunction {
  /// Returns a key of `count` bytes, derived by HKDF (RFC 5869).
  ///
  /// - Parameters:
  ///   - input: the keying material.
  ///   - info: the purpose of the key.
  /// - Precondition: `count` is at most 255 times the size of a digest.
  package func derivedKey(of input: [UInt8], salt: [UInt8], info: [UInt8], count: Int) -> [UInt8] {
    precondition(count <= 255 * byteCount, "HKDF makes no key of \(count) bytes")
    let extracted = authenticationCode(of: input, key: salt)
    var (key, block, number): ([UInt8], [UInt8], UInt8) = ([], [], 1)
    while key.count < count {
      block = authenticationCode(of: block + info + [number], key: extracted)
      key += block
      // The last block may be number 255.
      number &+= 1
    }
    return Array(key.prefix(count))
  }
}

import COpenSSL

/// Authenticated encryption by AES-128 in Galois/Counter Mode (SP 800-38D), without further authenticated data.
package enum AES128GCM {
  /// The lengths of a key, a nonce and a tag, in bytes.
  package static let (keyBytes, nonceBytes, tagBytes) = (16, 12, 16)

  /// Returns the ciphertext of `plaintext`, and the tag behind it. No two plaintexts may have the same key and nonce.
  ///
  /// - Precondition: `key` and `nonce` have their lengths.
  /// - Throws: ``OpenSSLError``.
  package static func seal(_ plaintext: [UInt8], key: [UInt8], nonce: [UInt8]) throws(OpenSSLError) -> [UInt8] {
    precondition(key.count == keyBytes && nonce.count == nonceBytes, "AES-128-GCM has other keys and nonces")
    let step = "encrypting"
    ERR_clear_error()
    guard let context = EVP_CIPHER_CTX_new() else { throw OpenSSLError(step) }
    defer { EVP_CIPHER_CTX_free(context) }
    var sealed = [UInt8](repeating: 0, count: plaintext.count + tagBytes)
    var (count, last): (CInt, CInt) = (0, 0)
    let isDone = sealed.withUnsafeMutableBufferPointer { memory in
      EVP_EncryptInit_ex(context, EVP_aes_128_gcm(), nil, key, nonce) == 1
        && EVP_EncryptUpdate(context, memory.baseAddress, &count, plaintext, CInt(plaintext.count)) == 1
        && EVP_EncryptFinal_ex(context, memory.baseAddress?.advanced(by: Int(count)), &last) == 1
        && Int(count + last) == plaintext.count
        && nightjar_gcm_get_tag(context, CInt(tagBytes), memory.baseAddress?.advanced(by: plaintext.count)) == 1
    }
    guard isDone else { throw OpenSSLError(step) }
    return sealed
  }
}

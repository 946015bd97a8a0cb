import COpenSSL

/// A private key with its public key.
package final class PrivateKey: @unchecked Sendable {
  // Sendable: an EVP_PKEY that is no longer changed may be used by several threads.
  let pointer: OpaquePointer

  /// The reason why a file's key cannot be used.
  package enum LoadError: Error, Hashable, Sendable {
    /// The file has no key.
    case missing
    /// The key is encrypted.
    case encrypted
    /// The key is malformed, or of a kind that no server certificate has.
    case unusable(OpenSSLError)
  }

  /// Creates a new key on the curve P-256 (FIPS 186-4).
  ///
  /// - Throws: ``OpenSSLError``.
  package init() throws(OpenSSLError) {
    ERR_clear_error()
    guard let pointer = nightjar_generate_p256() else { throw OpenSSLError("making a key") }
    self.pointer = pointer
  }

  /// Reads the first key of a PEM file: PKCS #8, or the older formats of EC and RSA keys.
  ///
  /// - Throws: ``LoadError``.
  package init(pem: [UInt8]) throws(LoadError) {
    let block: PEMBlock?
    do throws(OpenSSLError) {
      block = try PEMBlock.all(in: pem).first { $0.label.hasSuffix("PRIVATE KEY") }
    } catch {
      throw .unusable(error)
    }
    guard let block else { throw .missing }
    guard !block.isEncrypted else { throw .encrypted }
    ERR_clear_error()
    let key = block.bytes.withUnsafeBufferPointer { bytes in
      var next = bytes.baseAddress
      return d2i_AutoPrivateKey(nil, &next, bytes.count)
    }
    guard let key else { throw .unusable(OpenSSLError("reading the key")) }
    guard [EVP_PKEY_EC, EVP_PKEY_RSA, EVP_PKEY_RSA_PSS, EVP_PKEY_ED25519].contains(EVP_PKEY_get_base_id(key)) else {
      EVP_PKEY_free(key)
      throw .unusable(OpenSSLError("reading the key", reason: "no kind of key that signs for a server"))
    }
    pointer = key
  }

  deinit { EVP_PKEY_free(pointer) }

  /// The key in PEM, PKCS #8 without encryption. The text is secret.
  ///
  /// - Throws: ``OpenSSLError``.
  package var pem: String {
    get throws(OpenSSLError) {
      try PEMBlock.text("writing the key") { PEM_write_bio_PKCS8PrivateKey($0, pointer, nil, nil, 0, nil, nil) }
    }
  }
}

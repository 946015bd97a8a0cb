import COpenSSL

/// A private key with its public one.
package final class PrivateKey: @unchecked Sendable {
  // Sendable: an EVP_PKEY that nobody changes any more may be used by several threads.
  let pointer: OpaquePointer

  /// Why a file's key cannot be used.
  package enum LoadError: Error, Hashable, Sendable {
    /// There is no key in the file.
    case missing
    /// It is encrypted.
    case encrypted
    /// It is broken, or of a kind that no certificate of a server has.
    case unusable(OpenSSLError)
  }

  /// A fresh key of the curve P-256 (FIPS 186-4).
  ///
  /// - Throws: ``OpenSSLError``.
  package init() throws(OpenSSLError) {
    ERR_clear_error()
    guard let pointer = nightjar_generate_p256() else { throw OpenSSLError("making a key") }
    self.pointer = pointer
  }

  /// The first key of a PEM file: PKCS #8, or the formats of EC and RSA keys that came before it.
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

  /// The key in PEM, PKCS #8 without encryption. A secret.
  ///
  /// - Throws: ``OpenSSLError``.
  package var pem: String {
    get throws(OpenSSLError) {
      try PEMBlock.text("writing the key") { PEM_write_bio_PKCS8PrivateKey($0, pointer, nil, nil, 0, nil, nil) }
    }
  }
}

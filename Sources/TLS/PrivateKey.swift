import COpenSSL
import Platform

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
    /// The key is malformed, or of a kind or on a curve that clients do not take.
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
    if EVP_PKEY_get_base_id(key) == EVP_PKEY_EC {
      let curve = Self.curve(of: key)
      guard let curve, Self.curves.contains(curve) else {
        EVP_PKEY_free(key)
        let name = curve ?? "which has no name"
        throw .unusable(OpenSSLError("reading the key", reason: "clients do not take its curve, \(name)"))
      }
    }
    pointer = key
  }

  /// OpenSSL's names of the curves for which clients take a signature (RFC 8446 section 4.2.3): P-256, P-384 and P-521.
  private static let curves = ["prime256v1", "secp384r1", "secp521r1"]

  /// Returns OpenSSL's name of an EC key's curve; `nil` for a curve that is given by its parameters.
  private static func curve(of key: OpaquePointer) -> String? {
    var name = [CChar](repeating: 0, count: 64)
    guard EVP_PKEY_get_group_name(key, &name, name.count, nil) == 1 else { return nil }
    return String(cBuffer: name)
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

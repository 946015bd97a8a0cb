import COpenSSL
import Glibc

/// A certificate, RFC 5280.
package final class Certificate: @unchecked Sendable {
  // Sendable: an X509 that is no longer changed may be used by several threads.
  let pointer: OpaquePointer

  /// Takes ownership of the object at `pointer`.
  init(owning pointer: OpaquePointer) { self.pointer = pointer }

  deinit { X509_free(pointer) }

  /// Returns the certificates of a PEM file, in order; other contents are ignored.
  ///
  /// - Throws: ``OpenSSLError`` for a malformed certificate.
  package static func all(pem: [UInt8]) throws(OpenSSLError) -> [Certificate] {
    var certificates: [Certificate] = []
    for block in try PEMBlock.all(in: pem) where block.label == "CERTIFICATE" {
      certificates.append(try Certificate(der: block.bytes))
    }
    return certificates
  }

  /// Parses a certificate in DER.
  ///
  /// - Throws: ``OpenSSLError``.
  package init(der: [UInt8]) throws(OpenSSLError) {
    ERR_clear_error()
    let certificate = der.withUnsafeBufferPointer { bytes -> OpaquePointer? in
      var next = bytes.baseAddress
      guard let read = d2i_X509(nil, &next, bytes.count) else { return nil }
      guard next == bytes.baseAddress?.advanced(by: bytes.count) else {
        X509_free(read)
        return nil
      }
      return read
    }
    guard let certificate else { throw OpenSSLError("reading the certificate") }
    pointer = certificate
  }

  /// The certificate in DER.
  ///
  /// - Throws: ``OpenSSLError``.
  package var der: [UInt8] {
    get throws(OpenSSLError) {
      ERR_clear_error()
      var bytes: UnsafeMutablePointer<UInt8>?
      let count = i2d_X509(pointer, &bytes)
      guard count > 0 else { throw OpenSSLError("writing the certificate") }
      defer { CRYPTO_free(bytes, nil, 0) }
      return Array(UnsafeBufferPointer(start: bytes, count: Int(count)))
    }
  }

  /// The certificate in PEM.
  ///
  /// - Throws: ``OpenSSLError``.
  package var pem: String {
    get throws(OpenSSLError) { try PEMBlock.text("writing the certificate") { PEM_write_bio_X509($0, pointer) } }
  }

  /// The validity period, in seconds of Unix time.
  ///
  /// - Throws: ``OpenSSLError`` if the certificate's dates cannot be read.
  package var validity: ClosedRange<Int64> {
    get throws(OpenSSLError) {
      func seconds(_ time: UnsafePointer<ASN1_TIME>?) throws(OpenSSLError) -> Int64 {
        var parts = tm()
        ERR_clear_error()
        guard ASN1_TIME_to_tm(time, &parts) == 1 else { throw OpenSSLError("reading the certificate's time") }
        return Int64(timegm(&parts))
      }
      let (start, end) = try (seconds(X509_get0_notBefore(pointer)), seconds(X509_get0_notAfter(pointer)))
      guard start <= end else {
        throw OpenSSLError("reading the certificate's time", reason: "it ends before it begins")
      }
      return start...end
    }
  }

  /// The common name of the subject; empty if there is none.
  package var commonName: String {
    // RFC 5280 appendix A.1: at most 64 characters, of at most four bytes.
    var text = [CChar](repeating: 0, count: 257)
    defer { ERR_clear_error() }
    X509_NAME_get_text_by_NID(X509_get_subject_name(pointer), NID_commonName, &text, CInt(text.count))
    return text.withUnsafeBufferPointer { buffer in
      String(decoding: buffer.prefix { $0 != 0 }.map { UInt8(bitPattern: $0) }, as: UTF8.self)
    }
  }

  /// Returns `true` if `authority` has signed the certificate.
  package func isIssued(by authority: Certificate) -> Bool {
    defer { ERR_clear_error() }
    guard X509_check_issued(authority.pointer, pointer) == X509_V_OK, let key = X509_get0_pubkey(authority.pointer)
    else {
      return false
    }
    return X509_verify(pointer, key) == 1
  }

  /// Returns `true` if the certificate is for the host of this DNS name.
  package func isFor(name: String) -> Bool {
    defer { ERR_clear_error() }
    return X509_check_host(pointer, name, name.utf8.count, 0, nil) == 1
  }

  /// Returns `true` if the certificate is for the host of this address, in network byte order.
  package func isFor(address: [UInt8]) -> Bool {
    defer { ERR_clear_error() }
    return X509_check_ip(pointer, address, address.count, 0) == 1
  }

  /// Returns `true` if the certificate belongs to `key`.
  package func isFor(_ key: PrivateKey) -> Bool {
    defer { ERR_clear_error() }
    return X509_check_private_key(pointer, key.pointer) == 1
  }
}

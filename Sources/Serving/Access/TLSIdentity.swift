import TLS

/// A certificate and its private key for a TLS server.
package struct TLSIdentity: Sendable {
  /// The certificates in PEM, the server's own first.
  package let certificates: String
  /// The private key in PEM. A secret.
  package let privateKey: String
  /// The server's own certificate in DER.
  package let certificate: [UInt8]
  /// The start of its validity, in seconds of Unix time.
  package let notBefore: Int64
  /// The end of its validity, in seconds of Unix time.
  package let notAfter: Int64

  /// The certificate of this host's own authority in DER, if that has signed this one.
  package var authority: [UInt8]?

  /// The most bytes of a file with certificates or a key.
  package static let fileLimit = 1 << 18

  /// The certificate's SHA-256 in the form of `openssl x509 -noout -fingerprint -sha256`: pairs of upper-case
  /// hexadecimal digits with colons between.
  package var fingerprint: String { Self.fingerprint(of: certificate) }

  static func fingerprint(of certificate: [UInt8]) -> String {
    HashFunction.sha256.digest(of: certificate).map { byte in
      let digits = String(byte, radix: 16, uppercase: true)
      return byte < 16 ? "0" + digits : digits
    }.joined(separator: ":")
  }

  /// Returns the certificate's validity at `time`, in seconds of Unix time.
  package func validity(at time: Int64) -> Validity {
    time > notAfter ? .expired(since: notAfter) : time < notBefore ? .notYet(until: notBefore) : .valid
  }

  /// The validity of a certificate at a time.
  package enum Validity: Hashable, Sendable {
    /// The certificate is valid.
    case valid
    /// The certificate expired at this time, in seconds of Unix time.
    case expired(since: Int64)
    /// The certificate becomes valid at this time; or the machine's clock is wrong.
    case notYet(until: Int64)
  }

  /// Loads the files of `--tls-cert` and `--tls-key`, which may be one file. An expired certificate is loaded: check
  /// ``validity(at:)``, and warn.
  ///
  /// - Throws: ``TLSIdentityError``, also if other users can read the key's file.
  package init(certificateFile: String, keyFile: String) throws(TLSIdentityError) {
    let certificates: [UInt8]
    let key: [UInt8]
    do throws(PrivateFileError) {
      certificates = try PrivateFile(certificateFile).read(limit: Self.fileLimit, isSecret: false).bytes
      key = try PrivateFile(keyFile).read(limit: Self.fileLimit).bytes
    } catch {
      throw .file(error)
    }
    try self.init(certificates: certificates, from: certificateFile, key: key, from: keyFile)
  }

  /// Reads certificates and key from PEM; other content is ignored.
  ///
  /// - Throws: ``TLSIdentityError`` if either is missing or broken.
  init(
    certificates: [UInt8], from certificateFile: String, key: [UInt8], from keyFile: String
  ) throws(TLSIdentityError) {
    let chain: [Certificate]
    do throws(OpenSSLError) {
      chain = try Certificate.all(pem: certificates)
    } catch {
      throw .certificate(path: certificateFile, reason: Self.reason(error))
    }
    guard let first = chain.first else { throw .certificate(path: certificateFile, reason: "there is none") }

    let secret: PrivateKey
    do throws(PrivateKey.LoadError) {
      secret = try PrivateKey(pem: key)
    } catch {
      switch error {
      case .missing: throw .key(path: keyFile, reason: "there is none")
      case .encrypted: throw .encryptedKey(path: keyFile)
      case .unusable(let error): throw .key(path: keyFile, reason: Self.reason(error))
      }
    }
    guard first.isFor(secret) else { throw .mismatch(certificate: certificateFile, key: keyFile) }
    do throws(OpenSSLError) {
      try self.init(chain: chain, key: secret)
    } catch {
      throw .certificate(path: certificateFile, reason: Self.reason(error))
    }
  }

  /// Creates an identity from a chain that is not empty; its first certificate is that of `key`.
  ///
  /// - Throws: `OpenSSLError` if a PEM or DER form cannot be made.
  init(chain: [Certificate], key: PrivateKey) throws(OpenSSLError) {
    var text = ""
    for certificate in chain { text += try certificate.pem }
    certificates = text
    privateKey = try key.pem
    certificate = try chain[0].der
    let validity = try chain[0].validity
    (notBefore, notAfter) = (validity.lowerBound, validity.upperBound)
  }

  /// Returns a library's error in one line of a readable length.
  static func reason(_ error: any Error) -> String {
    String("\(error)".map { $0.isNewline ? " " : $0 }.prefix(160))
  }
}

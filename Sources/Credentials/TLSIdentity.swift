import TLS

/// A certificate and its private key, as a TLS server shows and uses them.
public struct TLSIdentity: Sendable {
  /// The certificates in PEM, the server's own first.
  public let certificates: String
  /// The private key in PEM. A secret.
  public let privateKey: String
  /// The server's own certificate in DER.
  public let certificate: [UInt8]
  /// From when it is valid, in seconds of Unix time.
  public let notBefore: Int64
  /// Until when it is valid, in seconds of Unix time.
  public let notAfter: Int64

  /// The most bytes of a file with certificates or a key.
  public static let fileLimit = 1 << 18

  /// SHA-256 of the certificate as `openssl x509 -noout -fingerprint -sha256` writes it: pairs of upper-case
  /// hexadecimal digits with colons between.
  public var fingerprint: String {
    HashFunction.sha256.digest(of: certificate).map { byte in
      let digits = String(byte, radix: 16, uppercase: true)
      return byte < 16 ? "0" + digits : digits
    }.joined(separator: ":")
  }

  /// Whether players will take it at `time`, in seconds of Unix time.
  public func validity(at time: Int64) -> Validity {
    time > notAfter ? .expired(since: notAfter) : time < notBefore ? .notYet(until: notBefore) : .valid
  }

  /// Whether a certificate is in its time.
  public enum Validity: Hashable, Sendable {
    /// It is.
    case valid
    /// It was until then, in seconds of Unix time.
    case expired(since: Int64)
    /// It will be from then on; or the machine's clock is wrong.
    case notYet(until: Int64)
  }

  /// Loads what a person gives as `--tls-cert` and `--tls-key`, which may be one file. An expired certificate is loaded:
  /// ask ``validity(at:)``, and warn.
  ///
  /// - Throws: ``TLSIdentityError``, also where the key's file can be read by others.
  public init(certificateFile: String, keyFile: String) throws(TLSIdentityError) {
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

  /// Reads both out of PEM; other things in it are passed over.
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

  /// The first certificate of `chain`, which has one, is that of `key`.
  init(chain: [Certificate], key: PrivateKey) throws(OpenSSLError) {
    var text = ""
    for certificate in chain { text += try certificate.pem }
    certificates = text
    privateKey = try key.pem
    certificate = try chain[0].der
    let validity = try chain[0].validity
    (notBefore, notAfter) = (validity.lowerBound, validity.upperBound)
  }

  /// A library's error in one line that is no longer than a person reads.
  static func reason(_ error: any Error) -> String {
    String("\(error)".map { $0.isNewline ? " " : $0 }.prefix(160))
  }
}

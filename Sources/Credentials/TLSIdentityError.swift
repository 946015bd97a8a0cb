public import Media

/// Why there can be no TLS with what was given.
public enum TLSIdentityError: Failure, Hashable {
  /// The file, not what is in it.
  case file(PrivateFileError)
  /// The file has no certificate in PEM, or a broken one; the library's words.
  case certificate(path: String, reason: String)
  /// The file has no private key in PEM that can be used; the library's words.
  case key(path: String, reason: String)
  /// The key is encrypted, and there is nobody to ask for the passphrase.
  case encryptedKey(path: String)
  /// The key is not the one of the file's first certificate.
  case mismatch(certificate: String, key: String)
  /// A certificate of our own could not be made; the library's words.
  case making(reason: String)

  /// One line for the person at the terminal.
  public var description: String {
    switch self {
    case .file(let error): "TLS: \(error)"
    case .certificate(let path, let reason):
      "\(path) has no certificate that can be read (\(reason)): it must be PEM, the server's own first"
    case .key(let path, let reason):
      "\(path) has no private key that can be read (\(reason)): it must be PEM: P-256, P-384, P-521, RSA or Ed25519"
    case .encryptedKey(let path):
      "the key in \(path) is encrypted: decrypt it with openssl pkey -in \(ShellWord.quoted(path)) -out KEY"
    case .mismatch(let certificate, let key):
      "the key in \(key) is not of the first certificate in \(certificate): give the pair that was made together"
    case .making(let reason): "a certificate cannot be made (\(reason)): give one with --tls-cert and --tls-key"
    }
  }

  /// What kind of failure it is.
  public var kind: FailureKind {
    switch self {
    case .file(let error): error.kind
    case .certificate, .key, .encryptedKey, .mismatch: .data
    case .making: .software
    }
  }
}

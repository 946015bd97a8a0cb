package import Platform

/// The reason why TLS is not possible with the given files.
package enum TLSIdentityError: Failure, Hashable {
  /// The file itself, not its content.
  case file(PrivateFileError)
  /// The file has no certificate in PEM, or a broken one; the library's message.
  case certificate(path: String, reason: String)
  /// The file has no usable private key in PEM; the library's message.
  case key(path: String, reason: String)
  /// The key is encrypted, and there is no user to ask for the passphrase.
  case encryptedKey(path: String)
  /// The key does not belong to the file's first certificate.
  case mismatch(certificate: String, key: String)
  /// The program's own certificate could not be created; the library's message.
  case making(reason: String)

  /// One line for the user at the terminal.
  package var description: String {
    switch self {
    case .file(let error): "TLS: \(error)"
    case .certificate(let path, let reason):
      "\(path) has no certificate that can be read (\(reason)): it must be PEM, the server's own first"
    case .key(let path, let reason):
      "\(path) has no private key that can be read (\(reason)): it must be PEM: P-256, P-384, P-521, RSA or Ed25519"
    case .encryptedKey(let path):
      "the key in \(path) is encrypted: decrypt it with openssl pkey -in \(ShellWord.quoted(path)) -out KEY"
    case .mismatch(let certificate, let key):
      "the key in \(key) does not belong to the first certificate in \(certificate): give a matching pair"
    case .making(let reason): "a certificate cannot be made (\(reason)): give one with --tls-cert and --tls-key"
    }
  }

  /// The failure's kind.
  package var kind: FailureKind {
    switch self {
    case .file(let error): error.kind
    case .certificate, .key, .encryptedKey, .mismatch: .data
    case .making: .software
    }
  }
}

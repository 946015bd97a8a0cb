import FoundationEssentials
package import TLS

/// The key by which push services recognize this host (RFC 8292). Each subscription of a browser is for this key alone.
package struct VAPIDKey: Sendable {
  private let key: PrivateKey
  /// The public key for browsers (`applicationServerKey`): an uncompressed point in Base64 for URLs.
  package let publicText: String

  /// Creates a new key.
  ///
  /// - Throws: `OpenSSLError`.
  package init() throws(OpenSSLError) { try self.init(try PrivateKey()) }

  /// Creates a key of a private key on the curve P-256.
  ///
  /// - Throws: `OpenSSLError` for a key on another curve.
  package init(_ key: PrivateKey) throws(OpenSSLError) {
    publicText = Base64URL.text(try key.publicPoint)
    self.key = key
  }

  /// The private key in PEM. The text is secret.
  ///
  /// - Throws: `OpenSSLError`.
  package var pem: String { get throws(OpenSSLError) { try key.pem } }

  /// Returns the value of `Authorization` for a request (section 3).
  ///
  /// - Parameters:
  ///   - audience: the origin of the push service.
  ///   - expires: the end of the token's validity in seconds of Unix time, a day ahead at most.
  ///   - contact: a URL `mailto:` or `https:` of whoever runs the host; nil for none.
  /// - Throws: `OpenSSLError`.
  package func authorization(
    for audience: String, expires: Int64, contact: String?
  ) throws(OpenSSLError) -> String {
    let signed = Self.signedText(audience: audience, expires: expires, contact: contact)
    return "vapid t=\(signed).\(Base64URL.text(try key.signature(of: Array(signed.utf8)))), k=\(publicText)"
  }

  /// Returns the header and the claims of a token (RFC 7519), in the order of the example in section 2.4.
  package static func signedText(audience: String, expires: Int64, contact: String?) -> String {
    let contact = contact.map { ",\"sub\":\(quoted($0))" } ?? ""
    let claims = "{\"aud\":\(quoted(audience)),\"exp\":\(expires)\(contact)}"
    return [#"{"typ":"JWT","alg":"ES256"}"#, claims].map { Base64URL.text(Array($0.utf8)) }.joined(separator: ".")
  }

  private static func quoted(_ text: String) -> String {
    let encoder = JSONEncoder()
    encoder.outputFormatting = .withoutEscapingSlashes
    // A string always has a JSON.
    return (try? encoder.encode(text)).map { String(decoding: $0, as: UTF8.self) } ?? "\"\""
  }
}

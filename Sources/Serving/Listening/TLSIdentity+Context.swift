package import TLS

extension TLSIdentity {
  /// Returns a server context with this identity, for TLS 1.2 or later.
  ///
  /// - Parameter protocols: the application protocols by their names for ALPN (RFC 7301); empty if clients do not
  ///   request one.
  /// - Throws: ``ListenError/identity(_:)``.
  package func serverContext(protocols: [String] = []) throws(ListenError) -> ServerContext {
    do {
      return try ServerContext(
        chain: Certificate.all(pem: Array(certificates.utf8)), key: PrivateKey(pem: Array(privateKey.utf8)),
        protocols: protocols)
    } catch {
      throw .identity("\(error)")
    }
  }
}

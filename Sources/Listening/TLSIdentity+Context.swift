package import Credentials
import Media
package import TLS

extension TLSIdentity {
  /// What shows it to clients, by TLS 1.2 or later.
  ///
  /// - Parameter protocols: what is spoken within, by its name for ALPN (RFC 7301); empty where clients do not ask.
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

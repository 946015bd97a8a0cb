public import Credentials
import Media
public import NIOSSL

extension TLSIdentity {
  /// What NIO needs to show it to clients, by TLS 1.2 or later.
  ///
  /// - Parameter protocols: what is spoken within, by its name for ALPN (RFC 7301); empty where clients do not ask.
  /// - Throws: ``ListenError/identity(_:)``.
  public func serverContext(protocols: [String] = []) throws(ListenError) -> NIOSSLContext {
    do {
      let chain = try NIOSSLCertificate.fromPEMBytes(Array(certificates.utf8))
      let key = try NIOSSLPrivateKey(bytes: Array(privateKey.utf8), format: .pem)
      var configuration = TLSConfiguration.makeServerConfiguration(
        certificateChain: chain.map { .certificate($0) }, privateKey: .privateKey(key))
      configuration.minimumTLSVersion = .tlsv12
      configuration.applicationProtocols = protocols
      return try NIOSSLContext(configuration: configuration)
    } catch {
      throw .identity("\(error)")
    }
  }
}

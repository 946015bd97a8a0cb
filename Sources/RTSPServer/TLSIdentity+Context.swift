import Credentials
import NIOSSL

extension TLSIdentity {
  /// What NIO needs to show it to clients, by TLS 1.2 or later.
  ///
  /// - Throws: ``ServerError/identity(_:)``.
  func serverContext() throws(ServerError) -> NIOSSLContext {
    do {
      let chain = try NIOSSLCertificate.fromPEMBytes(Array(certificates.utf8))
      let key = try NIOSSLPrivateKey(bytes: Array(privateKey.utf8), format: .pem)
      var configuration = TLSConfiguration.makeServerConfiguration(
        certificateChain: chain.map { .certificate($0) }, privateKey: .privateKey(key))
      configuration.minimumTLSVersion = .tlsv12
      return try NIOSSLContext(configuration: configuration)
    } catch {
      throw .identity("\(error)")
    }
  }
}

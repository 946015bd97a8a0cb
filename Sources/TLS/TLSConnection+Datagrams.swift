import COpenSSL
package import Media

/// What DTLS has beyond TLS: datagrams get lost, and SRTP gets its keys (RFC 6347, RFC 5764). Nothing in the program uses it yet.
extension TLSConnection {
  /// The time after which ``retransmit()`` is to be called, unless something arrives before; nil where nothing waits for an
  /// answer. It runs on the machine's own clock.
  package var retransmissionTime: MediaTime? {
    var time = timeval()
    guard nightjar_dtls_get_timeout(ssl, &time) == 1 else { return nil }
    return MediaTime(nanoseconds: Int64(time.tv_sec) * 1_000_000_000 + Int64(time.tv_usec) * 1000)
  }

  /// Sends again what was not answered in time; called early, it does nothing.
  ///
  /// - Throws: ``TLSConnectionError`` once that has happened too often.
  package func retransmit() throws(TLSConnectionError) {
    guard state == .handshaking else { return }
    ERR_clear_error()
    guard nightjar_dtls_handle_timeout(ssl) >= 0 else { throw fail { .handshake($0) } }
  }

  /// How packets are protected; nil where nothing was agreed on.
  package var protectionProfile: SRTPProtectionProfile? {
    SSL_get_selected_srtp_profile(ssl).flatMap { SRTPProtectionProfile(rawValue: $0.pointee.id) }
  }

  /// Keys and salts of SRTP, RFC 5764 section 4.2: the client's key, the server's key, the client's salt, the server's salt.
  /// Nil before the handshake is complete, and where there is no ``protectionProfile``.
  package var keyingMaterial: [UInt8]? {
    guard state == .established, let profile = protectionProfile else { return nil }
    let label = "EXTRACTOR-dtls_srtp"
    var bytes = [UInt8](repeating: 0, count: profile.keyingMaterialBytes)
    defer { ERR_clear_error() }
    guard SSL_export_keying_material(ssl, &bytes, bytes.count, label, label.utf8.count, nil, 0, 0) == 1 else {
      return nil
    }
    return bytes
  }

  /// SHA-256 of the certificate that the client has shown, in DER; nil where it has shown none.
  package var peerFingerprint: [UInt8]? {
    guard let certificate = SSL_get1_peer_certificate(ssl) else { return nil }
    defer { ERR_clear_error() }
    return (try? Certificate(owning: certificate).der).map { HashFunction.sha256.digest(of: $0) }
  }
}

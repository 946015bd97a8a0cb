import COpenSSL
package import Platform

/// The functions that DTLS has beyond TLS: retransmission of lost datagrams, and keys for SRTP (RFC 6347, RFC 5764).
extension TLSConnection {
  /// Returns the time to wait for an answer after waiting `former` in vain; 0 begins a flight. RFC 6347 section 4.2.4.1
  /// begins with a second, and lets programs that know better choose: somebody waits for the picture. OpenSSL gives up
  /// after twelve retransmissions, here after about 40 s.
  package static func retransmissionMicroseconds(after former: UInt32) -> UInt32 {
    former == 0 ? 150_000 : min(former * 2, 5_000_000)
  }

  /// The time after which ``retransmit()`` must be called unless data arrives before; `nil` if no response is
  /// awaited. The time follows the host's own clock.
  package var retransmissionTime: Duration? {
    var time = timeval()
    guard nightjar_dtls_get_timeout(ssl, &time) == 1 else { return nil }
    return Duration(nanoseconds: Int64(time.tv_sec) * 1_000_000_000 + Int64(time.tv_usec) * 1000)
  }

  /// Retransmits the messages that were not answered in time; does nothing if called early.
  ///
  /// - Throws: ``TLSConnectionError`` after too many retransmissions.
  package func retransmit() throws(TLSConnectionError) {
    guard state == .handshaking else { return }
    ERR_clear_error()
    guard nightjar_dtls_handle_timeout(ssl) >= 0 else { throw fail { .handshake($0) } }
  }

  /// The negotiated protection profile; `nil` if none was negotiated.
  package var protectionProfile: SRTPProtectionProfile? {
    SSL_get_selected_srtp_profile(ssl).flatMap { SRTPProtectionProfile(rawValue: $0.pointee.id) }
  }

  /// The SRTP keys and salts, RFC 5764 section 4.2: the client's key, the server's key, the client's salt, the
  /// server's salt. `nil` before the end of the handshake, and without a ``protectionProfile``.
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

  /// The SHA-256 of the client's certificate in DER; `nil` if the client sent none.
  package var peerFingerprint: [UInt8]? {
    guard let certificate = SSL_get1_peer_certificate(ssl) else { return nil }
    defer { ERR_clear_error() }
    return (try? Certificate(owning: certificate).der).map { HashFunction.sha256.digest(of: $0) }
  }
}

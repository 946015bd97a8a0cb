import COpenSSL

/// The settings of TLS clients, with the authorities that they trust, shared by all their connections.
package final class ClientContext: @unchecked Sendable {
  // Sendable: an SSL_CTX that is no longer changed may be used by several threads.
  let pointer: OpaquePointer

  /// Creates a context of TLS 1.2 and 1.3 that trusts the system's authorities. OpenSSL's environment variables
  /// `SSL_CERT_FILE` and `SSL_CERT_DIR` name others.
  ///
  /// - Throws: ``OpenSSLError``.
  package init() throws(OpenSSLError) {
    ERR_clear_error()
    guard let pointer = SSL_CTX_new(TLS_client_method()) else { throw OpenSSLError("preparing TLS") }
    self.pointer = pointer
    guard nightjar_ctx_set_minimum_version(pointer, TLS1_2_VERSION) == 1, SSL_CTX_set_default_verify_paths(pointer) == 1
    else { throw OpenSSLError("preparing TLS") }
    SSL_CTX_set_verify(pointer, SSL_VERIFY_PEER, nil)
    _ = SSL_CTX_set_options(pointer, nightjar_op_no_renegotiation | nightjar_op_no_compression)
    _ = nightjar_ctx_disable_session_cache(pointer)
  }

  deinit { SSL_CTX_free(pointer) }
}

extension ClientContext {
  /// Creates a context that trusts every certificate, for a client that compares the fingerprint
  /// (``TLSConnection/peerFingerprint``) before it sends or believes anything.
  ///
  /// - Throws: ``OpenSSLError``.
  package convenience init(comparingFingerprints: Void) throws(OpenSSLError) {
    try self.init()
    SSL_CTX_set_verify(pointer, SSL_VERIFY_NONE, nil)
  }
}
